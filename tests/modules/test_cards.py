# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A PCI device is for one running VM: foreseen by every module that starts a VM.

Source: qemu-server, QemuServer/PCI.pm (choose_hostpci_devices, reserve_pci_usage), and vm_start in
QemuServer.pm, which does not reserve mediated devices.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import ROOT
from tests.modules.backup_lab import add_nas
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused, writes_of
from tests.modules.test_hardware_of_nodes import archive_of

CARD = {"hostpci0": "mapping=gpu"}
IN_USE = "PCI device 0000:01:00.0 is in use by VM"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def map_cards(lab: Lab, *places: str, name: str = "gpu", **more: str) -> None:
    """Map PCI devices; a place is a node and an address."""
    entries = []
    for place in places:
        node, path = place.split()
        entries.append(f"node={node},path={path},id=8086:1234")
    data = {"id": name, "map": entries, **more}
    lab.client.write("POST", "cluster", "mapping", "pci", data=data)


def of(name: str, options: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "memory": "128M", "disks": [], "options": options or CARD, **more}


def started(lab: Lab, name: str, options: dict[str, str] | None = None, **more: Any) -> Any:
    return lab.vm(**of(name, options, state="started", **more))["vm"]


def test_a_card_is_for_one_running_vm(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    first = started(lab, "gpu1")
    task = of("gpu2", state="started")
    assert f"{IN_USE} {first['vmid']}" in refused(lab, "vm", **task)["msg"]
    found = refused(lab, "vm", **task, node="pve2")
    assert f"could not be started on node pve2: {IN_USE}" in found["msg"]
    assert (found["error"]["category"], found["error"]["reason"]) == ("Conflict", "device in use")
    lab.vm(name="gpu1", state="stopped", force=True)
    assert lab.vm(**task)["vm"]["status"] == "running"
    assert (
        f"started on node pve2: {IN_USE}" in refused(lab, "vm", name="gpu1", state="started")["msg"]
    )
    assert not lab.vm(name="gpu2", state="restarted", force=True)["warnings"]


def test_a_vm_is_placed_on_a_node_whose_card_is_free(lab: Lab) -> None:
    map_cards(lab, "pve1 0000:01:00.0", "pve2 0000:01:00.0", "pve3 0000:01:00.0")
    made = [started(lab, f"gpu{number}")["node"] for number in range(3)]
    assert sorted(made) == ["pve1", "pve2", "pve3"]
    found = refused(lab, "vm", **of("gpu3", state="started"))["msg"]
    assert found.count(IN_USE) == 3


def test_the_guests_of_a_list_get_a_card_each(lab: Lab) -> None:
    map_cards(lab, "pve1 0000:01:00.0", "pve2 0000:01:00.0")
    rows = [of(f"gpu{number}", state="started") for number in range(3)]
    for check in (True, False):
        result = lab.run("vms", check=check, vms=rows)
        assert result["failed"]
        assert result["summary"]["failed"] == 1, result["msg"]
        assert IN_USE in result["msg"]
    assert {lab.vm(name=f"gpu{number}")["vm"]["node"] for number in (0, 1)} == {"pve1", "pve2"}


@pytest.mark.parametrize("state", ["stopped", "absent"])
def test_a_card_that_the_same_list_frees_is_for_the_next_run(lab: Lab, state: str) -> None:
    """The guests of a list are worked on at the same time."""
    map_cards(lab, "pve2 0000:01:00.0")
    started(lab, "gpu1")
    going = {"name": "gpu1", "state": state, "force": True}
    rows = [going, of("gpu2", state="started")]
    result = lab.run("vms", vms=rows)
    assert IN_USE in result["msg"]
    assert not lab.run("vms", vms=rows).get("failed")
    assert lab.vm(name="gpu2")["vm"]["status"] == "running"


def test_two_cards_of_a_node_are_for_two_vms(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0", "pve2 0000:02:00.0")
    started(lab, "gpu1")
    two = {**CARD, "hostpci1": "mapping=gpu"}
    text = "no device of mapping pci/gpu is free for hostpci1"
    assert text in refused(lab, "vm", **of("gpu2", two, state="started"))["msg"]
    started(lab, "gpu3")
    text = "no device of mapping pci/gpu is free for hostpci0"
    assert text in refused(lab, "vm", **of("gpu2", state="started"))["msg"]
    for name in ("gpu1", "gpu3"):
        lab.vm(name=name, state="stopped", force=True)
    started(lab, "gpu2", two)


def test_a_card_is_for_one_slot(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    two = {**CARD, "hostpci1": "mapping=gpu"}
    found = refused(lab, "vm", **of("gpu1", two, state="started"))["msg"]
    assert "PCI device 0000:01:00.0 is its hostpci0 too" in found


@pytest.mark.parametrize("path", ["0000:01:00.0", "0000:01:00", "0000:03:00.0;0000:01:00.0"])
def test_another_mapping_of_the_same_card_counts(lab: Lab, path: str) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    map_cards(lab, f"pve2 {path}", name="other")
    started(lab, "gpu1", {"hostpci0": "mapping=other"})
    found = refused(lab, "vm", **of("gpu2", state="started"))["msg"]
    assert IN_USE in found


@pytest.mark.parametrize("path", ["0000:01:00.0", "01:00"])
def test_a_card_without_a_mapping_counts(lab: Lab, path: str) -> None:
    """Only root@pam with its password can give a VM such a card, and every login can start it."""
    map_cards(lab, "pve2 0000:01:00.0")
    raw = of("raw", {"hostpci0": path}, node="pve2")
    assert not lab.run("vm", **raw, **ROOT).get("failed")
    started(lab, "gpu1")
    address = path if path.count(":") > 1 else f"0000:{path}"
    found = refused(lab, "vm", name="raw", state="started")["msg"]
    assert f"PCI device {address} is in use by VM" in found
    lab.vm(name="gpu1", state="stopped", force=True)
    lab.vm(name="raw", state="started")
    assert IN_USE in refused(lab, "vm", name="gpu1", state="started")["msg"]


def test_a_mediated_device_is_for_several_vms(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0", mdev="1")
    shared = {"hostpci0": "mapping=gpu,mdev=nvidia-63"}
    for name in ("gpu1", "gpu2"):
        assert started(lab, name, shared)["status"] == "running"


def test_a_running_vm_does_not_restart_with_a_card_of_another_vm(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    started(lab, "gpu1")
    lab.vm(name="gpu2", memory="128M", disks=[], node="pve2", state="started")
    task: dict[str, Any] = {"name": "gpu2", "options": CARD, "reboot": "if_needed"}
    assert IN_USE in refused(lab, "vm", **task)["msg"]
    assert not lab.vm(name="gpu2", options=CARD)["vm"].get("failed")


def test_a_clone_and_a_restored_vm_wait_for_the_card(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    add_nas(lab)
    first = started(lab, "gpu1")
    archive = archive_of(lab, first)
    restore: dict[str, Any] = {"archive": archive, "new_name": "copy"}
    assert IN_USE in refused(lab, "restore", **restore, options={"state": "started"})["msg"]
    assert not lab.run("restore", **restore).get("failed")
    lab.vm(name="base", memory="128M", disks=[], options=CARD)
    lab.vm(name="base", state="template")
    clone: dict[str, Any] = {"source": "base", "state": "started"}
    assert IN_USE in refused(lab, "vm", name="clone1", **clone)["msg"]
    assert not lab.run("clone", name="clone2", source="base").get("failed")


def test_a_guest_without_a_card_costs_no_request(lab: Lab) -> None:
    map_cards(lab, "pve2 0000:01:00.0")
    started(lab, "gpu1")
    vmid = lab.vm(**of("gpu2"), node="pve2")["vm"]["vmid"]
    lab.vm(name="plain", memory="128M", disks=[], node="pve2")
    reads = {}
    for name in ("gpu2", "plain"):
        lab.simulator.reset_log()
        lab.run("vm", check=True, name=name, state="started")
        reads[name] = [row["path"] for row in lab.simulator.log()]
    assert not [path for path in reads["plain"] if "mapping" in path or f"/{vmid}/" in path]
    running = [path for path in reads["gpu2"] if path.endswith("/config")]
    assert len(reads["gpu2"]) <= len(reads["plain"]) + len(running) + 2
    assert not writes_of(lab)
