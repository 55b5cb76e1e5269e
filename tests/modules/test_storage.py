# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules storage and storage_info against the simulator, which answers as pve-storage does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.table import STORAGE
from tests.modules.estate_lab import Lab, open_lab

FINGERPRINT = ":".join(["ab"] * 32)
OFF = {"disable": True}
DEBIAN = "https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2"
BUILT_IN = ["ceph", "local", "local-lvm"]  # the storages of the demo cluster
# A new storage of each type, and a change of it.
TYPES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dir": (
        {
            "path": "/srv//t/",
            "content_dirs": {"iso": "images/iso"},
            "prune_backups": {"keep_last": 3},
        },
        {"shared": True, "prune_backups": {"keep_all": True}, "content_dirs": {}},
    ),
    "nfs": (
        {"server": "192.0.2.9", "export": "/export", "options": "vers=4.2"},
        {"options": "", "preallocation": "off", "bwlimit": {"clone": "1000"}},
    ),
    "cifs": (
        {"server": "192.0.2.9", "share": "iso", "username": "u", "server_password": "secret12"},
        {"domain": "d", "smbversion": "3", "username": ""},
    ),
    "lvm": ({"vgname": "vg1"}, {"saferemove": True, "saferemove_stepsize": "8", "shared": True}),
    "lvmthin": ({"vgname": "vg1", "thinpool": "data"}, {"nodes": ["pve2"]}),
    "zfspool": ({"pool": "tank", "blocksize": "16k"}, {"blocksize": "", "sparse": True}),
    "zfs": (
        {
            "pool": "tank",
            "portal": "192.0.2.9",
            "target": "iqn.2026-01.x:t",
            "iscsiprovider": "LIO",
            "blocksize": "8k",
        },
        {"lio_tpg": "tpg1", "sparse": True},
    ),
    "iscsi": ({"portal": "192.0.2.9", "target": "iqn.2026-01.x:t"}, {"content": []}),
    "iscsidirect": ({"portal": "192.0.2.9", "target": "iqn.2026-01.x:t"}, {"content": []}),
    "rbd": (
        {"monhost": ["10.0.0.1", "10.0.0.2"], "pool": "p", "keyring": "[client]\n"},
        {"krbd": True, "monhost": ["10.0.0.2", "10.0.0.1", "10.0.0.3"], "pool": ""},
    ),
    "cephfs": ({"fs_name": "fs1"}, {"content": ["iso"], "fuse": True, "subdir": "/a"}),
    "btrfs": ({"path": "/srv/bt"}, {"nocow": True, "is_mountpoint": "yes"}),
    "pbs": (
        {
            "server": "192.0.2.9",
            "datastore": "st",
            "username": "u@pbs",
            "server_password": "secret12",
        },
        {"fingerprint": FINGERPRINT, "namespace": "a/b", "server_port": "8009"},
    ),
    "esxi": (
        {"server": "192.0.2.9", "username": "root", "server_password": "secret12"},
        {"skip_cert_verification": True, "server": "192.0.2.10"},
    ),
}


@pytest.fixture(scope="module")
def estate() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        yield lab


@pytest.fixture
def lab(estate: Lab) -> Iterator[Lab]:
    """The cluster without the storages of these tests."""
    yield estate
    estate.simulator.clear_faults()
    for row in estate.client.get("storage"):
        if row["storage"].startswith("t"):
            storage(estate, name=row["storage"], state="absent", force=True)


