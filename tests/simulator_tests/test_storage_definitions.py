"""Definitions of storages.

Sources: pve-storage, API2/Storage/Config.pm, Storage.pm (activate_storage), Storage/Plugin.pm and
the plugin of each kind; pve-common, SectionConfig.pm.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.simulator_tests.client import Client

FAR = "10.0.0.9"
# A definition of each kind, and the text if it cannot be used on this node.
NEEDS = {
    "nfs": ({"server": FAR, "export": "/srv"}, "storage 'far' is not online"),
    "cifs": ({"server": FAR, "share": "s"}, "storage 'far' is not online"),
    "esxi": ({"server": FAR, "username": "u", "password": "secret"}, "storage 'far' is not online"),
    "iscsi": ({"portal": f"{FAR}:3260", "target": "iqn.x"}, "storage 'far' is not online"),
    "pbs": (
        {"server": "127.0.0.9", "datastore": "d"},
        (
            "far: error fetching datastores - 500 Can't connect to 127.0.0.9:8007 (Connection"
            " refused)"
        ),
    ),
    "lvmthin": ({"vgname": "vg", "thinpool": "data"}, "no such logical volume vg/data"),
    "dir": ({"path": "/srv", "content": "none"}, "unknown vtype 'none'"),
}


@pytest.mark.parametrize("kind", sorted(NEEDS))
def test_only_a_storage_that_is_enabled_here_must_be_usable(pve: Client, kind: str) -> None:
    given, text = NEEDS[kind]
    params: dict[str, Any] = {"storage": "far", "type": kind, **given}
    answer = pve.call("POST", "/storage", params)
    assert answer.reason == f"create storage failed: {text}"
    assert pve.call("GET", "/storage/far").reason == "storage 'far' does not exist"
    for elsewhere in ({"disable": 1}, {"nodes": "pve2,pve3"}):
        assert pve.call("POST", "/storage", {**params, **elsewhere}).data["storage"] == "far"
        pve.delete("/storage/far")
    pve.post("/storage", **params, disable=1)
    pve.put("/storage/far", delete="disable")
    status = pve.get("/nodes/pve1/storage/far/status")
    assert (status["enabled"], status["active"], status["total"]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("kind", "given", "shown"),
    [
        (
            "dir",
            {"path": "//srv/./x/", "max-protected-backups": -1, "shared": 0, "is_mountpoint": 1},
            {"path": "/srv/x", "max-protected-backups": -1, "shared": 0, "is_mountpoint": "1"},
        ),
        ("lvm", {"vgname": "vg", "tagged_only": 1}, {"tagged_only": 1}),
        ("cephfs", {"fuse": 1, "monhost": FAR}, {"fuse": 1, "shared": 1}),
        ("rbd", {"krbd": 1, "keyring": "k"}, {"krbd": 1, "shared": 1}),
        (
            "pbs",
            {"server": FAR, "datastore": "d", "port": 8008, "nodes": "pve2"},
            {"port": 8008, "content": "backup"},
        ),
        (
            "esxi",
            {
                "server": "esxi.lan",
                "username": "u",
                "password": "secret",
                "skip-cert-verification": 1,
                "disable": 1,
            },
            {"skip-cert-verification": 1, "disable": 1},
        ),
        (
            "zfs",
            {
                "pool": "p",
                "portal": FAR,
                "target": "iqn.x",
                "iscsiprovider": "LIO",
                "blocksize": "4k",
                "nowritecache": 1,
            },
            {"nowritecache": 1, "zfs-base-path": "/dev/zvol"},
        ),
    ],
)
def test_booleans_and_numbers_are_numbers(
    pve: Client, kind: str, given: dict[str, Any], shown: dict[str, Any]
) -> None:
    pve.post("/storage", storage="new", type=kind, **given)
    found = pve.get("/storage/new")
    assert {key: found[key] for key in shown} == shown
    assert not {"password", "keyring", "encryption-key"} & found.keys()
    (listed,) = (item for item in pve.get("/storage") if item["storage"] == "new")
    assert listed == found


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"type": "dir", "path": "/a b"}, "illegal path for directory storage: /a b"),
        ({"type": "dir", "path": "/a", "password": "secret"}, "unexpected property 'password'"),
        (
            {"type": "esxi", "server": FAR, "username": "u"},
            "create storage failed: missing password",
        ),
        (
            {"type": "pbs", "server": FAR, "datastore": "d", "encryption-key": "x", "disable": 1},
            (
                "create storage failed: Value does not seems like a valid, JSON formatted"
                " encryption key!"
            ),
        ),
        (
            {"type": "pbs", "server": FAR, "datastore": "d", "master-pubkey": "x", "disable": 1},
            (
                "create storage failed: 'master-pubkey' can only be used together with"
                " 'encryption-key'"
            ),
        ),
    ],
)
def test_definitions_that_are_refused(pve: Client, given: dict[str, Any], text: str) -> None:
    assert pve.call("POST", "/storage", {"storage": "new", **given}).reason == text


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("lvm", {"vgname": "x"}),
        ("nfs", {"export": "/srv", "server": "no spaces"}),
        ("iscsi", {"target": "iqn.x", "portal": "a b"}),
        ("zfspool", {"pool": "p", "blocksize": "15x"}),
        ("zfspool", {"pool": "p", "blocksize": "12k"}),
        ("dir", {"path": "/x", "prune-backups": "keep-all=1,keep-last=2"}),
        ("dir", {"path": "/x", "content-dirs": "iso=a/../b"}),
        ("nfs", {"export": "/srv", "server": FAR, "options": "a b"}),
    ],
)
def test_values_that_are_invalid(pve: Client, kind: str, given: dict[str, str]) -> None:
    answer = pve.call("POST", "/storage", {"storage": "new", "type": kind, **given})
    assert (answer.status, list(answer.errors)) == (400, [list(given)[-1]])


def test_the_key_of_a_backup_server_is_returned_and_not_kept(pve: Client) -> None:
    given = {"storage": "bak", "type": "pbs", "server": FAR, "datastore": "d", "disable": 1}
    answer = pve.post("/storage", **given, **{"encryption-key": "autogen", "password": "secret"})
    key = json.loads(answer["config"]["encryption-key"])
    assert pve.get("/storage/bak")["encryption-key"] == key["fingerprint"]
    assert pve.call("PUT", "/storage/bak", {"port": 8008}).data["config"] == {}
    pve.put("/storage/bak", delete="encryption-key")
    assert "encryption-key" not in pve.get("/storage/bak")


def test_the_storage_local_is_always_there(pve: Client) -> None:
    pve.put("/storage/local", nodes="pve2")
    assert "nodes" not in pve.get("/storage/local")
    pve.delete("/storage/local")
    found = pve.get("/storage/local")
    assert (found["path"], found["prune-backups"]) == ("/var/lib/vz", "keep-all=1")


def test_a_base_is_not_removed(pve: Client) -> None:
    pve.post("/storage", storage="san", type="iscsidirect", portal=FAR, target="iqn.x")
    pve.post("/storage", storage="onit", type="lvm", vgname="vg", base="san:0.0.0.scsi-1")
    answer = pve.call("DELETE", "/storage/san")
    assert answer.reason == (
        "delete storage failed: can't remove storage - storage is used as base of another storage"
    )
