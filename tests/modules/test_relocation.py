# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Node and storages in one task, for VMs and containers.

Source: qemu-server, API2/Qemu.pm (migrate_vm) and QemuMigrate.pm (scan_local_volumes);
pve-container, LXC/Migrate.pm (prepare): a volume on a storage that the new node lacks needs a
target storage, and a shared storage cannot have one.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused, writes_of

STORAGES = {
    "one-a": {"nodes": "pve1"},
    "one-b": {"nodes": "pve1"},
    "two-a": {"nodes": "pve2"},
    "two-b": {"nodes": "pve2"},
    "nas-one": {"nodes": "pve1", "shared": "1"},
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """Three nodes, two of them with storages of their own."""
    for name, options in STORAGES.items():
        data = {"type": "dir", "path": f"/mnt/{name}", "content": "images,rootdir", **options}
        unused.client.write("POST", "storage", data={"storage": name, **data})
    return unused


def moved(lab: Lab, module: str, **options: Any) -> list[str]:
    """Preview and run a task twice, and return its steps without the name of the guest."""
    foreseen = lab.run(module, check=True, name="one", **options)
    assert not foreseen.get("failed"), foreseen["msg"]
    done = lab.run(module, name="one", **options)
    assert not done.get("failed"), done["msg"]
    assert (foreseen["plan"], foreseen["diff"]) == (done["plan"], done["diff"])
    lab.simulator.reset_log()
    assert not lab.run(module, name="one", **options)["changed"]
    assert writes_of(lab) == []
    return [step.split(" (")[0].split(" to node")[0] for step in done["plan"]]


def storages(lab: Lab, module: str, *slots: str) -> list[str]:
    """Return the storages of these volumes of the guest, which is on node pve2."""
    vmid = lab.run(module, name="one")[module]["vmid"]
    kind = {"vm": "qemu", "container": "lxc"}[module]
    config = lab.client.get("nodes", "pve2", kind, vmid, "config")
    return [config[slot].partition(":")[0] for slot in slots]


def vm(lab: Lab, *storages: str, **options: Any) -> None:
    disks = [{"size": 1, "storage": storage} for storage in storages]
    lab.vm(name="one", node="pve1", memory="128M", disks=disks, **options)


def disks(*storages: str) -> list[dict[str, Any]]:
    return [{"name": f"scsi{slot}", "storage": name} for slot, name in enumerate(storages)]


# Present storages, desired storages, and the kinds of steps in order.
ORDERS: list[tuple[tuple[str, ...], tuple[str, ...], list[str]]] = [
    (("one-a",), ("two-a",), ["Migrate"]),
    (("one-a",), ("ceph",), ["Move scsi0", "Migrate"]),
    (("ceph",), ("two-a",), ["Migrate", "Move scsi0"]),
    (("nas-one",), ("ceph",), ["Move scsi0", "Migrate"]),
    (("one-a", "one-a"), ("two-a", "two-b"), ["Migrate", "Move scsi1"]),
    (("one-a", "one-b"), ("two-b", "two-a"), ["Migrate"]),
    (("one-a", "ceph"), ("local-lvm", "two-a"), ["Move scsi0", "Migrate", "Move scsi1"]),
]


@pytest.mark.parametrize("state", ["stopped", "started"])
@pytest.mark.parametrize(("present", "wanted", "order"), ORDERS, ids=str)
def test_disks_of_a_vm_move_around_its_migration(
    lab: Lab, present: tuple[str, ...], wanted: tuple[str, ...], order: list[str], state: str
) -> None:
    vm(lab, *present, state=state)
    lab.simulator.reset_log()
    steps = moved(lab, "vm", node="pve2", disks=disks(*wanted))
    assert [step.partition(" of ")[0].partition(" VM ")[0] for step in steps] == order
    assert storages(lab, "vm", *(f"scsi{slot}" for slot in range(len(wanted)))) == list(wanted)


@pytest.mark.parametrize(("state", "sent"), [("started", 1), ("stopped", None)])
def test_a_live_migration_keeps_connections(lab: Lab, state: str, sent: int | None) -> None:
    """Source: qemu-server, API2/Qemu.pm (with-conntrack-state, has-dbus-vmstate)."""
    vm(lab, "ceph", state=state)
    lab.simulator.reset_log()
    moved(lab, "vm", node="pve2")
    lab.vm(name="one", node="pve3")
    (write,) = [row for row in writes_of(lab) if row["path"].endswith("/migrate")]
    found = (write.get("params") or {}).get("with-conntrack-state")
    assert str(found) == str(sent)


@pytest.mark.parametrize("status", [403, 501])
def test_a_live_migration_does_not_need_the_answer_of_the_target(lab: Lab, status: int) -> None:
    """The request needs Sys.Audit on the node, which a tenant does not have."""
    vm(lab, "ceph", state="started")
    path = "capabilities/qemu/migration$"
    lab.simulator.fault(method="GET", path=path, times=10, status=status)
    lab.simulator.reset_log()
    assert not lab.run("vm", name="one", node="pve2").get("failed")
    (write,) = [row for row in writes_of(lab) if row["path"].endswith("/migrate")]
    assert "with-conntrack-state" not in (write.get("params") or {})


def test_a_live_migration_keeps_connections_only_if_the_target_can(lab: Lab) -> None:
    """Source: qemu-server, API2/NodeCapabilities/Qemu/Migration.pm."""
    vm(lab, "ceph", state="started")
    lab.simulator.steer("/nodes/pve2", {"dbus_vmstate": False})
    lab.simulator.reset_log()
    for node in ("pve2", "pve1"):
        assert lab.vm(name="one", node=node)["changed"]
    there, back = [row for row in writes_of(lab) if row["path"].endswith("/migrate")]
    assert "with-conntrack-state" not in there["params"]
    assert str(back["params"]["with-conntrack-state"]) == "1"


REFUSED: list[tuple[tuple[str, ...], tuple[str, ...], str]] = [
    (("one-a", "one-b"), ("two-a",), "node pve2 lacks storage one-b (scsi1)"),
    (("nas-one",), ("two-a",), "node pve2 lacks storage nas-one (scsi0)"),
    (("one-a",), (), "node pve2 lacks storage one-a (scsi0)"),
    (("one-a",), ("one-b",), "the node has"),
]


@pytest.mark.parametrize(("present", "wanted", "text"), REFUSED, ids=str)
def test_a_vm_whose_disk_would_have_no_storage_is_refused(
    lab: Lab, present: tuple[str, ...], wanted: tuple[str, ...], text: str
) -> None:
    vm(lab, *present)
    assert text in refused(lab, "vm", name="one", node="pve2", disks=disks(*wanted))["msg"]


def test_a_new_disk_needs_a_storage_of_the_old_node(lab: Lab) -> None:
    vm(lab, "ceph")
    wanted = [{"name": "scsi1", "size": 1, "storage": "two-a"}]
    assert "node pve1" in refused(lab, "vm", name="one", node="pve2", disks=wanted)["msg"]


def test_the_ha_manager_has_no_map_of_storages(lab: Lab) -> None:
    """Source: qemu-server, API2/Qemu.pm, migrate_vm: ha-manager migrate takes the node only."""
    vm(lab, "one-a")
    sid = f"vm:{lab.vm(name='one')['vm']['vmid']}"
    lab.client.write("POST", "cluster", "ha", "resources", data={"sid": sid, "state": "stopped"})
    text = refused(lab, "vm", name="one", node="pve2", disks=disks("two-a"))["msg"]
    assert "the HA manager migrates it" in text


def container(lab: Lab, root: str, *mounts: str, **options: Any) -> None:
    """Create a container with these storages of its root file system and its mounts."""
    rows = [{"path": f"/m{n}", "size": "1G", "storage": name} for n, name in enumerate(mounts)]
    made = lab.run(
        "container",
        name="one",
        node="pve1",
        source="debian-13-standard_13.0-1_amd64",
        memory="128M",
        rootfs={"size": "1G", "storage": root},
        mounts=rows,
        **options,
    )
    assert not made.get("failed"), made["msg"]


@pytest.mark.parametrize("state", ["stopped", "started"])
def test_volumes_of_a_container_get_storages_of_the_new_node(lab: Lab, state: str) -> None:
    container(lab, "one-a", "ceph", state=state)
    (step,) = moved(lab, "container", node="pve2", rootfs={"storage": "two-a"})
    assert step.startswith("Migrate")
    assert storages(lab, "container", "rootfs", "mp0") == ["two-a", "ceph"]


def test_volumes_of_a_stopped_container_move_around_its_migration(lab: Lab) -> None:
    container(lab, "one-a", "ceph")
    mounts = [{"name": "mp0", "path": "/m0", "storage": "two-b"}]
    steps = moved(lab, "container", node="pve2", rootfs={"storage": "ceph"}, mounts=mounts)
    assert [step.partition(" of ")[0][:8] for step in steps] == ["Move roo", "Migrate ", "Move mp0"]
    assert storages(lab, "container", "rootfs", "mp0") == ["ceph", "two-b"]


@pytest.mark.parametrize("state", ["stopped", "started"])
@pytest.mark.parametrize("root", ["one-a", "nas-one"])
def test_a_container_whose_root_would_have_no_storage_is_refused(
    lab: Lab, root: str, state: str
) -> None:
    container(lab, root, state=state)
    text = refused(lab, "container", name="one", node="pve2")["msg"]
    assert f"node pve2 lacks storage {root} (rootfs)" in text


# Storages of the source on node pve1, disks of its clone on node pve2, and the kinds of steps.
CLONES: list[tuple[tuple[str, ...], tuple[str, ...], list[str]]] = [
    (("local-lvm",), (), ["Clone", "Migrate"]),
    (("local-lvm",), ("ceph",), ["Clone", "Migrate"]),
    (("local-lvm", "ceph"), ("ceph", "local-lvm"), ["Clone", "Move", "Move", "Migrate"]),
    (("ceph",), ("two-a",), ["Clone", "Move"]),
    (("ceph", "ceph"), ("two-a", "two-b"), ["Clone", "Move", "Move"]),
    (("nas-one",), ("ceph",), ["Clone"]),
    (("nas-one", "ceph"), ("ceph",), ["Clone"]),
]


def cloned(storages: tuple[str, ...], **options: Any) -> dict[str, Any]:
    task = {"source": "golden", "full": True, "node": "pve2", **options}
    return {**task, "disks": disks(*storages)} if storages else task


@pytest.mark.parametrize(("present", "wanted", "kinds"), CLONES, ids=str)
def test_a_clone_on_another_node_than_its_source(
    lab: Lab, present: tuple[str, ...], wanted: tuple[str, ...], kinds: list[str]
) -> None:
    """Source: qemu-server, API2/Qemu.pm, clone_vm: a clone with local volumes stays beside its
    source.
    """
    rows = [{"size": 1, "storage": storage} for storage in present]
    lab.vm(name="golden", node="pve1", memory="128M", disks=rows, state="template")
    steps = moved(lab, "vm", **cloned(wanted))
    assert [step.partition(" ")[0] for step in steps[:-1]] == kinds
    found = storages(lab, "vm", *(f"scsi{slot}" for slot in range(len(wanted))))
    assert found == list(wanted)


@pytest.mark.parametrize(
    ("present", "options", "text"),
    [
        (("local-lvm",), cloned(("two-a",)), "node pve1 lacks storage two-a"),
        (("local-lvm", "local-lvm"), cloned(("ceph", "two-a")), "node pve1 lacks storage two-a"),
        (("nas-one",), cloned(()), "node pve2 lacks storage nas-one"),
        (("nas-one",), cloned((), full=False), "node pve2 lacks storage nas-one"),
        (("nas-one",), cloned(("two-a",)), "node pve2 lacks storage nas-one"),
        (
            ("local-lvm",),
            cloned((), disks=[{"name": "scsi5", "size": 1, "storage": "two-a"}]),
            "node pve1 lacks storage two-a",
        ),
        (
            ("local-lvm",),
            cloned((), cloud_init={"storage": "two-a", "user": "x"}),
            "node pve1 lacks storage two-a",
        ),
    ],
    ids=str,
)
def test_a_clone_whose_node_lacks_a_storage_on_its_way_is_refused(
    lab: Lab, present: tuple[str, ...], options: dict[str, Any], text: str
) -> None:
    rows = [{"size": 1, "storage": storage} for storage in present]
    lab.vm(name="golden", node="pve1", memory="128M", disks=rows, state="template")
    assert text in refused(lab, "vm", name="one", **options)["msg"]


def test_a_clone_of_a_container_with_a_local_mount_on_another_node(lab: Lab) -> None:
    """Source: pve-container, API2/LXC.pm, clone_vm."""
    container(lab, "local-lvm", "ceph")
    task: dict[str, Any] = {"name": "copy", "source": "one", "node": "pve2"}
    wanted = {**task, "rootfs": {"storage": "two-a"}}
    assert "lacks storage two-a" in refused(lab, "container", **wanted)["msg"]
    foreseen = lab.run("container", check=True, **task)
    done = lab.run("container", **task)
    assert not done.get("failed"), done["msg"]
    assert (foreseen["plan"], foreseen["diff"]) == (done["plan"], done["diff"])
    assert done["container"]["node"] == "pve2"
