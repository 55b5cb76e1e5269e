"""The network configuration of nodes: what is in force, and what is to come with the next reload."""

from __future__ import annotations

import difflib
import re
import time
from typing import Any

from .api import Ctx, Result, api
from .errors import ParamError, PveError
from .formats import split_list
from .state import NodeInfo
from .tasks import Task

SOURCE = "/usr/share/perl5/PVE/Network/Interfaces.pm"
_BRIDGES = ("bridge", "OVSBridge")
_FILTERS = {
    "any_bridge": _BRIDGES,
    "any_local_bridge": _BRIDGES,
    "include_sdn": _BRIDGES,
}


def make_bridge(name: str, priority: int, cidr: str | None = None, **more: Any) -> dict[str, Any]:
    """A bridge in force."""
    iface: dict[str, Any] = {
        "type": "bridge", "active": 1, "autostart": 1, "bridge_fd": "0", "bridge_ports": "", "bridge_stp": "off",
        "families": ["inet"], "method": "manual", "method6": "manual", "priority": priority, **more,
    }  # fmt: skip
    if cidr:
        address, _dummy, mask = cidr.partition("/")
        iface.update(method="static", address=address, netmask=mask, cidr=cidr)
    return iface


def physical(priority: int) -> dict[str, Any]:
    """A network card that is there."""
    return {
        "type": "eth", "active": 1, "exists": 1, "families": ["inet"], "method": "manual", "method6": "manual",
        "priority": priority,
    }  # fmt: skip


def _current(node: NodeInfo) -> dict[str, dict[str, Any]]:
    return node.ifaces if node.new_ifaces is None else node.new_ifaces


def _text(ifaces: dict[str, dict[str, Any]]) -> list[str]:
    lines = ["auto lo", "iface lo inet loopback", ""]
    for name, iface in ifaces.items():
        if iface.get("autostart"):
            lines.append(f"auto {name}")
        lines.append(f"iface {name} inet {iface['method']}")
        for key in (
            "cidr",
            "gateway",
            "bridge_ports",
            "bridge_stp",
            "bridge_fd",
            "bridge_vids",
            "mtu",
            "slaves",
            "bond_mode",
        ):
            if iface.get(key) not in (None, ""):
                label = {"cidr": "address", "slaves": "bond-slaves"}.get(key, key.replace("_", "-"))
                lines.append(f"\t{label} {iface[key]}")
        lines.append("")
    return lines


def _changes(node: NodeInfo) -> str:
    stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
    diff = difflib.unified_diff(
        _text(node.ifaces), _text(node.new_ifaces or {}), "/etc/network/interfaces", "/etc/network/interfaces.new",
        stamp, stamp, lineterm="",
    )  # fmt: skip
    return "\n".join(diff) + "\n"


@api("GET /nodes/{node}/network")
def index(ctx: Ctx, p: dict[str, Any]) -> Any:
    """The interfaces; with changes that wait for a reload as a diff beside them."""
    node = ctx.cluster.nodes[p["node"]]
    kind = p.get("type")
    allowed = _FILTERS.get(kind, (kind,)) if kind else None
    result = [
        {**iface, "iface": name}
        for name, iface in _current(node).items()
        if (allowed is None or iface["type"] in allowed) and _visible(ctx, name, iface)
    ]
    if node.new_ifaces is None:
        return result
    return Result(result, {"changes": _changes(node)})


def _visible(ctx: Ctx, name: str, iface: dict[str, Any]) -> bool:
    if iface["type"] not in _BRIDGES:
        return True
    return ctx.may(f"/sdn/zones/localnetwork/{name}", "SDN.Audit", "SDN.Use", any_of=True)


