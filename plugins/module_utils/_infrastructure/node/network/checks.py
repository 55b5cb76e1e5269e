# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refusals before the first write: PVE accepts most of these networks, which break on reload
(pure).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ...._foundation.core.errors import ConfigurationError, Conflict, FleetError
from ...._foundation.core.formatting import first_of
from .model import Interfaces, NetworkOptions, NodeInterfaces
from .own_path import HARMLESS, addresses_of, networks_of
from .plan import HARDWARE, changed_keys
from .settings import PORT_KEYS

_PORTS_OF = {"slaves": ("eth", "bond"), "ovs_bonds": ("eth",)}
_STANZA = re.compile(r"(?:auto|iface|allow-\S+)\s+(\S+)")


@dataclass(frozen=True)
class ChangedInterfaces:
    """The interfaces whose configuration differs, incomplete if a stanza is unknown."""

    names: frozenset[str] = frozenset()
    is_complete: bool = True


def refusal(task: NetworkOptions, answer: str, next_step: str, reason: str) -> FleetError:
    """Return the error for a network that a task declares."""
    return ConfigurationError(
        f"Refused to change the network of node {task.node}: {answer}", next_step, reason
    )


def require_declarable(task: NetworkOptions, network: NodeInterfaces) -> None:
    """Raise ConfigurationError for a declaration that does not fit its interface."""
    for one in task.declared:
        existing = network.interfaces.get(one.name)
        if existing is None:
            if one.is_wanted and not one.type:
                answer = f"there is no interface {one.name}"
                raise refusal(
                    task, answer, "Set its type to create it, or correct the name", "no type"
                )
            if one.is_wanted and one.type == "eth":
                answer = f"the node has no network card {one.name}"
                raise refusal(task, answer, "Correct the name", "unknown network card")
        elif not one.is_wanted and existing["type"] in HARDWARE:
            answer = f"{one.name} is a network card, which exists as long as the node has it"
            raise refusal(task, answer, "Remove it from the task", "network card")
        elif one.is_wanted and one.type not in ("", existing["type"]):
            if {one.type, existing["type"]} <= set(HARDWARE):
                continue
            answer = f"{one.name} is of type {existing['type']}, not {one.type}"
            step = "Remove it with state absent in a task of its own, then create it again"
            raise refusal(task, answer, step, "other type")


def require_kept_methods(task: NetworkOptions, network: NodeInterfaces, after: Interfaces) -> None:
    """Raise ConfigurationError if a request would drop DHCP: PVE sets an interface to static or
    manual with every request (pve-manager: API2/Network.pm).
    """
    for name in changed_names(network.interfaces, after):
        row = network.rows.get(name, {})
        for key, cidr in (("method", "cidr"), ("method6", "cidr6")):
            if row.get(key) in ("dhcp", "auto") and cidr not in after.get(name, {}):
                answer = f"{name} gets its address by {row[key]}, which a change by the API drops"
                step = f"Set {cidr}, or change /etc/network/interfaces on the node"
                raise refusal(task, answer, step, "automatic address")


def require_consistent(task: NetworkOptions, before: Interfaces, after: Interfaces) -> None:
    """Raise ConfigurationError for the first contradiction in the target."""
    users: dict[str, str] = {}
    for name, settings in after.items():
        for key in PORT_KEYS:
            for port in settings.get(key, ()):
                _require_port(task, after, name, key, port)
                other = users.setdefault(port, name)
                if other != name:
                    answer = f"{port} would belong to {other} and to {name}"
                    step = "Take it from one of them"
                    raise refusal(task, answer, step, "port of two interfaces")
        if settings["type"] == "vlan":
            _require_parent(task, after, name)
        if before.get(name) != settings:
            _require_complete(task, after, name)
    _require_one_gateway(task, after)
    holders: dict[str, str] = {}
    for name, settings in after.items():
        for address in sorted(addresses_of(settings)):
            other = holders.setdefault(address, name)
            if other != name:
                answer = f"{other} and {name} would both have the address {address}"
                raise refusal(task, answer, "Give it to one of them", "address in use")


