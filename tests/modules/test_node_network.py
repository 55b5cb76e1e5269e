# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules node_network and node_network_info against the simulator, which answers as pve-manager's
API2/Network.pm does.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.network.run import run
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

NODE = "pve1"
PATH = f"/nodes/{NODE}/network"
BRIDGE: dict[str, Any] = {"name": "vmbr5", "type": "bridge"}


@pytest.fixture
def lab(unused: Lab, fast: None) -> Lab:
    """The demo cluster; node pve1 has the network cards eth1 and eth2 as well."""
    for name in ("eth1", "eth2"):
        pend(unused, iface=name, type="eth")
    unused.client.task("PUT", "nodes", NODE, "network")
    unused.simulator.reset_log()
    return unused


def pend(lab: Lab, **data: Any) -> None:
    """Create an interface as another client does, without a reload."""
    lab.client.write("POST", "nodes", NODE, "network", data=data)


def found(lab: Lab) -> dict[str, dict[str, Any]]:
    return {row["iface"]: row for row in lab.client.get("nodes", NODE, "network")}


def listed(lab: Lab) -> list[dict[str, Any]]:
    """Return the interfaces in the form in which they are declared."""
    return list(do(lab, "node_network_info", node=NODE)["interfaces"])


def pending(lab: Lab) -> str | None:
    return lab.client.get_beside("changes", "nodes", NODE, "network")[1]


def task(*interfaces: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"node": NODE, "interfaces": list(interfaces), **more}


def test_several_interfaces_are_one_change(lab: Lab) -> None:
    bond = {"name": "bond0", "type": "bond", "slaves": ["eth2", "eth1"], "bond_mode": "802.3ad"}
    bridge = {
        **BRIDGE,
        "bridge_ports": ["bond0"],
        "bridge_vlan_aware": True,
        "bridge_vids": ["200", "100-199"],
        "cidr": "10.5.0.11/24",
        "mtu": 1400,
        "comments": "Guests",
    }
    vlan = {"name": "vmbr5.40", "type": "vlan", "cidr6": "fd00:0::11/64"}
    made = as_foreseen(lab, "node_network", **task(vlan, bridge, bond))
    assert made["plan"] == [
        "Create bond bond0 on node pve1",
        "Create bridge vmbr5 on node pve1",
        "Create VLAN vmbr5.40 on node pve1",
        "Apply the network configuration of node pve1",
    ]
    assert pending(lab) is None
    rows = found(lab)
    assert rows["vmbr5"]["active"]
    assert rows["bond0"]["slaves"] == "eth1 eth2"
    assert rows["vmbr5"]["bridge_vids"] == "100-199 200"
    (listed,) = [one for one in made["node_network"]["interfaces"] if one["name"] == "vmbr5.40"]
    assert listed == {
        "name": "vmbr5.40",
        "type": "vlan",
        "cidr6": "fd00::11/64",
        "autostart": True,
        "vlan_raw_device": "vmbr5",
        "vlan_id": 40,
    }


def test_the_listed_interfaces_are_a_task_that_changes_nothing(lab: Lab) -> None:
    do(lab, "node_network", **task({**BRIDGE, "bridge_vlan_aware": True, "cidr": "10.5.0.1/24"}))
    listed = do(lab, "node_network_info", node=NODE)
    assert listed["pending"] is None
    assert listed["states"]["vmbr5"]["active"]
    again = do(lab, "node_network", **task(*listed["interfaces"], exact=True))
    assert not again["changed"]


def test_the_requests_of_an_unchanged_run_and_of_a_change(lab: Lab) -> None:
    do(lab, "node_network", **task(BRIDGE))
    assert [one for one in requests(lab) if "/tasks/" not in one] == [
        f"GET {PATH}",
        "GET /cluster/status",
        "GET /cluster/config/nodes",
        f"POST {PATH}",
        f"GET {PATH}",
        f"PUT {PATH}",
        f"GET {PATH}",
    ]
    lab.simulator.reset_log()
    do(lab, "node_network", **task(BRIDGE))
    assert requests(lab) == [f"GET {PATH}"]


