# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A misspelt name creates no guest: `blank` and `create`, and the names in the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

DISK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}]}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    do(unused, "vm", name="globex-web1", tenant="globex", **DISK)
    do(unused, "vm", name="app1", tenant="acme", **DISK)
    return unused


@pytest.mark.parametrize("listed", [True, False])
def test_a_misspelt_name_creates_no_empty_vm(lab: Lab, listed: bool) -> None:
    task: dict[str, Any] = {"name": "globex-wbe1", "tenant": "globex", "memory": "1G"}
    if listed:
        result = refused(lab, "vms", vms=[task], blank=False)
    else:
        result = refused(lab, "vm", blank=False, **task)
    assert "did you mean 'globex-web1'?" in result["msg"]
    assert "blank=true" in result["msg"]
    assert result["error"]["reason"] == "blank"


def test_a_misspelt_container_is_named(lab: Lab) -> None:
    new: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph"}
    do(lab, "container", name="globex-box1", tenant="globex", **new)
    result = refused(lab, "container", name="globex-bxo1", tenant="globex", memory="1G")
    assert "did you mean 'globex-box1'?" in result["msg"]
    changed: dict[str, Any] = {
        "name": "globex-box1",
        "tenant": "globex",
        "create": False,
        "cores": 2,
    }
    assert do(lab, "container", **changed)["changed"]
    assert not do(lab, "container", **changed)["changed"]
    other = refused(lab, "container", name="globex-box1", tenant="acme", memory="1G")
    assert "belongs to another tenant" in other["msg"]


def test_a_misspelt_container_of_a_list_is_named(lab: Lab) -> None:
    new: dict[str, Any] = {"source": "debian-13-standard", "default_storage": "ceph"}
    do(lab, "container", name="globex-box1", tenant="globex", **new)
    item: dict[str, Any] = {"name": "globex-bxo1", "tenant": "globex", "memory": "1G"}
    result = refused(lab, "vms", containers=[item])
    assert "did you mean 'globex-box1'?" in result["msg"]
    result = refused(lab, "vms", containers=[{**item, **new, "create": False}])
    assert result["error"]["reason"] == "create"
    assert "did you mean 'globex-box1'?" in result["msg"]


def test_a_wrong_tenant_is_named(lab: Lab) -> None:
    vmid = do(lab, "vm", name="app1", tenant="acme")["vm"]["vmid"]
    result = refused(lab, "vm", name="app1", tenant="globex", memory="1G", blank=False)
    assert f"guest {vmid} on node pve" in result["msg"]


@pytest.mark.parametrize(
    "options",
    [
        {"blank": True},
        DISK,
        {"source": "debian-13"},
        {"disks": [{"name": "ide2", "iso": "local:iso/debian-13-netinst.iso"}]},
    ],
)
def test_a_described_vm_is_created(lab: Lab, options: dict[str, Any]) -> None:
    task = {"name": "new", "tenant": "acme", "blank": False, **options}
    assert do(lab, "vm", **task)["changed"]
    task["blank"] = False
    assert not do(lab, "vm", **task)["changed"]


def test_firmware_does_not_count_as_content(lab: Lab) -> None:
    disks = [{"name": "efidisk0", "storage": "ceph"}]
    result = refused(lab, "vm", name="new", bios="ovmf", disks=disks, blank=False)
    assert result["error"]["reason"] == "blank"


@pytest.mark.parametrize("module", ["vm", "container", "vms"])
def test_create_false_only_changes(lab: Lab, module: str) -> None:
    task: dict[str, Any] = {"name": "ap1", "tenant": "acme", "create": False}
    if module == "container":
        task["source"] = "debian-13-standard"
    options = {"vms": [{**task, **DISK}]} if module == "vms" else task
    result = refused(lab, module, **options)
    assert result["error"]["reason"] == "create"
    assert "did you mean 'app1'?" in result["msg"]
    changed: dict[str, Any] = {"name": "app1", "tenant": "acme", "create": False, "cores": 3}
    if module == "vm":
        assert do(lab, "vm", **changed)["changed"]
        assert do(lab, "vm", **{**changed, "state": "absent"})["changed"]
        assert not do(lab, "vm", **{**changed, "state": "absent"})["changed"]
