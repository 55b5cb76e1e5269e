# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots, infos, preflight and downloads against the API of Proxmox VE 8.4, which refuses what
it does not know.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules import access_lab
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.snapshot_lab import check, do, machine, names, prepare, refused

IMAGE = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--pve-version", "8.4") as opened:
        yield prepare(opened)


def test_snapshots(lab: Lab) -> None:
    vm = machine(lab, running=True)
    said: dict[str, Any] = {"vmid": vm["vmid"], "snapshot": "s1"}
    assert do(lab, **said, vmstate=True)["changed"]
    assert not do(lab, **said)["changed"]
    assert do(lab, **said, state="rolled_back")["changed"]
    assert check(lab, "snapshot_info", vmid=vm["vmid"], details=True)["vms"][0]["snapshots"][0][
        "vmstate_size"
    ]
    assert do(lab, vmid=vm["vmid"], keep=1)["changed"]
    assert do(lab, **said, state="absent")["changed"]
    assert len(names(lab, vm)) == 1
    raw = machine(lab, disk="files:1,format=raw")
    assert refused(lab, vmid=raw["vmid"], snapshot="s1")["error"]["category"] == "NotSupported"


def test_infos(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve2", {"maintenance": True})
    try:
        nodes = check(lab, "node_info", details=True)["nodes"]
        cluster = check(lab, "cluster_info", networks=True)["cluster"]
    finally:
        lab.simulator.steer("/nodes/pve2", {"maintenance": False})
    assert [node["maintenance"] for node in nodes] == [False, True, False]
    assert nodes[0]["version"].startswith("8.4")
    assert nodes[0]["kernel"]
    assert cluster["ha"]["fencing"] is None  # returned since 9.2
    assert (cluster["version"], cluster["missing"]) == (nodes[0]["version"], [])


def test_preflight(lab: Lab) -> None:
    wanted: dict[str, Any] = {
        "tasks": ["vm_clone", "vm_agent", "snapshot"],
        "templates": ["debian-13"],
        "storages": [{"name": "ceph"}],
    }
    result = check(lab, "preflight_info", **wanted, bridges=["vmbr0"], pool="acme")
    assert result["passed"], result["table"]
    assert any("VM.Monitor" in line for line in result["table"])


def test_downloads(lab: Lab) -> None:
    said: dict[str, Any] = {
        "storage": "local",
        "node": "pve2",
        "source_url": IMAGE,
        "content": "import",
        "filename": "new.qcow2",
    }
    assert lab.run("storage_download", **said)["changed"]
    assert not lab.run("storage_download", **said)["changed"]


def test_pools(lab: Lab) -> None:
    """Nested pools came with 8.1.

    That a new name starts with a letter, with 9.0 (pve-manager: PVE/API2/Pool.pm).
    """
    said: dict[str, Any] = {"name": "old", "comment": "c", "storages": ["ceph"]}
    assert lab.run("pool", **said)["changed"]
    assert not lab.run("pool", **said)["changed"]
    assert lab.run("pool", name="old/sub")["pool"]["parent"] == "old"
    assert [
        one["name"] for one in lab.run("pool_info")["pools"] if one["name"].startswith("old")
    ] == ["old", "old/sub"]
    assert lab.run("pool", name="old/sub", state="absent")["changed"]
    assert lab.run("pool", name="old", state="absent", force=True)["changed"]


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"ha": "dynamic"}, "crs.ha=dynamic"),
    ({"ha_auto_rebalance": True}, "crs.ha_auto_rebalance=1"),
]


@pytest.mark.parametrize(("crs", "named"), OPTIONS, ids=str)
def test_options_of_a_cluster_that_are_newer(lab: Lab, crs: dict[str, Any], named: str) -> None:
    result = access_lab.refused(lab, "cluster_options", crs=crs)
    assert result["error"]["category"] == "NotSupported"
    assert f"{named} came with Proxmox VE 9.2, and this is 8.4" in result["msg"]


@pytest.mark.usefixtures("fast")
def test_options_of_a_cluster(lab: Lab) -> None:
    access_lab.as_foreseen(lab, "cluster_options", crs={"ha": "static"}, registered_tags=["old"])
    access_lab.as_foreseen(lab, "cluster_options", state="absent", registered_tags=["old"])
    access_lab.as_foreseen(lab, "cluster_options", crs={"ha": ""})


ACCESS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("group", {"name": "old"}, {"comment": "c"}),
    ("user", {"name": "old@pve"}, {"groups": ["old"], "email": "a@b.test", "expire": "2100-01-01"}),
    ("role", {"name": "Old"}, {"privileges": ["VM.Audit", "agent", "agent_read"]}),
    ("acl", {"path": "/pool/acme"}, {"grants": [{"group": "old", "role": "Old"}]}),
    ("acl", {"path": "/pool/acme"}, {"grants": [], "exact": True}),
]


def test_users_and_rights(lab: Lab) -> None:
    for module, named, options in ACCESS:
        access_lab.as_foreseen(lab, module, **named, **options)
    role = access_lab.do(lab, "role_info", name="Old")["roles"][0]
    assert role["privileges"] == ["VM.Audit", "VM.Monitor"]
    token = access_lab.do(lab, "token", owner="old@pve", name="tt", comment="c")
    assert token["secret"]
    assert not access_lab.do(lab, "token", owner="old@pve", name="tt", comment="c")["changed"]
    access_lab.as_foreseen(lab, "user", name="old@pve", state="absent")
    for module, name in (("group", "old"), ("role", "Old")):
        access_lab.as_foreseen(lab, module, name=name, state="absent")


@pytest.mark.usefixtures("fast")
def test_a_realm_and_its_directory(lab: Lab) -> None:
    access_lab.with_directory(lab.client, lab.simulator)
    preview = access_lab.do(lab, "realm_sync", check=True, name="ldap", scope="both")
    made = access_lab.do(lab, "realm_sync", name="ldap", scope="both")
    assert made["changed"]
    assert made["diff"] == preview["diff"]
    assert not access_lab.do(lab, "realm_sync", name="ldap", scope="both")["changed"]
