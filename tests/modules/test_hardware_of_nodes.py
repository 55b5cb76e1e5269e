# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Mapped devices and architectures in placement, starts, migrations and evacuations.

Source: qemu-server, QemuServer/PCI.pm, USB.pm and Virtiofs.pm (find_on_current_node) and
QemuMigrate/Helpers.pm (check_local_resources); pve-manager, API2/Cluster.pm (host-arch).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import limited
from tests.modules.backup_lab import add_nas
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused

DEVICES = {
    "pci": ("hostpci0", "mapping=gpu", "gpu", "path=0000:01:00.0,id=8086:1234"),
    "usb": ("usb0", "mapping=key", "key", "id=0951:1666"),
    "dir": ("virtiofs0", "dirid=data", "data", "path=/var/lib/vz"),
}
DEVICE = pytest.mark.parametrize("kind", sorted(DEVICES))


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def map_device(lab: Lab, kind: str, *nodes: str, **more: str) -> dict[str, str]:
    """Map a device on these nodes, and return the option of a VM that uses it."""
    slot, value, name, entry = DEVICES[kind]
    entries = [f"node={node},{entry}" for node in nodes]
    data = {"id": name, "map": entries, **more}
    lab.client.write("POST", "cluster", "mapping", kind, data=data)
    return {slot: value}


def vm(lab: Lab, options: dict[str, str], name: str = "gpu1", **more: Any) -> dict[str, Any]:
    return dict(lab.vm(name=name, memory="128M", disks=[], options=options, **more)["vm"])


@DEVICE
@pytest.mark.parametrize("node", ["pve1", "pve2", "pve3"])
def test_a_vm_is_placed_on_a_node_with_its_mapped_device(lab: Lab, kind: str, node: str) -> None:
    options = map_device(lab, kind, node)
    made = vm(lab, options, state="started")
    assert (made["node"], made["status"]) == (node, "running")


@DEVICE
def test_a_vm_does_not_start_on_a_named_node_without_its_device(lab: Lab, kind: str) -> None:
    options = map_device(lab, kind, "pve2")
    task: dict[str, Any] = {
        "name": "gpu1",
        "memory": "128M",
        "disks": [],
        "options": options,
        "node": "pve1",
    }
    text = f"mapped device {kind}/{DEVICES[kind][2]} is not there"
    assert text in refused(lab, "vm", **task, state="started")["msg"]
    assert not lab.run("vm", **task).get("failed")
    assert text in refused(lab, "vm", name="gpu1", state="started")["msg"]


@DEVICE
def test_a_running_vm_does_not_restart_without_its_new_device(lab: Lab, kind: str) -> None:
    options = map_device(lab, kind, "pve2")
    vm(lab, {}, node="pve1", state="started")
    text = f"mapped device {kind}/{DEVICES[kind][2]} is not there"
    for restart in ({"reboot": "if_needed"}, {"state": "restarted"}):
        assert text in refused(lab, "vm", name="gpu1", options=options, **restart)["msg"]
    assert lab.vm(name="gpu1")["vm"]["status"] == "running"


UNNAMED = [{DEVICES[kind][0]: DEVICES[kind][1]} for kind in sorted(DEVICES)]
UNNAMED.append({"vmstatestorage": "nosuch"})


@pytest.mark.parametrize("options", UNNAMED, ids=str)
def test_an_option_that_names_nothing_is_refused(lab: Lab, options: dict[str, str]) -> None:
    """PVE takes the names, and looks for them at a start or a snapshot."""
    task: dict[str, Any] = {"name": "gpu1", "memory": "128M", "disks": [], "options": options}
    made = vm(lab, {}, name="gpu2")
    for one in (task, {"vmid": made["vmid"], "options": options}):
        result = refused(lab, "vm", **one)
        assert result["error"]["category"] == "NotFound"
        assert "options was refused: there is no" in result["msg"]


def test_a_mapping_that_the_login_may_not_use_is_refused_by_its_privilege(lab: Lab) -> None:
    """PVE lists only mappings with Mapping.Audit, Mapping.Use or Mapping.Modify (pve-manager:
    API2/Cluster/Mapping/PCI.pm).
    """
    login = limited(lab, "few", {"/vms": "PVEVMAdmin", "/storage": "PVEDatastoreUser"})
    made = vm(lab, {})
    for name in ("gpu", "nosuch"):
        options = {"hostpci0": f"mapping={name}"}
        for check in (True, False):
            result = lab.run("vm", check=check, vmid=made["vmid"], options=options, **login)
            assert result["error"]["category"] == "PermissionDenied", result["msg"]


@DEVICE
def test_a_stopped_vm_moves_with_its_mapped_device(lab: Lab, kind: str) -> None:
    options = map_device(lab, kind, "pve1", "pve2")
    vm(lab, options, node="pve1")
    text = refused(lab, "vm", name="gpu1", node="pve3")["msg"]
    assert f"mapped device {kind}/{DEVICES[kind][2]} is not there" in text
    assert lab.vm(name="gpu1", node="pve2")["vm"]["node"] == "pve2"


@DEVICE
def test_a_running_vm_stays_with_its_mapped_device(lab: Lab, kind: str) -> None:
    vm(lab, map_device(lab, kind, "pve1", "pve2"), node="pve1", state="started")
    text = refused(lab, "vm", name="gpu1", node="pve2")["msg"]
    assert f"it uses devices of its node: {DEVICES[kind][0]}" in text


def test_a_running_vm_moves_with_a_device_that_can(lab: Lab) -> None:
    options = map_device(lab, "pci", "pve1", "pve2", **{"live-migration-capable": "1"})
    vm(lab, options, node="pve1", state="started")
    assert lab.vm(name="gpu1", node="pve2")["vm"]["node"] == "pve2"


