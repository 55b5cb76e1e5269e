# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clones of containers: linked and full, of templates and of snapshots.

The rules are those of pve-container (API2/LXC.pm, clone_vm) and pve-storage (volume_has_feature).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab

SMALL: dict[str, Any] = {"source": "debian-13-standard", "memory": "1G"}
ZFS = {"storage": "tank", "type": "zfspool", "pool": "tank", "content": "rootdir,images"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def snapped(lab: Lab, storage: str = "ceph", **options: Any) -> dict[str, Any]:
    """Return a container with a snapshot, and more memory since then."""
    wanted = {"name": "web", "default_storage": storage, **SMALL, **options}
    container = do(lab, "container", **wanted)["container"]
    do(lab, "snapshot", name="web", snapshot="s1")
    do(lab, "container", name="web", memory="2G")
    return dict(container)


def cloned(lab: Lab, **options: Any) -> dict[str, Any]:
    """Return the configuration of a clone that check mode has foreseen."""
    foreseen = do(lab, "container", check=True, name="copy", source="web", **options)
    result = do(lab, "container", name="copy", source="web", **options)
    assert result["plan"] == foreseen["plan"]
    assert foreseen["diff"]["after"]["memory"] == result["container"]["config"]["memory"]
    assert not do(lab, "container", name="copy", source="web", **options)["changed"]
    container = result["container"]
    return dict(lab.client.get("nodes", container["node"], "lxc", container["vmid"], "config"))


def refused(lab: Lab, **options: Any) -> str:
    """Return the message of a clone that check mode and the run refuse without a write."""
    lab.simulator.reset_log()
    for check in (True, False):
        result = lab.run("container", check=check, name="copy", **options)
        assert result.get("failed"), result
    assert lab.simulator.writes() == []
    return str(result["msg"])


@pytest.mark.parametrize("storage", ["ceph", "local-lvm"])
@pytest.mark.parametrize("state", ["stopped", "started"])
def test_linked_clone_of_a_snapshot(lab: Lab, storage: str, state: str) -> None:
    """Of a running container as well: `running` does not matter to these storages."""
    snapped(lab, storage, state=state)
    config = cloned(lab, snapshot="s1", full=False)
    assert config["memory"] == 1024
    clone = next(row for row in lab.simulator.writes() if row["path"].endswith("/clone"))
    assert (clone["params"]["snapname"], clone["params"]["full"]) == ("s1", "0")
    assert config["rootfs"].partition("/")[2] == ""  # the name of a base is not part of it


def test_clone_of_a_snapshot_is_full_unless_the_task_says_otherwise(lab: Lab) -> None:
    snapped(lab)
    lab.simulator.reset_log()
    assert cloned(lab, snapshot="s1")["memory"] == 1024
    clone = next(row for row in lab.simulator.writes() if row["path"].endswith("/clone"))
    assert clone["params"]["full"] == "1"


def test_storage_without_links_to_snapshots_is_refused(lab: Lab) -> None:
    """ZFS links to base volumes only, a directory has no linked clones of containers."""
    lab.client.write("POST", "storage", data=ZFS)
    snapped(lab, "tank")
    message = refused(lab, source="web", snapshot="s1", full=False)
    assert (
        "rootfs is on storage tank (zfspool), which has no linked clones of a snapshot" in message
    )
    assert cloned(lab, snapshot="s1", full=True)["rootfs"].startswith("tank:")


def test_linked_clone_without_template_or_snapshot_is_refused(lab: Lab) -> None:
    snapped(lab)
    assert "it is not a template" in refused(lab, source="web", full=False)
    assert "its snapshots are s1" in refused(lab, source="web", snapshot="s2", full=False)


def test_linked_clone_cannot_leave_the_node_of_its_base(lab: Lab) -> None:
    """LXC/Migrate.pm, phase1: can't migrate local volume: clone of base."""
    lab.client.write("POST", "storage", data=ZFS)
    options = {**SMALL, "default_storage": "tank", "node": "pve1", "state": "template"}
    do(lab, "container", name="web", **options)
    message = refused(lab, source="web", full=False, node="pve2")
    assert "rootfs is on storage tank, whose linked clones stay on pve1" in message
    assert cloned(lab, node="pve1")["rootfs"].startswith("tank:basevol-")
    full = do(lab, "container", name="copy2", source="web", node="pve2")
    assert full["container"]["node"] == "pve2"


def test_path_of_the_node_is_not_cloned(lab: Lab) -> None:
    add_container(lab, 700, hostname="web", mp0="/srv/data,mp=/data")
    for full in (True, False):
        assert "mp0 (/srv/data)" in refused(lab, source="web", full=full)
