# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options that PVE takes together, and at which each start of the VM dies.

Source: qemu-server, QemuServer/PCI.pm (parse_hostpci_devices), USB.pm (assert_usb_index_is_useable),
Virtiofs.pm (assert_virtiofs_config) and Memory.pm (config); QEMU, block/file-posix.c
(raw_open_common).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import ROOT
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused
from tests.modules.test_hardware_of_nodes import map_device

DISK = {"size": 1, "storage": "local-lvm"}
NODES = {"numa0": "cpus=0,memory=512", "numa1": "cpus=1,memory=512"}
# The options, a part of the refusal, and a change with which the VM starts.
CASES: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "pcie": (
        {"options": {"hostpci0": "mapping=gpu,pcie=1"}},
        "hostpci0 has pcie, and machine is not q35",
        {"machine": "q35"},
    ),
    "legacy igd": (
        {"options": {"hostpci0": "mapping=gpu,legacy-igd=1"}},
        "vga is not none",
        {"vga": "none"},
    ),
    "igd and q35": (
        {"options": {"hostpci0": "mapping=gpu,legacy-igd=1"}, "vga": "none", "machine": "q35"},
        "machine is q35",
        {"machine": "pc"},
    ),
    "igd and x-vga": (
        {"options": {"hostpci0": "mapping=gpu,legacy-igd=1,x-vga=1"}, "vga": "none"},
        "it has x-vga",
        {"options": {"hostpci0": "mapping=gpu,legacy-igd=1,x-vga=0"}},
    ),
    "usb5": ({"options": {"usb5": "spice"}, "ostype": "win7"}, "usb5 needs", {"ostype": "win10"}),
    "old machine": (
        {"options": {"usb5": "spice"}, "machine": "pc-i440fx-6.2"},
        "usb5 needs",
        {"machine": "pc-i440fx-8.0"},
    ),
    "acl of Windows": (
        {"options": {"virtiofs0": "dirid=data,expose-acl=1"}, "ostype": "win11"},
        "virtiofs0 has expose-acl",
        {"options": {"virtiofs0": "dirid=data,expose-acl=0"}},
    ),
    "memory and virtiofs": (
        {"options": {"virtiofs0": "dirid=data"}, "hotplug": "disk,memory", "numa": True},
        "which does not work with virtiofs0",
        {"hotplug": "disk"},
    ),
    "memory without numa": ({"hotplug": "memory"}, "numa is off", {"numa": True}),
    "memory below 1 GiB": (
        {"hotplug": "memory", "numa": True, "memory": "512M"},
        "memory is below 1024 MiB",
        {"memory": "1G"},
    ),
    "numa nodes and memory": (
        {"hotplug": "memory", "numa": True, "options": NODES},
        "numa0 to numa7 cannot be set with it",
        {"hotplug": "disk"},
    ),
    "sum of numa nodes": (
        {"numa": True, "options": {**NODES, "numa1": "cpus=1,memory=1024"}},
        "the memory of numa0, numa1 is 1536 MiB, not 1024",
        {"options": NODES},
    ),
    "node without memory": (
        {"numa": True, "options": {"numa0": "cpus=0-1"}},
        "numa0 needs cpus and memory",
        {"options": {"numa0": "cpus=0-1,memory=1024"}},
    ),
    "node without policy": (
        {"numa": True, "options": {"numa0": "cpus=0-1,memory=1024,hostnodes=0"}},
        "numa0 has hostnodes and no policy",
        {"options": {"numa0": "cpus=0-1,memory=1024,hostnodes=0,policy=bind"}},
    ),
    "aio": (
        {"disks": [{**DISK, "options": {"aio": "native", "cache": "writeback"}}]},
        "scsi0 has aio=native",
        {"disks": [{**DISK, "options": {"aio": "native", "cache": "none"}}]},
    ),
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    map_device(unused, "pci", "pve1")
    map_device(unused, "dir", "pve1")
    return unused


def task_of(case: str) -> dict[str, Any]:
    return {
        "name": "a1",
        "node": "pve1",
        "memory": "1G",
        "cores": 2,
        "disks": [DISK],
        **CASES[case][0],
    }


