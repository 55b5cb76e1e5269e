"""What PVE would refuse half way is refused before any write, and what looks odd converges in one
run.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.modules.estate_lab import Lab

NUMBERS = itertools.count(410000)
DISK = {"scsi0": "local-lvm:2", "boot": "order=scsi0", "scsihw": "virtio-scsi-single"}
TWO = {**DISK, "scsi1": "local-lvm:1"}
ISO, IMAGE = "local:iso/debian-13-netinst.iso", "local:import/debian-13-genericcloud-amd64.qcow2"
Do = Callable[[Lab, str], object]


def put(**data: Any) -> Do:
    return lambda lab, path: lab.client.write("PUT", *path.split("/"), "config", data=data)


def task(verb: str, *more: str, **data: Any) -> Do:
    return lambda lab, path: lab.client.task(verb, *path.split("/"), *more, data=data)


def rest(_lab: Lab, _path: str) -> None:
    """Wait until PVE has cleaned up behind a VM that is off: a start before that holds its lock for
    30 s.
    """
    time.sleep(3.1)


START = task("POST", "status", "start")
HIBERNATE = task("POST", "status", "suspend", todisk=1)
SNAPSHOT = task("POST", "snapshot", snapname="s1")


def make(lab: Lab, start: dict[str, Any], *then: Do) -> int:
    """Create a VM as another client would, and return its VMID."""
    vmid = next(NUMBERS)
    lab.client.task(
        "POST", "nodes", "pve1", "qemu", data={"vmid": vmid, "name": f"p{vmid}", **start}
    )
    for do in then:
        do(lab, f"nodes/pve1/qemu/{vmid}")
    return vmid


REFUSED: dict[str, tuple[dict[str, Any], list[Do], dict[str, Any], str]] = {
    "balloon above memory": ({"memory": 2048}, [], {"balloon": "4G"}, "ValidationFailed"),
    "memory below balloon": (
        {"memory": 2048, "balloon": 1024},
        [],
        {"memory": 512},
        "ValidationFailed",
    ),
    "removed from a protected VM": (
        {**TWO, "protection": 1},
        [],
        {"disks": [{"name": "scsi1", "state": "absent"}]},
        "Conflict",
    ),
    "detached from a protected VM": (
        {**TWO, "protection": 1},
        [],
        {"disks": [{"name": "scsi1", "state": "detached"}]},
        "Conflict",
    ),
    "unused disk of a protected VM": (
        {**TWO, "protection": 1},
        [put(protection=0), put(delete="scsi1"), put(protection=1)],
        {"disks": [{"name": "unused0", "state": "absent"}]},
        "Conflict",
    ),
    "boot from what is not there": (DISK, [], {"boot": ["scsi7"]}, "ValidationFailed"),
    "boot from what goes": (
        TWO,
        [],
        {"boot": ["scsi0", "scsi1"], "disks": [{"name": "scsi1", "state": "absent"}]},
        "ValidationFailed",
    ),
    "ISO and cloud-init on one drive": (
        DISK,
        [],
        {"disks": [{"name": "ide2", "iso": "none"}], "cloud_init": {"user": "x"}},
        "ValidationFailed",
    ),
    "cloud-init where a CD drive goes": (
        {**DISK, "ide2": "none,media=cdrom"},
        [],
        {"disks": [{"name": "ide2", "state": "absent"}], "cloud_init": {"user": "x"}},
        "ValidationFailed",
    ),
    "moved with a snapshot": (
        DISK,
        [SNAPSHOT],
        {"disks": [{"name": "scsi0", "storage": "ceph"}]},
        "Conflict",
    ),
    "removed with a snapshot": (
        TWO,
        [SNAPSHOT],
        {"disks": [{"name": "scsi1", "state": "absent"}]},
        "Conflict",
    ),
    "unused with a snapshot": (
        TWO,
        [SNAPSHOT, put(delete="scsi1")],
        {"disks": [{"name": "unused0", "state": "absent"}]},
        "Conflict",
    ),
    "template with a snapshot": (DISK, [START, SNAPSHOT], {"state": "template"}, "Conflict"),
    "migrated running with a snapshot": (DISK, [START, SNAPSHOT], {"node": "pve2"}, "NotSupported"),
    "migrated stopped with a snapshot": (DISK, [SNAPSHOT], {"node": "pve2"}, "NotSupported"),
    "TPM moved while running": (
        {**DISK, "tpmstate0": "local-lvm:1,version=v2.0"},
        [START],
        {"disks": [{"name": "tpmstate0", "storage": "ceph"}]},
        "Conflict",
    ),
    "TPM of another version": (
        {**DISK, "tpmstate0": "local-lvm:1,version=v2.0"},
        [],
        {"disks": [{"name": "tpmstate0", "options": {"version": "v1.2"}}]},
        "NotSupported",
    ),
    "grown while it waits": (
        {**DISK, "hotplug": "0"},
        [START, put(scsi1="local-lvm:1")],
        {"disks": [{"name": "scsi1", "size": 2}]},
        "Conflict",
    ),
    "moved while it waits": (
        {**DISK, "hotplug": "0"},
        [START, put(scsi1="local-lvm:1")],
        {"disks": [{"name": "scsi1", "storage": "ceph"}]},
        "Conflict",
    ),
    "a tag of a second tenant": (
        {**DISK, "tags": "tenant_acme"},
        [],
        {"tags": ["tenant_globex"]},
        "Conflict",
    ),
    "another tenant's tag": (
        {**DISK, "tags": "tenant_acme"},
        [],
        {"tenant": "acme", "tags": ["x", "Tenant_Globex"]},
        "ValidationFailed",
    ),
    "tags of two tenants": (
        DISK,
        [],
        {"tags": ["tenant_acme", "tenant_globex"]},
        "ValidationFailed",
    ),
    "started with more CPUs than the node has": (
        {**DISK, "cores": 32},
        [],
        {"state": "started"},
        "ConfigurationError",
    ),
    "started with more vcpus than CPUs": (
        DISK,
        [],
        {"state": "started", "vcpus": 4},
        "ValidationFailed",
    ),
    "hibernated": (DISK, [START, HIBERNATE], {"cores": 3}, "Conflict"),
    "hibernated and stopped": (
        DISK,
        [START, HIBERNATE],
        {"cores": 3, "state": "stopped"},
        "Conflict",
    ),
    "hibernated, then a template": (DISK, [START, HIBERNATE], {"state": "template"}, "Conflict"),
    "hibernated, then moved": (DISK, [START, HIBERNATE], {"node": "pve2"}, "Conflict"),
    "no key": (DISK, [], {"cloud_init": {"ssh_keys": ["hello"]}}, "ValidationFailed"),
    "a format that the storage does not have": (
        DISK,
        [],
        {"disks": [{"name": "scsi1", "size": 1, "format": "qcow2"}]},
        "NotSupported",
    ),
    "moved to a storage without that format": (
        DISK,
        [],
        {"disks": [{"name": "scsi0", "storage": "ceph", "format": "qcow2"}]},
        "NotSupported",
    ),
    "an ISO that is not there": (
        {**DISK, "ide0": "none,media=cdrom"},
        [],
        {"disks": [{"name": "ide0", "iso": "local:iso/nosuch.iso"}]},
        "ConfigurationError",
    ),
    "an image that is not there": (
        DISK,
        [],
        {"disks": [{"name": "scsi4", "import_from": "local:import/nosuch.qcow2"}]},
        "ConfigurationError",
    ),
    "an image larger than the disk": (
        DISK,
        [],
        {"disks": [{"name": "scsi4", "import_from": IMAGE, "size": 1}]},
        "ConfigurationError",
    ),
    "an image for a disk that waits": (
        {**DISK, "hotplug": "0"},
        [START],
        {"disks": [{"name": "scsi4", "import_from": IMAGE, "size": 5}]},
        "Conflict",
    ),
    "an option set and removed": (
        DISK,
        [],
        {"serial_console": False, "options": {"serial0": "socket"}},
        "ValidationFailed",
    ),
    "an unused disk that must be there": (
        DISK,
        [],
        {"disks": [{"name": "unused0", "size": 1}]},
        "ValidationFailed",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_before_the_first_write(lab: Lab, case: str) -> None:
    start, then, wanted, category = REFUSED[case]
    vmid = make(lab, start, *then)
    path = ("nodes", "pve1", "qemu", vmid)
    before = (lab.client.get(*path, "config"), lab.client.get(*path, "status", "current")["status"])
    for check in (True, False):
        assert lab.refused(vmid=vmid, check=check, **wanted)["error"]["category"] == category
    assert (
        lab.client.get(*path, "config"),
        lab.client.get(*path, "status", "current")["status"],
    ) == before


def test_a_new_vm_with_an_iso_on_the_drive_of_cloud_init_is_refused(lab: Lab, name: str) -> None:
    disks = [{"size": 1}, {"name": "ide2", "iso": "none"}]
    assert (
        lab.refused(name=name, disks=disks, cloud_init={"user": "x"})["error"]["reason"]
        == "cloud-init drive"
    )
    assert lab.vm(name=name, disks=disks, cloud_init={"user": "x", "drive": "ide0"})["changed"]


CONVERGES: dict[str, tuple[dict[str, Any], list[Do], dict[str, Any], list[str]]] = {
    "protected, then a disk removed": (
        TWO,
        [],
        {"protection": True, "disks": [{"name": "scsi1", "state": "absent"}]},
        ["Remove", "Protect"],
    ),
    "protection lifted, a disk detached": (
        {**TWO, "protection": 1},
        [],
        {"protection": False, "disks": [{"name": "scsi1", "state": "detached"}]},
        ["Lift", "Set"],
    ),
    "protection lifted, a disk removed": (
        {**TWO, "protection": 1},
        [],
        {"protection": False, "cores": 2, "disks": [{"name": "scsi1", "state": "absent"}]},
        ["Lift", "Set", "Remove"],
    ),
    "an unused disk removed": (
        TWO,
        [put(delete="scsi1")],
        {"disks": [{"name": "unused0", "state": "absent"}]},
        ["Remove"],
    ),
    "blank lines around notes": (DISK, [], {"description": "\n\nfoo\n"}, ["Set"]),
    "blank notes": (DISK, [], {"description": "   "}, []),
    "no name servers": (
        {**DISK, "ide2": "local-lvm:cloudinit"},
        [],
        {"cloud_init": {"nameservers": []}},
        [],
    ),
    "name servers removed": (
        {**DISK, "ide2": "local-lvm:cloudinit", "nameserver": "10.0.0.1"},
        [],
        {"cloud_init": {"nameservers": []}},
        ["Set"],
    ),
    "disks exact without a list": (TWO, [], {"disks_exact": True}, []),
    "NICs exact without a list": ({"net0": "virtio,bridge=vmbr0"}, [], {"nics_exact": True}, []),
    "NICs exact with an empty list": (
        {"net0": "virtio,bridge=vmbr0"},
        [],
        {"nics": [], "nics_exact": True},
        ["Set"],
    ),
    "memory in DIMMs": (
        {**DISK, "memory": 1024, "numa": 1, "hotplug": "memory,disk"},
        [START],
        {"memory": 1600},
        ["Set"],
    ),
    "memory in fewer DIMMs": (
        {**DISK, "memory": 4096, "numa": 1, "hotplug": "memory,disk"},
        [START],
        {"memory": 1600},
        ["Set"],
    ),
    "memory that is not a sum of DIMMs, and is there": (
        {**DISK, "memory": 1600, "numa": 1, "hotplug": "memory,disk"},
        [],
        {"memory": 1600},
        [],
    ),
    "woken and changed": (
        {**DISK, "ostype": "l26"},
        [START, HIBERNATE, rest],
        {"state": "started", "cores": 3, "disks": [{"name": "scsi0", "size": 3}]},
        ["Start", "Grow", "Set"],
    ),
    "woken, changed and rebooted": (
        DISK,
        [START, HIBERNATE, rest],
        {"state": "started", "cores": 3, "reboot": "if_needed"},
        ["Start", "Set", "Reboot"],
    ),
    "woken and moved": (
        {"scsi0": "ceph:1"},
        [START, HIBERNATE, rest],
        {"state": "started", "node": "pve2"},
        ["Start", "Migrate"],
    ),
    "a tenant's tag by hand": ({**DISK, "tags": "x"}, [], {"tags": ["tenant_acme"]}, ["Set"]),
    "an empty serial number": (DISK, [], {"disks": [{"name": "scsi0", "serial": ""}]}, []),
    "a boot disk removed and the order said": (
        {**TWO, "hotplug": "0", "boot": "order=scsi1;scsi0"},
        [START],
        {
            "disks": [{"name": "scsi1", "state": "absent"}, {"name": "virtio0", "size": 1}],
            "boot": ["virtio0", "scsi0"],
        },
        ["Set", "Remove", "Set"],
    ),
    "a disc changed": (
        {**DISK, "ide0": "none,media=cdrom"},
        [START],
        {"disks": [{"name": "ide0", "iso": ISO}]},
        ["Set"],
    ),
    "a disc of the boot order changed": (
        {**DISK, "ide0": "none,media=cdrom", "boot": "order=scsi0;ide0"},
        [START],
        {"disks": [{"name": "ide0", "iso": ISO}]},
        ["Set"],
    ),
    "a disc changed and the order said": (
        {**DISK, "ide0": "none,media=cdrom"},
        [],
        {"disks": [{"name": "ide0", "iso": ISO}], "boot": ["ide0", "scsi0"]},
        ["Set", "Set"],
    ),
    "an image imported": (DISK, [], {"disks": [{"name": "scsi4", "import_from": IMAGE}]}, ["Set"]),
    "an image imported and grown": (
        DISK,
        [],
        {
            "disks": [
                {"name": "scsi4", "import_from": IMAGE, "size": 5},
                {"name": "scsi0", "size": 3},
            ]
        },
        ["Set", "Grow", "Grow"],
    ),
    "an image imported and grown while running": (
        DISK,
        [START],
        {
            "disks": [
                {"name": "scsi4", "import_from": IMAGE, "size": 5},
                {"name": "scsi0", "size": 3},
            ]
        },
        ["Grow", "Set", "Grow"],
    ),
    "an image that was imported long ago": (
        DISK,
        [],
        {"disks": [{"name": "scsi0", "import_from": "local:import/gone.qcow2", "size": 2}]},
        [],
    ),
    "USB for a guest that cannot": (DISK, [START], {"options": {"usb0": "host=spice"}}, ["Set"]),
    "USB for Linux": (
        {**DISK, "ostype": "l26"},
        [START],
        {"options": {"usb0": "host=spice"}},
        ["Set"],
    ),
    "Windows with a pinned machine": (
        {**DISK, "machine": "q35", "ostype": "win11"},
        [],
        {"machine": "q35"},
        [],
    ),
    "Windows with its default machine": (
        {**DISK, "ostype": "win11"},
        [],
        {"machine": "i440fx"},
        [],
    ),
    "Windows to another machine": ({**DISK, "ostype": "win11"}, [], {"machine": "q35"}, ["Set"]),
    "becomes Windows": ({**DISK, "ostype": "l26"}, [START], {"ostype": "windows"}, ["Set"]),
    "comments among keys": (
        {**DISK, "ide2": "local-lvm:cloudinit"},
        [],
        {"cloud_init": {"ssh_keys": ["# mine\nssh-ed25519 AAAAC3Nz me, at home\n\n"]}},
        ["Set"],
    ),
}


@pytest.mark.parametrize("case", CONVERGES)
def test_foreseen_done_and_left_alone(lab: Lab, case: str) -> None:
    start, then, wanted, steps = CONVERGES[case]
    vmid = make(lab, start, *then)
    foreseen = lab.vm(check=True, vmid=vmid, **wanted)
    made = lab.vm(vmid=vmid, **wanted)
    assert [step.split()[0] for step in made["plan"]] == steps
    for key in ("plan", "diff", "pending", "applied"):
        assert made[key] == foreseen[key], key
    assert made["done"] == made["plan"]
    lab.simulator.reset_log()
    again = lab.vm(vmid=vmid, **wanted)
    assert not again["changed"], again["plan"]
    assert lab.simulator.writes() == []


def test_a_disk_moves_in_the_format_that_is_asked_for(lab: Lab) -> None:
    vmid = make(lab, {"scsi0": "local-lvm:1"})
    lab.vm(vmid=vmid, disks=[{"name": "scsi0", "storage": "local", "format": "qcow2"}])
    config = lab.client.get("nodes", "pve1", "qemu", vmid, "config")
    assert config["scsi0"].partition(",")[0] == f"local:{vmid}/vm-{vmid}-disk-0.qcow2"


def test_a_linked_clone_on_a_storage_of_its_node_stays_there(lab: Lab) -> None:
    base = make(lab, {"scsi0": "local:1,format=qcow2"}, task("POST", "template"))
    vmid = next(NUMBERS)
    lab.client.task("POST", "nodes", "pve1", "qemu", base, "clone", data={"newid": vmid, "full": 0})
    refused = lab.refused(vmid=vmid, node="pve2")
    assert "linked clone" in refused["msg"]
    assert refused["error"]["category"] == "NotSupported"


def test_what_holds_a_vm_may_go_in_the_same_task(lab: Lab) -> None:
    iso = next(
        row["volid"]
        for row in lab.client.get("nodes", "pve1", "storage", "local", "content", content="iso")
    )
    for then in ([], [START]):
        vmid = make(lab, {"scsi0": "ceph:1", "ide0": f"{iso},media=cdrom"}, *then)
        assert "ISO" in lab.refused(vmid=vmid, node="pve2")["msg"]
        moved = lab.vm(vmid=vmid, node="pve2", disks=[{"name": "ide0", "iso": "none"}])
        assert moved["vm"]["node"] == "pve2"


def test_a_clone_does_not_have_the_tags_of_two_tenants(lab: Lab, name: str) -> None:
    base = make(lab, {**DISK, "tags": "tenant_acme"}, task("POST", "template"))
    wanted: dict[str, Any] = {"name": name, "source": str(base)}
    assert lab.refused(**wanted, tags=["tenant_globex"])["error"]["reason"] == "several tenants"
    assert lab.vm(**wanted, tenant="globex", shared_sources=[str(base)])["vm"]["tags"] == [
        "tenant_globex"
    ]


def test_a_new_vm_with_hardware_names_of_its_own_is_made_in_one_step(lab: Lab, name: str) -> None:
    made = lab.vm(name=name, disks=[{"size": 1}], options={"smbios1": {"serial": "abc"}})
    assert made["done"] == made["plan"]
    assert "serial=abc" in lab.config(made["vm"])["smbios1"]
    other = "99999999-2222-3333-4444-555555555555"
    lab.vm(name=f"{name}-2", disks=[{"size": 1}], options={"smbios1": f"uuid={other}"})
    assert not lab.vm(name=f"{name}-2", options={"smbios1": {"uuid": other}})["changed"]
