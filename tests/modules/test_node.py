# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules node and node_settings_info against the simulator, which answers as pve-manager's
API2/Nodes.pm and API2/NodeConfig.pm do.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.settings.plan import (
    with_hosts,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.settings.run import run
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

NODE = "pve1"
PATH = f"/nodes/{NODE}"
MAC = "BC:24:11:00:00:01"
ALL: dict[str, Any] = {
    "description": "Rack 4\nPower B",
    "startall_onboot_delay": 60,
    "ballooning_target": 70,
    "wakeonlan": {"mac": MAC.lower(), "bind_interface": "vmbr0"},
    "dns": {"search": "lab.test", "servers": ["10.99.0.53", "fd00::53"]},
    "hosts": [{"address": "10.99.0.60", "names": ["backup.lab.test", "backup"]}],
    "timezone": "Europe/Vienna",
}


@pytest.fixture
def lab(unused: Lab, fast: None) -> Lab:
    unused.simulator.reset_log()
    return unused


def test_all_settings_at_once(lab: Lab) -> None:
    made = as_foreseen(lab, "node", node=NODE, **ALL)
    options = "ballooning_target, description, startall_onboot_delay, wakeonlan"
    assert made["plan"] == [
        f"Change the settings of node pve1: {options}",
        "Change the DNS settings of node pve1",
        "Change the hosts of node pve1: 10.99.0.60",
        "Change the time zone of node pve1 to Europe/Vienna",
    ]
    assert lab.client.get("nodes", NODE, "config")["wakeonlan"] == f"{MAC},bind-interface=vmbr0"
    assert lab.client.get("nodes", NODE, "dns")["dns2"] == "fd00::53"
    listed = do(lab, "node_settings_info", node=NODE)["settings"]
    assert listed["timezone"] == "Europe/Vienna"
    assert not do(lab, "node", node=NODE, **listed)["changed"]


def test_place_of_a_node(lab: Lab, old: Lab) -> None:
    """Proxmox VE 9.2 has it, in format pve-node-location with both coordinates."""
    place = {"latitude": "48.2082", "longitude": "16.3738", "name": "Vienna"}
    made = as_foreseen(lab, "node", node=NODE, location=place)
    assert made["plan"] == ["Change the settings of node pve1: location"]
    assert made["node"]["location"] == place
    listed = do(lab, "node_settings_info", node=NODE)["settings"]
    assert not do(lab, "node", node=NODE, **listed)["changed"]
    failure = refused(lab, "node", node=NODE, location={"latitude": ""})
    assert "location.longitude needs location.latitude" in failure["msg"]
    failure = refused(lab, "node", node=NODE, location={"latitude": "91"})
    assert "Use a number from -90 to 90" in failure["msg"]
    removed = do(lab, "node", node=NODE, location=dict.fromkeys(place, ""))
    assert removed["node"]["location"] is None
    failure = refused(old, "node", node=NODE, location=place)
    assert failure["error"]["category"] == "NotSupported"
    assert "location came with Proxmox VE 9.2, and this is 8.4" in failure["msg"]


def test_only_the_parts_of_the_task_are_read(lab: Lab) -> None:
    do(lab, "node", node=NODE, timezone="UTC")
    assert requests(lab) == [f"GET {PATH}/time"]
    lab.simulator.reset_log()
    do(lab, "node", node=NODE, description="x")
    assert requests(lab) == [f"GET {PATH}/config", f"PUT {PATH}/config", f"GET {PATH}/config"]
    lab.simulator.reset_log()
    do(lab, "node", node=NODE)
    assert requests(lab) == []


def test_empty_values_remove_settings(lab: Lab) -> None:
    do(lab, "node", node=NODE, **ALL)
    empty = {
        "description": "",
        "wakeonlan": {"mac": "", "bind_interface": ""},
        "dns": {"servers": []},
        "hosts": [{"address": "10.99.0.60", "names": []}],
    }
    made = as_foreseen(lab, "node", node=NODE, **empty)
    assert made["node"]["dns"] == {"search": "lab.test", "servers": []}
    assert "description" not in lab.client.get("nodes", NODE, "config").get("description", "")
    assert "backup" not in lab.client.get("nodes", NODE, "hosts")["data"]


def test_other_settings_stay(lab: Lab) -> None:
    do(lab, "node", node=NODE, **ALL)
    as_foreseen(lab, "node", node=NODE, wakeonlan={"broadcast_address": "10.99.0.255"})
    found = lab.client.get("nodes", NODE, "config")
    assert found["startall-onboot-delay"] == "60"
    assert "bind-interface=vmbr0" in found["wakeonlan"]
    do(lab, "node", node=NODE, dns={"search": "other.test"})
    assert lab.client.get("nodes", NODE, "dns")["dns1"] == "10.99.0.53"


def test_comments_and_other_entries_of_the_hosts_file_stay() -> None:
    text = "# head\n127.0.0.1 localhost\n\n10.0.0.1\ta b # c\n10.0.0.2 x\n"
    assert with_hosts(text, {"10.0.0.1": ("a", "b")}) == text
    changed = with_hosts(text, {"10.0.0.2": (), "10.0.0.1": ("a",), "fd00::1": ("six",)})
    assert changed == "# head\n127.0.0.1 localhost\n\n10.0.0.1 a\nfd00::1 six\n"


def test_a_change_by_another_client_is_kept(lab: Lab) -> None:
    text = lab.client.get("nodes", NODE, "hosts")["data"] + "10.0.0.9 other\n"
    other = ("POST", ("nodes", NODE, "hosts"), {"data": text})
    entry = {"address": "10.0.0.8", "names": ["mine"]}
    with overtaken(lab, other) as client:
        made = run({"node": NODE, "hosts": [entry]}, client)
    assert made.changed
    text = lab.client.get("nodes", NODE, "hosts")["data"]
    assert "10.0.0.9 other" in text
    assert "10.0.0.8 mine" in text


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", ["config", "dns", "hosts", "time"])
def test_a_lost_answer_is_looked_after(lab: Lab, part: str, when: str) -> None:
    method = "POST" if part == "hosts" else "PUT"
    lab.simulator.fault(method=method, path=f"{PATH}/{part}$", drop=when)
    made = do(lab, "node", node=NODE, **ALL)
    assert made["done"] == made["plan"]
    assert not do(lab, "node", node=NODE, **ALL)["changed"]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({"startall_onboot_delay": 301}, "startall_onboot_delay"),
    ({"ballooning_target": 101}, "ballooning_target"),
    ({"wakeonlan": {"mac": "nope"}}, "wakeonlan.mac"),
    ({"wakeonlan": {"mac": MAC, "broadcast_address": "x"}}, "wakeonlan.broadcast_address"),
    ({"wakeonlan": {"bind_interface": "vmbr0"}}, "mac"),
    ({"dns": {"search": "a b"}}, "dns.search"),
    ({"dns": {"servers": ["10.0.0.300"]}}, "dns.servers"),
    ({"dns": {"servers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}}, "dns.servers"),
    ({"hosts": [{"address": "x", "names": ["a"]}]}, "hosts[0].address"),
    ({"hosts": [{"address": "10.0.0.1", "names": ["a_b"]}]}, "hosts[0].names"),
    ({"hosts": [{"address": "10.0.0.1"}, {"address": "10.0.0.1"}]}, "hosts[1].address"),
    ({"hosts": [{"address": "10.99.0.11", "names": []}]}, "own name"),
    ({"node": "a/b"}, "node"),
]


@pytest.mark.parametrize(("options", "reason"), INVALID, ids=str)
def test_refused_before_any_write(lab: Lab, options: dict[str, Any], reason: str) -> None:
    assert refused(lab, "node", **{"node": NODE, **options})["error"]["reason"] == reason


def test_an_unknown_time_zone_is_reported(lab: Lab) -> None:
    failed = lab.run("node", node=NODE, timezone="Europe/Nowhere")
    assert failed["error"]["category"] == "ValidationFailed"
    assert "invalid time zone" in failed["msg"]


def test_missing_privileges_are_reported(lab: Lab) -> None:
    login = limited(lab, "auditor", {"/": "PVEAuditor"})
    failed = lab.run("node", **login, node=NODE, description="x")
    assert failed["error"]["category"] == "PermissionDenied"
    assert "Sys.Modify" in failed["msg"]