def _require_port(task: NetworkOptions, after: Interfaces, name: str, key: str, port: str) -> None:
    found = after.get(port)
    kind = after[name]["type"]
    if found is None:
        parent = port.partition(".")[0]
        if key == "bridge_ports" and parent != port and parent in after:
            return  # PVE creates such a VLAN with the bridge
        answer = f"{kind} {name} needs {port}, which does not exist"
        step = f"Declare {port}, or remove it from {key}"
        raise refusal(task, answer, step, "missing port")
    allowed = _PORTS_OF.get(key)
    if allowed and found["type"] not in allowed:
        answer = (
            f"{port} is of type {found['type']}, and {kind} {name} needs {' or '.join(allowed)}"
        )
        raise refusal(task, answer, f"Choose another interface for {key}", "wrong port")
    if networks_of(found) and key != "ovs_ports":
        answer = f"{port} has an address of its own, and it is a part of {name}"
        step = f"Move the address to {name}: set cidr of {port} to an empty value"
        raise refusal(task, answer, step, "address of a port")
    own, minimum = found.get("mtu"), after[name].get("mtu")
    if key == "bridge_ports" and minimum and minimum > (own or 1500):
        answer = f"the MTU {minimum} of {name} is larger than the MTU {own or 1500} of {port}"
        raise refusal(task, answer, f"Set mtu of {port} as well", "mtu")


def _require_complete(task: NetworkOptions, after: Interfaces, name: str) -> None:
    """Raise ConfigurationError if the settings of a changed interface are incomplete or wrong."""
    settings = after[name]
    kind = settings["type"]
    part = {"bond": "slaves", "OVSBond": "ovs_bonds"}.get(kind)
    if part and not settings.get(part):
        answer = f"{kind} {name} has no slaves"
        raise refusal(task, answer, f"Name its network cards in {part}", "bond without slaves")
    if settings.get("bond-primary") and settings["bond-primary"] not in settings.get("slaves", ()):
        answer = f"{settings['bond-primary']} is not one of the slaves of {name}"
        raise refusal(task, answer, "Name one of the slaves in bond_primary", "bond_primary")
    if kind in ("OVSBond", "OVSIntPort"):
        bridge = after.get(settings.get("ovs_bridge", ""), {})
        if bridge.get("type") != "OVSBridge":
            answer = f"{kind} {name} needs an OVS bridge"
            raise refusal(task, answer, "Name an existing one in ovs_bridge", "missing OVS bridge")
    for cidr, gateway in (("cidr", "gateway"), ("cidr6", "gateway6")):
        if settings.get(gateway) and not settings.get(cidr):
            answer = f"{name} has a {gateway} and no {cidr}"
            raise refusal(
                task, answer, f"Set {cidr}, or remove {gateway}", "gateway without address"
            )


def _require_parent(task: NetworkOptions, after: Interfaces, name: str) -> None:
    settings = after[name]
    parent = settings.get("vlan-raw-device", "")
    if parent not in after:
        found = f"VLAN {name} needs {parent}, which does not exist" if parent else ""
        answer = found or f"VLAN {name} has no parent"
        step = "Declare the parent, or correct vlan_raw_device"
        raise refusal(task, answer, step, "missing parent")
    if "vlan-id" not in settings:
        step = "Set vlan_id, or use a name such as vmbr0.40"
        raise refusal(task, f"VLAN {name} has no VLAN ID", step, "missing vlan_id")
    maximum = after[parent].get("mtu") or 1500
    if settings.get("mtu", 0) > maximum:
        answer = f"the MTU {settings['mtu']} of {name} is larger than the MTU {maximum} of {parent}"
        raise refusal(task, answer, f"Set mtu of {parent} as well", "mtu")


def _require_one_gateway(task: NetworkOptions, after: Interfaces) -> None:
    for key in ("gateway", "gateway6"):
        holders = [name for name, settings in after.items() if settings.get(key)]
        if len(holders) > 1:
            answer = f"{' and '.join(holders)} would have a {key}, and a node has one"
            step = f"Set {key} of the others to an empty value"
            raise refusal(task, answer, step, "two gateways")


