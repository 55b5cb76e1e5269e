# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A file of metrics as a test reads it: by the parser of prometheus_client, with strict checks."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

Key = tuple[str, tuple[tuple[str, str], ...]]
# The metrics that a user relies on by name, with their types.
FEATURES = {
    "proxmox_machines_total": "gauge",
    "proxmox_reconciliation_duration_seconds": "summary",
    "proxmox_api_requests_total": "counter",
    "proxmox_errors_total": "counter",
    "proxmox_cluster_nodes_available": "gauge",
    "proxmox_cluster_connection_status": "gauge",
}
# Metrics whose values are times, by name and as a line of a file.
TIMED = re.compile(r"_seconds(_sum)?$")
TIMED_LINE = re.compile(r"(?m)^(proxmox_\w+_seconds(_sum)?(\{.*\})?) .*$")


@dataclass(frozen=True)
class Text:
    """The content of a file: values by name and labels, and the types of families."""

    values: dict[Key, float]
    types: dict[str, str]

    def __getitem__(self, name: str) -> float:
        return self.values[name, ()]

    @property
    def families(self) -> set[str]:
        return set(self.types)

    def get(self, metric: str, /, **labels: str) -> float:
        """Return the value with exactly these labels."""
        return self.values[metric, tuple(sorted(labels.items()))]

    def has(self, metric: str, /, **labels: str) -> bool:
        """Return whether there is a sample of that name; with labels, a sample with exactly
        these.
        """
        if labels:
            return (metric, tuple(sorted(labels.items()))) in self.values
        return any(key[0] == metric for key in self.values)

    def sum(self, name: str) -> float:
        return sum(value for key, value in self.values.items() if key[0] == name)

    def labels_of(self, family: str) -> set[str]:
        """Return the names of the labels of a family."""
        found: set[str] = set()
        for name, labels in self.values:
            if name.startswith(family):
                found |= {label for label, _value in labels}
        return found


def read_text(text: str) -> Text:
    """Return the content of a file. Fails for a series or a header that is there twice, and for a
    sample before its header, as promtool does.
    """
    headers = [line.split(" ")[:3] for line in text.split("\n") if line.startswith("# ")]
    numbers = Counter((kind, name) for _mark, kind, name in headers)
    assert set(numbers.values()) <= {1}, numbers
    names = {name for _kind, name in numbers}
    assert len(numbers) == 2 * len(names), numbers
    assert text.endswith("\n")
    values: dict[Key, float] = {}
    types = {line.split(" ")[2]: line.split(" ")[3] for line in text.split("\n") if is_type(line)}
    for metric in text_string_to_metric_families(text):
        assert metric.documentation
        assert metric.type != "unknown", metric
        for sample in metric.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in values, key
            values[key] = sample.value
    assert types.keys() == names
    return Text(values, types)


def is_type(line: str) -> bool:
    return line.startswith("# TYPE ")