def storage(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    result = lab.run("storage", check=check, **options)
    assert not result.get("failed"), result
    return result


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the failure, which is the same in check mode and must come before any write."""
    lab.simulator.reset_log()
    foreseen = lab.run("storage", check=True, **options)
    result = lab.run("storage", **options)
    assert result.get("failed"), result
    assert foreseen["msg"] == result["msg"]
    assert lab.simulator.writes() == []
    assert "Traceback" not in str(result)
    return result


def as_foreseen(lab: Lab, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice: no write is foreseen, the diff is the run's, and nothing is
    left to do.
    """
    lab.simulator.reset_log()
    foreseen = storage(lab, check=True, **options)
    assert lab.simulator.writes() == []
    made = storage(lab, **options)
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["done"] == made["plan"] == foreseen["plan"]
    lab.simulator.reset_log()
    again = storage(lab, **options)
    assert not again["changed"], again["diff"]
    assert again["storage"] == made["storage"]
    assert len(lab.simulator.log()) == 1
    return made


@pytest.mark.parametrize("kind", TYPES)
def test_every_type_is_defined_changed_listed_and_removed(lab: Lab, kind: str) -> None:
    new, change = TYPES[kind]
    made = as_foreseen(lab, name="t1", type=kind, **OFF, **new)
    assert made["storage"]["type"] == kind
    assert "secret12" not in str(made)
    changed = as_foreseen(lab, name="t1", **change)
    assert len(changed["plan"]) == 1

    (listed,) = lab.run("storage_info", name="t1")["storages"]
    options = {key: value for key, value in listed.items() if value is not None}
    assert options.pop("states") == []
    options.pop("encryption_key_fingerprint", None)
    assert not storage(lab, **options)["changed"]

    assert as_foreseen(lab, name="t1", state="absent")["storage"] is None
    assert lab.run("storage_info", name="t1")["storages"] == []


def test_requests_are_few(lab: Lab) -> None:
    lab.simulator.reset_log()
    storage(lab, name="t1", type="dir", path="/srv/t1", nodes=["pve1"], content=["iso"])
    assert len(lab.simulator.log()) == 4  # storage, nodes, the creation, and the result
    lab.simulator.reset_log()
    storage(lab, name="t1", content=["iso", "backup"], disable=True)
    assert len(lab.simulator.log()) == 4  # with the type, which decides about content
    assert len(lab.simulator.writes()) == 1


def test_values_are_kept_unless_named(lab: Lab) -> None:
    storage(lab, name="t1", type="dir", path="/srv/t1", bwlimit={"clone": "5", "move": "7"})
    changed = as_foreseen(lab, name="t1", bwlimit={"clone": ""})["storage"]
    assert (changed["bwlimit"]["clone"], changed["bwlimit"]["move"]) == (None, 7)
    assert changed["path"] == "/srv/t1"
    assert as_foreseen(lab, name="t1", content=[])["storage"]["content"] == []
    assert lab.client.get("storage", "t1")["content"] == "none"


def test_another_type_or_a_fixed_option_is_refused(lab: Lab) -> None:
    storage(lab, name="t1", type="dir", path="/srv/t1")
    result = refused(lab, name="t1", type="nfs", server="192.0.2.9", export="/x")
    assert (result["error"]["category"], result["error"]["reason"]) == ("Conflict", "fixed option")
    assert "cannot change type" in result["msg"]
    assert "path" in refused(lab, name="t1", path="/srv/other")["msg"]
    assert "option of type" in refused(lab, name="t1", server="192.0.2.9")["msg"]
    assert "option of type" in refused(lab, name="t1", keyring="x")["msg"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type": "dir"}, "path is required"),
        ({"type": "lvmthin", "vgname": "vg1"}, "thinpool is required"),
        ({"path": "/srv/x"}, "type is required"),
        ({"type": "dir", "path": "relative"}, "is not an absolute path"),
        ({"type": "dir", "path": "/a/../b"}, "is not an absolute path"),
        ({"type": "dir", "path": "/x", "content": ["floppies"]}, "is not a content type"),
        ({"type": "lvm", "vgname": "vg1", "content": ["iso"]}, "cannot hold iso"),
        ({"type": "lvm", "vgname": "vg1", "content": []}, "must hold something"),
        ({"type": "dir", "path": "/x", "nodes": ["pve9"]}, "there is no node pve9"),
        ({"type": "lvm", "vgname": "-"}, "is not a name of LVM"),
        (
            {"type": "pbs", "server": "b", "datastore": "d", "server_port": "99999"},
            "from 1 to 65535",
        ),
        ({"type": "pbs", "server": "b", "datastore": "d", "fingerprint": "ab"}, "fingerprint"),
        ({"type": "pbs", "server": "b", "datastore": "d", "master_pubkey": "x"}, "encryption_key"),
        ({"type": "pbs", "server": "b", "datastore": "d", "encryption_key": "x1"}, "autogen"),
        ({"type": "esxi", "server": "b", "username": "u"}, "server_password is required"),
        ({"type": "nfs", "server": "", "export": "/x"}, "is empty"),
        ({"type": "nfs", "server": "b", "export": "/x", "options": "a b"}, "contains blanks"),
        ({"type": "zfspool", "pool": "p", "blocksize": "15x"}, "is not a block size"),
        (
            {"type": "dir", "path": "/x", "prune_backups": {"keep_all": True, "keep_last": 1}},
            "contradicts keep_all",
        ),
        ({"type": "dir", "path": "/x", "content_dirs": {"iso": "../../etc"}}, "is not a folder"),
        ({"type": "dir", "path": "/x", "content_dirs": {"iso": "images."}}, "is not a folder"),
        ({"type": "dir", "path": "/x", "content_dirs": {"iso": "a/b."}}, "is not a folder"),
        ({"type": "dir", "path": "/x", "max_protected_backups": "-2"}, "from -1 to"),
    ],
)
def test_mistakes_are_refused(lab: Lab, options: dict[str, Any], message: str) -> None:
    assert message in refused(lab, name="t1", **options)["msg"]


