# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of snapshots, and what storages can."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    Conflict,
    NotFound,
    NotSupported,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.desired import (
    read_desired,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.model import (
    DesiredSnapshots,
    Snapshot,
    SnapshotDisk,
    SnapshotTree,
    SnapshotVm,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.plan import (
    plan_snapshots,
    without,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.snapshot.storages import (
    can_snapshot,
    disks_of,
    newest_only,
    no_snapshots,
)

NOW = 1_700_000_000
CEPH = SnapshotDisk("scsi0", "ceph:vm-100-disk-0", "ceph", "rbd", "raw")
TANK = SnapshotDisk("scsi0", "tank:vm-100-disk-0", "tank", "zfspool", "raw")

#   root ── a ── b (you are here)
#      └─── c
GROWN = SnapshotTree(
    {
        "root": Snapshot("root", 10),
        "aa": Snapshot("aa", 20, "text\n", parent="root"),
        "bb": Snapshot("bb", 30, parent="aa", vmstate=True),
        "cc": Snapshot("cc", 40, parent="root"),
    },
    parent="bb",
)


def vm(
    *, running: bool = False, disk: SnapshotDisk = CEPH, tree: SnapshotTree = GROWN, **more: Any
) -> SnapshotVm:
    return SnapshotVm(
        VM, 100, "pve1", "web1", SnapshotTree(tree.snapshots, tree.parent, running), (disk,), **more
    )


def described(**params: Any) -> DesiredSnapshots:
    return read_desired(params, NOW)


PLANS: list[tuple[dict[str, Any], SnapshotVm, list[str]]] = [
    ({"snapshot": "aa"}, vm(), []),
    ({"snapshot": "aa", "description": "text"}, vm(), []),
    ({"snapshot": "aa", "description": "new"}, vm(), ["PUT aa/config"]),
    ({"snapshot": "aa", "description": ""}, vm(), ["PUT aa/config"]),
    ({"snapshot": "dd"}, vm(), ["POST"]),
    (
        {"snapshot": "dd", "keep": 1, "pattern": "??"},
        vm(),
        ["POST", "DELETE aa", "DELETE bb", "DELETE cc"],
    ),
    ({"snapshot": "aa", "keep": 1, "pattern": "??"}, vm(), ["DELETE bb"]),
    ({"snapshot": "aa", "state": "absent"}, vm(), ["DELETE aa"]),
    ({"snapshot": "dd", "state": "absent"}, vm(), []),
    ({"pattern": "?o*", "state": "absent"}, vm(), ["DELETE root"]),
    ({"snapshot": "cc", "pattern": "a*", "state": "absent"}, vm(), ["DELETE cc", "DELETE aa"]),
    ({"snapshot": "aa", "state": "rolled_back"}, vm(), ["POST aa/rollback"]),
    ({"snapshot": "aa", "state": "rolled_back"}, vm(running=True), ["POST aa/rollback start"]),
    (
        {"snapshot": "aa", "state": "rolled_back", "restart": False},
        vm(running=True),
        ["POST aa/rollback"],
    ),
    ({"snapshot": "cc", "state": "rolled_back"}, vm(disk=TANK), ["POST cc/rollback"]),
    (
        {"snapshot": "aa", "state": "rolled_back", "force": True},
        vm(disk=TANK),
        ["DELETE cc", "DELETE bb", "POST aa/rollback"],
    ),
    ({"snapshot": "aa", "state": "absent"}, vm(template=True), []),
    ({"snapshot": "dd", "vmstate": True}, vm(memory_bound=("virtiofs0",)), ["POST"]),
    ({"snapshot": "dd"}, vm(running=True, memory_bound=("virtiofs0",)), ["POST"]),
]


@pytest.mark.parametrize(("params", "machine", "wanted"), PLANS, ids=lambda value: str(value)[:60])
def test_plans(params: dict[str, Any], machine: SnapshotVm, wanted: list[str]) -> None:
    plan = plan_snapshots(described(**params), machine)
    said = []
    for step in plan.steps:
        tail = "/".join(str(part) for part in step.path[5:])
        said.append(
            " ".join(
                part for part in (step.method, tail, "start" * bool(step.data.get("start"))) if part
            )
        )
    assert said == wanted
    assert plan.changed is bool(wanted)


def test_the_diff_shows_what_stands_on_what() -> None:
    plan = plan_snapshots(described(snapshot="aa", state="absent"), vm())
    assert set(plan.before) == {"snapshot aa", "snapshot bb"}
    assert plan.after["snapshot bb"]["parent"] == "root"
    plan = plan_snapshots(described(snapshot="aa", state="rolled_back"), vm(running=True))
    assert plan.before == {"current": {"parent": "bb", "status": "running"}}
    assert plan.after == {"current": {"parent": "aa", "status": "running"}}


def test_memory_is_only_saved_of_a_vm_that_runs() -> None:
    assert (
        plan_snapshots(described(snapshot="dd", vmstate=True), vm(running=True))
        .steps[0]
        .data["vmstate"]
        is True
    )
    plan = plan_snapshots(described(snapshot="dd", vmstate=True), vm())
    assert plan.steps[0].data["vmstate"] is None
    assert "without its memory" in plan.warnings[0]
    plan = plan_snapshots(described(snapshot="bb", state="rolled_back"), vm())
    assert plan.after["current"]["status"] == "running"


def test_deleting_keeps_the_chain() -> None:
    left = without(GROWN, ["aa", "root"])
    assert left.snapshots["bb"].parent is None
    assert left.snapshots["cc"].parent is None
    assert left.parent == "bb"
    assert without(GROWN, ["bb"]).parent == "aa"
    assert GROWN.depth("bb") == 2
    assert GROWN.children("root") == ["aa", "cc"]


BROKEN = SnapshotTree({"s1": Snapshot("s1", 1, state="prepare")}, None)

REFUSED: list[tuple[dict[str, Any], SnapshotVm, type[Exception], str]] = [
    ({"snapshot": "zz", "state": "rolled_back"}, vm(), NotFound, "unknown snapshot"),
    ({"snapshot": "aa", "state": "rolled_back"}, vm(disk=TANK), Conflict, "newer snapshots"),
    ({"snapshot": "aa"}, vm(template=True), Conflict, "is a template"),
    (
        {"snapshot": "dd", "vmstate": True},
        vm(running=True, memory_bound=("virtiofs0",)),
        NotSupported,
        "no memory",
    ),
    ({"snapshot": "aa", "state": "rolled_back"}, vm(template=True), Conflict, "is a template"),
    ({"snapshot": "s1"}, vm(tree=BROKEN), Conflict, "unfinished snapshot"),
    ({"snapshot": "s1", "state": "rolled_back"}, vm(tree=BROKEN), Conflict, "unfinished snapshot"),
]


@pytest.mark.parametrize(
    ("params", "machine", "error", "reason"), REFUSED, ids=lambda value: str(value)[:50]
)
def test_refusals(
    params: dict[str, Any], machine: SnapshotVm, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error) as caught:
        plan_snapshots(described(**params), machine)
    assert caught.value.reason == reason  # type: ignore[attr-defined]


def test_an_unfinished_snapshot_can_be_removed_by_name_and_is_not_a_matter_of_a_pattern() -> None:
    assert plan_snapshots(described(snapshot="s1", state="absent"), vm(tree=BROKEN)).changed
    plan = plan_snapshots(described(pattern="s*", state="absent"), vm(tree=BROKEN))
    assert not plan.changed
    assert "unfinished" in plan.warnings[0]


def test_a_rollback_that_has_just_ended_is_not_done_twice() -> None:
    done = vm(tree=SnapshotTree(GROWN.snapshots, "aa"))
    assert not plan_snapshots(
        described(snapshot="aa", state="rolled_back"), done, rolled_back=True
    ).changed
    assert plan_snapshots(described(snapshot="aa", state="rolled_back"), done).changed
    assert plan_snapshots(
        described(snapshot="cc", state="rolled_back"), done, rolled_back=True
    ).changed


# kind, format -> can, goes back to the newest one only
STORAGES: list[tuple[str, str, bool | None, bool]] = [
    ("rbd", "raw", True, False),
    ("lvmthin", "raw", True, False),
    ("zfspool", "raw", True, True),
    ("zfs", "raw", True, True),
    ("btrfs", "raw", True, False),
    ("btrfs", "vmdk", False, False),
    ("dir", "qcow2", True, False),
    ("dir", "raw", False, False),
    ("nfs", "qcow2", True, False),
    ("cifs", "vmdk", False, False),
    ("lvm", "raw", False, True),
    ("lvm", "qcow2", True, True),
    ("iscsidirect", "raw", False, False),
    ("custom", "raw", None, False),
]


@pytest.mark.parametrize(("kind", "form", "can", "newest"), STORAGES)
def test_storages(kind: str, form: str, can: bool | None, newest: bool) -> None:
    disk = SnapshotDisk("scsi0", "x:y", "x", kind, form)
    assert can_snapshot(disk) is can
    assert newest_only(disk) is newest


def test_a_chain_of_volumes_goes_back_to_its_newest_only() -> None:
    assert newest_only(SnapshotDisk("scsi0", "x:y", "x", "dir", "qcow2", chained=True))
    assert not newest_only(SnapshotDisk("scsi0", "x:y", "x", "dir", "raw", chained=True))


def test_disks_and_whom_the_error_blames() -> None:
    config = {
        "scsi0": "files:100/vm-100-disk-0.raw,size=1G",
        "scsi1": "files:100/vm-100-disk-1.qcow2,size=1G",
        "virtio0": "lvm1:vm-100-disk-2.qcow2,size=1G",
        "sata0": "lvm1:vm-100-disk-3,size=1G",
        "efidisk0": "ceph:vm-100-disk-4,size=4M",
        "ide0": "none,media=cdrom",
        "ide1": "files:iso/x.iso,media=cdrom",
        "ide2": "ceph:vm-100-cloudinit,media=cdrom",
        "unused0": "files:100/vm-100-disk-9.raw",
        "name": "web1",
    }
    disks = disks_of(VM.disks_in(config), {"files": "dir", "lvm1": "lvm", "ceph": "rbd"})
    assert {disk.slot: disk.format for disk in disks} == {
        "efidisk0": "raw",
        "sata0": "raw",
        "scsi0": "raw",
        "scsi1": "qcow2",
        "virtio0": "qcow2",
    }
    error = no_snapshots(SnapshotVm(VM, 100, "pve1", "web1", GROWN, disks))
    assert error.details == {"disks": ["sata0", "scsi0"], "storages": ["files", "lvm1"]}
    assert "files (dir)" in error.message