def test_an_address_stays_if_another_option_changes(lab: Lab) -> None:
    do(lab, "node_network", **task({**BRIDGE, "cidr": "10.5.0.1/24", "mtu": 1400}))
    as_foreseen(lab, "node_network", **task({**BRIDGE, "comments": "two\nlines"}))
    row = found(lab)["vmbr5"]
    assert (row["cidr"], row["mtu"], row["comments"]) == ("10.5.0.1/24", 1400, "two\nlines\n")


def test_empty_values_remove_options(lab: Lab) -> None:
    options = {"cidr": "10.5.0.1/24", "mtu": 1400, "comments": "x", "bridge_ports": ["eth1"]}
    do(lab, "node_network", **task({**BRIDGE, **options, "bridge_vlan_aware": True}))
    empty = {"cidr": "", "mtu": 0, "comments": "", "bridge_ports": [], "autostart": False}
    empty["bridge_vlan_aware"] = False
    made = as_foreseen(lab, "node_network", **task({**BRIDGE, **empty}))
    assert made["diff"]["after"] == {"vmbr5": BRIDGE}


def test_a_card_moves_from_a_bridge_to_a_bond(lab: Lab) -> None:
    do(lab, "node_network", **task({**BRIDGE, "bridge_ports": ["eth1"], "cidr": "10.5.0.1/24"}))
    bond = {"name": "bond0", "type": "bond", "slaves": ["eth1", "eth2"]}
    bridge = {"name": "vmbr5", "bridge_ports": ["bond0"]}
    made = as_foreseen(lab, "node_network", **task(bridge, bond))
    assert made["plan"][:-1] == [
        "Change bridge vmbr5 of node pve1: bridge_ports",
        "Create bond bond0 on node pve1",
        "Change bridge vmbr5 of node pve1: bridge_ports",
    ]
    assert found(lab)["vmbr5"]["cidr"] == "10.5.0.1/24"
    back = {"name": "vmbr5", "bridge_ports": ["eth1"]}
    as_foreseen(lab, "node_network", **task(back, {"name": "bond0", "state": "absent"}))
    assert "bond0" not in found(lab)


def test_a_card_itself_can_be_changed(lab: Lab) -> None:
    as_foreseen(lab, "node_network", **task({"name": "eth1", "mtu": 9000}))
    as_foreseen(lab, "node_network", **task({"name": "eth1", "autostart": True}))
    as_foreseen(lab, "node_network", **task({"name": "eth1", "autostart": False}))


def test_exact_removes_all_others_but_the_cards(lab: Lab) -> None:
    do(lab, "node_network", **task(BRIDGE, {"name": "vmbr5.7", "type": "vlan"}))
    kept = [{"name": name} for name in ("vmbr0", "vmbr1", "vmbr2")]
    made = as_foreseen(lab, "node_network", **task(*kept, exact=True))
    assert made["plan"][:2] == [
        "Remove VLAN vmbr5.7 of node pve1",
        "Remove bridge vmbr5 of node pve1",
    ]
    assert set(found(lab)) == {"eth0", "eth1", "eth2", "vmbr0", "vmbr1", "vmbr2"}


# -- changes of other clients ----------------------------------------------------------------------


def test_a_pending_change_is_shown_and_not_applied(lab: Lab) -> None:
    pend(lab, iface="vmbr9", type="bridge")
    listed = do(lab, "node_network_info", node=NODE)
    assert "+iface vmbr9" in listed["pending"]
    failed = refused(lab, "node_network", **task(BRIDGE))
    assert failed["error"]["reason"] == "pending change"
    assert failed["error"]["pending"] == listed["pending"]
    assert "vmbr9" in failed["msg"]
    assert "discard" in failed["msg"]


def test_a_run_without_a_change_warns_of_a_pending_change_of_others(lab: Lab) -> None:
    do(lab, "node_network", **task(BRIDGE))
    pend(lab, iface="vmbr9", type="bridge")
    lab.simulator.reset_log()
    again = do(lab, "node_network", **task(BRIDGE))
    assert not again["changed"]
    assert "vmbr9" in again["warnings"][0]
    assert lab.simulator.writes() == []
    lab.client.write("PUT", "nodes", NODE, "network", "vmbr5", data={"type": "bridge", "mtu": 1400})
    assert refused(lab, "node_network", **task(BRIDGE))["error"]["reason"] == "pending change"


