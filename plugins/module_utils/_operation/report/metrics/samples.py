# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Samples: a name, labels and a value; each name with its labels exists once (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ...._foundation.core.errors import FleetError
from .families import DURATION, ERRORS, FAMILIES, REQUESTS, family_of

_KINDS: list[type[FleetError]] = [FleetError, *FleetError.__subclasses__()]
CATEGORIES = tuple(sorted({kind.category for kind in _KINDS}))

Labels = tuple[tuple[str, str], ...]


class SampleKey(NamedTuple):
    """The identity of a sample: its name, and its labels sorted by name."""

    name: str
    labels: Labels


def labels_of(given: Mapping[str, object]) -> Labels:
    """Return labels without empty ones, which are equal to missing ones.

    A text that is not valid Unicode, such as half of a surrogate pair, gets question marks.
    """
    found: list[tuple[str, str]] = []
    for name, value in sorted(given.items()):
        text = str(value or "").encode("utf-8", "replace").decode("utf-8")
        if text:
            found.append((name, text))
    return tuple(found)


def is_of_a_playbook(key: SampleKey) -> bool:
    """Return whether the callback plugin writes this sample; module metrics writes all others."""
    return any(name == "playbook" for name, _value in key.labels)


class Samples:
    """The samples of a file."""

    def __init__(self) -> None:
        self._values: dict[SampleKey, float] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[SampleKey, float]]:
        return iter(self._values.items())

    def put(self, sample: str, value: float | None, /, **labels: object) -> None:
        """Set a value; None is ignored."""
        if value is not None:
            self._values[SampleKey(sample, labels_of(labels))] = float(value)

    def add(self, sample: str, value: float, /, **labels: object) -> None:
        """Add to a value."""
        self._add(SampleKey(sample, labels_of(labels)), value)

    def include(self, key: SampleKey, value: float) -> None:
        """Include a sample of an earlier file: add to a counter, or set a gauge without a value."""
        if FAMILIES[family_of(key.name)].is_counted:
            self._add(key, value)
        else:
            self._values.setdefault(key, value)

    def put_duration(self, seconds: float, /, **labels: object) -> None:
        """Count one event with its duration."""
        self.add(f"{DURATION}_count", 1, **labels)
        self.add(f"{DURATION}_sum", seconds, **labels)

    def count_requests(self, counts: Iterable[Mapping[str, object]], /, **labels: object) -> None:
        """Count requests from the rows of C(request_counts) in results."""
        for row in counts:
            given = {name: row[name] for name in ("method", "endpoint", "status")}
            self.add(REQUESTS, float(str(row["count"])), **given, **labels)

    def count_errors(self, categories: Iterable[str], /, **labels: object) -> None:
        """Count errors by category. Each known category has a sample: increases are visible."""
        for category in CATEGORIES:
            self.add(ERRORS, 0, error_type=category, **labels)
        for category in categories:
            self.add(ERRORS, 1, error_type=category, **labels)

    def _add(self, key: SampleKey, value: float) -> None:
        self._values[key] = self._values.get(key, 0.0) + value
