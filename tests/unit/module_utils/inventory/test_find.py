# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the lookup finds in a listing."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._core import errors
from ansible_collections.pve.fleet.plugins.module_utils._inventory.find import checked_rows, find_row


def row(vmid: int, name: str, tags: str = "") -> dict[str, Any]:
    return {"type": "qemu", "vmid": vmid, "name": name, "node": "pve1", "status": "running", "tags": tags}


ROWS = [row(100, "web1", "tenant_acme"), row(101, "web1", "tenant_globex"), row(102, "db1", "tenant_acme2;x")]
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
    assert (found["name"], found["node"], found["status"], found["tenant"]) == ("db1", "pve1", "running", "acme2")


@pytest.mark.parametrize(
    ("term", "tenant", "error"),
    [("web1", "", errors.Conflict), ("nope", "", errors.NotFound), (" ", "", errors.ConfigurationError)],
)
def test_refusals(term: str, tenant: str, error: type[errors.FleetError]) -> None:
    with pytest.raises(error):
        find_row(ROWS, term, tenant, "tenant_", must_exist=True)


@pytest.mark.parametrize("answer", [None, {}, {"a": 1}, "text", 0])
def test_an_answer_that_is_no_listing_is_no_empty_one(answer: Any) -> None:
    with pytest.raises(errors.ApiError, match="Could not look: the answer is no list"):
        checked_rows(answer, "Could not look")
    assert checked_rows([{"vmid": 1}, None, "x"], "Could not look") == [{"vmid": 1}]