def test_a_pending_change_is_applied_on_request(lab: Lab) -> None:
    pend(lab, iface="vmbr9", type="bridge")
    made = as_foreseen(lab, "node_network", **task(BRIDGE, pending="apply"))
    assert made["plan"][-1] == "Apply the network configuration of node pve1"
    assert {"vmbr5", "vmbr9"} <= set(found(lab))
    assert pending(lab) is None


def test_a_pending_change_is_discarded_on_request(lab: Lab) -> None:
    pend(lab, iface="vmbr9", type="bridge")
    made = do(lab, "node_network", **task(BRIDGE, pending="discard"))
    assert made["done"] == made["plan"]
    assert made["plan"][0] == "Discard the pending network changes of node pve1"
    assert "vmbr9" not in found(lab)
    assert "vmbr5" in found(lab)
    pend(lab, iface="vmbr9", type="bridge")
    made = do(lab, "node_network", **task(BRIDGE, pending="discard"))
    assert made["changed"]
    assert made["plan"] == ["Discard the pending network changes of node pve1"]


def test_a_change_by_another_client_in_between_is_not_applied(lab: Lab) -> None:
    other = ("POST", ("nodes", NODE, "network"), {"iface": "vmbr9", "type": "bridge"})
    with overtaken(lab, other) as client, pytest.raises(Exception, match="vmbr9") as caught:
        run(task(BRIDGE), client)
    assert caught.value.reason == "changed by another client"  # type: ignore[attr-defined]
    assert {"vmbr5", "vmbr9"} <= set(found(lab))
    assert "vmbr9" in (pending(lab) or "")


# -- failures --------------------------------------------------------------------------------------


def test_a_refused_write_takes_the_others_back(lab: Lab) -> None:
    lab.simulator.fault(method="PUT", path=f"{PATH}/vmbr2$", status=500, message="disk full\n")
    new = {"name": "vmbr10", "type": "bridge"}
    failed = lab.run("node_network", **task(new, {"name": "vmbr2", "comments": "x"}))
    assert failed["failed"]
    assert "The network stays as it was" in failed["msg"]
    assert "done" not in failed["error"]
    assert pending(lab) is None
    assert "vmbr10" not in found(lab)


def test_a_refused_first_write_discards_nothing(lab: Lab) -> None:
    lab.simulator.fault(method="POST", path=f"{PATH}$", status=500, message="disk full\n")
    lab.run("node_network", **task(BRIDGE))
    assert [one["method"] for one in lab.simulator.writes()] == ["POST"]


def test_a_refused_reload_takes_the_change_back(lab: Lab) -> None:
    lab.simulator.fault(method="PUT", path=f"{PATH}$", status=500, message="need ifupdown2\n")
    assert lab.run("node_network", **task(BRIDGE))["failed"]
    assert pending(lab) is None
    assert "vmbr5" not in found(lab)


def test_a_failed_reload_puts_the_former_network_back(lab: Lab) -> None:
    do(lab, "node_network", **task({**BRIDGE, "cidr": "10.5.0.1/24"}))
    before = found(lab)
    lab.simulator.fault(task="srvreload", fail="command 'ifreload -a' failed: exit code 1", times=1)
    changes = task({**BRIDGE, "mtu": 1400}, {"name": "vmbr6", "type": "bridge"})
    failed = lab.run("node_network", **changes)
    assert failed["error"]["category"] == "TaskFailed"
    assert "The former configuration was put back" in failed["msg"]
    assert found(lab) == before
    assert pending(lab) is None


def test_a_failed_reload_twice_says_how_to_recover(lab: Lab) -> None:
    lab.simulator.fault(task="srvreload", fail="exit code 1", times=2)
    failed = lab.run("node_network", **task(BRIDGE))
    assert "could not be put back" in failed["msg"]
    assert "ifreload -a" in failed["msg"]
    assert "vmbr0" in {one["name"] for one in failed["error"]["former"]}


