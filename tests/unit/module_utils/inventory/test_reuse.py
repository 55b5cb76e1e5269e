# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cached details still hold, in tables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.cache_policy import (
    EarlierSync,
    age_limit,
    has_changed,
    needs_request,
    reusable,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.hosts import (
    InventoryGuest,
    read_guests,
)

ADDRESSES = {"addresses": [["10.0.0.5", 24, "eth0", "", "agent"]]}


def guest(vmid: int = 1, **more: Any) -> InventoryGuest:
    row = {"type": "qemu", "vmid": vmid, "name": "a", "node": "pve1", "status": "running", **more}
    return read_guests([row])[0]


def reused(
    details: dict[str, Any],
    after: list[InventoryGuest],
    max_age: float = 3600.0,
    age: float = 100.0,
) -> list[str]:
    """Return the keys whose details still hold after 100 s; the details are `age` seconds old."""
    before = {f"/{vmid}": guest(vmid, uptime=50000) for vmid in range(1, 7)}
    known = {key: {**one, "taken": 9000.0 - age} for key, one in details.items()}
    earlier = EarlierSync(before, known, {"": 100.0})
    return sorted(reusable(after, earlier, ["addresses"], max_age, 9000.0))


def test_only_the_details_of_unchanged_vms_hold() -> None:
    details: dict[str, Any] = {f"/{vmid}": ADDRESSES for vmid in (1, 2, 3, 5)}
    after = [
        guest(1, uptime=50100),
        guest(2, uptime=20),
        guest(3, uptime=50100, node="pve2"),
        guest(4, uptime=50100),
        guest(6, uptime=50100),
        guest(7, uptime=50100),
    ]
    assert reused(details, after) == ["/1"]


def test_nothing_holds_longer_than_the_maximal_age() -> None:
    after = [guest(vmid, uptime=50100) for vmid in range(1, 7)]
    details: dict[str, Any] = {one.key: ADDRESSES for one in after}
    assert len(reused(details, after, 3600.0, 1799.0)) == 6
    assert reused(details, after, 3600.0, 3600.0) == []
    assert len(reused(details, after, 0.0, 1e9)) == 6


def test_what_was_fetched_at_once_does_not_grow_old_at_once() -> None:
    limits = [age_limit(guest(vmid), 3600.0) for vmid in range(1000, 6000)]
    assert min(limits) >= 1800.0
    assert max(limits) < 3600.0
    for start in range(1800, 3600, 180):  # a tenth of the time, about a tenth of the VMs
        assert 400 < sum(start <= limit < start + 180 for limit in limits) < 600


@pytest.mark.parametrize(
    ("more", "seconds", "changed"),
    [
        ({"uptime": 110}, 10, False),
        ({"uptime": 100}, 10, False),
        ({"uptime": 150}, 100, False),
        ({"uptime": 99}, 10, True),
        ({"uptime": 200}, 3600, True),
        ({"uptime": 0, "status": "stopped"}, 10, True),
        ({"uptime": 110, "node": "pve2"}, 10, True),
        ({"uptime": 110, "tags": "a"}, 10, True),
        ({"uptime": 110, "name": "b"}, 10, True),
        ({"uptime": 110, "pool": "p"}, 10, True),
        ({"uptime": 110, "lock": "backup"}, 10, True),
        ({"uptime": 110, "template": 1}, 10, True),
        ({"uptime": 110, "maxmem": 5}, 10, True),
        ({"uptime": 110, "maxcpu": 5}, 10, True),
        ({"uptime": 110, "maxdisk": 5}, 10, True),
        ({"uptime": 110, "mem": 5, "cpu": 0.9}, 10, False),
    ],
)
def test_what_counts_as_a_change(more: dict[str, Any], seconds: float, changed: bool) -> None:
    assert has_changed(guest(uptime=100), guest(**more), seconds) is changed


@pytest.mark.parametrize(
    ("details", "uptime", "age", "worth"),
    [
        (ADDRESSES, 5000, 10, False),
        (ADDRESSES, 100, 10, False),
        # no address yet: a guest that booted lately is asked each time, another one after a quarter
        # of an hour
        ({"addresses": []}, 100, 10, True),
        ({"addresses": []}, 5000, 10, False),
        ({"addresses": []}, 5000, 900, True),
        ({"errors": {"addresses": "agent not running"}}, 100, 10, True),
        ({"errors": {"addresses": "agent not running"}}, 5000, 10, False),
        ({"errors": {"addresses": "agent not running"}}, 5000, 4500, True),
        ({"errors": {"addresses": "agent not configured"}}, 100, 2000, False),
        # what may be better the next time
        ({"errors": {"addresses": "timeout"}}, 5000, 10, True),
        ({**ADDRESSES, "errors": {"config": "timeout"}}, 5000, 10, True),
        ({"errors": {"addresses": "not asked within 1 s"}}, 5000, 10, True),
    ],
)
def test_what_is_worth_another_look(
    details: dict[str, Any], uptime: int, age: float, worth: bool
) -> None:
    assert needs_request(details, guest(uptime=uptime), ["addresses"], age) is worth


def test_a_stopped_vm_and_a_template_have_nothing_to_ask_for() -> None:
    assert not needs_request({}, guest(status="stopped"), ["addresses"], 5000)
    assert not needs_request({}, guest(template=1, uptime=100), ["addresses"], 5000)
    assert not needs_request({"config": {}}, guest(uptime=100), ["config"], 5000)
