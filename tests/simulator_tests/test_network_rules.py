"""The network of a node: what the file of interfaces takes, and what is read from it again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator_tests.client import Client

BASE = "/nodes/pve1/network"


def shown(pve: Client, name: str, *keys: str) -> dict[str, Any]:
    """These properties of an interface, None for those it has not."""
    iface = pve.get(f"{BASE}/{name}")
    return {key: iface.get(key) for key in keys}


@pytest.fixture
def net(lab: Client) -> Client:
    """A node with a bridge more that has the addresses of a router, and a card."""
    lab.post(BASE, iface="vmbr7", type="bridge", cidr="10.7.0.1/24", gateway="10.7.0.254")
    lab.post(BASE, iface="eth7", type="eth", mtu=1400)
    return lab


@pytest.mark.parametrize(
    ("params", "errors"),
    [
        (
            {"gateway": "10.8.0.254"},
            {"gateway": "Default gateway already exists on interface 'vmbr7'."},
        ),
        (
            {"cidr": "10.8.0.1/24", "address": "10.8.0.1", "netmask": "24"},
            {"address": "address conflicts with cidr"},
        ),
        (
            {"cidr6": "::1/128"},
            {"address6": "::1 with type 'LOOPBACK', cannot be used as host IPv6 address."},
        ),
        (
            {"cidr6": "ff02::1/64"},
            {"address6": "ff02::1 with type 'MULTICAST', cannot be used as host IPv6 address."},
        ),
    ],
)
def test_settings_that_cannot_be(
    net: Client, params: dict[str, Any], errors: dict[str, str]
) -> None:
    answer = net.call("POST", BASE, {"iface": "vmbr8", "type": "bridge", **params})
    assert (answer.status, answer.errors) == (400, errors)


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"iface": "vmbr7.5000", "type": "vlan"},
            "vlan 'vmbr7.5000' - vlan-id 5000 should be <= 4094",
        ),
        (
            {"iface": "vmbr8", "type": "OVSBridge"},
            "Open VSwitch is not installed (need package 'openvswitch-switch')",
        ),
        (
            {"iface": "vmbr8", "type": "bridge", "bridge_ports": "vmbr7"},
            "iface vmbr7 - ip address can't be set on interface if bridged in vmbr8",
        ),
        (
            {"iface": "vmbr8", "type": "bridge", "bridge_ports": "eth7", "mtu": 1500},
            "interface 'eth7' - mtu 1400 is lower than 'vmbr8' - mtu 1500",
        ),
        (
            {"iface": "vmbr7.5", "type": "vlan", "mtu": 9000},
            "interface 'vmbr7' - mtu 1500 is lower than 'vmbr7.5' - mtu 9000",
        ),
    ],
)
def test_interfaces_that_cannot_be_written(net: Client, params: dict[str, Any], text: str) -> None:
    assert net.call("POST", BASE, params).reason == text


def test_a_port_belongs_to_one(net: Client) -> None:
    net.post(BASE, iface="vmbr8", type="bridge", bridge_ports="eth7")
    answer = net.call("POST", BASE, {"iface": "vmbr9", "type": "bridge", "bridge_ports": "eth7"})
    assert answer.errors == {"bridge_ports": "eth7 is already used on interface 'vmbr8'."}
    answer = net.call("DELETE", f"{BASE}/eth7")
    assert answer.reason == "bridge 'vmbr8' - unable to find bridge port 'eth7'"


def test_a_bridge_with_vlans_has_them_all_by_default(net: Client) -> None:
    net.post(BASE, iface="vmbr8", type="bridge", bridge_vlan_aware=1)
    assert shown(net, "vmbr8", "bridge_vlan_aware", "bridge_vids") == {
        "bridge_vlan_aware": 1,
        "bridge_vids": "2-4094",
    }
    net.post(BASE, iface="vmbr9", type="bridge", bridge_vids="5")
    assert shown(net, "vmbr9", "bridge_vids") == {"bridge_vids": None}


def test_both_families(net: Client) -> None:
    net.post(BASE, iface="vmbr8", type="bridge", cidr6="fd00::1/64", cidr="10.8.0.1/24")
    keys = ("families", "method", "method6", "cidr", "cidr6", "netmask6")
    assert list(shown(net, "vmbr8", *keys).values()) == [
        ["inet", "inet6"],
        "static",
        "static",
        "10.8.0.1/24",
        "fd00::1/64",
        "64",
    ]


def test_an_address_is_static_only_where_it_is_named(net: Client) -> None:
    net.put(f"{BASE}/vmbr7", type="bridge", comments="c")
    assert shown(net, "vmbr7", "method", "cidr", "comments") == {
        "method": "manual",
        "cidr": "10.7.0.1/24",
        "comments": "c\n",
    }


def test_a_name_says_what_an_interface_is(net: Client) -> None:
    net.post(
        BASE,
        iface="bond3",
        type="bond",
        slaves="eth7",
        bond_mode="active-backup",
        **{"bond-primary": "eth7"},
    )
    assert shown(net, "bond3", "type", "slaves", "bond_miimon", "bond-primary") == {
        "type": "bond",
        "slaves": "eth7",
        "bond_miimon": "100",
        "bond-primary": "eth7",
    }
    answer = net.call("PUT", f"{BASE}/bond3", {"type": "bond", "bond-primary": "eth9"})
    assert answer.reason.startswith(
        "bond 'bond3' - bond-primary interface is not a slave at /usr/share/perl5/PVE/"
    )
    net.post(BASE, iface="team", type="eth")
    assert shown(net, "team", "type") == {"type": "unknown"}
    net.post(BASE, iface="vmbr7:1", type="alias", address="10.7.0.9", netmask="255.255.255.0")
    assert shown(net, "vmbr7:1", "type", "cidr", "netmask") == {
        "type": "alias",
        "cidr": "10.7.0.9/24",
        "netmask": "24",
    }
