# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a version of an image is published, and which versions are pruned."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.pve.fleet.plugins.filter.image_places import image_places

NODES = ("pve1", "pve2", "pve3")
LOCAL = {
    "storage": "local-lvm",
    "shared": False,
    "content": ["images", "rootdir"],
    "nodes": [*NODES],
    "unavailable_on": [],
}
SHARED = {**LOCAL, "storage": "ceph", "shared": True, "nodes": ["pve1", "pve2"]}
DISKS_ONLY = {**LOCAL, "storage": "nfs", "content": ["images"]}
CLUSTER: dict[str, Any] = {
    "nodes": [{"node": node, "status": "online"} for node in NODES]
    + [{"node": "pve4", "status": "offline"}],
    "storages": [LOCAL, SHARED, DISKS_ONLY],
}


def guest(vmid: int, node: str, name: str = "golden", version: str = "") -> dict[str, Any]:
    tags = [f"version-{version}"] if version else []
    return {"vmid": vmid, "node": node, "name": name, "tags": tags, "template": True}


def places(guests: list[dict[str, Any]], *storages: str, **options: Any) -> list[tuple[Any, ...]]:
    """Return node, storage, VMID of each place, and whether it is published."""
    found = image_places(guests, CLUSTER, "golden", "2", storages=storages, **options)["places"]
    return [(one["node"], one["storage"], one["vmid"], one["published"]) for one in found]


def test_each_node_uses_its_first_storage() -> None:
    expected = [("pve1", "ceph", None, False), ("pve3", "local-lvm", None, False)]
    assert places([], "ceph", "local-lvm") == expected
    expected = [(node, "local-lvm", None, False) for node in NODES]
    assert places([], "local-lvm", "ceph") == expected
    assert places([], "local-lvm", nodes=["pve2"]) == expected[1:2]


def test_a_storage_must_take_the_disks_of_the_kind() -> None:
    expected = [(node, "local-lvm", None, False) for node in NODES]
    assert places([], "nfs", "local-lvm", kind="container") == expected
    assert places([], "nfs", "local-lvm")[0][1] == "nfs"


def test_existing_templates_are_found() -> None:
    guests = [
        guest(1, "pve1", version="1"),
        guest(2, "pve2", version="2"),
        guest(3, "pve3", "candidate-golden-2-pve3"),
        guest(4, "pve1", "candidate-golden-2-pve3"),
    ]
    assert places(guests, "local-lvm") == [
        ("pve1", "local-lvm", None, False),
        ("pve2", "local-lvm", 2, True),
        ("pve3", "local-lvm", 3, False),
    ]
    assert places(guests, "ceph", nodes=["pve1", "pve2"]) == [("pve2", "ceph", 2, True)]


def test_a_template_on_a_local_storage_serves_its_node_only() -> None:
    """The other nodes of the shared storage could not clone it."""
    drive = {"cloudinit": True, "storage": "ceph"}
    config = {"scsi0": {"storage": "local-lvm"}, "ide2": drive, "cores": 2}
    local = {**guest(2, "pve1", version="2"), "config": config}
    assert places([local], "ceph", nodes=["pve1", "pve2"]) == [
        ("pve1", "ceph", 2, True),
        ("pve2", "ceph", None, False),
    ]
    shared = {**guest(3, "pve1", version="2"), "config": {"rootfs": {"volume": "ceph:base-3"}}}
    assert places([shared], "ceph", nodes=["pve1", "pve2"]) == [("pve1", "ceph", 3, True)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"nodes": ["pve4"]}, "node pve4 is unknown or offline; online are pve1, pve2, pve3"),
        ({"nodes": ["pve3"], "storages": ["ceph"]}, "node pve3 has none of the storages ceph"),
        (
            {"kind": "container", "storages": ["nfs"]},
            "node pve1 has none of the storages nfs with content rootdir",
        ),
        ({"storages": ["local-lvm", "cehp"]}, "there is no storage 'cehp' .did you mean 'ceph'"),
        ({"kind": "jail"}, "is not a kind of guest"),
        ({"version": "a_b"}, "is not the version of an image"),
        ({"name": "a_b"}, "is not a DNS name"),
        ({"name": "a" * 60}, "is too long"),
    ],
)
def test_wrong_places_are_refused(options: dict[str, Any], why: str) -> None:
    wanted = {"name": "golden", "version": "2", "storages": ["local-lvm"], **options}
    with pytest.raises(AnsibleFilterError, match=why):
        image_places([], CLUSTER, **wanted)


def test_older_versions_of_each_node_are_pruned() -> None:
    guests = [guest(100 + number, "pve1", version=str(number)) for number in (9, 10, 11)]
    guests += [
        guest(200, "pve2", version="9"),
        guest(300, "pve1"),
        guest(301, "pve1", "other", "1"),
    ]
    wanted: dict[str, Any] = {"storages": ["local-lvm"], "keep": 2}
    found = image_places(guests, CLUSTER, "golden", "11", **wanted)["prune"]
    assert found == [{"vmid": 109, "node": "pve1", "image": "golden@9"}]
    assert image_places(guests, CLUSTER, "golden", "11", **{**wanted, "keep": 0})["prune"] == []


def test_older_versions_of_a_shared_storage_are_pruned_on_all_its_nodes() -> None:
    """The template of a version is on the node that was the first one then."""
    guests = [
        guest(1, "pve1", version="1"),
        guest(2, "pve2", version="2"),
        guest(3, "pve3", version="1"),
    ]
    wanted: dict[str, Any] = {"storages": ["ceph"], "nodes": ["pve1", "pve2"], "keep": 1}
    found = image_places(guests, CLUSTER, "golden", "2", **wanted)["prune"]
    assert found == [{"vmid": 1, "node": "pve1", "image": "golden@1"}]
