"""Fabrics: the rules of proxmox-ve-rs, and the lock (pve-network: API2/Network/SDN/Fabrics)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator_tests.client import Client

SDN = "/cluster/sdn"
FABRIC, NODE = f"{SDN}/fabrics/fabric", f"{SDN}/fabrics/node"


@pytest.fixture
def net(lab: Client) -> Client:
    """A cluster in which a fabric with one node runs."""
    lab.post(FABRIC, id="one", protocol="openfabric", ip_prefix="10.1.0.9/24")
    add(lab, "pve1", "10.1.0.1", interfaces=["name=ens1"])
    assert lab.do("PUT", SDN) == "OK"
    return lab


def add(net: Client, node: str, ip: str, **more: Any) -> None:
    net.post(f"{NODE}/one", node_id=node, protocol="openfabric", ip=ip, **more)


def test_pending_fabrics_do_not_keep_the_lock(net: Client) -> None:
    """pve-network: SDN.pm, has_pending_changes and pending_config."""
    net.put(f"{FABRIC}/one", protocol="openfabric", hello_interval=5)
    add(net, "pve2", "10.1.0.2")
    found = net.get(f"{SDN}/fabrics/all", pending=1)
    assert (found["fabrics"][0]["state"], found["fabrics"][0]["ip_prefix"]) == (
        "changed",
        "10.1.0.0/24",
    )
    assert [row.get("state") for row in found["nodes"]] == [None, "new"]
    assert "node_id" not in found["nodes"][1]
    token = net.post(f"{SDN}/lock")
    net.post(f"{SDN}/rollback", **{"lock-token": token})
    assert len(net.get(f"{SDN}/fabrics/all")["nodes"]) == 1


def test_fabrics_are_rows_of_the_list_of_everything(net: Client) -> None:
    """proxmox-perl-rs: pve-rs/src/sdn/status.rs, get_status; pve-manager: API2/Cluster.pm. A fabric
    with one node has no routes.
    """

    def rows() -> dict[str, str]:
        listed = [row for row in net.get("/cluster/resources") if row["type"] == "network"]
        fabrics = [row for row in listed if row["network-type"] == "fabric"]
        assert {row["protocol"] for row in fabrics} == {"openfabric"}
        return {row["id"]: row["status"] for row in fabrics}

    assert rows() == {"network/pve1/fabric/one": "not ok"}
    add(net, "pve2", "10.1.0.2", interfaces=["name=ens1"])
    assert net.do("PUT", SDN) == "OK"
    assert rows() == {"network/pve1/fabric/one": "ok", "network/pve2/fabric/one": "ok"}


def test_a_removal_takes_a_token_that_its_schema_lacks(net: Client) -> None:
    """pve-common: JSONSchema.pm, check_object; pve-network: Fabrics/FabricNode.pm, delete_node."""
    token = net.post(f"{SDN}/lock")
    refused = net.call("DELETE", f"{NODE}/one/pve1")
    assert "deleting node failed: invalid lock token provided!" in refused.reason
    for path in (f"{NODE}/one/pve1", f"{FABRIC}/one"):
        assert net.call("DELETE", path, {"lock-token": token}).status == 200
    assert net.get(FABRIC) == []


@pytest.mark.parametrize(
    ("method", "path", "params", "text"),
    [
        ("POST", FABRIC, {"id": "one", "ip_prefix": "10.9.0.0/24"}, "already exists in config"),
        ("POST", FABRIC, {"id": "two", "ip_prefix": "10.1.0.0/16"}, "overlaps with IPv4 prefix"),
        ("POST", FABRIC, {"id": "two"}, "fabric 'two' does not have an IP prefix configured"),
        ("PUT", f"{FABRIC}/one", {"ip_prefix": "10.2.0.0/24"}, "is outside the IP prefix"),
        ("POST", f"{NODE}/one", {"node_id": "pve2"}, "does not have an IP configured for this"),
        ("POST", f"{NODE}/one", {"node_id": "pve2", "ip": "10.1.0.1"}, "with duplicated IPs"),
        ("POST", f"{NODE}/two", {"node_id": "pve2"}, "'two' does not exist in configuration"),
        ("PUT", f"{NODE}/one/pve2", {}, "node 'pve2' does not exist in fabric 'one'"),
    ],
)
def test_the_whole_configuration_is_valid_after_each_write(
    net: Client, method: str, path: str, params: dict[str, Any], text: str
) -> None:
    before = net.get(f"{SDN}/fabrics/all")
    refused = net.call(method, path, {"protocol": "openfabric", **params})
    assert (refused.status, text in refused.reason) == (500, True)
    assert net.get(f"{SDN}/fabrics/all") == before


def test_a_fabric_in_use_stays(net: Client) -> None:
    net.post(f"{SDN}/zones", zone="z1", type="vxlan", fabric="one")
    refused = net.call("DELETE", f"{FABRIC}/one")
    assert 'this fabric is still used in the VXLAN zone "z1"' in refused.reason
