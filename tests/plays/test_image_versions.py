# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role image publishes versions on several nodes, against the simulated Proxmox VE."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player
from tests.plays.test_image_role import IMAGE, web, writes

__all__ = ["web"]
VERSIONS: dict[str, Any] = {
    "image_name": "golden",
    "image_nodes": ["pve1", "pve2"],
    "image_storages": ["elsewhere", "local-lvm"],
    "image_disk_size": "2G",
}


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab(task_ms="default=10", auth_delay_s=0.1, lag_s=0.1) as lab:
        place = {"type": "dir", "path": "/srv", "content": "images,rootdir", "nodes": "pve3"}
        lab.call("POST", "/storage", storage="elsewhere", **place)
        yield lab


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Player:
    return Player(tmp_path, lab.environment)


def guests(lab: Lab) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the VMs of the listing by node and name; versions are part of the name."""
    found = {}
    for row in lab.call("GET", "/cluster/resources"):
        if row["type"] == "qemu":
            versions = [tag for tag in row.get("tags", "").split(";") if "version-" in tag]
            found[(row["node"], "@".join([row["name"], *versions]))] = row
    return found


def without_link(lab: Lab, mark: int) -> list[bool]:
    """Return for each guest that was started whether its NIC had no link before that."""
    cut: dict[str, bool] = {}
    found = []
    for one in lab.requests_since(mark):
        guest = one.path.partition("/config")[0]
        if one.is_write and "net0" in one.params:
            cut[guest] = "link_down=1" in one.params["net0"]
        elif one.is_write and one.path.endswith("/status/start"):
            found.append(cut.get(one.path.removesuffix("/status/start"), False))
    return found


def names(lab: Lab) -> list[str]:
    return sorted(f"{node}/{name}" for node, name in guests(lab) if "golden" in name)


def test_versions_are_published_tested_and_pruned(lab: Lab, player: Player, web: str) -> None:
    said = {**VERSIONS, "image_version": "1", "image_url": f"{web}/golden-1.qcow2"}
    mark = lab.mark()
    foreseen = player.play(IMAGE, "--check", **said).expect()
    assert "golden@1 would be published on pve2 (storage local-lvm)" in foreseen.output
    assert writes(lab, mark) == []
    # The clone of the test boots, and has no agent that can be waited for. It is removed, and
    # nothing is published: the candidate of the first node stays.
    test = {"image_test": "agent", "image_test_timeout": 1}
    failed = player.play(IMAGE, **said, **test, image_test_vm={"agent": False}).expect(2)
    assert "it has no guest agent configured" in failed.output
    assert names(lab) == ["pve1/candidate-golden-1-pve1"]
    # The next run completes it; the guests that boot in the test have no network.
    mark = lab.mark()
    player.play(IMAGE, **said, image_test="agent").expect()
    assert without_link(lab, mark) == [True, True]
    assert names(lab) == ["pve1/golden@version-1", "pve2/golden@version-1"]
    config = lab.call("GET", f"/nodes/pve2/qemu/{guests(lab)[key('pve2', 1)]['vmid']}/config")
    assert config["scsi0"].startswith("local-lvm:base-")
    assert "Template golden@1, made from golden-1.qcow2" in config["description"]
    mark = lab.mark()
    assert player.play(IMAGE, **said, image_test="agent").expect().changed == 0
    assert writes(lab, mark) == []
    # The older version is removed although a clone was linked to it: on LVM-thin the clone stays.
    linked = linked_clone(lab, "pve1", 1)
    second = {**VERSIONS, "image_version": "2", "image_url": f"{web}/golden-2.qcow2"}
    player.play(IMAGE, **second, image_keep=1).expect()
    assert names(lab) == ["pve1/golden@version-2", "pve2/golden@version-2"]
    assert lab.call("GET", f"/nodes/pve1/qemu/{linked}/config")["scsi0"]


def key(node: str, version: int) -> tuple[str, str]:
    return node, f"golden@version-{version}"


def linked_clone(lab: Lab, node: str, version: int) -> int:
    """Return the VMID of a linked clone of a version, made without the modules."""
    vmid = guests(lab)[key(node, version)]["vmid"]
    lab.call("POST", f"/nodes/{node}/qemu/{vmid}/clone", newid=777, name="linked")
    return 777


@pytest.mark.slow
def test_a_shared_storage_gets_one_template(lab: Lab, player: Player, web: str) -> None:
    said = {
        **VERSIONS,
        "image_name": "shared-golden",
        "image_version": "1",
        "image_url": f"{web}/shared.qcow2",
        "image_storages": "ceph",  # as -e image_storages=ceph
        "image_nodes": [],
    }
    player.play(IMAGE, **said).expect()
    assert [name for name in names(lab) if "shared" in name] == ["pve1/shared-golden@version-1"]
    lab.call(
        "POST",
        f"/nodes/pve1/qemu/{guests(lab)[('pve1', 'shared-golden@version-1')]['vmid']}/clone",
        newid=778,
        name="linked-shared",
    )
    newer = {**said, "image_version": "2", "image_keep": 1}
    kept = player.play(IMAGE, **newer).expect()
    assert "shared-golden@1 on pve1 was kept" in kept.output
    assert len([name for name in names(lab) if "/shared" in name]) == 2
    player.play(IMAGE, **newer, image_ensure=True).expect()


def containers(lab: Lab) -> dict[str, int]:
    """Return the VMIDs of the containers by node, name and version."""
    found = {}
    for row in lab.call("GET", "/cluster/resources"):
        if row["type"] == "lxc":
            versions = [tag for tag in row.get("tags", "").split(";") if "version-" in tag]
            found["@".join([f"{row['node']}/{row['name']}", *versions])] = row["vmid"]
    return found


@contextmanager
def stopping(lab: Lab, name: str) -> Iterator[None]:
    """Stop a container of that name as soon as it runs."""
    done = threading.Event()

    def stop() -> None:
        while not done.wait(0.1):
            for row in lab.call("GET", "/nodes/pve1/lxc"):
                if row["name"] == name and row["status"] == "running":
                    lab.call("POST", f"/nodes/pve1/lxc/{row['vmid']}/status/stop")
                    return

    thread = threading.Thread(target=stop)
    thread.start()
    yield
    done.set()
    thread.join()


@pytest.mark.slow
def test_container_templates(lab: Lab, player: Player, web: str) -> None:
    """Versions, the test boot and pruning work for containers as for VMs."""
    said: dict[str, Any] = {
        **VERSIONS,
        "image_kind": "container",
        "image_name": "cgolden",
        "image_version": "1",
        "image_url": f"{web}/golden-standard_1-1_amd64.tar.zst",
        "image_test": "running",
        "image_test_seconds": 1,
    }
    mark = lab.mark()
    foreseen = player.play(IMAGE, "--check", **said).expect()
    assert "cgolden@1 would be published on pve2 (storage local-lvm)" in foreseen.output
    assert writes(lab, mark) == []
    # Without a NIC the clone of the test gets no address, which is refused before the first write.
    refused = player.play(IMAGE, **{**said, "image_test": "address"}).expect(2)
    assert "Name a NIC for it in nics of image_test_vm" in refused.output
    assert writes(lab, mark) == []
    # A clone that stops by itself: nothing is published, and the clone is removed.
    with stopping(lab, "test-candidate-cgolden-1-pve1"):
        failed = player.play(IMAGE, **said).expect(2)
    assert "was started, and does not run any more" in failed.output
    assert list(containers(lab)) == ["pve1/candidate-cgolden-1-pve1"]
    mark = lab.mark()
    player.play(IMAGE, **said).expect()
    assert without_link(lab, mark) == [True, True]
    assert sorted(containers(lab)) == ["pve1/cgolden@version-1", "pve2/cgolden@version-1"]
    mark = lab.mark()
    assert player.play(IMAGE, **said).expect().changed == 0
    assert writes(lab, mark) == []
    vmid = containers(lab)["pve2/cgolden@version-1"]
    config = lab.call("GET", f"/nodes/pve2/lxc/{vmid}/config")
    assert config["template"] == 1
    assert config["rootfs"] == f"local-lvm:base-{vmid}-disk-0,size=2G"
    # Only the nodes of the run get the newer version and lose the older one. The clone of the test
    # has the network that the task names.
    second = {**said, "image_version": "2", "image_nodes": ["pve1"], "image_keep": 1}
    named = {"image_test": "address", "image_test_vm": {"nics": [{"bridge": "vmbr0"}]}}
    mark = lab.mark()
    player.play(IMAGE, **{**second, **named}).expect()
    assert without_link(lab, mark) == [False]
    assert sorted(containers(lab)) == ["pve1/cgolden@version-2", "pve2/cgolden@version-1"]


def test_refusals(lab: Lab, player: Player, web: str) -> None:
    said = {**VERSIONS, "image_url": f"{web}/golden.qcow2"}
    mark = lab.mark()
    assert "needs image_name and image_version" in player.play(IMAGE, **said).expect(2).output
    for options, text in (
        ({"image_version": "1_2"}, "is not the version of an image"),
        ({"image_version": "9", "image_nodes": ["pve9"]}, "node pve9 is unknown or offline"),
        ({"image_version": "9", "image_storages": ["elsewhere"]}, "none of the storages elsewhere"),
        ({"image_version": "9", "image_storages": ["no", "local-lvm"]}, "there is no storage 'no'"),
        ({"image_version": "9", "image_ensure": True}, "is missing on node"),
    ):
        assert text in player.play(IMAGE, **{**said, **options}).expect(2).output
    assert writes(lab, mark) == []
