# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons why a guest cannot move to another cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.kind import Kind
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.words import CONTAINER, VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.belongings import (
    SiteObjects,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.refusals import (
    SourceFacts,
    find_direct_refusals,
    find_format_problems,
    find_refusals,
    mode_of,
)

FACTS = SourceFacts(
    version=(9, 2),
    objects=SiteObjects(
        {"vm:200": {"sid": "vm:200"}, "vm:202": {"sid": "vm:202", "state": "stopped"}}
    ),
    storages={"local": "dir", "tank": "zfspool", "ceph": "rbd"},
)


def guest(
    config: Mapping[str, str], vmid: int = 300, status: str = "stopped", kind: Kind = VM
) -> Actual:
    return Actual(kind, vmid, "pve1", status, config, config)


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        (guest({}, 200), "it is stopped, and its HA resource must be started"),
        (guest({}, 202, "running"), "it is running, and its HA resource must be stopped"),
        (guest({}, status="hibernated"), "it is hibernated"),
        (guest({"ide2": "local:iso/a.iso,media=cdrom"}), "its ide2 has the medium local:iso/a.iso"),
        (guest({"hostpci0": "0000:01:00.0"}), "its option hostpci0 uses a device"),
        (guest({"scsi0": "local:9000/base-9000-disk-0.qcow2/300/vm-300-disk-0.qcow2"}), "linked"),
        (guest({"mp0": "/srv/data,mp=/data"}, kind=CONTAINER), "its mp0 is a path of its node"),
        (guest({"template": "1"}), "it is a template"),
        (replace(guest({"memory": "512"}), target={"memory": "1024"}), "its changes of memory"),
        (replace(guest({"memory": "512"}), target={}), "its changes of memory"),
    ],
)
def test_a_reason_at_the_source_is_named(actual: Actual, text: str) -> None:
    problems = find_refusals(actual, FACTS) + find_direct_refusals(actual, [])
    assert len(problems) == 1
    assert text in problems[0]


def test_an_ordinary_guest_is_not_refused() -> None:
    """Neither an empty drive nor the cloud-init drive hinders a move."""
    config = {
        "scsi0": "ceph:vm-300-disk-0,size=4G",
        "ide2": "none,media=cdrom",
        "ide3": "ceph:vm-300-cloudinit,media=cdrom",
    }
    assert find_refusals(guest(config), FACTS) == find_direct_refusals(guest(config), []) == []
    assert find_refusals(guest(config, 202), FACTS) == []
    assert "snapshots a, b" in find_direct_refusals(guest(config), ["b", "a"])[0]


@pytest.mark.parametrize(
    ("disk", "target", "is_refused"),
    [
        ("local:300/vm-300-disk-0.qcow2", "dir", False),
        ("local:300/vm-300-disk-0.qcow2", "lvmthin", True),
        ("tank:vm-300-disk-0", "zfspool", False),
        ("tank:vm-300-disk-0", "rbd", True),
        ("ceph:vm-300-disk-0", "lvmthin", False),
    ],
)
def test_formats_hinder_only_stopped_machines(disk: str, target: str, is_refused: bool) -> None:
    """A running VM mirrors its disks, whatever their format."""
    config = {"scsi0": f"{disk},size=4G"}
    storages, types = {"local": "new", "tank": "new", "ceph": "new"}, {"new": target}
    stopped, running = guest(config), guest(config, status="running")
    assert bool(find_format_problems(stopped, storages, types, FACTS)) is is_refused
    assert find_format_problems(running, storages, types, FACTS) == []


def test_the_mode_follows_from_the_state() -> None:
    assert mode_of(guest({})) == "offline"
    assert mode_of(guest({}, status="paused")) == "online"
    assert mode_of(guest({}, status="running", kind=CONTAINER)) == "restart"