@DEVICE
def test_an_evacuation_uses_a_node_with_the_mapped_device(lab: Lab, kind: str) -> None:
    vm(lab, map_device(lab, kind, "pve1", "pve3"), node="pve1")
    done = lab.run("evacuation", node="pve1", state="evacuated", move_stopped=True)
    assert not done.get("failed"), done["msg"]
    assert lab.vm(name="gpu1")["vm"]["node"] == "pve3"


def test_a_vm_moves_to_a_node_of_its_architecture(lab: Lab) -> None:
    for node in ("pve1", "pve2"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    vm(lab, {}, node="pve3")
    text = refused(lab, "vm", name="gpu1", node="pve1")["msg"]
    assert "its architecture is aarch64, and the guest needs x86_64" in text


def test_a_clone_stays_on_nodes_of_the_architecture_of_its_template(lab: Lab) -> None:
    lab.vm(name="base", node="pve3", memory="128M", disks=[{"size": 1, "storage": "ceph"}])
    lab.vm(name="base", state="template")
    for node in ("pve1", "pve2"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    assert lab.vm(name="copy", source="base")["vm"]["node"] == "pve3"
    text = refused(lab, "vm", name="other", source="base", node="pve1")["msg"]
    assert "needs x86_64" in text


def test_a_container_needs_a_node_of_the_architecture_of_its_template(lab: Lab) -> None:
    for node in ("pve1", "pve3"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    task: dict[str, Any] = {
        "source": "debian-13-standard",
        "default_storage": "ceph",
        "memory": "128M",
    }
    made = lab.run("container", name="ct1", **task)
    assert not made.get("failed"), made["msg"]
    assert made["container"]["node"] == "pve2"
    text = refused(lab, "container", name="ct2", **task, node="pve1")["msg"]
    assert "its architecture is aarch64, and the guest needs x86_64" in text


def archive_of(lab: Lab, guest: dict[str, Any]) -> str:
    data = {"vmid": guest["vmid"], "storage": "nas"}
    lab.client.task("POST", "nodes", guest["node"], "vzdump", data=data)
    (row,) = lab.client.get("nodes", "pve1", "storage", "nas", "content", vmid=guest["vmid"])
    return str(row["volid"])


@DEVICE
def test_a_restored_vm_is_placed_on_a_node_with_its_mapped_device(lab: Lab, kind: str) -> None:
    add_nas(lab)
    made = vm(lab, map_device(lab, kind, "pve2"), node="pve2", state="started")
    archive = archive_of(lab, made)
    copy: dict[str, Any] = {"archive": archive, "new_name": "copy"}
    text = f"mapped device {kind}/{DEVICES[kind][2]} is not there"
    on_other: dict[str, Any] = {"node": "pve1", "state": "started"}
    assert text in refused(lab, "restore", **copy, options=on_other)["msg"]
    lab.vm(name="gpu1", state="stopped", force=True)
    result = lab.run("restore", **copy, options={"state": "started"})
    assert not result.get("failed"), result["msg"]
    assert lab.vm(name="copy")["vm"]["node"] == "pve2"


@DEVICE
def test_a_vm_whose_device_is_gone_is_not_overwritten(lab: Lab, kind: str) -> None:
    """The restored VM could not start, and the present one runs."""
    add_nas(lab)
    made = vm(lab, map_device(lab, kind, "pve2"), node="pve2", state="started")
    archive = archive_of(lab, made)
    slot, _value, name, entry = DEVICES[kind]
    lab.vm(name="gpu1", options={slot: ""}, reboot="if_needed")
    path = ("cluster", "mapping", kind, name)
    lab.client.write("PUT", *path, data={"map": [f"node=pve3,{entry}"]})
    wanted = {"archive": archive, "name": "gpu1", "confirm": "gpu1"}
    text = refused(lab, "restore", **wanted)["msg"]
    assert f"mapped device {kind}/{name} is not there" in text


def test_a_restored_guest_stays_on_nodes_of_its_architecture(lab: Lab) -> None:
    add_nas(lab)
    add_container(lab, 301, node="pve3", hostname="box", arch="amd64", tags="tenant_acme")
    archives = {
        "vm": archive_of(lab, vm(lab, {}, node="pve3")),
        "container": archive_of(lab, {"vmid": 301, "node": "pve3"}),
    }
    for node in ("pve1", "pve2"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    for kind, archive in archives.items():
        copy: dict[str, Any] = {"archive": archive, "new_name": f"copy-{kind}"}
        text = refused(lab, "restore", **copy, options={"node": "pve1"})["msg"]
        assert "its architecture is aarch64, and the guest needs x86_64" in text
        assert not lab.run("restore", **copy).get("failed")
        assert lab.run(kind, name=copy["new_name"])[kind]["node"] == "pve3"


def test_a_copy_of_a_drill_is_placed_by_its_architecture(lab: Lab) -> None:
    """A drill makes no copy of a VM with a device, which the original uses."""
    add_nas(lab)
    for node in ("pve1", "pve3"):
        lab.simulator.steer(f"/nodes/{node}", {"arch": "aarch64"})
    add_container(lab, 301, node="pve2", hostname="box", arch="amd64", tags="tenant_acme")
    archive_of(lab, {"vmid": 301, "node": "pve2"})
    options = map_device(lab, "usb", "pve2")
    archive_of(lab, vm(lab, options, node="pve2", tenant="acme"))
    found = lab.run("drill_info", tenant="acme")
    (copy,) = found["rounds"][0]
    result = lab.run("drill", run=found["run"], guests=[copy], settle=0)
    assert [(one["node"], one["outcome"]) for one in result["guests"]] == [("pve2", "proven")]
    assert "usb0 uses a device" in str(found)