def test_a_malformed_name_is_refused(lab: Lab) -> None:
    assert refused(lab, name="1x", type="dir", path="/x")["error"]["category"] == "ValidationFailed"


def test_secrets_are_sent_on_demand_and_never_shown(lab: Lab) -> None:
    options: dict[str, Any] = {
        "type": "pbs",
        "server": "192.0.2.9",
        "datastore": "st",
        "username": "u@pbs",
        **OFF,
    }
    first = storage(lab, name="t1", **options, server_password="secret12")
    assert not storage(lab, name="t1", server_password="another12")["changed"]
    lab.simulator.reset_log()
    foreseen = storage(
        lab, name="t1", server_password="another12", update_secrets="always", check=True
    )
    made = storage(
        lab, name="t1", server_password="another12", namespace="n", update_secrets="always"
    )
    assert foreseen["changed"]
    assert made["plan"] == ["Set namespace, server_password of storage 't1'"]
    (write,) = lab.simulator.writes()
    assert "password" in write["params"]
    shown = str([first, foreseen, made])
    assert "secret12" not in shown
    assert "another12" not in shown

    removed = storage(lab, name="t1", server_password="", update_secrets="always")
    assert lab.simulator.writes()[-1]["params"]["delete"] == "password"
    assert removed["changed"]

    key = storage(lab, name="t1", encryption_key="autogen", update_secrets="always")
    assert len(key["storage"]["encryption_key_fingerprint"]) > 20


def test_a_password_without_a_user_is_a_warning(lab: Lab) -> None:
    made = storage(
        lab,
        name="t1",
        type="cifs",
        server="192.0.2.9",
        share="s",
        server_password="secret12",
        **OFF,
    )
    assert "username is not set" in made["warnings"][0]


def test_a_server_that_does_not_answer_is_explained(lab: Lab) -> None:
    result = lab.run("storage", name="t1", type="nfs", server="192.0.2.9", export="/x")
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "ConfigurationError",
        "server not reachable",
    )
    assert "disable=true" in result["msg"]
    assert [one["name"] for one in lab.run("storage_info")["storages"]] == BUILT_IN
    thin = lab.run("storage", name="t1", type="lvmthin", vgname="no", thinpool="data")
    assert thin["error"]["reason"] == "storage not available"


def test_a_server_that_stops_answering_is_shown_and_named(lab: Lab, tmp_path: Path) -> None:
    """Proxmox VE asks the server when a storage is defined, and not when it is enabled again."""
    nfs: dict[str, Any] = {"type": "nfs", "server": "192.0.2.9", "export": "/x"}
    storage(lab, name="t1", **nfs, content=["iso"], **OFF)
    as_foreseen(lab, name="t1", disable=False)
    (shown,) = [one for one in lab.run("storage_info")["storages"] if one["name"] == "t1"]
    assert {state["active"] for state in shown["states"]} == {False}
    file = tmp_path / "a.iso"
    file.write_bytes(b"an ISO")
    lab.simulator.reset_log()
    failed = lab.run("volume", storage="t1", node="pve1", src=str(file))
    assert failed["error"]["reason"] == "storage unavailable"
    assert "Storage 't1' could not be used on node pve1" in failed["msg"]
    assert lab.simulator.writes() == []
    assert as_foreseen(lab, name="t1", state="absent")["storage"] is None


