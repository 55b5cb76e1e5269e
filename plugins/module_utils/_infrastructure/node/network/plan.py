# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The target of a task, and the requests that lead to it in an order that PVE accepts (pure).

PVE checks each request against the whole configuration (pve-common: Network/Interfaces.pm): ports,
slaves and parents must exist, and each port and the default gateway belong to one interface only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...._foundation.resource.plan import Step
from .model import DeclaredInterface, Interfaces, Settings
from .own_path import below
from .settings import PORT_KEYS, completed, creation, update

CREATE, CHANGE, REMOVE, APPLY, DISCARD = "create", "change", "remove", "apply", "discard"
_GATEWAYS = ("gateway", "gateway6")
HARDWARE = ("eth", "OVSPort", "unknown")  # never removed: PVE lists them as long as they exist
_WORDS = {"vlan": "VLAN", "unknown": "interface", "eth": "network card"}


def merged(
    interfaces: Interfaces, declared: Iterable[DeclaredInterface], exact: bool
) -> Interfaces:
    """Return the interfaces with the changes that a task declares."""
    result = {name: dict(one) for name, one in interfaces.items()}
    listed = set()
    for one in declared:
        listed.add(one.name)
        if not one.is_wanted:
            result.pop(one.name, None)
            continue
        settings = result.setdefault(one.name, {"type": one.type, "autostart": True})
        for key, value in one.changes.items():
            if value is None:
                settings.pop(key, None)
            else:
                settings[key] = value
    if exact:
        for name, existing in interfaces.items():
            if name not in listed and existing["type"] not in HARDWARE:
                result.pop(name, None)
    return completed(result)


def plan_steps(node: str, before: Interfaces, after: Interfaces) -> list[Step]:
    """Return the requests from one configuration to another, without the reload."""
    removed = before.keys() - after.keys()
    current: dict[str, Settings] = dict(before)
    steps: list[Step] = []
    for name in sorted(before.keys() & after.keys()):
        freed = _released(name, before, after)
        if freed != before[name]:
            steps.append(_change(node, name, before[name], freed))
            current[name] = freed
    users_first = reversed(_parts_first(before))
    for name in [name for name in users_first if name in removed]:
        summary = f"Remove {_noun(before[name])} {name} of node {node}"
        steps.append(Step(REMOVE, summary, "DELETE", _path(node, name), is_task=False))
    for name in _parts_first(after):
        if name not in before:
            settings = _sent(name, before, after)
            data = {"iface": name, **creation(settings)}
            summary = f"Create {_noun(settings)} {name} on node {node}"
            path = ("nodes", node, "network")
            steps.append(Step(CREATE, summary, "POST", path, data, is_task=False))
        elif needs_request(name, {**before, name: current[name]}, after):
            steps.append(_change(node, name, current[name], _sent(name, before, after)))
    return steps


def apply_step(node: str) -> Step:
    """Return the reload that puts the pending configuration of a node in force."""
    summary = f"Apply the network configuration of node {node}"
    return Step(APPLY, summary, "PUT", ("nodes", node, "network"))


def discard_step(node: str) -> Step:
    """Return the request that discards the pending changes of a node."""
    summary = f"Discard the pending network changes of node {node}"
    path = ("nodes", node, "network")
    return Step(DISCARD, summary, "DELETE", path, is_task=False, reread=True)


def changed_keys(before: Settings, after: Settings) -> list[str]:
    """Return the keys that differ between two settings of an interface."""
    keys = [*before, *(key for key in after if key not in before)]
    return [key for key in keys if before.get(key) != after.get(key)]


def needs_request(name: str, before: Interfaces, after: Interfaces) -> bool:
    """Return whether an interface that both configurations have needs a request.

    PVE itself sets `autostart` of the slaves of a bond, and marks the ports of an OVS bridge.
    """
    derived: set[str] = set()
    for one in (*before.values(), *after.values()):
        if name in one.get("slaves", ()):
            derived.add("autostart")
        if name in one.get("ovs_ports", ()):
            derived |= {"type", "ovs_bridge", "autostart"}
    settings = _sent(name, before, after)
    return not derived.issuperset(changed_keys(before[name], settings))


def _sent(name: str, before: Interfaces, after: Interfaces) -> Settings:
    """Return the settings for a request, without new OVS ports that PVE adds to their bridge when
    it creates them.
    """
    settings = dict(after[name])
    ports = settings.pop("ovs_ports", ())
    kept = tuple(one for one in ports if one in before or not _adds_itself(after.get(one)))
    if kept:
        settings["ovs_ports"] = kept
    return settings


def _released(name: str, before: Interfaces, after: Interfaces) -> Settings:
    """Return an interface without ports that are removed or move to another interface, and without
    a gateway that moves.
    """
    old, new = before[name], after[name]
    settings = dict(old)
    for key in PORT_KEYS:
        lost = [port for port in old.get(key, ()) if port not in new.get(key, ())]
        if any(port not in after or _is_taken(port, name, before, after) for port in lost):
            kept = tuple(port for port in old[key] if port not in lost)
            settings[key] = kept
            if not kept:
                del settings[key]
    for key in _GATEWAYS:
        others = [one for other, one in after.items() if other != name and one.get(key)]
        if old.get(key) and not new.get(key) and others:
            settings.pop(key, None)
    return settings


def _is_taken(port: str, loser: str, before: Interfaces, after: Interfaces) -> bool:
    for name, settings in after.items():
        if name == loser:
            continue
        for key in PORT_KEYS:
            if port in settings.get(key, ()) and port not in before.get(name, {}).get(key, ()):
                return True
    return False


def _parts_first(interfaces: Interfaces) -> list[str]:
    """Return all interfaces, each after the interfaces that it needs."""
    ordered: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in ordered or name in above or name not in interfaces:
            return
        for part in sorted(_needed(interfaces, name)):
            visit(part, (*above, name))
        ordered.append(name)

    for name in sorted(interfaces):
        visit(name, ())
    return ordered


def _needed(interfaces: Interfaces, name: str) -> list[str]:
    settings = interfaces[name]
    if settings["type"] == "OVSBridge":
        return [port for port in below(settings) if not _adds_itself(interfaces.get(port))]
    parts = below(settings)
    if settings.get("ovs_bridge"):
        parts.append(settings["ovs_bridge"])
    return parts


def _adds_itself(settings: Settings | None) -> bool:
    """Return whether PVE adds an interface to its OVS bridge when it creates the interface."""
    return settings is not None and settings["type"] in ("OVSBond", "OVSIntPort")


def _change(node: str, name: str, before: Settings, after: Settings) -> Step:
    options = ", ".join(key.replace("-", "_") for key in changed_keys(before, after))
    summary = f"Change {_noun(before)} {name} of node {node}: {options}"
    data = update(before, after)
    return Step(CHANGE, summary, "PUT", _path(node, name), data, is_task=False)


def _path(node: str, name: str) -> tuple[str, ...]:
    return ("nodes", node, "network", name)


def _noun(settings: Mapping[str, Any]) -> str:
    kind = str(settings["type"])
    return _WORDS.get(kind, kind)
