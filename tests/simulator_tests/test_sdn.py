"""Virtual networks: what is pending, what runs, and the lock between two writers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client

SDN = "/cluster/sdn"
WRONG = "invalid lock token provided! at /usr/share/perl5/PVE/Network/SDN.pm line 291."


@pytest.fixture
def net(lab: Client) -> Client:
    """A cluster in which a zone with one network runs."""
    lab.post(f"{SDN}/zones", zone="z1", type="simple", nodes="pve1,pve2")
    lab.post(f"{SDN}/vnets", vnet="v1", zone="z1", alias="first")
    assert lab.do("PUT", SDN) == "OK"
    return lab


def bridges(net: Client, node: str) -> set[str]:
    rows = net.get(f"/nodes/{node}/network", type="include_sdn")
    return {row["iface"] for row in rows if row["type"] == "vnet"}


def test_a_network_runs_on_the_nodes_of_its_zone_after_an_apply(net: Client) -> None:
    """pve-network: SDN.pm, get_local_vnets."""
    assert [bridges(net, node) for node in ("pve1", "pve2", "pve3")] == [{"v1"}, {"v1"}, set()]
    net.create(500, net0="virtio,bridge=v1")
    net.ok("POST", "/nodes/pve1/qemu/500/status/start")


def test_what_is_changed_new_and_deleted(net: Client) -> None:
    """pve-network: SDN.pm, pending_config."""
    net.put(f"{SDN}/vnets/v1", alias="second")
    net.post(f"{SDN}/vnets", vnet="v2", zone="z1")
    net.post(f"{SDN}/zones", zone="z2", type="simple")
    rows = {row["vnet"]: row for row in net.get(f"{SDN}/vnets", pending=1)}
    assert (rows["v1"]["state"], rows["v1"]["pending"]) == ("changed", {"alias": "second"})
    assert rows["v1"]["alias"] == "first"
    assert (rows["v2"]["state"], rows["v2"]["pending"]) == ("new", {"zone": "z1"})
    net.put(f"{SDN}/vnets/v1", delete="alias")
    assert net.get(f"{SDN}/vnets/v1", pending=1)["pending"] == {"alias": "deleted"}
    net.delete(f"{SDN}/vnets/v1")
    deleted = net.get(f"{SDN}/vnets", pending=1)[0]
    assert (deleted["vnet"], deleted["state"]) == ("v1", "deleted")
    assert [row["vnet"] for row in net.get(f"{SDN}/vnets", running=1)] == ["v1"]


def test_a_rollback_configures_what_runs(net: Client) -> None:
    before = net.get(f"{SDN}/vnets/v1")
    net.put(f"{SDN}/vnets/v1", alias="second")
    net.post(f"{SDN}/zones", zone="z2", type="simple")
    net.post(f"{SDN}/rollback")
    assert net.get(f"{SDN}/vnets/v1") == before
    assert [row["zone"] for row in net.get(f"{SDN}/zones")] == ["z1"]


def test_only_who_has_the_token_of_the_lock_writes(net: Client) -> None:
    """pve-network: SDN.pm, lock_sdn_config; while nothing is locked any token is taken."""
    net.post(f"{SDN}/zones", zone="z2", type="simple", **{"lock-token": "anything"})
    net.post(f"{SDN}/rollback")
    token = net.post(f"{SDN}/lock")
    refused = net.call("POST", f"{SDN}/zones", {"zone": "z2", "type": "simple"})
    assert refused.reason == f"create sdn zone object failed: {WRONG}"
    assert net.call("PUT", SDN).reason == f"could not commit SDN config: {WRONG}"
    net.post(f"{SDN}/zones", zone="z2", type="simple", **{"lock-token": token})
    net.post(f"{SDN}/rollback", **{"lock-token": token, "release-lock": 0})
    assert net.call("POST", f"{SDN}/rollback").reason.endswith(WRONG)
    assert net.do("PUT", SDN, **{"lock-token": token}) == "OK"
    net.post(f"{SDN}/zones", zone="z2", type="simple")


def test_a_refused_write_changes_nothing(net: Client) -> None:
    before = net.get(f"{SDN}/vnets")
    refused = net.call("POST", f"{SDN}/vnets", {"vnet": "v3", "zone": "z1", "tag": 5})
    assert refused.message.endswith("tag: vlan tag is not allowed on simple zone\n")
    assert net.get(f"{SDN}/vnets") == before


def test_what_is_used_is_not_removed(net: Client) -> None:
    """pve-network: Zones/Plugin.pm and VnetPlugin.pm, on_delete_hook."""
    net.post(f"{SDN}/vnets/v1/subnets", subnet="10.1.0.0/24", type="subnet", gateway="10.1.0.1")
    refused = net.call("DELETE", f"{SDN}/vnets/v1")
    assert refused.message.endswith("vnet: Can't delete vnet if subnets exists\n")
    refused = net.call("DELETE", f"{SDN}/zones/z1")
    assert refused.reason == "delete sdn zone object failed: zone z1 is used by vnet v1"
    ranges = ["start-address=10.1.0.5,end-address=10.1.0.9"] * 2
    path = f"{SDN}/vnets/v1/subnets/z1-10.1.0.0-24"
    refused = net.call("PUT", path, {"dhcp-range": ranges})
    assert refused.message.endswith("dhcp-range: dhcp ranges must not overlap\n")


def test_a_node_shows_its_zones_and_whether_they_run(net: Client) -> None:
    """pve-network: API2/Network/SDN/Nodes/Zones.pm, SDN/Zones.pm, status."""
    rows = {node: net.get(f"/nodes/{node}/sdn/zones") for node in ("pve1", "pve3")}
    assert rows == {"pve1": [{"zone": "z1", "status": "available"}], "pve3": []}
    net.post(f"{SDN}/zones", zone="z2", type="simple")
    assert net.get("/nodes/pve3/sdn/zones") == []
    assert net.do("PUT", SDN) == "OK"
    assert net.get("/nodes/pve3/sdn/zones") == [{"zone": "z2", "status": "available"}]


def leases(net: Client) -> dict[str, object]:
    return {row["ip"]: row.get("vmid") for row in net.get(f"{SDN}/ipams/pve/status")}


def test_addresses_are_given_out_and_kept(net: Client) -> None:
    """pve-network: SubnetPlugin.pm (on_update_hook), Vnets.pm and Ipams/PVEPlugin.pm."""
    net.post(f"{SDN}/zones", zone="z2", type="simple", ipam="pve", dhcp="dnsmasq")
    net.post(f"{SDN}/vnets", vnet="v2", zone="z2")
    ends = "start-address=10.2.0.100,end-address=10.2.0.101"
    subnet = {"subnet": "10.2.0.0/24", "type": "subnet", "gateway": "10.2.0.1"}
    net.post(f"{SDN}/vnets/v2/subnets", **subnet, **{"dhcp-range": [ends]})
    assert leases(net) == {}
    assert net.do("PUT", SDN) == "OK"
    assert leases(net) == {"10.2.0.1": None}
    net.create(500, net0="virtio,bridge=v2")
    net.post(f"{SDN}/vnets/v2/ips", zone="z2", ip="10.2.0.9", mac="BC:24:11:00:00:01")
    assert leases(net) == {"10.2.0.1": None, "10.2.0.9": None, "10.2.0.100": 500}
    again = {"zone": "z2", "ip": "10.2.0.9"}
    assert net.call("POST", f"{SDN}/vnets/v2/ips", again).reason == "IP '10.2.0.9' already exist"
    moved = {"zone": "z2", "ip": "10.2.0.8", "mac": "BC:24:11:00:00:01"}
    assert net.call("PUT", f"{SDN}/vnets/v2/ips", moved).status == 200
    path = f"{SDN}/vnets/v2/subnets/z2-10.2.0.0-24"
    assert "cannot delete subnet '10.2.0.0/24', not empty" in net.call("DELETE", path).reason
    net.call("DELETE", f"{SDN}/vnets/v2/ips", {"zone": "z2", "ip": "10.2.0.8"})
    net.ok("DELETE", "/nodes/pve1/qemu/500")
    assert leases(net) == {"10.2.0.1": None}
    assert net.call("DELETE", path).status == 200


@pytest.fixture
def full(net: Client) -> Client:
    """A cluster whose network v2 has two addresses, which VM 500 and container 600 have."""
    net.post(f"{SDN}/zones", zone="z2", type="simple", ipam="pve", dhcp="dnsmasq")
    net.post(f"{SDN}/vnets", vnet="v2", zone="z2")
    ends = [f"start-address=10.2.0.{last},end-address=10.2.0.{last}" for last in (100, 120)]
    net.post(f"{SDN}/vnets/v2/subnets", subnet="10.2.0.0/24", type="subnet", **{"dhcp-range": ends})
    assert net.do("PUT", SDN) == "OK"
    net.create(500, net0="virtio,bridge=v2")
    net.sim.ask("POST", "/containers/600", {"node": "pve1", "config": container("v2")})
    for path in ("qemu/500", "lxc/600"):
        net.ok("POST", f"/nodes/pve1/{path}/status/start")
    assert leases(net) == {"10.2.0.100": 500, "10.2.0.120": 600}
    return net


def container(bridge: str) -> dict[str, Any]:
    address = "BC:24:11:00:06:00" if bridge == "v2" else "BC:24:11:00:06:01"
    return {"hostname": "ct", "net0": f"name=eth0,bridge={bridge},hwaddr={address},type=veth"}


LEFT = "can't find any free ip in zone z2 for IPv4 at /usr/share/perl5/PVE/Network/SDN/Vnets.pm"


def test_a_vm_without_an_address_is_created_and_does_not_start(full: Client) -> None:
    """qemu-server: create_ifaces_ipams_ips only warns; usr/pve-bridge, which QEMU runs, dies
    (pve-network: SDN/Vnets.pm, add_dhcp_mapping). A range that is used up only leads to the next.
    """
    full.create(501, net0="virtio,bridge=v2")
    upid = full.post("/nodes/pve1/qemu/501/status/start")
    assert full.wait(upid) == "start failed: QEMU exited with code 1"
    log = "\n".join(full.task_log(upid))
    assert LEFT in log
    assert "network script /usr/libexec/qemu-server/pve-bridge failed with status 6400" in log
    assert full.state("/nodes/pve1/qemu/501") == "stopped"
    full.ok("POST", "/nodes/pve1/qemu/500/status/stop")
    full.ok("DELETE", "/nodes/pve1/qemu/500")
    full.ok("POST", "/nodes/pve1/qemu/501/status/start")


def test_a_nic_without_an_address_is_not_hotplugged(full: Client) -> None:
    """qemu-server: QemuServer.pm, vmconfig_update_net; pve-container: LXC.pm, update_net."""
    for vmid, kind, net0 in (
        (502, "qemu", "virtio,bridge=v1"),
        (600, "lxc", "name=eth1,bridge=v2,hwaddr=BC:24:11:00:07:00,type=veth"),
    ):
        if kind == "qemu":
            full.create(vmid, net0=net0)
            full.ok("POST", f"/nodes/pve1/qemu/{vmid}/status/start")
        path = f"/nodes/pve1/{kind}/{vmid}/config"
        refused = full.call("PUT", path, {"net1": net0.replace("=v1", "=v2")})
        assert LEFT in str(refused.errors["net1"])
        assert "net1" not in full.get(path, current=1)


def test_a_container_without_an_address_is_not_cloned_or_started(full: Client) -> None:
    """pve-container: API2/LXC.pm, clone_vm; lxc-pve-prestart-hook, whose error LXC hides."""
    full.sim.ask("POST", "/containers/601", {"node": "pve1", "config": container("v1")})
    full.put("/nodes/pve1/lxc/601/config", net1="name=eth1,bridge=v1,type=veth")
    full.ok("POST", "/nodes/pve1/qemu/500/status/stop")
    upid = full.post("/nodes/pve1/lxc/600/clone", newid=602)
    assert full.wait(upid).startswith(f"clone failed: {LEFT}")
    full.sim.ask("POST", "/containers/603", {"node": "pve1", "config": THIRD})
    assert full.do("POST", "/nodes/pve1/lxc/603/status/start") == (
        "startup for container '603' failed"
    )


THIRD = {"hostname": "ct3", "net0": "name=eth0,bridge=v2,hwaddr=BC:24:11:00:08:00,type=veth"}


def test_a_subnet_without_ranges_gives_any_address(net: Client) -> None:
    """pve-network: Ipams/PVEPlugin.pm, add_next_freeip."""
    net.post(f"{SDN}/zones", zone="z2", type="simple", ipam="pve", dhcp="dnsmasq")
    net.post(f"{SDN}/vnets", vnet="v2", zone="z2")
    net.post(f"{SDN}/vnets/v2/subnets", subnet="10.2.0.0/29", type="subnet", gateway="10.2.0.1")
    assert net.do("PUT", SDN) == "OK"
    net.create(500, net0="virtio,bridge=v2")
    assert leases(net) == {"10.2.0.1": None, "10.2.0.2": 500}


def test_zones_are_rows_of_the_list_of_everything(net: Client) -> None:
    """pve-manager: API2/Cluster.pm, resources; recordings/power-clone-tasks.jsonl, 9.2.11."""
    rows = [row for row in net.get("/cluster/resources") if row["type"] == "network"]
    found = {row.pop("id"): row for row in rows}
    assert found["network/pve3/zone/localnetwork"] == {
        "type": "network",
        "network-type": "zone",
        "network": "localnetwork",
        "node": "pve3",
        "status": "ok",
    }
    assert found["network/pve1/zone/z1"] == {
        "type": "network",
        "network-type": "zone",
        "zone-type": "simple",
        "network": "z1",
        "node": "pve1",
        "status": "available",
    }
    assert "network/pve3/zone/z1" not in found
    assert net.get("/cluster/resources", type="sdn") == []


def test_a_node_that_cannot_reload_is_a_line_of_a_task_that_ends_with_ok(
    pve: Client, sim: Simulator
) -> None:
    """API2/Network/SDN.pm, reload: the worker warns about each node, and ends with OK."""
    sim.steer("/nodes/pve2", {"online": False})
    upid = pve.put("/cluster/sdn")
    assert pve.wait(upid) == "OK"
    command = "pvesh set /nodes/pve2/network --regenerate-frr 0"
    assert f"command '{command}' failed: exit code 255" in pve.task_log(upid)
