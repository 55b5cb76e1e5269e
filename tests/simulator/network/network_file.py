"""Writing a node's file of interfaces, and reading it again.

Follows `PVE/Network/Interfaces.pm`: an interface is written and read before anybody sees it, and
values that the file cannot hold are lost on the way. Open vSwitch is not simulated.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Any

from ..errors import PveError
from ..schema.formats import split_list

Iface = dict[str, Any]
_SOURCE = "/usr/share/perl5/PVE/Network/Interfaces.pm"
_CARD = re.compile(r"(?:eth\d+|en[^:.]+|ib[^:.]+|(?:nic|if)\d+)")
_RANK = {"eth": 200000, "bond": 400000, "bridge": 500000, "vlan": 600000}
_NEW = 50000  # the priority of an interface that was not in the file yet
_ALWAYS = (
    "type",
    "priority",
    "method",
    "method6",
    "families",
    "active",
    "exists",
    "bridge_ports",
    "slaves",
)
PORTS = ("bridge_ports", "ovs_ports", "slaves", "ovs_bonds")


def ports(iface: Iface) -> list[str]:
    """The interfaces that belong to this one."""
    return [port for key in PORTS for port in split_list(iface.get(key) or "")]


def written(ifaces: dict[str, Iface], touched: str, ifupdown2: bool) -> dict[str, Iface]:
    """The interfaces as read after this write; an impossible combination is refused."""
    names = sorted(ifaces, key=lambda name: name != touched)
    used: dict[str, str] = {}
    for name in names:
        for port in ports(ifaces[name]):
            if used.setdefault(port, name) != name:
                raise PveError(f"port '{port}' is already used on interface '{used[port]}'")
    for kind, check in (("bond", _check_bond), ("vlan", _check_vlan), ("bridge", _check_bridge)):
        for name in names:
            if ifaces[name]["type"] == kind:
                check(ifaces, name, ifupdown2)
    result: dict[str, Iface] = {}
    for number, name in enumerate(sorted(ifaces, key=functools.cmp_to_key(_order(ifaces))), 3):
        result[name] = {**_read_again(name, ifaces[name]), "priority": number}
    for iface in result.values():
        if iface["type"] == "vlan":
            iface["exists"] = result.get(iface["vlan-raw-device"], {}).get("exists")
    return result


# -- refusals --------------------------------------------------------------------------------------


def _check_mtu(ifaces: dict[str, Iface], parent: str, child: str) -> None:
    wanted = int(ifaces.get(child, {}).get("mtu") or 0)
    above = ifaces[parent]
    limit = int(above.get("mtu") or (wanted if above["type"] == "bond" else 1500))
    if limit < wanted:
        raise PveError(f"interface '{parent}' - mtu {limit} is lower than '{child}' - mtu {wanted}")


def _check_bond(ifaces: dict[str, Iface], name: str, _ifupdown2: bool) -> None:
    slaves = split_list(ifaces[name].get("slaves") or "")
    for slave in slaves:
        kind = ifaces.get(slave, {}).get("type", "")
        if kind not in ("eth", "bond"):
            raise PveError(
                f"bond '{name}' - wrong interface type on slave '{slave}' ('{kind}' != 'eth or"
                " bond')"
            )
        ifaces[slave]["autostart"] = 1
        _check_mtu(ifaces, name, slave)
    first = ifaces[name].get("bond-primary")
    if slaves and first and first not in slaves:
        raise PveError(
            f"bond '{name}' - bond-primary interface is not a slave at {_SOURCE} line 908."
        )


def _check_vlan(ifaces: dict[str, Iface], name: str, ifupdown2: bool) -> None:
    iface = ifaces[name]
    by_name = re.fullmatch(r"(\S+)\.(\d+)", name)
    if by_name:
        parent, number = by_name[1], by_name[2]
        iface.pop("vlan-raw-device", None)
        iface.pop("vlan-id", None)
    else:
        parent = iface.get("vlan-raw-device") or ""
        if not parent:
            raise PveError(f"missing vlan-raw-device option at {_SOURCE} line 954.")
        if re.fullmatch(r"vlan\d+", name):
            number = name[4:]
        elif not ifupdown2:
            raise PveError(f"custom vlan interface name need ifupdown2 at {_SOURCE} line 961.")
        elif not iface.get("vlan-id"):
            raise PveError(f"missing vlan-id option at {_SOURCE} line 962.")
        else:
            number = str(iface["vlan-id"])
    if int(number) > 4094:
        raise PveError(f"vlan '{name}' - vlan-id {number} should be <= 4094")
    if parent not in ifaces:
        raise PveError(f"vlan '{name}' - unable to find parent '{parent}'")
    kind = ifaces[parent]["type"]
    if kind not in ("eth", "bond", "bridge", "vlan"):
        raise PveError(
            f"vlan '{name}' - wrong interface type on parent '{parent}' ('{kind}' !="
            " 'eth|bond|bridge|vlan' )"
        )
    _check_mtu(ifaces, parent, name)


def _check_bridge(ifaces: dict[str, Iface], name: str, _ifupdown2: bool) -> None:
    for port in split_list(ifaces[name].get("bridge_ports") or ""):
        parent = re.fullmatch(r"(\S+)\.\d+", port)
        found = ifaces.get(port)
        if found is None and parent:
            found = {"type": "vlan", "mtu": ifaces.get(parent[1], {}).get("mtu")}
        if found is None:
            raise PveError(f"bridge '{name}' - unable to find bridge port '{port}'")
        if any(found.get(f"method{six}") == "static" for six in ("", "6")):
            raise PveError(
                f"iface {port} - ip address can't be set on interface if bridged in {name}"
            )
        _check_mtu({**ifaces, port: found}, port, name)


# -- reading again ---------------------------------------------------------------------------------


def _order(ifaces: dict[str, Iface]) -> Any:
    """Compare two interfaces by their kind and their place.

    If one kind is unknown, only the places count.
    """

    def rank(name: str) -> int | None:
        root, *below = re.split(r"[.:]", name)
        kind = _RANK.get(ifaces.get(root, {}).get("type", ""))
        return None if kind is None else kind + len(below)

    def compare(one: str, other: str) -> int:
        first, second = rank(one), rank(other)
        if first is None or second is None:
            first = second = 0
        first += ifaces[one].get("priority", _NEW)
        second += ifaces[other].get("priority", _NEW)
        return first - second or (one > other) - (one < other)

    return compare


def _kind(name: str, iface: Iface) -> str:
    """The kind of the interface: its name decides it, unless it has ports of a bridge."""
    if iface["type"] == "bridge" or iface.get("bridge_ports"):
        return "bridge"
    for pattern, kind in ((r"bond\d+", "bond"), (r"\S+:\d+", "alias"), (r"\S+\.\d+", "vlan")):
        if re.fullmatch(pattern, name):
            return kind
    if iface.get("vlan-raw-device"):
        return "vlan"
    return "eth" if _CARD.fullmatch(name) or iface.get("exists") else "unknown"


def _read_again(name: str, given: Iface) -> Iface:
    """One interface after it went through the file."""
    iface = {key: value for key, value in given.items() if key in _ALWAYS or value}
    kind = given["type"]
    if kind == "bridge":
        _read_bridge(iface, given.get("bridge_vlan_aware") is not None)
    elif kind == "bond":
        _read_bond(iface)
    if kind not in ("bridge", "bond") and not iface.get("bridge_ports"):
        iface.pop("bridge_ports", None)
    if kind != "bond" and not iface.get("slaves"):
        iface.pop("slaves", None)
    iface["type"] = _kind(name, given)
    if iface["type"] == "vlan":
        _read_vlan(name, iface)
    for key in ("mtu", "vlan-id"):
        if key in iface:
            iface[key] = str(iface[key])
    if "comments" in iface and not iface["comments"].endswith("\n"):
        iface["comments"] += "\n"
    for six, family in (("", "inet"), ("6", "inet6")):
        _read_addresses(iface, six, family)
    return iface


def _read_bridge(iface: Iface, aware: bool) -> None:
    iface["bridge_ports"] = " ".join(sorted(set(split_list(iface.get("bridge_ports") or ""))))
    iface.setdefault("bridge_stp", "off")
    iface.setdefault("bridge_fd", "0")
    vids = iface.pop("bridge_vids", None) or "2-4094"
    if aware:
        iface.update(bridge_vlan_aware=1, bridge_vids=" ".join(split_list(vids)))


def _read_vlan(name: str, iface: Iface) -> None:
    device, dot, number = name.rpartition(".")
    if dot:
        iface.update({"vlan-raw-device": device, "vlan-id": number})
    elif re.fullmatch(r"vlan\d+", name):
        iface["vlan-id"] = name[4:]


def _read_bond(iface: Iface) -> None:
    iface["slaves"] = " ".join(sorted(set(split_list(iface.get("slaves") or ""))))
    iface.setdefault("bond_miimon", "100")
    mode = iface.get("bond_mode")
    if mode not in ("balance-xor", "802.3ad"):
        iface.pop("bond_xmit_hash_policy", None)
    if mode != "active-backup":
        iface.pop("bond-primary", None)
    iface.setdefault("bond_mode", "balance-rr")
    for key in ("bridge_fd", "bridge_ports"):
        if iface.get(key) in ("0", ""):
            del iface[key]


def _read_addresses(iface: Iface, six: str, family: str) -> None:
    """Addresses of a family that is not named are not written, and so are lost."""
    address, mask = iface.get(f"address{six}"), str(iface.pop(f"netmask{six}", "") or "")
    iface.pop(f"cidr{six}", None)
    if family not in iface["families"]:
        for key in ("address", "gateway"):
            iface.pop(f"{key}{six}", None)
        iface[f"method{six}"] = "manual"
    elif address:
        if mask and not mask.isdigit():
            mask = str(ipaddress.ip_network(f"0.0.0.0/{mask}").prefixlen)
        iface[f"cidr{six}"] = f"{address}/{mask or ('128' if six else '32')}"
        if mask:
            iface[f"netmask{six}"] = mask
