# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cloud-init drive of a running VM holds what its configuration says, also when a run ended in
between.

PVE writes the configuration and the drive in two requests; what the drive lacks shows in C(GET
.../cloudinit).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import refused
from tests.modules.estate_lab import Lab

ONCE = "#cloud-config\npackages: [vim]\n"
BROKEN = {"status": 500, "message": "unable to write the drive"}
TWICE = "#cloud-config\npackages: [emacs]\n"


def outdated(lab: Lab, vm: dict[str, Any]) -> list[str]:
    """Return the options in which the drive differs from the configuration."""
    rows = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "cloudinit")
    return sorted(row["key"] for row in rows if "pending" in row or "delete" in row)


def running(lab: Lab, name: str, **more: Any) -> dict[str, Any]:
    """Return a running VM with a cloud-init drive."""
    vm: dict[str, Any] = lab.vm(
        name=name, source="debian-13", cloud_init={"user": "first"}, state="started", **more
    )["vm"]
    return vm


def fail_once(lab: Lab, **how: Any) -> None:
    """Let the next regeneration of a cloud-init drive fail."""
    lab.simulator.fault(method="PUT", path="/cloudinit$", times=1, **(how or BROKEN))


@pytest.mark.parametrize(
    ("options", "is_written"),
    [
        ({"name": "renamed"}, True),
        ({"nics": [{"name": "net0", "mac": "BC:24:11:00:00:99"}]}, True),
        ({"nics": [{"name": "net0", "firewall": True}]}, False),
        ({"description": "a note", "tags": ["a"]}, False),
    ],
    ids=str,
)
def test_the_drive_has_the_name_and_the_macs(
    quiet: Lab, name: str, options: dict[str, Any], is_written: bool
) -> None:
    """Source: qemu-server, QemuServer.pm, cloudinit_pending_properties."""
    vm = running(quiet, name, nics=[{"name": "net0", "bridge": "vmbr0", "ip": "10.0.0.9/24"}])
    quiet.simulator.reset_log()
    quiet.vm(vmid=vm["vmid"], **options)
    paths = [write["path"] for write in quiet.simulator.writes()]
    assert any(path.endswith("/cloudinit") for path in paths) is is_written
    assert not quiet.vm(vmid=vm["vmid"], **options)["changed"]
    assert "drive=" not in quiet.config(vm).get("description", "")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("how", [BROKEN, {"drop": "before"}, {"drop": "after"}])
@pytest.mark.parametrize("more", [{}, {"description": "a note"}, {"description": ""}])
def test_a_failed_regeneration_is_made_up_for(
    quiet: Lab, name: str, more: dict[str, Any], how: dict[str, Any]
) -> None:
    vm = running(quiet, name, description="kept")
    notes = quiet.config(vm).get("description")
    options = {"vmid": vm["vmid"], "cloud_init": {"user": "second"}, **more}
    fail_once(quiet, **how)
    first = quiet.run("vm", **options)
    quiet.simulator.clear_faults()
    assert bool(first.get("failed")) is (how is BROKEN), first
    if first.get("failed"):
        assert outdated(quiet, vm) == ["ciuser"]
        foreseen = quiet.vm(**options, check=True)
        assert foreseen["changed"]
        again = quiet.vm(**options)
        assert again["diff"] == foreseen["diff"]
        assert again["diff"]["after"]["cloud_init_drive"] == "current"
        assert again["done"] == foreseen["plan"]
    assert outdated(quiet, vm) == []
    quiet.simulator.reset_log()
    assert not quiet.vm(**options)["changed"]
    assert len(quiet.simulator.log()) <= 2
    if not more:
        assert quiet.config(vm).get("description") == notes
    assert "drive=" not in quiet.config(vm).get("description", "")


def test_a_failed_regeneration_is_not_a_task_of_a_vm_that_was_restarted(
    quiet: Lab, name: str
) -> None:
    """A start writes the drive by itself."""
    vm = running(quiet, name)
    fail_once(quiet)
    assert quiet.run("vm", name=name, cloud_init={"user": "second"})["failed"]
    quiet.simulator.clear_faults()
    quiet.vm(name=name, state="stopped")
    quiet.vm(name=name, state="started")
    assert outdated(quiet, vm) == []
    quiet.simulator.reset_log()
    assert not quiet.vm(name=name, cloud_init={"user": "second"})["changed"]


