# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module ceph_info against the simulator, which follows PVE/API2/Ceph of pve-manager."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import requests_of


@pytest.fixture
def lab(unused: Lab) -> Lab:
    osds = {
        "0": {"host": "pve1", "up": True, "in": True},
        "1": {"host": "pve2", "up": False, "in": False},
    }
    ceph = {"health": "HEALTH_WARN", "flags": ["noout", "pause"], "osds": osds}
    unused.simulator.steer("/cluster", {"ceph": ceph})
    return unused


def test_state_of_ceph(lab: Lab) -> None:
    assert lab.run("ceph_pool", name="fast")["changed"]
    lab.simulator.reset_log()
    result = lab.run("ceph_info")
    assert len(requests_of(lab)) == 8
    ceph = result["ceph"]
    assert (ceph["health"], ceph["flags"]) == ("HEALTH_WARN", ["noout", "pause"])
    (check,) = ceph["checks"]
    assert (check["name"], check["severity"]) == ("OSDMAP_FLAGS", "HEALTH_WARN")
    assert [(row["name"], row["state"]) for row in ceph["monitors"]] == [("pve1", "running")]
    assert [(row["name"], row["state"]) for row in ceph["managers"]] == [("pve1", "active")]
    assert ceph["metadata_servers"] == []
    assert [(row["osdid"], row["node"], row["running"]) for row in ceph["osds"]] == [
        (0, "pve1", True),
        (1, "pve2", False),
    ]
    assert ceph["pools"] == lab.run("ceph_pool_info")["ceph_pools"]
    assert result["missing"] == []


def test_parts_without_an_answer_are_missing(lab: Lab) -> None:
    """Without a quorum of Ceph, Proxmox VE lists monitors only (MON.pm, listmon)."""
    text = "error with 'osd df': mon_cmd failed - got timeout"
    lab.simulator.fault(method="GET", path="/ceph/osd$", status=400, message=text, times=9)
    result = lab.run("ceph_info", node="pve1", retry_timeout=1)
    assert [one["part"] for one in result["missing"]] == ["osd of Ceph"]
    assert (result["ceph"]["osds"], result["ceph"]["health"]) == ([], "HEALTH_WARN")


def test_cluster_without_ceph(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"ceph": None})
    tasks: tuple[dict[str, Any], ...] = ({}, {"node": "pve1"})
    for options in tasks:
        result = lab.run("ceph_info", **options)
        assert result["error"]["category"] == "NotSupported", result["msg"]
