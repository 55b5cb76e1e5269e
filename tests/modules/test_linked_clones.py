# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The removal of a template whose disks linked clones use, which Proxmox VE refuses (qemu-server:
QemuServer.pm, destroy_vm; pve-storage: Storage.pm, volume_is_base_and_used).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab

GOLDEN: dict[str, Any] = {"name": "golden", "node": "pve1"}


def make(lab: Lab, storage: str = "ceph", clones: int = 1, **options: Any) -> list[int]:
    """Make a template with linked clones, and return the VMIDs of the clones."""
    lab.vm(**GOLDEN, state="template", disks=[{"storage": storage, "size": 1}], **options)
    made = [lab.vm(name=f"clone{number}", node="pve1", source="golden") for number in range(clones)]
    lab.simulator.reset_log()
    return sorted(one["vm"]["vmid"] for one in made)


@pytest.mark.parametrize("storage", ["ceph", "local"])
def test_check_mode_refuses_as_the_run_does(unused: Lab, storage: str) -> None:
    lab = unused
    (clone,) = make(lab, storage, protection=True)
    options = {"name": "golden", "state": "absent", "protection": False}
    foreseen = lab.run("vm", check=True, **options)
    done = lab.refused(**options)
    assert foreseen["msg"] == done["msg"]
    assert f"was not removed: its disks are used by the linked clones of VM {clone}." in done["msg"]
    assert (done["error"]["category"], done["error"]["reason"]) == ("Conflict", "in use")


def test_many_clones_are_counted(unused: Lab) -> None:
    clones = make(unused, clones=12)
    msg = unused.run("vm", name="golden", state="absent", check=True)["msg"]
    assert f"of VMs {', '.join(map(str, clones[:10]))} and 2 more." in msg


def test_template_goes_with_its_clones(unused: Lab) -> None:
    lab = unused
    make(lab, clones=2)
    listed = [{"name": name, "state": "absent"} for name in ("golden", "clone0", "clone1")]
    assert "clones of VM" in lab.run("vms", check=True, vms=listed[:2])["msg"]
    assert not lab.run("vms", check=True, vms=listed).get("failed")
    done = lab.run("vms", vms=listed)
    assert not done.get("failed"), done["msg"]


def test_lvm_thin_does_not_tie_clones_to_their_base(unused: Lab) -> None:
    """pve-storage, LvmThinPlugin.pm: the volume of a clone does not name its base."""
    make(unused, "local-lvm")
    unused.vm(name="golden", state="absent", check=True)
    unused.vm(name="golden", state="absent")


def test_full_clone_does_not_hold_the_template(unused: Lab) -> None:
    unused.vm(**GOLDEN, state="template", disks=[{"storage": "ceph", "size": 1}])
    unused.vm(name="copy", node="pve1", source="golden", full=True)
    unused.vm(name="golden", state="absent")


def test_storage_that_cannot_be_read_is_a_warning(unused: Lab) -> None:
    make(unused)
    unused.simulator.fault(method="GET", path="/content$", status=500, message="x", times=None)
    foreseen = unused.vm(name="golden", state="absent", check=True)
    assert "It is not known whether linked clones use VM 'golden'" in foreseen["warnings"][-1]
    done = unused.run("vm", name="golden", state="absent")
    assert "still in use by linked cloned" in done["msg"]


def test_requests(unused: Lab) -> None:
    """One more request for a template, none for a VM. A removal that is not refused also reads the
    privileges, and the configuration and the snapshots of each other guest.
    """
    lab = unused
    make(lab)

    def reads(name: str, vmid: int) -> int:
        lab.simulator.reset_log()
        lab.run("vm", name=name, state="absent", check=True)
        paths = [row["path"] for row in lab.simulator.log()]
        own, others = f"/qemu/{vmid}/pending", ("/permissions", "/pending", "/snapshot")
        return sum(path.endswith(own) or not path.endswith(others) for path in paths)

    vmids = {row["name"]: row["vmid"] for row in lab.client.get("cluster", "resources", type="vm")}
    assert reads("golden", vmids["golden"]) == reads("clone0", vmids["clone0"]) + 1
