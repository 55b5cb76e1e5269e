# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrong tasks about containers, refused before the first write, in check mode too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases import repeated
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab, open_lab

NEW: dict[str, Any] = {
    "name": "new",
    "tenant": "acme",
    "source": "debian-13-standard",
    "default_storage": "ceph",
}
OLD = {"name": "ct1", "tenant": "acme"}
MOUNT = {"path": "/data", "size": "2G", "storage": "ceph"}
VMID, CTID = 700, 701


@pytest.fixture(scope="module")
def lagging() -> Iterator[Lab]:
    """A VM and a container of tenant acme, and a listing that is a minute old."""
    with open_lab("--lag-s", "60", "--auth-delay-s", "0") as lab:
        do(lab, "vm", name="web", tenant="acme", vmid=VMID, memory="1G")
        do(lab, "container", **{**NEW, "name": "ct1", "vmid": CTID, "mounts": [MOUNT]})
        yield lab


def refused(lab: Lab, module: str, **options: Any) -> str:
    """Return the message of a task that check mode and the run refuse without a write."""
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run(module, check=check, **options)
        assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return str(result["msg"])


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "the template of a VM by name": ({**NEW, "source": "debian-13"}, "it is a VM"),
    "the template of a VM by number": ({**NEW, "source": "9000"}, "it is a VM"),
    "the number of a VM": ({**NEW, "vmid": VMID}, f"a VM has the number {VMID}"),
    "the number of a VM alone": ({"vmid": VMID, "cores": 2}, f"a VM has the number {VMID}"),
    "the number of a VM to remove": (
        {"vmid": VMID, "state": "absent"},
        f"a VM has the number {VMID}",
    ),
    "a smaller root file system": ({**OLD, "rootfs": {"size": "1G"}}, "cannot shrink"),
    "a smaller mount point": ({**OLD, "mounts": [{"name": "mp0", "size": "1G"}]}, "mp0"),
    "privileged after creation": ({**OLD, "unprivileged": False}, "privileged"),
    "features of root": ({**NEW, "features": {"fuse": True}}, "root@pam"),
    "features of root afterwards": ({**OLD, "features": {"keyctl": True}}, "root@pam"),
    "the name of a VM": ({**NEW, "name": "web"}, "a VM has that name"),
    "a storage without rootdir": ({**NEW, "default_storage": "local"}, "rootdir"),
    "a mount point there": ({**NEW, "mounts": [{**MOUNT, "storage": "local"}]}, "rootdir"),
    "a mount point there afterwards": (
        {**OLD, "mounts": [{**MOUNT, "name": "mp1", "path": "/more", "storage": "local"}]},
        "rootdir",
    ),
    "a move there": ({**OLD, "mounts": [{"name": "mp0", "storage": "local"}]}, "rootdir"),
    "a bind mount with a token": (
        {**NEW, "mounts": [{"path": "/data", "volume": "/srv/data"}]},
        "root@pam",
    ),
    "a slot with a line break": (
        {**OLD, "mounts": [{"name": "mp0\n", "size": "9G"}]},
        "mount point",
    ),
    # pve-common: JSONSchema.pm, parse_property_string
    "the separator of a mount point": (
        {**NEW, "mounts": [{**MOUNT, "path": "/srv,ro=1"}]},
        "comma",
    ),
    "the separator at the end": ({**OLD, "mounts": [{"name": "mp0", "path": "/srv,"}]}, "comma"),
    "a bind mount afterwards": (
        {**OLD, "mounts": [{"name": "mp1", "path": "/more", "volume": "/srv/data"}]},
        "root@pam",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_wrong_tasks_are_refused(lagging: Lab, case: str) -> None:
    options, cause = BAD[case]
    assert cause in refused(lagging, "container", **options)


VMS: dict[str, tuple[dict[str, Any], str]] = {
    "create": ({"name": "vm2", "vmid": CTID, "memory": "1G"}, f"a container has the number {CTID}"),
    "change": ({"vmid": CTID, "cores": 2}, f"a container has the number {CTID}"),
    "remove": ({"vmid": CTID, "state": "absent"}, f"a container has the number {CTID}"),
    "remove by name too": (
        {"vmid": CTID, "name": "old", "tenant": "acme", "state": "absent"},
        f"a container has the number {CTID}",
    ),
    "name": ({"name": "ct1", "tenant": "acme", "memory": "1G"}, "a container has that name"),
}


@pytest.mark.parametrize("case", VMS)
def test_vms_with_number_or_name_of_a_container_are_refused(lagging: Lab, case: str) -> None:
    options, cause = VMS[case]
    assert cause in refused(lagging, "vm", **options)


CLONES: dict[str, tuple[dict[str, Any], str]] = {
    "a VM with the number of a container": (
        {"name": "new", "vmid": CTID, "source": "debian-13"},
        f"a container has the number {CTID}",
    ),
    "a container with the number of a VM": (
        {"name": "new", "vmid": VMID, "source": "ct1"},
        f"a VM has the number {VMID}",
    ),
    "a VM with the name of a container": (
        {"name": "ct1", "source": "debian-13"},
        "a container has that name",
    ),
    "a container with the name of a VM": ({"name": "web", "source": "ct1"}, "a VM has that name"),
}


@pytest.mark.parametrize("case", CLONES)
def test_clones_with_number_or_name_of_the_other_kind_are_refused(lagging: Lab, case: str) -> None:
    options, cause = CLONES[case]
    assert cause in refused(lagging, "clone", tenant="acme", **options)


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("own", repeated(["container", "vm"]))
def test_number_that_the_other_kind_takes_at_the_same_time(lagging: Lab, own: str) -> None:
    """PVE refuses the number (pve-cluster: Cluster.pm, check_vmid_unused)."""
    other = {"vm": "containers", "container": "vms"}[own]
    path = {"vm": "/qemu$", "container": "/lxc$"}[own]
    taken = [["POST", f"/{other}/790", {"node": "pve2", "config": {}}]]
    lagging.simulator.fault(method="POST", path=path, steer=taken)
    options: dict[str, Any] = {"vm": {"name": "new", "tenant": "acme"}, "container": NEW}
    result = lagging.run(own, vmid=790, memory="1G", **options[own])
    lagging.simulator.ask("DELETE", f"/{other}/790", None)
    assert result["error"]["reason"] == "vmid taken", result