def require_own_path_kept(
    task: NetworkOptions,
    network: NodeInterfaces,
    after: Interfaces,
    path: frozenset[str],
    taken: Mapping[str, str],
) -> None:
    """Raise ConfigurationError if the change may interrupt the API or corosync.

    `path` are the interfaces that carry their addresses. `taken` are addresses in use, each with
    its owner.
    """
    before = network.interfaces
    names = changed_names(before, after)
    for name in names:
        for address in sorted(addresses_of(after.get(name, {})) & taken.keys()):
            if address not in addresses_of(before.get(name, {})) and name not in path:
                answer = f"{name} would get the address {address}, which {taken[address]} has"
                raise refusal(task, answer, "Choose another address", "address in use")
    if task.allow_own_path:
        return
    for name in names:
        keys = set(changed_keys(before.get(name, {}), after.get(name, {})))
        if name in path and keys - HARMLESS:
            answer = f"{name} carries the address of the API or of corosync"
            raise refusal(task, answer, _ALLOW, "own path")
        overlapping = _overlapping(after, name, path)
        if overlapping:
            answer = f"the network of {name} overlaps with the network of {overlapping}, which "
            answer += "carries the address of the API or of corosync"
            raise refusal(task, answer, f"Choose another network. {_ALLOW}", "own path")


_ALLOW = (
    "If you can reach the node's console, set allow_own_path to true: the change may interrupt the"
    " connection"
)


def _overlapping(after: Interfaces, name: str, path: frozenset[str]) -> str:
    """Return an interface of the own path whose network overlaps with the network of this one."""
    if name in path:
        return ""
    own = networks_of(after.get(name, {}))
    for other in sorted(path):
        for one in networks_of(after.get(other, {})):
            for mine in own:
                if mine.version == one.version and mine.network.overlaps(one.network):
                    return other
    return ""


def require_unused(
    task: NetworkOptions, removed: Iterable[str], users: Mapping[str, Sequence[str]]
) -> None:
    """Raise Conflict if the task removes a bridge that guests use."""
    for name in sorted(removed):
        found = users.get(name)
        if found:
            raise Conflict(
                f"Refused to change the network of node {task.node}: {name} would be removed, and "
                f"{first_of(found)} use it",
                "Connect these guests to another bridge first",
                "bridge in use",
                details={"guests": list(found)},
            )


def require_no_foreign_change(
    task: NetworkOptions, network: NodeInterfaces, after: Interfaces
) -> str:
    """Return the warning about a pending change that the task does not touch, or an empty text.

    Raises Conflict if the task would apply it.
    """
    if not network.pending or task.pending != "refuse":
        return ""
    touched = touched_by(network.pending)
    declared = {one.name for one in task.declared}
    is_apart = touched.is_complete and not touched.names & declared
    names = first_of(sorted(touched.names)) or "the configuration"
    if is_apart and not task.exact and after == network.interfaces:
        return f"Node {task.node} has a pending network change that is not in force: {names}"
    raise Conflict(
        f"Refused to change the network of node {task.node}: it has a pending change that this "
        f"task did not make ({names})",
        (
            "Set pending to apply to put it in force with this change, or to discard to remove it;"
            " error.pending has the difference"
        ),
        "pending change",
        details={"pending": network.pending},
    )


def changed_names(before: Interfaces, after: Interfaces) -> list[str]:
    """Return the interfaces that differ between two configurations."""
    names = [*before, *(name for name in after if name not in before)]
    return [name for name in names if before.get(name) != after.get(name)]


def touched_by(difference: str) -> ChangedInterfaces:
    """Return the interfaces of the changed lines in a unified difference of two configurations.

    A changed line belongs to the stanza above it. The stanza is unknown if its head is not in the
    context. Comments and empty lines are ignored.
    """
    names: set[str] = set()
    is_complete = True
    current = ""
    for line in difference.splitlines():
        if line.startswith(("--- ", "+++ ")):
            continue
        if line.startswith("@@"):
            current = ""
            continue
        text = line[1:].strip()
        head = _STANZA.match(text)
        if head and line[1:2] not in (" ", "\t"):
            current = head[1]
        if line[:1] not in ("+", "-") or not text or text.startswith("#"):
            continue
        if current:
            names.add(current)
        else:
            is_complete = False
    return ChangedInterfaces(frozenset(names), is_complete)