def test_a_node_that_does_not_answer_afterwards(lab: Lab) -> None:
    lab.simulator.fault(method="GET", path=f"{PATH}$", status=596, nth=3, times=None)
    failed = lab.run("node_network", **task(BRIDGE, answer_timeout=5))
    assert failed["error"]["reason"] == "no answer after the change"
    assert failed["error"]["retryable"] is False
    assert "ifreload -a" in failed["msg"]
    assert failed["error"]["former"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_lost_answer_is_looked_after(lab: Lab, method: str, when: str) -> None:
    do(lab, "node_network", **task({"name": "vmbr6", "type": "bridge"}))
    lab.simulator.fault(method=method, path=PATH, drop=when, times=1)
    removed = {"name": "vmbr6", "state": "absent"}
    made = do(lab, "node_network", **task(BRIDGE, removed, {"name": "vmbr2", "comments": "x"}))
    assert made["done"] == made["plan"]
    assert pending(lab) is None
    assert "vmbr5" in found(lab)
    assert "vmbr6" not in found(lab)


# -- refusals --------------------------------------------------------------------------------------

REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "bond0", "type": "bond"}, "bond without slaves", "slaves"),
    ({"name": "bond0", "type": "bond", "slaves": ["eth7"]}, "missing port", "eth7"),
    ({"name": "bond0", "type": "bond", "slaves": ["eth0"]}, "port of two interfaces", "vmbr0"),
    ({"name": "bond0", "type": "bond", "slaves": ["vmbr1"]}, "wrong port", "vmbr1"),
    ({"name": "vmbr8.5", "type": "vlan"}, "missing parent", "vmbr8"),
    ({"name": "back", "type": "vlan", "vlan_raw_device": "eth1"}, "missing vlan_id", "vlan_id"),
    ({"name": "vlan5", "type": "vlan"}, "missing parent", "no parent"),
    ({**BRIDGE, "cidr": "10.99.0.11/24"}, "address in use", "10.99.0.11"),
    ({**BRIDGE, "cidr": "10.99.0.12/24"}, "address in use", "node pve2"),
    ({**BRIDGE, "cidr": "10.99.0.200/25"}, "own path", "overlaps"),
    ({**BRIDGE, "cidr": "10.5.0.1/24", "gateway": "10.5.0.2"}, "two gateways", "vmbr0"),
    ({**BRIDGE, "gateway6": "fd00::1"}, "gateway without address", "cidr6"),
    ({**BRIDGE, "bridge_ports": ["nope"]}, "missing port", "nope"),
    ({**BRIDGE, "bridge_ports": ["eth1"], "mtu": 9000}, "mtu", "9000"),
    ({"name": "vmbr0", "mtu": 1400}, "own path", "allow_own_path"),
    ({"name": "eth0", "mtu": 1400}, "own path", "eth0"),
    ({"name": "vmbr0", "state": "absent"}, "own path", "vmbr0"),
    ({"name": "eth1", "state": "absent"}, "network card", "eth1"),
    ({"name": "eth9", "type": "eth"}, "unknown network card", "eth9"),
    ({"name": "vmbr9"}, "no type", "vmbr9"),
    ({"name": "vmbr1", "type": "bond", "slaves": ["eth1"]}, "other type", "bridge"),
    ({"name": "back", "type": "OVSIntPort"}, "missing OVS bridge", "ovs_bridge"),
]


@pytest.mark.parametrize(("interface", "reason", "named"), REFUSED, ids=str)
def test_refused_before_any_write(
    lab: Lab, interface: dict[str, Any], reason: str, named: str
) -> None:
    failed = refused(lab, "node_network", **task(interface))
    assert failed["error"]["reason"] == reason
    assert named in failed["msg"]


