# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookup finds in a listing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import errors
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.find import (
    find_row,
    find_vm,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sites import (
    Rows,
    checked_rows,
)


def row(vmid: int, name: str, tags: str = "") -> dict[str, Any]:
    return {
        "type": "qemu",
        "vmid": vmid,
        "name": name,
        "node": "pve1",
        "status": "running",
        "tags": tags,
    }


ROWS = [
    row(100, "web1", "tenant_acme"),
    row(101, "web1", "tenant_globex"),
    row(102, "db1", "tenant_acme2;x"),
]
POSING = [row(103, "100", "tenant_evil"), row(104, "999", "tenant_evil")]


@pytest.mark.parametrize(
    ("term", "tenant", "vmid"),
    [
        ("db1", "", 102),
        ("102", "", 102),
        ("web1", "acme", 100),
        ("web1", "globex", 101),
        ("db1", "acme", None),
        ("102", "acme", None),
        ("web", "", None),
        ("100", "", 100),
        ("999", "", None),
    ],
)
def test_find(term: str, tenant: str, vmid: int | None) -> None:
    found = find_row(ROWS + POSING, term, tenant, "tenant_")
    assert (found["vmid"] if found else None) == vmid


def test_facts() -> None:
    found = find_row(ROWS, "db1", "", "tenant_")
    assert found is not None
    assert (found["name"], found["node"], found["status"], found["tenant"]) == (
        "db1",
        "pve1",
        "running",
        "acme2",
    )


@pytest.mark.parametrize(
    ("term", "tenant", "error"),
    [
        ("web1", "", errors.Conflict),
        ("nope", "", errors.NotFound),
        (" ", "", errors.ConfigurationError),
    ],
)
def test_refusals(term: str, tenant: str, error: type[errors.FleetError]) -> None:
    with pytest.raises(error):
        find_row(ROWS, term, tenant, "tenant_", must_exist=True)


@pytest.mark.parametrize("answer", [None, {}, {"a": 1}, "text", 0])
def test_an_answer_that_is_not_a_listing_is_not_an_empty_one(answer: Any) -> None:
    with pytest.raises(errors.ApiError, match="Could not look: the answer is not a list"):
        checked_rows(answer, "Could not look")
    assert checked_rows([{"vmid": 1}, None, "x"], "Could not look") == [{"vmid": 1}]


class Known:
    """A listing that is older than its nodes, and notes what is asked."""

    def __init__(self, rows: Rows, nodes: dict[str, dict[int, str]]) -> None:
        self._rows = rows
        self._nodes = nodes
        self.asked: list[str] = []

    def rows(self) -> Rows:
        self.asked.append("listing")
        return self._rows

    def node_rows(self, node: str) -> Rows:
        self.asked.append(node)
        return [{"vmid": vmid, "name": name} for vmid, name in self._nodes[node].items()]


STALE = [
    {**row(100, "old"), "node": "pve1"},
    {**row(101, ""), "node": "pve2"},
    {**row(102, "db1"), "node": "pve2"},
]
NODES = {"pve1": {100: "web1"}, "pve2": {101: "web2", 102: "db1"}}


@pytest.mark.parametrize(
    ("term", "vmid", "asked"),
    [
        ("db1", 102, ["listing", "pve2"]),
        ("102", 102, ["listing"]),
        ("web1", 100, ["listing", "pve1", "pve2"]),
        ("web2", 101, ["listing", "pve1", "pve2"]),
    ],
)
def test_a_name_is_that_on_the_node(term: str, vmid: int, asked: list[str]) -> None:
    known = Known(STALE, NODES)
    found = find_vm(known, term, "", "tenant_")
    assert found["vmid"] == vmid
    assert known.asked == asked


def test_a_vm_is_not_found_under_the_name_of_a_removed_one() -> None:
    with pytest.raises(errors.NotFound):
        find_vm(Known(STALE, NODES), "old", "", "tenant_")
