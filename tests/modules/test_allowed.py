# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What guests of a tenant may use, with its own token, which may use more in Proxmox VE."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.backup_lab import add_nas
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

ALLOWED: dict[str, Any] = {
    "storages": ["ceph"],
    "networks": ["vmbr0", "front"],
    "cpu_types": ["kvm64", "x86-64-v2-AES"],
    "classes": ["small"],
}
CLASSES: dict[str, Any] = {"small": {"memory": "256M"}, "large": {"memory": "2G"}}


@pytest.fixture
def own(unused: Lab) -> dict[str, Any]:
    """Return the login of a tenant that may use more storages and bridges in Proxmox VE."""
    networks = {"front": {"zone": "teams", "subnet": "10.50.0.0/24"}}
    do(unused, "sdn", zones=[{"name": "teams", "type": "simple"}])
    login = made(
        unused,
        "initech",
        storages=["ceph", "local-lvm", "local"],
        networks=networks,
        isolation="none",
    )
    return {**login, "tenant": "initech", "pool": "initech", "allowed": ALLOWED}


VM: dict[str, Any] = {"name": "app1", "source": "debian-13", "memory": "256M"}
BOX: dict[str, Any] = {
    "name": "box1",
    "source": "debian-13-standard",
    "memory": "256M",
    "default_storage": "ceph",
}


@pytest.mark.parametrize(
    ("module", "more", "words"),
    [
        (
            "vm",
            {"disks": [{"name": "scsi1", "size": 2, "storage": "local-lvm"}]},
            "local-lvm is none",
        ),
        ("vm", {"nics": [{"bridge": "vmbr1"}]}, "vmbr1 is none of the networks"),
        ("vm", {"cpu": "host,flags=+aes"}, "host is none of the cpu_types"),
        ("vm", {"class": "large", "classes": CLASSES}, "Class 'large' was refused"),
        ("container", {"rootfs": {"size": 1, "storage": "local-lvm"}}, "local-lvm is none"),
        ("container", {"nics": [{"bridge": "vmbr1"}]}, "vmbr1 is none of the networks"),
    ],
    ids=str,
)
def test_a_new_guest_is_refused_to_the_token_of_a_tenant(
    unused: Lab, own: dict[str, Any], module: str, more: dict[str, Any], words: str
) -> None:
    guest = VM if module == "vm" else BOX
    failure = refused(unused, module, **own, **{**guest, **more})
    assert failure["error"]["category"] == "PermissionDenied"
    assert failure["error"]["reason"] == "not allowed"
    assert words in failure["msg"]


def test_a_guest_within_the_limits_is_created_and_changed(unused: Lab, own: dict[str, Any]) -> None:
    nics = [{"network": "front", "ip": "dhcp"}, {"bridge": "vmbr0"}]
    vm = {**VM, "class": "small", "classes": CLASSES, "nics": nics}
    do(unused, "vm", **own, **vm)
    assert not do(unused, "vm", **own, **vm)["changed"]
    do(unused, "vm", **own, name="app1", cpu="x86-64-v2-AES")
    failure = refused(
        unused,
        "vm",
        **own,
        name="app1",
        disks=[{"name": "scsi3", "size": 1, "storage": "local-lvm"}],
    )
    assert "allowed.storages" in failure["msg"]
    do(unused, "container", **own, **BOX)


def test_what_a_guest_already_has_can_stay(unused: Lab, own: dict[str, Any]) -> None:
    free = {**own, "allowed": {}}
    do(unused, "vm", **free, **VM, cpu="host", nics=[{"bridge": "vmbr1"}])
    do(unused, "vm", **own, name="app1", memory="512M")
    failure = refused(
        unused, "vm", **own, name="app1", nics=[{"bridge": "vmbr1"}, {"bridge": "vmbr2"}]
    )
    assert "vmbr2 is none" in failure["msg"]


def test_clone_and_restore_are_refused(unused: Lab, own: dict[str, Any]) -> None:
    add_nas(unused)
    free = {**own, "allowed": {}}
    disks = [{"name": "scsi1", "size": 1, "storage": "local-lvm"}]
    vm = do(unused, "vm", **free, **VM, cpu="host", disks=disks)["vm"]
    of_clone = {**own, "source": "app1", "name": "app2", "full": True}
    failure = refused(unused, "clone", **of_clone)
    assert "local-lvm is none of the storages" in failure["msg"]
    failure = refused(unused, "clone", **of_clone, storage="ceph")
    assert "host is none of the cpu_types" in failure["msg"]
    do(unused, "clone", **of_clone, storage="ceph", cpu="kvm64")
    unused.client.task(
        "POST", "nodes", vm["node"], "vzdump", data={"vmid": vm["vmid"], "storage": "nas"}
    )
    do(unused, "vm", **own, name="app1", cpu="kvm64", disks=[{"name": "scsi1", "state": "absent"}])
    archive = {"vmid": vm["vmid"], "tenant": "initech", "options": {"allowed": ALLOWED}}
    for target in ({"new_name": "app3"}, {"confirm": "app1", "keep": "none"}):
        failure = refused(unused, "restore", **archive, **target)
        assert "is none of the" in failure["msg"]
    limits = {**ALLOWED, "cpu_types": ["host"]}
    archive["options"] = {"allowed": limits}
    do(unused, "restore", **archive, new_name="app3", storage="ceph")


def test_a_guest_of_a_list_cannot_change_the_limits(unused: Lab) -> None:
    item = {**VM, "tenant": "acme", "cpu": "host"}
    settings = {"acme": {"allowed": ALLOWED}}
    failure = refused(unused, "vms", vms=[item], tenant_settings=settings)
    assert "host is none of the cpu_types" in failure["msg"]
    failure = refused(
        unused, "vms", vms=[{**item, "allowed": {"cpu_types": ["host"]}}], tenant_settings=settings
    )
    assert "allowed" in failure["msg"]
    assert failure["refused"]
    large = {**VM, "tenant": "acme", "class": "large"}
    failure = refused(unused, "vms", vms=[large], classes=CLASSES, tenant_settings=settings)
    assert "Class 'large' was refused" in failure["msg"]
    empty: dict[str, Any] = {"acme": {"allowed": {"storages": []}}}
    failure = refused(unused, "vms", vms=[item], tenant_settings=empty)
    assert "allowed.storages" in failure["msg"]