INVALID: list[tuple[dict[str, Any], str]] = [
    ({**BRIDGE, "name": "v"}, "interfaces[0].name"),
    ({**BRIDGE, "name": "a-b"}, "interfaces[0].name"),
    ({**BRIDGE, "cidr": "10.5.0.300/24"}, "interfaces[0].cidr"),
    ({**BRIDGE, "cidr": "10.5.0.1"}, "interfaces[0].cidr"),
    ({**BRIDGE, "gateway": "fd00::1"}, "interfaces[0].gateway"),
    ({**BRIDGE, "mtu": 100}, "interfaces[0].mtu"),
    ({**BRIDGE, "bridge_vlan_aware": True, "bridge_vids": ["5000"]}, "interfaces[0].bridge_vids"),
    ({**BRIDGE, "bridge_vlan_aware": True, "bridge_vids": ["9-5"]}, "interfaces[0].bridge_vids"),
    ({**BRIDGE, "slaves": ["eth1"]}, "interfaces[0].slaves"),
    ({"name": "vmbr1.5", "type": "vlan", "vlan_id": 6}, "interfaces[0].vlan_id"),
    (
        {"name": "vmbr1.5", "type": "vlan", "vlan_raw_device": "eth1"},
        "interfaces[0].vlan_raw_device",
    ),
]


@pytest.mark.parametrize(("interface", "what"), INVALID, ids=str)
def test_invalid_values_are_refused_without_a_request(
    lab: Lab, interface: dict[str, Any], what: str
) -> None:
    failed = refused(lab, "node_network", **task(interface))
    assert failed["error"]["reason"] == what
    assert requests(lab) == []


def test_a_bridge_that_guests_use_is_not_removed(lab: Lab) -> None:
    entry = {"node": NODE, "name": "web1", "config": {"net0": "virtio,bridge=vmbr2"}}
    lab.simulator.ask("POST", "/vms/20123", entry)
    add_container(lab, 20124, net1="name=eth1,bridge=vmbr2,type=veth", hostname="db1")
    removed = task({"name": "vmbr2", "state": "absent"})
    failed = refused(lab, "node_network", **removed)
    assert failed["error"]["reason"] == "bridge in use"
    assert "container 20124 (db1), VM 20123 (web1) use it" in failed["msg"]
    kept = [row for row in listed(lab) if row["name"] != "vmbr2"]
    failed = refused(lab, "node_network", **task(*kept, exact=True))
    assert failed["error"]["reason"] == "bridge in use"
    for vmid, kind in ((20123, "qemu"), (20124, "lxc")):
        lab.client.task("POST", "nodes", NODE, kind, vmid, "migrate", data={"target": "pve2"})
    as_foreseen(lab, "node_network", **removed)


def test_the_own_path_can_be_changed_on_request(lab: Lab) -> None:
    change = task({"name": "vmbr0", "mtu": 1400}, allow_own_path=True)
    as_foreseen(lab, "node_network", **change)
    as_foreseen(lab, "node_network", **task({"name": "vmbr0", "comments": "Management"}))


def test_an_address_of_another_node_of_the_site_is_refused(lab: Lab) -> None:
    site = {"name": "berlin", **lab.connection, "other_hosts": ["10.88.0.5"]}
    bridge = {**BRIDGE, "cidr": "10.88.0.5/24"}
    failure = run_module("node_network", {"sites": [site], "node": NODE, "interfaces": [bridge]})
    assert "10.88.0.5" in failure["msg"]
    assert "the API" in failure["msg"]
    assert lab.simulator.writes() == []


def test_two_interfaces_of_one_name_are_refused(lab: Lab) -> None:
    failed = refused(lab, "node_network", **task(BRIDGE, BRIDGE))
    assert failed["error"]["reason"] == "interfaces[1].name"


def test_missing_privileges_are_reported(lab: Lab) -> None:
    login = limited(lab, "auditor", {"/": "PVEAuditor"})
    failed = lab.run("node_network", **login, **task(BRIDGE))
    assert failed["error"]["category"] == "PermissionDenied"
    assert "Sys.Modify" in failed["msg"]
    assert pending(lab) is None


def test_an_unknown_node_is_reported(lab: Lab) -> None:
    failed = refused(lab, "node_network", node="nope", interfaces=[BRIDGE])
    assert "nope" in failed["msg"]