def test_absent_names_the_users(lab: Lab) -> None:
    storage(lab, name="t1", type="zfspool", pool="tank", content=["images"])
    vm = lab.vm(name="user", memory="128M", disks=[{"size": "1G", "storage": "t1"}])["vm"]
    lab.client.write(
        "POST",
        "cluster",
        "backup",
        data={"id": "nightly", "schedule": "02:00", "storage": "t1", "all": 1},
    )
    lab.client.write(
        "POST",
        "cluster",
        "replication",
        data={
            "id": f"{vm['vmid']}-0",
            "target": "pve2" if vm["node"] != "pve2" else "pve3",
            "type": "local",
        },
    )
    lab.run("pool", name="with-t1", storages=["t1"])
    result = refused(lab, name="t1", state="absent")
    assert result["error"]["reason"] == "in use"
    assert result["error"]["users"] == [
        f"guest {vm['vmid']} (user)",
        "backup job nightly",
        f"replication job {vm['vmid']}-0",
        "pool with-t1",
    ]
    lab.run("pool", name="with-t1", state="absent", force=True)
    lab.client.write("DELETE", "cluster", "backup", "nightly")
    lab.client.write("DELETE", "cluster", "replication", f"{vm['vmid']}-0")
    lab.run("vm", name="user", state="absent")
    assert as_foreseen(lab, name="t1", state="absent")["storage"] is None


@pytest.mark.parametrize("task", ["vzdump", "download"])
def test_a_storage_that_a_running_task_may_use_is_not_removed(lab: Lab, task: str) -> None:
    """No configuration names the storage of a backup or a download, and the task does not show it
    (pve-manager: API2/Tasks.pm and Cluster.pm, tasks).
    """
    storage(lab, name="t1", type="dir", path="/srv/t1", content=["backup", "iso"])
    vm = lab.vm(name="busy", node="pve1", disks=[{"size": "1G", "storage": "ceph"}])["vm"]
    requests: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
        "vzdump": (("vzdump",), {"vmid": vm["vmid"], "storage": "t1"}),
        "download": (
            ("storage", "t1", "download-url"),
            {"url": DEBIAN, "content": "iso", "filename": "late.iso"},
        ),
    }
    path, data = requests[task]
    lab.simulator.steer("/settings", {"task_ms": f"{task}=600000"})
    upid = lab.client.write("POST", "nodes", "pve1", *path, data=data)
    result = refused(lab, name="t1", state="absent")
    lab.simulator.steer("/settings", {"task_ms": f"{task}=20"})
    assert result["error"]["users"] == [f"perhaps task {upid} until it ends"]
    lab.client.wait(upid)
    lab.run("vm", name="busy", state="absent")
    assert storage(lab, name="t1", state="absent")["changed"]


def test_a_used_storage_is_removed_with_force(lab: Lab) -> None:
    storage(lab, name="t1", type="dir", path="/srv/t1", content=["images"])
    lab.vm(name="forced", memory="128M", disks=[{"size": "1G", "storage": "t1"}])
    assert storage(lab, name="t1", state="absent", force=True)["changed"]
    lab.run("vm", name="forced", state="absent")


def test_the_built_in_storage_is_not_removed(lab: Lab) -> None:
    assert "always has storage 'local'" in refused(lab, name="local", state="absent")["msg"]
    assert "on every node" in refused(lab, name="local", nodes=["pve1"])["msg"]


def test_two_runs_define_one_storage(lab: Lab) -> None:
    gate = threading.Barrier(2)

    def one(content: str) -> dict[str, Any]:
        options = {"name": "t1", "type": "dir", "path": "/srv/t1", "content": [content]}
        with connect(lab.connection, {}) as client:
            gate.wait(60)
            return dict(run(STORAGE, options, client).values)

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, ("iso", "iso")))
    assert sum(len(result["done"]) for result in results) == 1


def test_a_lost_answer_is_looked_after(lab: Lab) -> None:
    lab.simulator.fault(method="POST", path="^/storage$", drop="after")
    made = storage(lab, name="t1", type="dir", path="/srv/t1")
    assert made["done"] == ["Create storage 't1'"]
    lab.simulator.clear_faults()
    lab.simulator.fault(method="PUT", path="^/storage/t1$", drop="after")
    assert storage(lab, name="t1", content=["iso"])["storage"]["content"] == ["iso"]


