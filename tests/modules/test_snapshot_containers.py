# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Snapshots of containers: by name, VMID and tenant, beside those of VMs.

The tasks are vzsnapshot, vzdelsnapshot and vzrollback; a snapshot of a container has no memory
(pve-container: API2/LXC/Snapshot.pm).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import made

CT: dict[str, Any] = {"name": "web", "source": "debian-13-standard"}
BOTH: dict[str, Any] = {
    "tenant": "acme",
    "memory": "1G",
    "default_storage": "ceph",
    "state": "started",
    "vms": [{"name": "db", "disks": [{"size": "1G"}]}],
    "containers": [CT],
}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    do(unused, "vms", **BOTH)
    return unused


def foreseen(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return a change that check mode has foreseen and a second run confirms."""
    lab.simulator.reset_log()
    preview = do(lab, "snapshot", check=True, **options)
    assert lab.simulator.writes() == []
    result = do(lab, "snapshot", **options)
    assert result["changed"]
    assert [row["plan"] for row in preview["vms"]] == [row["plan"] for row in result["vms"]]
    assert preview["diff"] == result["diff"]
    if options.get("state") != "rolled_back":
        assert not do(lab, "snapshot", **options)["changed"]
    return result


def names_of(lab: Lab, name: str) -> list[str]:
    (row,) = do(lab, "snapshot_info", name=name, tenant="acme")["vms"]
    return [one["name"] for one in row["snapshots"]]


def test_snapshot_of_a_container_is_taken_described_and_deleted(lab: Lab) -> None:
    (row,) = foreseen(lab, name="web", tenant="acme", snapshot="before")["vms"]
    assert [one["name"] for one in row["snapshots"]] == ["before"]
    foreseen(lab, vmid=row["vmid"], snapshot="before", description="Before the update")
    (info,) = do(lab, "snapshot_info", vmid=row["vmid"], details=True)["vms"]
    assert info["snapshots"][0]["description"] == "Before the update"
    (disk,) = info["snapshots"][0]["disks"]
    assert disk["name"] == "rootfs"
    foreseen(lab, name="web", tenant="acme", snapshot="before", state="absent")
    assert names_of(lab, "web") == []


def test_running_container_is_rolled_back_and_started_again(lab: Lab) -> None:
    foreseen(lab, name="web", tenant="acme", snapshot="before")
    do(lab, "container", name="web", tenant="acme", memory="2G")
    (row,) = foreseen(lab, name="web", tenant="acme", snapshot="before", state="rolled_back")["vms"]
    assert row["restarted"]
    path = ("nodes", row["node"], "lxc", row["vmid"])
    assert lab.client.get(*path, "status", "current")["status"] == "running"
    assert lab.client.get(*path, "config")["memory"] == 1024


def test_memory_of_a_container_is_not_saved(lab: Lab) -> None:
    lab.simulator.reset_log()
    result = do(lab, "snapshot", tenant="acme", snapshot="s1", vmstate=True)
    assert any("whose memory PVE does not save" in line for line in result["warnings"])
    memory = {row["name"]: row["snapshots"][0]["vmstate"] for row in result["vms"]}
    assert memory == {"db": True, "web": False}
    again = do(lab, "snapshot", tenant="acme", snapshot="s1", vmstate=True)
    assert not again["changed"]


def test_selection_by_tenant_has_both_kinds(lab: Lab) -> None:
    options: dict[str, Any] = {"tenant": "acme", "prefix": "auto-", "keep": 1}
    result = do(lab, "snapshot", **options)
    assert sorted(row["name"] for row in result["vms"]) == ["db", "web"]
    assert {row["failed"] for row in result["vms"]} == {False}
    assert {row["name"]: row["kind"] for row in result["vms"]} == {"db": "vm", "web": "container"}
    info = do(lab, "snapshot_info", tenant="acme")
    assert {row["name"]: row["kind"] for row in info["vms"]} == {"db": "vm", "web": "container"}
    assert {row["name"]: len(row["snapshots"]) for row in info["vms"]} == {"db": 1, "web": 1}


def test_list_has_guests_of_both_kinds(lab: Lab) -> None:
    result = do(lab, "snapshot", tenant="acme", vms=["web", "db"], snapshot="s1")
    assert [row["name"] for row in result["vms"]] == ["web", "db"]


def test_other_tenants_container_is_refused(lab: Lab) -> None:
    vmid = do(lab, "container_info", name="web")["containers"][0]["vmid"]
    lab.simulator.reset_log()
    result = lab.run("snapshot", vmid=vmid, tenant="globex", snapshot="s1")
    assert result["error"]["category"] == "Conflict"
    assert lab.simulator.writes() == []


def test_storage_without_snapshots_is_refused_before_the_request(lab: Lab) -> None:
    rootfs = "local:800/vm-800-disk-0.raw,size=1G"
    config = {"hostname": "files", "rootfs": rootfs, "tags": "tenant_acme"}
    lab.simulator.ask("POST", "/containers/800", {"node": "pve1", "config": config})
    lab.simulator.reset_log()
    result = lab.run("snapshot", name="files", tenant="acme", snapshot="s1")
    assert result["error"]["category"] == "NotSupported"
    assert "rootfs" in result["msg"]
    assert lab.simulator.writes() == []


@pytest.mark.parametrize("done", [True, False])
def test_lost_answer_is_looked_after(lab: Lab, done: bool) -> None:
    effect = {"drop": "after"} if done else {"drop": "before"}
    lab.simulator.fault(method="POST", path="/lxc/[0-9]+/snapshot$", times=1, **effect)
    do(lab, "snapshot", name="web", tenant="acme", snapshot="s1")
    assert names_of(lab, "web") == ["s1"]


def test_clone_of_a_snapshot(lab: Lab) -> None:
    """PVE clones a running container only from a snapshot (pve-container: API2/LXC.pm)."""
    do(lab, "snapshot", name="web", tenant="acme", snapshot="s1")
    options: dict[str, Any] = {
        "name": "copy",
        "tenant": "acme",
        "source": "web",
        "snapshot": "s1",
        "full": True,
    }
    copy = do(lab, "container", **options)["container"]
    assert copy["config"]["memory"] == 1024
    assert not do(lab, "container", **options)["changed"]


def test_tenant_uses_its_own_token(lab: Lab) -> None:
    login = made(lab, "initech", storages=["ceph", "local"])
    own = {**BOTH, **login, "tenant": "initech", "pool": "initech"}
    do(lab, "vms", **own)
    result = do(lab, "snapshot", **login, tenant="initech", snapshot="s1")
    assert sorted(row["name"] for row in result["vms"]) == ["db", "web"]
    do(lab, "snapshot", **login, tenant="initech", snapshot="s1", state="absent")
