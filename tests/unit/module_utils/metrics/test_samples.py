# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Samples and their text: what is written can be read again, whatever names are in it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.exposition import (
    data_of,
    samples_in,
    text_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.families import (
    FAMILIES,
    SUMMARY,
    family_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.samples import (
    Samples,
)
from tests.metrics_text import FEATURES, read_text

HOSTILE = [
    'a"b',
    "a\nb",
    "a\\b",
    'a\\"b\\n',
    "a\r\nb",
    "# TYPE proxmox_node_up counter\n",
    '"} 1\nproxmox_node_up{node="x"} 0',
    "{{ 1 + 1 }}",
    "ünï☃",
    "a\u2028b",
    ",=} ",
]


def put(name: str) -> Samples:
    samples = Samples()
    samples.put("proxmox_node_up", 1, node=name)
    samples.put("proxmox_vm_backups", 2, name=name, tenant=name, vmid=100)
    samples.count_errors(["ApiError"] * 3, site=name)
    samples.put_duration(1.5, action=name)
    return samples


@pytest.mark.parametrize("name", HOSTILE, ids=repr)
def test_hostile_names_stay_values(name: str) -> None:
    samples = put(name)
    text = text_of(samples)
    found = read_text(text)
    assert found.values == {(key.name, key.labels): value for key, value in samples}
    assert len(found.families) == 4
    again = samples_in(text)
    assert again is not None
    assert dict(again) == dict(samples)


@given(st.text(min_size=1, max_size=20))
def test_any_text_is_a_label(name: str) -> None:
    samples = put(name)
    assert read_text(text_of(samples)).values == {
        (key.name, key.labels): value for key, value in samples
    }


def test_what_is_not_unicode_gets_question_marks() -> None:
    samples = Samples()
    samples.put("proxmox_node_up", 1, node="a\udc80b")
    assert 'node="a?b"' in text_of(samples)


def test_names_of_counters_and_gauges_are_kept() -> None:
    samples = Samples()
    samples.put("proxmox_machines_total", 3, node="pve1", phase="running")
    samples.count_errors(["ApiError"])
    lines = text_of(samples).splitlines()
    assert "# TYPE proxmox_machines_total gauge" in lines
    assert 'proxmox_machines_total{node="pve1",phase="running"} 3.0' in lines
    assert "# TYPE proxmox_errors_total counter" in lines
    assert 'proxmox_errors_total{error_type="ApiError"} 1.0' in lines


def test_an_unknown_value_and_an_empty_label_are_left_out() -> None:
    samples = Samples()
    samples.put("proxmox_node_cores", None, node="pve1")
    samples.put("proxmox_node_up", 0, node="pve1", site="")
    assert text_of(samples).splitlines()[2:] == ['proxmox_node_up{node="pve1"} 0.0']
    assert [family["name"] for family in data_of(samples)] == ["proxmox_node_up"]


def test_counters_continue_and_gauges_are_new() -> None:
    earlier, later = put("a"), put("a")
    later.put("proxmox_node_up", 0, node="a")
    for key, value in earlier:
        later.include(key, value)
    found = read_text(text_of(later))
    assert found.get("proxmox_node_up", node="a") == 0
    assert found.get("proxmox_errors_total", error_type="ApiError", site="a") == 6
    assert found.get("proxmox_reconciliation_duration_seconds_sum", action="a") == 3
    assert found.get("proxmox_reconciliation_duration_seconds_count", action="a") == 2


def test_samples_of_others_are_not_read() -> None:
    found = samples_in("# TYPE x gauge\nx 1\nproxmox_x 1\nproxmox_node_up_sum 1\n")
    assert found is not None
    assert len(found) == 0


@pytest.mark.parametrize(
    "text", ["proxmox_node_up{", "proxmox_node_up x\n", "proxmox_node_up{a=b} 1"]
)
def test_a_broken_text_is_not_read(text: str) -> None:
    assert samples_in(text) is None


def test_families_follow_the_conventions_of_prometheus() -> None:
    for name, family in FAMILIES.items():
        assert re.fullmatch(r"proxmox_[a-z][a-z_]*[a-z]", name)
        assert family.help.endswith("."), name
        assert name.endswith("_total") == (family.kind == "counter") or name in FEATURES
        assert not re.search(r"_(ms|milliseconds|minutes|hours|mib|gib|percent)(_|$)", name)
        assert family_of(name) == name
        if family.kind == SUMMARY:
            assert family_of(f"{name}_sum") == family_of(f"{name}_count") == name
    assert {name: FAMILIES[name].kind for name in FEATURES} == FEATURES
    assert family_of("other") == ""
