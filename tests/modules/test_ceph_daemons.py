# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules ceph_mon, ceph_mgr and ceph_mds against the simulator, which follows MON.pm, MGR.pm and
MDS.pm in PVE/API2/Ceph and PVE/Ceph/Services.pm of pve-manager.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused


@pytest.fixture
def lab(unused: Lab) -> Lab:
    unused.simulator.steer("/cluster", {"ceph": {"fs": "cephfs"}})
    return unused


@pytest.mark.parametrize("module", ["ceph_mon", "ceph_mgr", "ceph_mds"])
def test_daemon_is_created_and_deleted(lab: Lab, module: str) -> None:
    made = done(lab, module, node="pve2")
    assert (made[module]["node"], made[module]["name"]) == ("pve2", "pve2")
    assert made["plan"][0].endswith("'pve2' of node pve2")
    if module == "ceph_mds":  # the second one can replace the first
        done(lab, module, node="pve3")
    assert done(lab, module, node="pve2", state="absent")[module] is None


def test_monitor_keeps_its_address(lab: Lab) -> None:
    task: dict[str, Any] = {"node": "pve2", "name": "b"}
    made = done(lab, "ceph_mon", **task, mon_address=["10.99.0.52"])["ceph_mon"]
    assert (made["mon_address"], made["state"]) == (["10.99.0.52"], "running")
    result = refused(lab, "ceph_mon", **task, mon_address=["10.99.0.53"])
    assert "cannot change mon_address of an existing Ceph monitor" in result["msg"]


REFUSED: list[tuple[str, dict[str, Any], str, str]] = [
    ("ceph_mon", {"node": "pve1", "state": "absent"}, "not safe", "Create or start another"),
    ("ceph_mgr", {"node": "pve1", "state": "absent"}, "last manager", "no other manager"),
    ("ceph_mds", {"node": "pve3", "state": "absent"}, "not safe", "or set force=true"),
    ("ceph_mds", {"node": "pve1", "name": "1a"}, "name", "begins with a letter"),
    ("ceph_mgr", {"node": "pve2", "name": "a_b"}, "name", "Use letters, digits and hyphens"),
    ("ceph_mon", {"node": "pve2", "name": "pve1"}, "name in use", "pve1 exists on node pve1"),
    ("ceph_mon", {"node": "pve2", "mon_address": ["x"]}, "mon_address", "x"),
]


@pytest.mark.parametrize(("module", "options", "reason", "word"), REFUSED, ids=str)
def test_daemon_is_refused(
    lab: Lab, module: str, options: dict[str, Any], reason: str, word: str
) -> None:
    assert lab.run("ceph_mds", node="pve3")["changed"]
    result = refused(lab, module, **options)
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_monitor_of_the_quorum_is_not_deleted(lab: Lab) -> None:
    """With two of three monitors, the loss of one leaves one of two, which is not a majority."""
    mons = {node: {"host": node, "running": node != "pve3"} for node in ("pve1", "pve2", "pve3")}
    lab.simulator.steer("/cluster", {"ceph": {"mon": mons}})
    result = refused(lab, "ceph_mon", node="pve2", state="absent")
    assert "Ceph cannot lose it now: not enough monitors" in result["msg"]
    done(lab, "ceph_mon", node="pve3", state="absent")
    done(lab, "ceph_mon", node="pve2", state="absent")


def test_removal_is_forced(lab: Lab) -> None:
    done(lab, "ceph_mds", node="pve3")
    for module, node in (("ceph_mgr", "pve1"), ("ceph_mds", "pve3")):
        done(lab, module, node=node, state="absent", force=True)


@pytest.mark.parametrize("module", ["ceph_mon", "ceph_mgr", "ceph_mds"])
def test_node_without_ceph(lab: Lab, module: str) -> None:
    lab.simulator.steer("/cluster", {"ceph": None})
    result = refused(lab, module, node="pve1")
    assert result["error"]["category"] == "NotSupported", result["msg"]
    assert "pveceph init" in result["msg"]
