# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Disks and volumes that move to another guest (`state: moved`).

Source: qemu-server, API2/Qemu.pm (move_vm_disk, with target-vmid) and pve-container, API2/LXC.pm
(move_volume): both guests on one node, neither a template, the slot free, the first guest off
unless the disk is unused, no snapshot with the disk, a storage that renames volumes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.table_lab import refused, writes_of

FROM, TO, THEIRS = 4801, 4802, 4803
KINDS: dict[str, dict[str, Any]] = {
    "vm": {
        "list": "disks",
        "slot": "scsi1",
        "other": "scsi3",
        "type": "qemu",
        "value": "size=2G,ssd=1",
    },
    "container": {
        "list": "mounts",
        "slot": "mp0",
        "other": "mp3",
        "type": "lxc",
        "value": "mp=/data,size=2G",
    },
}


@pytest.fixture(scope="module")
def all_labs() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


@pytest.fixture
def lab(all_labs: Lab) -> Lab:
    all_labs.simulator.clear_faults()
    all_labs.simulator.reset()
    return all_labs


def made(lab: Lab, module: str, *, tenants: tuple[str, str] = ("acme", "acme")) -> None:
    """Add two guests of a kind to a node, the first of which has a second disk."""
    for vmid, tenant in zip((FROM, TO), tenants, strict=True):
        guest(lab, module, vmid, **({"tags": f"tenant_{tenant}"} if tenant else {}))
    volume = f"ceph:vm-{FROM}-data"
    lab.run("volume", volume=volume, node="pve1", vmid=FROM, size="2G")
    change(lab, module, FROM, config={KINDS[module]["slot"]: f"{volume},{KINDS[module]['value']}"})


def guest(lab: Lab, module: str, vmid: int, **config: Any) -> None:
    """Add a guest that is off."""
    if module == "container":
        add_container(lab, vmid, hostname=f"guest{vmid}", **config)
        return
    name = {"name": f"guest{vmid}", "scsi0": f"ceph:vm-{vmid}-disk-0,size=1G", "memory": "128"}
    lab.simulator.ask("POST", f"/vms/{vmid}", {"node": "pve1", "config": {**name, **config}})


def change(lab: Lab, module: str, vmid: int, **body: Any) -> None:
    where = "vms" if module == "vm" else "containers"
    lab.simulator.ask("PUT", f"/{where}/{vmid}", body)


def config(lab: Lab, module: str, vmid: int, node: str = "pve1") -> dict[str, Any]:
    return dict(lab.client.get("nodes", node, KINDS[module]["type"], vmid, "config"))


def item(module: str, **more: Any) -> dict[str, Any]:
    kind = KINDS[module]
    moved = {
        "name": kind["slot"],
        "state": "moved",
        "target_vmid": TO,
        "target_slot": kind["other"],
    }
    return {kind["list"]: [{**moved, **more}]}


@pytest.mark.parametrize("module", KINDS)
@pytest.mark.parametrize("tenant", ["acme", None])
def test_a_disk_moves_to_another_guest(lab: Lab, module: str, tenant: str | None) -> None:
    kind = KINDS[module]
    made(lab, module)
    task: dict[str, Any] = {"vmid": FROM, **({"tenant": tenant} if tenant else {}), **item(module)}
    foreseen = lab.run(module, check=True, **task)
    assert not foreseen.get("failed"), foreseen
    lab.simulator.reset_log()
    done = lab.run(module, **task)
    assert not done.get("failed"), done
    assert (foreseen["plan"], foreseen["diff"]) == (done["plan"], done["diff"])
    (write,) = writes_of(lab)
    assert write["params"]["target-digest"]
    assert kind["slot"] not in config(lab, module, FROM)
    received = config(lab, module, TO)[kind["other"]]
    assert received.startswith(f"ceph:vm-{TO}-disk-")
    assert set(kind["value"].split(",")) <= set(received.split(","))
    for check in (True, False):
        lab.simulator.reset_log()
        again = lab.run(module, check=check, **task)
        assert not again.get("failed"), again
        assert not again["changed"]
        assert writes_of(lab) == []