@api("GET /nodes/{node}/network/{iface}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One interface."""
    found = _current(ctx.cluster.nodes[p["node"]]).get(p["iface"])
    if found is None:
        raise ParamError({"iface": "interface does not exist"})
    return dict(found)


def _settings(p: dict[str, Any]) -> dict[str, Any]:
    """What the parameters mean for the interface."""
    iface = {key: value for key, value in p.items() if key not in ("node", "iface", "delete") and value is not None}
    for key in ("cidr", "cidr6"):
        six = "6" if key.endswith("6") else ""
        if key in iface:
            address, _dummy, mask = iface[key].partition("/")
            iface[f"address{six}"], iface[f"netmask{six}"] = address, mask
        elif f"address{six}" in iface and f"netmask{six}" in iface:
            iface[key] = f"{iface[f'address{six}']}/{iface[f'netmask{six}']}"
    for key in ("mtu", "vlan-id", "bond-primary"):
        if key in iface:
            iface[key] = str(iface[key])
    if "comments" in iface and not iface["comments"].endswith("\n"):
        iface["comments"] += "\n"
    if iface.get("type") == "bridge":
        iface.setdefault("bridge_ports", "")
        iface.setdefault("bridge_stp", "off")
        iface.setdefault("bridge_fd", "0")
    return iface


def _methods(iface: dict[str, Any]) -> None:
    iface["method"] = "static" if "address" in iface else "manual"
    iface["method6"] = "static" if "address6" in iface else "manual"
    families = [name for name, six in (("inet", ""), ("inet6", "6")) if f"address{six}" in iface]
    iface["families"] = families or ["inet"]


def _check(ifaces: dict[str, dict[str, Any]], name: str, ifupdown2: bool) -> None:
    iface = ifaces[name]
    kind = iface["type"]
    if kind == "vlan":
        _check_vlan(ifaces, name, iface, ifupdown2)
    elif kind == "bridge":
        for port in split_list(iface.get("bridge_ports", "")):
            if port not in ifaces:
                raise PveError(f"bridge '{name}' - unable to find bridge port '{port}'")
    elif kind == "bond":
        for slave in split_list(iface.get("slaves", "")):
            found = ifaces.get(slave, {}).get("type", "")
            if found not in ("eth", "bond"):
                raise PveError(f"bond '{name}' - wrong interface type on slave '{slave}' ('{found}' != 'eth or bond')")


def _check_vlan(ifaces: dict[str, dict[str, Any]], name: str, iface: dict[str, Any], ifupdown2: bool) -> None:
    by_name = re.fullmatch(r"(\S+)\.(\d+)", name)
    if by_name:
        parent = by_name[1]
        iface["vlan-raw-device"], iface["vlan-id"] = parent, by_name[2]
    else:
        if not iface.get("vlan-raw-device"):
            raise PveError(f"missing vlan-raw-device option at {SOURCE} line 954.")
        if re.fullmatch(r"vlan(\d+)", name):
            iface["vlan-id"] = name[4:]
        elif not ifupdown2:
            raise PveError(f"custom vlan interface name need ifupdown2 at {SOURCE} line 961.")
        parent = iface["vlan-raw-device"]
    if parent not in ifaces:
        raise PveError(f"vlan '{name}' - unable to find parent '{parent}'")


def _check_all(ifaces: dict[str, dict[str, Any]]) -> None:
    for name, iface in ifaces.items():
        if iface["type"] != "vlan":
            continue
        parent = iface.get("vlan-raw-device", "")
        kind = ifaces.get(parent, {}).get("type")
        if kind is None:
            raise PveError(f"vlan '{name}' - unable to find parent '{parent}'")
        if kind not in ("eth", "bond", "bridge", "vlan"):
            raise PveError(
                f"vlan '{name}' - wrong interface type on parent '{parent}' ('{kind}' != 'eth|bond|bridge|vlan' )"
            )


_RANK = {"eth": 2.0, "unknown": 2.5, "bond": 3.0, "bridge": 4.0, "OVSBridge": 4.0, "vlan": 5.0}


def _renumber(ifaces: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The interfaces in the order of the file: by kind, then as they were; a VLAN on an odd parent follows it."""

    def rank(item: tuple[str, dict[str, Any]]) -> tuple[float, int]:
        iface = item[1]
        kind = _RANK.get(iface["type"], 6.0)
        parent = ifaces.get(iface.get("vlan-raw-device", ""), {})
        if iface["type"] == "vlan" and parent.get("type") == "unknown" and "." in item[0]:
            kind = 2.6
        return kind, iface["priority"]

    ordered = dict(sorted(ifaces.items(), key=rank))
    for number, iface in enumerate(ordered.values(), 3):
        iface["priority"] = number
    return ordered


def _copy(node: NodeInfo) -> dict[str, dict[str, Any]]:
    return {name: dict(iface) for name, iface in _current(node).items()}


@api("POST /nodes/{node}/network")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Define an interface; it comes with the next reload."""
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    name = p["iface"]
    if name in ifaces:
        raise ParamError({"iface": "interface already exists"})
    iface = _settings(p)
    _methods(iface)
    iface["priority"] = max([2, *(other["priority"] for other in ifaces.values())]) + 1
    ifaces[name] = iface
    _check(ifaces, name, ctx.cluster.ifupdown2)
    if iface["type"] == "vlan":
        iface["exists"] = None
    node.new_ifaces = _renumber(ifaces)


@api("PUT /nodes/{node}/network/{iface}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change an interface; options that are not named stay."""
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    iface = ifaces.get(p["iface"])
    if iface is None:
        raise ParamError({"iface": "interface does not exist"})
    for key in split_list(p.get("delete") or ""):
        iface.pop(key, None)
        if key in ("cidr", "cidr6"):
            six = key[4:]
            iface.pop(f"address{six}", None)
            iface.pop(f"netmask{six}", None)
    iface.update(_settings(p))
    if p["type"] == "bond" and not iface.get("slaves"):
        # A bond without slaves is not recognised as one when the file is read again.
        for key in ("bridge_fd", "bridge_ports"):
            iface.pop(key, None)
        iface.update(type="unknown", slaves="", bond_miimon="100")
        iface.setdefault("bond_mode", "balance-rr")
    _methods(iface)
    node.new_ifaces = _renumber(ifaces)


@api("DELETE /nodes/{node}/network/{iface}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove an interface with the next reload."""
    node = ctx.cluster.nodes[p["node"]]
    ifaces = _copy(node)
    if p["iface"] not in ifaces:
        raise ParamError({"iface": "interface does not exist"})
    del ifaces[p["iface"]]
    _check_all(ifaces)
    node.new_ifaces = _renumber(ifaces)


@api("DELETE /nodes/{node}/network")
def revert(ctx: Ctx, p: dict[str, Any]) -> None:
    """Forget the changes that are not in force yet."""
    ctx.cluster.nodes[p["node"]].new_ifaces = None


@api("PUT /nodes/{node}/network")
def reload_network(ctx: Ctx, p: dict[str, Any]) -> str:
    """Put the changes in force."""
    node = ctx.cluster.nodes[p["node"]]
    if not ctx.cluster.ifupdown2:
        raise PveError("you need ifupdown2 to reload network configuration")

    async def work(task: Task) -> None:
        await task.work()
        if node.new_ifaces is not None:
            node.ifaces = node.new_ifaces
            node.new_ifaces = None
        for iface in node.ifaces.values():
            if iface.get("autostart"):
                iface["active"] = 1
                iface["exists"] = 1

    return ctx.task(p["node"], "srvreload", "networking", work)