@pytest.mark.parametrize("case", CASES)
def test_a_vm_that_cannot_start_is_refused(lab: Lab, case: str) -> None:
    task, (_options, text, change) = task_of(case), CASES[case]
    found = refused(lab, "vm", **task, state="started")
    assert "could not be planned to run" in found["msg"]
    assert text in found["msg"]
    assert lab.vm(**task)["changed"]  # Proxmox VE takes the options
    assert text in refused(lab, "vm", name="a1", state="started")["msg"]
    assert lab.vm(**{**task, **change}, state="started")["vm"]["status"] == "running"


@pytest.mark.parametrize(
    "restart", [{"reboot": "if_needed"}, {"state": "restarted", "force": True}]
)
def test_a_running_vm_is_not_stopped_for_options_that_do_not_start(
    lab: Lab, restart: dict[str, Any]
) -> None:
    task, (_options, text, change) = task_of("pcie"), CASES["pcie"]
    lab.vm(**{**task, "options": {}}, state="started")
    assert text in refused(lab, "vm", **task, **restart)["msg"]
    assert lab.vm(**task)["vm"]["status"] == "running"  # they wait for a stop
    assert text in refused(lab, "vm", **task, **restart)["msg"]
    assert lab.vm(**{**task, **change}, **restart)["vm"]["status"] == "running"


@pytest.mark.parametrize(
    ("machine", "text"),
    [
        ("pc,viommu=intel", "viommu=intel needs the machine q35"),
        ("q35,viommu=intel,aw-bits=40", "viommu=intel has an aw-bits of 39 or 48"),
        ("q35,aw-bits=39", "aw-bits needs viommu"),
    ],
)
def test_a_machine_that_proxmox_does_not_take_is_refused(lab: Lab, machine: str, text: str) -> None:
    """Source: qemu-server, QemuServer/Machine.pm, assert_valid_machine_property."""
    task = task_of("pcie")
    lab.vm(**{**task, "options": {}})
    for one in ({**task, "name": "a2"}, {"name": "a1"}):
        assert text in refused(lab, "vm", **{**one, "machine": machine})["msg"]
    for good in ("q35,viommu=intel,aw-bits=48", "q35,viommu=virtio"):
        assert not lab.run("vm", name="a1", machine=good).get("failed")


def test_a_boot_order_of_a_missing_device_is_refused(lab: Lab) -> None:
    """Source: qemu-server, API2/Qemu.pm, update_vm_api."""
    lab.vm(**{**task_of("aio"), "disks": [DISK]})
    assert "scsi5" in refused(lab, "vm", name="a1", boot=["scsi0", "scsi5"])["msg"]


@pytest.mark.parametrize("place", ["rootfs", "mounts"])
def test_an_unprivileged_container_does_not_start_with_quotas(lab: Lab, place: str) -> None:
    """Source: pve-container, API2/LXC/Status.pm, vm_start."""
    task: dict[str, Any] = {
        "name": "c1",
        "source": "debian-13-standard",
        "memory": "128M",
        "node": "pve1",
        "rootfs": {**DISK, "size": 4},
        "mounts": [{**DISK, "path": "/data"}],
    }
    wanted = {**task, "rootfs": {**task["rootfs"], "quota": True}}
    if place == "mounts":
        wanted = {**task, "mounts": [{**DISK, "path": "/data", "quota": True}]}
    text = "it is unprivileged, and "
    assert text in refused(lab, "container", **wanted, state="started")["msg"]
    assert not lab.run("container", **wanted).get("failed")
    assert text in refused(lab, "container", name="c1", state="started")["msg"]


def test_hugepages_need_numa(lab: Lab) -> None:
    """Only root@pam with its password can set them."""
    task = {**task_of("aio"), "disks": [DISK], "options": {"hugepages": "2"}, **ROOT}
    assert not lab.run("vm", **task).get("failed")
    text = "numa needs to be enabled to use hugepages"
    assert text in refused(lab, "vm", name="a1", state="started")["msg"]