def test_in_a_list_a_disk_moves_too(lab: Lab) -> None:
    made(lab, "vm")
    task: dict[str, Any] = {"tenant": "acme", "vms": [{"vmid": FROM, **item("vm")}, {"vmid": TO}]}
    foreseen = lab.run("vms", check=True, **task)
    done = lab.run("vms", **task)
    assert not done.get("failed"), done
    assert foreseen["changed"]
    assert done["changed"]
    assert "scsi3" in config(lab, "vm", TO)
    assert not lab.run("vms", **task)["changed"]


@pytest.mark.parametrize("module", KINDS)
def test_a_running_guest_stops_first(lab: Lab, module: str) -> None:
    made(lab, module)
    change(lab, module, FROM, running=True)
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", **item(module)}
    assert "Stop it in the same task" in refused(lab, module, **task)["msg"]
    stopped = lab.run(module, state="stopped", **task)
    assert not stopped.get("failed"), stopped
    assert KINDS[module]["other"] in config(lab, module, TO)
    assert not lab.run(module, state="stopped", **task)["changed"]


def test_an_unused_disk_of_a_running_vm_moves(lab: Lab) -> None:
    made(lab, "vm")
    change(lab, "vm", FROM, config={"unused0": f"ceph:vm-{FROM}-data", "scsi1": None}, running=True)
    moved = {"name": "unused0", "state": "moved", "target_vmid": TO, "target_slot": "scsi7"}
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", "disks": [moved]}
    done = lab.run("vm", **task)
    assert not done.get("failed"), done
    assert config(lab, "vm", TO)["scsi7"].startswith(f"ceph:vm-{TO}-disk-")
    assert not lab.run("vm", **task)["changed"]


@pytest.mark.parametrize("module", KINDS)
@pytest.mark.parametrize(
    ("tenants", "task"),
    [
        (("acme", "globex"), "acme"),
        (("acme", ""), "acme"),
        (("globex", "acme"), "acme"),
        (("acme", "globex"), None),
        (("acme", ""), None),
    ],
)
def test_a_disk_stays_within_its_tenant(
    lab: Lab, module: str, tenants: tuple[str, str], task: str | None
) -> None:
    made(lab, module, tenants=tenants)
    own = {"tenant": task} if task else {}
    result = refused(lab, module, vmid=FROM, **own, **item(module))
    assert result["error"]["reason"] == "foreign tenant", result["msg"]
    if task and tenants[1] == "globex":
        assert f"guest{TO}" not in result["msg"]


@pytest.mark.parametrize("module", KINDS)
def test_a_guest_with_a_new_owner_gets_no_disk(lab: Lab, module: str) -> None:
    """PVE compares the digest of the second guest, read with its owner, with the present one."""
    made(lab, module)
    where = "vms" if module == "vm" else "containers"
    steer = [["PUT", f"/{where}/{TO}", {"config": {"tags": "tenant_globex"}}]]
    lab.simulator.fault(method="POST", path="/move_(disk|volume)$", steer=steer)
    result = lab.run(module, vmid=FROM, tenant="acme", **item(module))
    assert result["error"]["reason"] == "foreign tenant", result
    assert KINDS[module]["slot"] in config(lab, module, FROM)
    assert KINDS[module]["other"] not in config(lab, module, TO)


@pytest.mark.parametrize("module", KINDS)
@pytest.mark.parametrize("drop", ["before", "after"])
def test_a_lost_answer_moves_the_disk_once(lab: Lab, module: str, drop: str) -> None:
    made(lab, module)
    lab.simulator.fault(method="POST", path="/move_(disk|volume)$", drop=drop)
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", **item(module)}
    done = lab.run(module, **task)
    assert not done.get("failed"), done
    assert KINDS[module]["other"] in config(lab, module, TO)
    assert not lab.run(module, **task)["changed"]


@pytest.mark.parametrize("module", KINDS)
@pytest.mark.usefixtures("fast")
def test_a_disk_that_neither_guest_has_is_not_a_success(lab: Lab, module: str) -> None:
    made(lab, module)
    change(lab, module, FROM, config={KINDS[module]["slot"]: None})
    result = refused(lab, module, vmid=FROM, tenant="acme", **item(module))
    assert "neither has it" in result["msg"]


