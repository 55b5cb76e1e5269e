# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs that place VMs at the same moment, each without knowing of the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from tests.cases import repeated
from tests.modules.estate_lab import Lab, open_lab, run_at_once

BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "cores": 1, "memory": "256M"}
SOURCES = {"created": BLANK, "cloned": {"source": "debian-13"}}


@pytest.fixture
def busy() -> Iterator[Lab]:
    with open_lab("--lag-s", "8", "--latency-ms", "5") as opened:
        yield opened


def where(lab: Lab, tag: str) -> Counter[str]:
    """Return how many VMs of that tag are on each node, as the nodes themselves say."""
    rows = {node: lab.client.get("nodes", node, "qemu") for node in ("pve1", "pve2", "pve3")}
    return Counter(
        node
        for node, there in rows.items()
        for row in there
        if tag in row.get("tags", "").split(";")
    )


def all_wanted(count: int, what: str, **placement: Any) -> list[dict[str, Any]]:
    return [
        {
            "name": f"web{index}",
            "tenant": "acme",
            "tags": ["web"],
            "placement": placement,
            **SOURCES[what],
        }
        for index in range(count)
    ]


@pytest.mark.parametrize("numbers", repeated(["chosen", "given"]))
@pytest.mark.parametrize("what", SOURCES)
@pytest.mark.parametrize(
    "rule", [{"anti_affinity": ["web"]}, {"anti_affinity": ["name:web*"]}, {"max_vms_per_node": 2}]
)
def test_vms_made_at_once_keep_apart(
    busy: Lab, rule: dict[str, Any], what: str, numbers: str
) -> None:
    """Three runs and a place for each.

    On pve1 are the two templates of the demo cluster, which do not count.
    """
    if "max_vms_per_node" in rule:
        for node in ("pve1", "pve2", "pve3"):
            busy.vm(name=f"old-{node}", node=node, **BLANK)
    runs = all_wanted(3, what, **rule)
    if numbers == "given":
        runs = [{**wanted, "vmid": 20000 + index} for index, wanted in enumerate(runs)]
    results = run_at_once(busy, runs)
    failed = [result for result in results if isinstance(result, FleetError)]
    assert not failed, failed
    assert where(busy, "web") == {"pve1": 1, "pve2": 1, "pve3": 1}
    for wanted, result in zip(runs, results, strict=True):
        assert isinstance(result, dict)
        vm = result["vm"]
        assert (vm["name"], vm["node"]) == (wanted["name"], result["placement"]["node"])
        assert busy.config(vm)["name"] == wanted["name"]
        assert not busy.vm(**wanted)["changed"]


@pytest.mark.parametrize("what", SOURCES)
def test_one_too_many_is_reported_node_by_node(busy: Lab, what: str) -> None:
    results = run_at_once(busy, all_wanted(4, what, anti_affinity=["web"]))
    failed = [result for result in results if isinstance(result, FleetError)]
    assert [error.category for error in failed] == ["NodeUnhealthy"]
    assert failed[0].details["nodes"].keys() == {"pve1", "pve2", "pve3"}
    assert where(busy, "web") == {"pve1": 1, "pve2": 1, "pve3": 1}


def test_two_vms_made_at_once_keep_together(busy: Lab) -> None:
    runs = all_wanted(2, "cloned", affinity=["web"], strategy="random")
    results = run_at_once(busy, runs)
    assert all(isinstance(result, dict) for result in results), results
    assert list(where(busy, "web").values()) == [2]
