# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabrics in module sdn against the simulator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.test_sdn import ROOT, converge, require_free

UNDER: dict[str, Any] = {
    "name": "under",
    "protocol": "openfabric",
    "ip_prefix": "10.99.1.0/24",
    "hello_interval": 3,
}
AREA: dict[str, Any] = {
    "name": "ring",
    "protocol": "ospf",
    "ip_prefix": "10.99.2.0/24",
    "area": "0",
}


def node(number: int, fabric: str = "under", net: str = "10.99.1", **more: Any) -> dict[str, Any]:
    return {"fabric": fabric, "node": f"pve{number}", "ip": f"{net}.{number}", **more}


NODES = [node(one, interfaces=[{"name": "vmbr0", "hello_multiplier": 4}]) for one in (1, 2)]
OVER: dict[str, Any] = {
    "name": "over",
    "type": "vxlan",
    "fabric": "under",
    "nodes": ["pve1", "pve2"],
}
CONTROLLER: dict[str, Any] = {"name": "ctl", "type": "evpn", "asn": 65000, "fabric": "under"}


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster without networks, and a directory for the token of its lock."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return unused


def fabrics(lab: Lab) -> dict[str, list[str]]:
    """Return the running fabrics, and the fabric and the name of each running node."""
    found = lab.client.get(*ROOT, "fabrics", "all", params={"running": 1})
    return {
        "fabrics": [row["id"] for row in found["fabrics"]],
        "nodes": [f"{row['fabric_id']} {row['node_id']} {row['ip']}" for row in found["nodes"]],
    }


def test_fabrics_are_created_changed_and_removed(lab: Lab) -> None:
    result = converge(
        lab,
        fabrics=[UNDER, AREA],
        fabric_nodes=[*NODES, node(3, "ring", "10.99.2", interfaces=[{"name": "vmbr0"}])],
        zones=[OVER],
        controllers=[CONTROLLER],
    )
    assert "fabrics under new" in result["dry_run"]["pve1"]["interfaces"]
    assert fabrics(lab) == {
        "fabrics": ["ring", "under"],
        "nodes": ["ring pve3 10.99.2.3", "under pve1 10.99.1.1", "under pve2 10.99.1.2"],
    }
    info = do(lab, "sdn_info")["sdn"]
    exact = ["zones", "fabrics", "fabric_nodes", "controllers"]
    assert not do(lab, "sdn", **info, exact=exact)["changed"]
    assert "zone 'over' uses it" in refused(lab, "sdn", fabrics=[AREA], exact=["fabrics"])["msg"]
    moved = [{**node(one, net="10.98.1"), "interfaces": []} for one in (1, 2)]
    converge(lab, fabrics=[{"name": "under", "ip_prefix": "10.98.1.0/24"}], fabric_nodes=moved)
    assert "under pve1 10.98.1.1" in fabrics(lab)["nodes"]
    gone: dict[str, Any] = {key: [] for key in exact}
    converge(lab, **gone, exact=exact)
    assert fabrics(lab) == {"fabrics": [], "nodes": []}


def test_pending_fabrics_of_others_are_not_applied(lab: Lab) -> None:
    """Proxmox VE gives the lock out nevertheless (pve-network: SDN.pm, has_pending_changes)."""
    data = {"id": "other", "protocol": "openfabric", "ip_prefix": "10.1.0.0/24"}
    lab.client.write("POST", *ROOT, "fabrics", "fabric", data=data)
    require_free(lab)
    result = refused(
        lab, "sdn", harmless="/cluster/sdn/lock", zones=[{"name": "own", "type": "simple"}]
    )
    assert "fabric other (new)" in result["msg"]
    assert do(lab, "sdn_info")["pending"] == ["fabric other (new)"]
    assert fabrics(lab)["fabrics"] == []


@pytest.mark.parametrize("path", ["/fabrics/node/under$", "^/cluster/sdn$"])
def test_a_failed_write_is_rolled_back(lab: Lab, path: str) -> None:
    method = "PUT" if path.startswith("^") else "POST"
    lab.simulator.fault(path=path, method=method, status=500, message="the disk is on fire")
    result = lab.run("sdn", fabrics=[UNDER], fabric_nodes=NODES)
    lab.simulator.clear_faults()
    assert "were rolled back, and are unchanged" in result["msg"]
    assert lab.client.get(*ROOT, "fabrics", "fabric") == []
    require_free(lab)


def test_version_8_has_no_fabrics(old: Lab) -> None:
    result = refused(old, "sdn", fabrics=[UNDER])
    assert result["error"]["category"] == "NotSupported"
    assert "PVE 8.4 has no fabrics, they came with 9.0" in result["msg"]
    assert "fabrics" not in do(old, "sdn_info")["sdn"]