@pytest.mark.parametrize("module", KINDS)
def test_a_volume_of_a_snapshot_or_of_another_guest_stays(lab: Lab, module: str) -> None:
    made(lab, module)
    value = f"ceph:vm-{FROM}-data,{KINDS[module]['value']}"
    guest(lab, module, THEIRS, tags="tenant_globex", **{KINDS[module]["other"]: value})
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", **item(module)}
    assert f"guest {THEIRS} uses ceph:vm-{FROM}-data" in refused(lab, module, **task)["msg"]
    change(lab, module, THEIRS, config={KINDS[module]["other"]: None})
    snapshot: dict[str, Any] = {"vmid": FROM, "tenant": "acme", "snapshot": "kept"}
    assert not lab.run("snapshot", **snapshot).get("failed")
    assert "in snapshot 'kept' uses" in refused(lab, module, **task)["msg"]


@pytest.mark.parametrize("module", KINDS)
@pytest.mark.parametrize(
    ("more", "body", "why"),
    [
        ({}, {"config": {"SLOT": "ceph:vm-1-x,mp=/x"}}, "already"),
        ({}, {"node": "pve2"}, "is on another node"),
        ({}, {"config": {"template": "1"}}, "one of them is a template"),
        ({"target_vmid": 4899}, {}, "of number 4899 is visible"),
        ({"target_vmid": FROM}, {}, "it is the same guest"),
    ],
)
def test_what_pve_does_not_move(
    lab: Lab, module: str, more: dict[str, Any], body: dict[str, Any], why: str
) -> None:
    made(lab, module)
    slot = KINDS[module]["other"]
    if "SLOT" in str(body):
        body = {"config": {slot: f"ceph:vm-{TO}-x" + (",mp=/x" if module == "container" else "")}}
    if body:
        change(lab, module, TO, **body)
    assert why in refused(lab, module, vmid=FROM, tenant="acme", **item(module, **more))["msg"]


def test_a_guest_of_the_other_kind_gets_no_disk(lab: Lab) -> None:
    made(lab, "vm")
    guest(lab, "container", THEIRS, tags="tenant_acme")
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", **item("vm", target_vmid=THEIRS)}
    assert f"no VM of number {THEIRS} is visible" in refused(lab, "vm", **task)["msg"]


def test_a_cd_drive_and_a_path_stay(lab: Lab) -> None:
    made(lab, "vm")
    change(lab, "vm", FROM, config={"ide2": "none,media=cdrom", "scsi5": "/dev/sdx"})
    for name in ("ide2", "scsi5"):
        task = {"vmid": FROM, "tenant": "acme", **item("vm", name=name)}
        assert "it is not a volume of a storage" in refused(lab, "vm", **task)["msg"]


def test_a_storage_that_cannot_rename_keeps_its_volumes(lab: Lab) -> None:
    """pve-storage, ZFSPlugin.pm and ISCSIPlugin.pm: volume_has_feature knows no rename."""
    made(lab, "vm")
    lab.client.write(
        "POST",
        "storage",
        data={
            "storage": "san",
            "type": "iscsi",
            "portal": "10.99.0.6",
            "target": "iqn.2026-01.com.example:san",
        },
    )
    change(lab, "vm", FROM, config={"scsi5": "san:0.0.1.scsi-360014"})
    task: dict[str, Any] = {"vmid": FROM, "tenant": "acme", **item("vm", name="scsi5")}
    assert "storage san cannot give" in refused(lab, "vm", **task)["msg"]


@pytest.mark.parametrize("module", KINDS)
def test_a_new_guest_has_no_disk_to_move(lab: Lab, module: str) -> None:
    made(lab, module)
    new: dict[str, Any] = {"source": "debian-13"}
    if module == "container":
        new = {"source": "debian-13-standard", "default_storage": "ceph"}
    result = refused(lab, module, name="new", tenant="acme", **new, **item(module))
    assert "the guest does not exist" in result["msg"]


@pytest.mark.parametrize(
    ("module", "more", "why"),
    [
        ("vm", {"target_vmid": None}, "names no other guest"),
        ("vm", {"state": "present", "size": "1G"}, "is for state=moved"),
        ("vm", {"target_slot": "net0"}, "is not such a slot"),
        ("container", {"target_slot": "rootfs"}, "is not such a slot"),
        ("container", {"name": "unused0", "target_slot": "mp1"}, "is not such a slot"),
    ],
)
def test_options_that_exclude_each_other(
    lab: Lab, module: str, more: dict[str, Any], why: str
) -> None:
    assert why in refused(lab, module, vmid=FROM, **item(module, **more))["msg"]