def test_the_mark_is_not_copied_by_a_clone(quiet: Lab, name: str) -> None:
    vm = running(quiet, name)
    fail_once(quiet)
    assert quiet.run("vm", name=name, cloud_init={"user": "second"})["failed"]
    quiet.simulator.clear_faults()
    made = quiet.vm(name="copy", source=str(vm["vmid"]), full=True)["vm"]
    assert "drive=" not in quiet.config(made).get("description", "")


def test_a_failed_regeneration_of_user_data_is_made_up_for(
    quiet: Lab, name: str, tmp_path: Path
) -> None:
    quiet.vm(name=name, source="debian-13", state="started", cloud_init=user_data(tmp_path, ONCE))
    fail_once(quiet)
    assert quiet.run("vm", name=name, cloud_init=user_data(tmp_path, TWICE))["failed"]
    quiet.simulator.clear_faults()
    assert (tmp_path / "user.yml").read_text() == TWICE
    again = quiet.vm(name=name, cloud_init=user_data(tmp_path, TWICE))
    assert [text.split()[0] for text in again["done"]] == ["Regenerate", "Mark"]
    assert not quiet.vm(name=name, cloud_init=user_data(tmp_path, TWICE))["changed"]


def test_user_data_is_written_although_the_answer_to_the_mark_is_lost(
    quiet: Lab, name: str, tmp_path: Path
) -> None:
    quiet.vm(name=name, source="debian-13", state="started", cloud_init=user_data(tmp_path, ONCE))
    quiet.simulator.fault(method="PUT", path="/config$", times=1, drop="after")
    done = quiet.vm(name=name, cloud_init=user_data(tmp_path, TWICE))
    assert (tmp_path / "user.yml").read_text() == TWICE
    assert any(text.startswith("Regenerate") for text in done["done"])
    assert not quiet.vm(name=name, cloud_init=user_data(tmp_path, TWICE))["changed"]


def user_data(directory: Path, content: str) -> dict[str, Any]:
    """Return cloud-init options with full user data in that directory, which has the file that the
    storage has.
    """
    (directory / "user.yml").touch()
    return {
        "user_data": content,
        "snippets": {"user": "local:snippets/user.yml"},
        "snippet_directory": str(directory),
    }


def drive_of(lab: Lab, vm: dict[str, Any]) -> list[str]:
    return [slot for slot, text in lab.config(vm).items() if "cloudinit" in str(text)]


@pytest.mark.parametrize("disks", [[], [{"name": "ide2", "state": "absent"}]], ids=str)
def test_the_drive_moves_to_another_slot(quiet: Lab, name: str, disks: list[Any]) -> None:
    """PVE refuses a second drive, so the old one is removed first (qemu-server: API2/Qemu.pm,
    create_disks).
    """
    vm = quiet.vm(name=name, source="debian-13", cloud_init={"user": "first"})["vm"]
    assert drive_of(quiet, vm) == ["ide2"]
    options: dict[str, Any] = {"name": name, "cloud_init": {"drive": "scsi1"}, "disks": disks}
    foreseen = quiet.vm(check=True, **options)
    moved = quiet.vm(**options)
    assert moved["done"] == foreseen["plan"]
    assert moved["diff"] == foreseen["diff"]
    assert drive_of(quiet, vm) == ["scsi1"]
    assert quiet.config(vm)["ciuser"] == "first"
    assert not quiet.vm(**options)["changed"]
    assert not quiet.vm(name=name, cloud_init={"user": "first"})["changed"]


def test_a_new_clone_gets_its_drive_in_another_slot(quiet: Lab, name: str) -> None:
    quiet.vm(name=f"{name}-t", source="debian-13", cloud_init={"user": "first"}, state="template")
    options: dict[str, Any] = {
        "name": name,
        "source": f"{name}-t",
        "cloud_init": {"drive": "scsi1"},
    }
    vm = quiet.vm(**options)["vm"]
    assert drive_of(quiet, vm) == ["scsi1"]
    assert not quiet.vm(**options)["changed"]


def test_the_drive_of_a_running_vm_stays(quiet: Lab, name: str) -> None:
    vm = running(quiet, name)
    failed = refused(quiet, "vm", name=name, cloud_init={"drive": "scsi1"})
    assert "was not moved: the VM runs" in failed["msg"]
    assert drive_of(quiet, vm) == ["ide2"]
    quiet.vm(name=name, cloud_init={"drive": "scsi1"}, state="stopped")
    assert drive_of(quiet, vm) == ["scsi1"]
