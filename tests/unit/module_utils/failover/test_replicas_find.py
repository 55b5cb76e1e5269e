# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica that each guest of a lost node comes up from, and the reasons against it."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    StorageRow,
    VmRow,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.find import (
    LostGuest,
    ReplicaFacts,
    find_lost,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.replicas.lines import (
    FoundConfig,
    LostNodes,
)

DISK = "rpool/data/subvol-200-disk-0"
BOX = {"hostname": "box", "rootfs": "tank:subvol-200-disk-0,size=8G"}
WEB = {"name": "web", "scsi0": "tank:vm-200-disk-0,size=8G", "scsi1": "ceph:vm-200-disk-1,size=1G"}


def storage(name: str, *, shared: bool) -> StorageRow:
    return StorageRow(name, "pve3", True, shared, "", frozenset(("images", "rootdir")), 0, 0)


def find(kind: str, config: dict[str, str], newest: dict[str, Any], **job: Any) -> LostGuest:
    """Return the guest 200 of the lost node pve1, with two jobs."""
    row = VmRow(kind, 200, "pve1", "guest", "unknown", (), None, False, None, 1, 1, 1, 0)
    storages = (storage("tank", shared=False), storage("ceph", shared=True))
    cluster = ClusterState({200: row}, {}, storages, frozenset(), {200})
    jobs = ({"id": "200-0", "target": "pve2", **job}, {"id": "200-1", "target": "pve3"})
    facts = ReplicaFacts(True, {}, jobs, {"tank": "rpool/data"}, frozenset())
    found = FoundConfig("pve1", kind, 200, config)
    (guest,) = find_lost(LostNodes(frozenset(("pve1",)), (found,), newest), facts, cluster)
    return guest


def test_a_container_comes_up_from_its_newest_replica() -> None:
    newest = {"pve2": {(DISK, "200-0"): 100}, "pve3": {(DISK, "200-1"): 200}}
    guest = find("lxc", BOX, newest)
    assert (guest.target, guest.job, guest.chosen.archive.time) == ("pve3", "200-1", 200)
    assert guest.problem == ""
    assert guest.file_on("pve3") == "/etc/pve/nodes/pve3/lxc/200.conf"
    older = find("lxc", BOX, {"pve2": newest["pve2"]})
    assert (older.target, older.chosen.archive.time) == ("pve2", 100)


def test_disks_of_shared_storages_need_no_replica() -> None:
    disk = "rpool/data/vm-200-disk-0"
    assert find("qemu", WEB, {"pve2": {(disk, "200-0"): 100}}).problem == ""


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"scsi2": "tank:vm-200-disk-2,size=1G"}, "scsi2 (tank:vm-200-disk-2) has no replica"),
        ({"scsi2": "local-lvm:vm-200-disk-2"}, "scsi2 (local-lvm:vm-200-disk-2) has no replica"),
        ({"scsi0": "ceph:vm-200-disk-0"}, "none of its disks is replicated"),
        ({"lock": "migrate"}, "it has the lock migrate"),
        ({"hostpci0": "0000:01:00.0"}, "its option hostpci0 uses a device"),
        ({"ide2": "local:iso/debian.iso,media=cdrom"}, "ide2 has local:iso/debian.iso"),
        ({"ide2": "none,media=cdrom"}, ""),
        ({"ide2": "tank:vm-200-cloudinit,media=cdrom"}, ""),
    ],
)
def test_reasons_against_a_guest(config: dict[str, str], word: str) -> None:
    newest = {"pve2": {("rpool/data/vm-200-disk-0", "200-0"): 100}}
    problem = find("qemu", {**WEB, **config}, newest).problem
    assert word in problem
    assert bool(problem) == bool(word)


def test_a_job_that_is_being_deleted_is_not_used() -> None:
    newest = {"pve2": {(DISK, "200-0"): 100}}
    assert (
        "no replication job copies it to pve2"
        in find("lxc", BOX, newest, remove_job="full").problem
    )
