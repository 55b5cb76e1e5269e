# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands in the way of a migration, as PVE tells it, and reading a VM wherever it is."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    NetworkError,
    NodeUnreachable,
    NotSupported,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.flow.reads import GuestReads
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.read import read_wherever
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.decide import (
    require_movable,
    why_not_move,
    without,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from tests.unit.module_utils.vm.answering import GONE, Server

PRECONDITIONS: list[tuple[dict[str, Any], str | None]] = [
    (
        {
            "allowed_nodes": ["pve2"],
            "not_allowed_nodes": {"pve2": {}},
            "local_disks": [],
            "local_resources": [],
        },
        None,
    ),
    ({}, None),
    ({"local_resources": ["hostpci0", "usb1"]}, "hostpci0, usb1"),
    (
        {"not_allowed_nodes": {"pve2": {"unavailable_storages": ["fast", "only1"]}}},
        "lacks storage fast, only1",
    ),
    ({"not_allowed_nodes": {"pve3": {"unavailable_storages": ["only1"]}}}, None),
    ({"not_allowed_nodes": {"pve2": {"unavailable-resources": ["gpu"]}}}, "mapped devices gpu"),
    (
        {
            "not_allowed_nodes": {
                "pve2": {"blocking-ha-resources": [{"sid": "vm:101", "cause": "resource-affinity"}]}
            }
        },
        "vm:101 on node pve2",
    ),
    ({"local_disks": [{"volid": "local:iso/x.iso", "cdrom": 1}]}, "local:iso/x.iso"),
    ({"local_disks": [{"volid": "local-lvm:vm-100-cloudinit", "cdrom": 1}]}, None),
    ({"local_disks": [{"volid": "local-lvm:vm-100-disk-0", "cdrom": 0}]}, None),
]


@pytest.mark.parametrize(("answer", "word"), PRECONDITIONS, ids=str)
def test_what_pve_says_stands_in_the_way(answer: dict[str, Any], word: str | None) -> None:
    said = why_not_move(answer, "pve2")
    assert said is None if word is None else word in (said or "")


SNAPPED = {"volid": "x:vm-100-disk-0", "cdrom": 0, "referenced_in_snapshot": {"s1": 1}}
FILE = {**SNAPPED, "volid": "x:100/vm-100-disk-0.qcow2"}
KINDS: list[tuple[dict[str, Any], str, str | None]] = [
    ({"local_disks": [SNAPPED], "running": 1}, "lvmthin", "the VM runs"),
    ({"local_disks": [SNAPPED], "running": 1}, "zfspool", None),  # it may be replicated
    ({"local_disks": [SNAPPED], "running": 0}, "zfspool", None),
    ({"local_disks": [SNAPPED], "running": 0}, "lvmthin", "s1"),
    ({"local_disks": [FILE], "running": 0}, "dir", None),
    ({"local_disks": [FILE], "running": 1}, "dir", "the VM runs"),
    ({"local_disks": [{**FILE, "volid": "x:100/vm-100-disk-0.raw"}], "running": 0}, "dir", "s1"),
    ({"local_disks": [{**SNAPPED, "is_vmstate": 1}], "running": 0}, "lvmthin", None),
    ({"local_disks": [{"volid": "x:vm-100-disk-0", "cdrom": 0}], "running": 1}, "lvmthin", None),
    ({"local_disks": [{"volid": "x:base-9-disk-0/vm-100-disk-0"}]}, "zfspool", "linked clone"),
    (
        {"local_disks": [{"volid": "x:9/base-9-disk-0.qcow2/100/vm-100-disk-0.qcow2"}]},
        "dir",
        "linked clone",
    ),
    ({"local_disks": [{"volid": "x:100/base-100-disk-0.qcow2"}]}, "dir", None),
]


@pytest.mark.parametrize(("answer", "kind", "word"), KINDS, ids=str)
def test_what_a_local_disk_is_keeps_it_where_it_is(
    answer: dict[str, Any], kind: str, word: str | None
) -> None:
    said = why_not_move(answer, "pve2", {"x": kind})
    assert said is None if word is None else word in (said or "")


@pytest.mark.parametrize(
    ("status", "left"), [("stopped", ([], [])), ("running", (["usb0"], ["x:vm-100-disk-1"]))]
)
def test_what_goes_before_the_move_does_not_count(
    status: str, left: tuple[list[str], list[str]]
) -> None:
    config = {
        "usb0": "host=1-1",
        "ide0": "local:iso/a.iso,media=cdrom",
        "scsi1": "x:vm-100-disk-1,size=1G",
    }
    after = {"ide0": "none,media=cdrom"}
    answer = {
        "local_resources": ["usb0"],
        "local_disks": [{"volid": "local:iso/a.iso", "cdrom": 1}, {"volid": "x:vm-100-disk-1"}],
    }
    rest = without(answer, Actual(VM, 100, "pve1", status, config, config), after)
    assert (rest["local_resources"], [disk["volid"] for disk in rest["local_disks"]]) == left


def elsewhere(failure: FleetError, now: str | None) -> Server:
    def answer(path: tuple[Any, ...], _now: float) -> Any:
        if path[0] == "cluster":
            rows = [(100, now), (101, "pve1")]
            found = [{"type": "qemu", "vmid": vmid, "node": node} for vmid, node in rows]
            return [] if now is None else found
        return [{"key": "name", "value": "x"}] if path[1] == now else failure

    return Server(answer)


DOWN = NodeUnreachable(reason="node unreachable")


@pytest.mark.parametrize("failure", [GONE, DOWN], ids=["gone", "down"])
def test_a_vm_is_read_where_it_is_now(failure: FleetError) -> None:
    assert (
        read_wherever(elsewhere(failure, "pve3").client(), VM, 100, "pve1", status="running").node
        == "pve3"
    )
    for server in (elsewhere(failure, None), elsewhere(failure, "pve1")):
        if server.at(("nodes", "pve1"), 0.0) is failure:
            with pytest.raises(type(failure)):
                read_wherever(server.client(), VM, 100, "pve1", status="running")


def test_a_vm_that_came_back_between_two_answers_is_read_again() -> None:
    """The HA manager can move a guest back right after a move."""
    answers = iter([GONE, [{"key": "name", "value": "x"}]])

    def answer(path: tuple[Any, ...], _now: float) -> Any:
        if path[0] == "cluster":
            return [{"type": "qemu", "vmid": 100, "node": "pve1"}]
        return next(answers)

    actual = read_wherever(Server(answer).client(), VM, 100, "pve1", status="running")
    assert (actual.node, actual.name) == ("pve1", "x")


def test_another_failure_is_not_a_reason_to_look_elsewhere() -> None:
    server = elsewhere(NetworkError(reason="bad gateway"), "pve3")
    with pytest.raises(NetworkError):
        read_wherever(server.client(), VM, 100, "pve1", status="running")
    assert ("cluster", "resources") not in server.paths


def test_a_move_that_pve_would_refuse() -> None:
    actual = Actual(VM, 100, "pve1", "running", {}, {"name": "x"})
    server = Server(lambda _path, _now: {"local_resources": ["hostpci0"], "allowed_nodes": []})
    answer = GuestReads(server.client()).migration(actual, "pve2")
    with pytest.raises(NotSupported, match="hostpci0") as failure:
        require_movable(actual, "pve2", {}, answer)
    assert failure.value.details["preconditions"] == {"local_resources": ["hostpci0"]}
    assert len(server.asked) == 1