def test_a_change_carries_the_digest_of_its_reading(lab: Lab) -> None:
    """So Proxmox VE refuses it after a change by another run."""
    storage(lab, name="t1", type="dir", path="/srv/t1", content=["iso"])
    lab.simulator.reset_log()
    storage(lab, name="t1", content=["iso", "backup"])
    (write,) = lab.simulator.writes()
    assert write["params"]["digest"]


def test_info_has_the_state_on_each_node(lab: Lab) -> None:
    lab.simulator.reset_log()
    listed = lab.run("storage_info")["storages"]
    assert len(lab.simulator.log()) == 2
    assert [one["name"] for one in listed] == BUILT_IN
    states = listed[2]["states"]
    assert [state["node"] for state in states] == ["pve1", "pve2", "pve3"]
    for state in states:
        assert state["active"]
        assert state["total"] == 500 << 30
        assert state["free"] == state["total"] - state["used"]


BACKUPS = {"type": "pbs", "server": "10.99.0.6", "username": "u@pbs", "server_password": "hidden"}


@pytest.mark.parametrize(
    ("options", "storages"),
    [
        (
            {"type": "nfs", "server": "10.99.0.6"},
            [
                {"type": "nfs", "server": "10.99.0.6", "export": "/export/backup"},
                {"type": "nfs", "server": "10.99.0.6", "export": "/export/iso"},
            ],
        ),
        (
            {"type": "cifs", "server": "10.99.0.6", "username": "u", "server_password": "hidden"},
            [{"type": "cifs", "server": "10.99.0.6", "username": "u", "share": "media"}],
        ),
        (
            BACKUPS,
            [{"type": "pbs", "server": "10.99.0.6", "username": "u@pbs", "datastore": "main"}],
        ),
        (
            {"type": "iscsi", "portal": "10.99.0.6"},
            [{"type": "iscsi", "portal": "10.99.0.6", "target": "iqn.2026-01.lab:disks"}],
        ),
        ({"type": "lvm"}, [{"type": "lvm", "vgname": "pve"}]),
        (
            {"type": "lvmthin", "vgname": "pve"},
            [{"type": "lvmthin", "vgname": "pve", "thinpool": "data"}],
        ),
        ({"type": "zfspool"}, [{"type": "zfspool", "pool": "tank"}]),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_a_scan_finds_options_of_a_storage(
    lab: Lab, options: dict[str, Any], storages: list[dict[str, Any]]
) -> None:
    """The rows are those of pve-storage: PVE/API2/Storage/Scan.pm."""
    if options["type"] == "zfspool":
        storage(lab, name="tzfs", type="zfspool", pool="tank")
    found = lab.run("storage_scan_info", node="pve1", **options)["found"]
    assert [one["storage"] for one in found] == storages
    password = {name: options[name] for name in ("server_password",) if name in options}
    storage(lab, name="tscan", **found[0]["storage"], **password)


def test_a_scan_has_sizes_of_lvm(lab: Lab) -> None:
    (found,) = lab.run("storage_scan_info", node="pve1", type="lvmthin", vgname="pve")["found"]
    assert (found["size"] >> 30, found["free"] >> 30) == (500, 480)


@pytest.mark.parametrize(
    ("options", "category", "text"),
    [
        ({"type": "nfs"}, "ValidationFailed", "a scan for type nfs needs server"),
        ({"type": "lvm", "server": "10.99.0.6"}, "ValidationFailed", "does not have server"),
        ({"type": "pbs", "server": "10.99.0.6"}, "ValidationFailed", "username, server_password"),
        ({"type": "nfs", "server": "no.such.host"}, "ApiError", "unable to resolve address"),
        ({**BACKUPS, "server": "192.0.2.9"}, "ApiError", "Can't connect to 192.0.2.9:8007"),
        ({"type": "lvmthin", "vgname": "none"}, "ApiError", "/sbin/lvs none"),
    ],
)
def test_a_scan_that_fails(lab: Lab, options: dict[str, Any], category: str, text: str) -> None:
    result = lab.run("storage_scan_info", node="pve1", **options)
    assert result["error"]["category"] == category, result["msg"]
    assert text in result["msg"]
    assert "hidden" not in str(result)
