# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples as the text format of Prometheus, written and read by prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .families import COUNTER, FAMILIES, family_of
from .samples import SampleKey, Samples, labels_of

if TYPE_CHECKING:
    from prometheus_client.core import Metric

LIBRARY = "prometheus_client"
# The suffix that the text format itself adds to the name of a counter.
_TOTAL = "_total"


class _Collector:
    """A registry from which prometheus_client collects the metrics."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)

    def collect(self) -> Iterator[Metric]:
        """Return the metrics."""
        return iter(self._metrics)


def text_of(samples: Samples) -> str:
    """Return the text, with HELP and TYPE once for each family that has a sample."""
    from prometheus_client import generate_latest
    from prometheus_client.core import Metric

    by_family: dict[str, list[tuple[SampleKey, float]]] = {name: [] for name in FAMILIES}
    for key, value in samples:
        by_family[family_of(key.name)].append((key, value))
    found: list[Metric] = []
    for name, rows in by_family.items():
        if not rows:
            continue
        family = FAMILIES[name]
        formatted = name.removesuffix(_TOTAL) if family.kind == COUNTER else name
        metric = Metric(formatted, family.help, family.kind)
        for key, value in sorted(rows):
            metric.add_sample(key.name, dict(key.labels), value)
        found.append(metric)
    return generate_latest(_Collector(found)).decode("utf-8")


def data_of(samples: Samples) -> list[dict[str, Any]]:
    """Return the families as data: C(name), C(type), C(help) and C(samples)."""
    by_family: dict[str, list[dict[str, Any]]] = {}
    for key, value in sorted(samples):
        row = {"name": key.name, "labels": dict(key.labels), "value": value}
        by_family.setdefault(family_of(key.name), []).append(row)
    found: list[dict[str, Any]] = []
    for name, family in FAMILIES.items():
        if name in by_family:
            rows = by_family[name]
            formatted = {"name": name, "type": family.kind, "help": family.help, "samples": rows}
            found.append(formatted)
    return found


def samples_in(text: str) -> Samples | None:
    """Return the samples of a text that this collection wrote, None if it cannot be parsed."""
    from prometheus_client.parser import text_string_to_metric_families

    found = Samples()
    try:
        for metric in text_string_to_metric_families(text):
            for sample in metric.samples:
                if family_of(sample.name):
                    found.include(SampleKey(sample.name, labels_of(sample.labels)), sample.value)
    except (ValueError, KeyError, IndexError):
        return None
    return found
