# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of an interface: options of a task, PVE's row, parameters of a request (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.core import validate
from .model import DeclaredInterface, Interfaces, NetworkOptions, Settings

VLAN_AWARE_VIDS = ("2-4094",)  # default of a VLAN-aware bridge (pve-common, Interfaces.pm)
_DOTTED = re.compile(r"(.+)\.(\d+)")
_VLAN_NAME = re.compile(r"vlan(\d+)")
_SEPARATORS = re.compile(r"[,;\s]+")
# pve-common: JSONSchema.pm, pve_verify_iface, and the maximum length in the API
_NAME = re.compile(r"[a-z][a-z0-9_]{1,19}(?:[:.]\d+)?", re.IGNORECASE)
_MTU = (1280, 65520)
_VLAN_IDS = (1, 4094)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_ADDRESSES = {"cidr": 4, "cidr6": 6, "gateway": 4, "gateway6": 6}
_INTERFACES = ("bond_primary", "vlan_raw_device", "ovs_bridge")


@dataclass(frozen=True)
class InterfaceSetting:
    """One setting: the option of a task, PVE's key, and how its value is read and sent.

    `types` are the types of interfaces with this setting; an empty tuple means all types.
    """

    option: str
    key: str
    read: Callable[[Any], Any]
    send: Callable[[Any], Any] = str
    types: tuple[str, ...] = ()


def _text(value: Any) -> str:
    return str(value).strip()


def _comment(value: Any) -> str:
    return str(value).rstrip("\n")


def _flag(value: Any) -> bool:
    return str(value) in ("1", "True")


def _names(value: Any) -> tuple[str, ...]:
    """Return a list of interfaces, sorted: PVE does not keep their order."""
    return tuple(sorted(set(_words(value))))


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return [word for word in _SEPARATORS.split(value) if word and word != "none"]
    return [str(word) for word in value]


def _vids(value: Any) -> tuple[str, ...]:
    """Return VLAN IDs and ranges, sorted by number."""
    return tuple(sorted(set(_words(value)), key=lambda one: [int(n) for n in one.split("-")]))


def _cidr(value: Any) -> str:
    return str(ipaddress.ip_interface(_text(value)))


def _address(value: Any) -> str:
    return str(ipaddress.ip_address(_text(value)))


_joined = " ".join
_BRIDGE, _BOND, _VLAN = ("bridge",), ("bond",), ("vlan",)
_OVS_PORTS = ("OVSBond", "OVSPort", "OVSIntPort")
SETTINGS = (
    InterfaceSetting("cidr", "cidr", _cidr),
    InterfaceSetting("gateway", "gateway", _address),
    InterfaceSetting("cidr6", "cidr6", _cidr),
    InterfaceSetting("gateway6", "gateway6", _address),
    InterfaceSetting("autostart", "autostart", _flag, int),
    InterfaceSetting("mtu", "mtu", int, int),
    InterfaceSetting("bridge_ports", "bridge_ports", _names, _joined, _BRIDGE),
    InterfaceSetting("bridge_vlan_aware", "bridge_vlan_aware", _flag, int, _BRIDGE),
    InterfaceSetting("bridge_vids", "bridge_vids", _vids, _joined, _BRIDGE),
    InterfaceSetting("slaves", "slaves", _names, _joined, _BOND),
    InterfaceSetting("bond_mode", "bond_mode", _text, types=("bond", "OVSBond")),
    InterfaceSetting("bond_primary", "bond-primary", _text, types=_BOND),
    InterfaceSetting("bond_xmit_hash_policy", "bond_xmit_hash_policy", _text, types=_BOND),
    InterfaceSetting("vlan_raw_device", "vlan-raw-device", _text, types=_VLAN),
    InterfaceSetting("vlan_id", "vlan-id", int, int, _VLAN),
    InterfaceSetting("ovs_bridge", "ovs_bridge", _text, types=_OVS_PORTS),
    InterfaceSetting("ovs_ports", "ovs_ports", _names, _joined, ("OVSBridge",)),
    InterfaceSetting("ovs_bonds", "ovs_bonds", _names, _joined, ("OVSBond",)),
    InterfaceSetting("ovs_tag", "ovs_tag", int, int, _OVS_PORTS),
    InterfaceSetting("ovs_options", "ovs_options", _text, types=("OVSBridge", *_OVS_PORTS)),
    InterfaceSetting("comments", "comments", _comment),
)
BY_KEY = {one.key: one for one in SETTINGS}
PORT_KEYS = ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds")


def settings_of(row: Mapping[str, Any]) -> Settings:
    """Return the settings in a row of PVE's list. A value that cannot be read is kept as a text."""
    found: dict[str, Any] = {"type": str(row.get("type") or "unknown")}
    for one in SETTINGS:
        value = row.get(one.key)
        if value in (None, ""):
            continue
        try:
            read = one.read(value)
        except ValueError:
            read = str(value)
        if read:
            found[one.key] = read
    if not _has_vlan_aware(found):
        found.pop("bridge_vids", None)
    return found


def _has_vlan_aware(settings: Settings) -> bool:
    return bool(settings.get("bridge_vlan_aware"))


def vlan_of(name: str) -> tuple[str, int] | None:
    """Return the parent and the VLAN ID in the name of a VLAN; the parent is empty for C(vlan5)."""
    dotted, plain = _DOTTED.fullmatch(name), _VLAN_NAME.fullmatch(name)
    if dotted:
        return dotted[1], int(dotted[2])
    if plain:
        return "", int(plain[1])
    return None


def completed(interfaces: Interfaces) -> dict[str, Settings]:
    """Return the interfaces as PVE reads them after a write: with its defaults, and without
    settings that have no effect (pve-common: Network/Interfaces.pm).
    """
    result = {name: _completed(name, settings) for name, settings in interfaces.items()}
    for name, settings in list(result.items()):
        for port in settings.get("slaves", ()) if settings["type"] == "bond" else ():
            if port in result:
                result[port]["autostart"] = True
        if settings["type"] in ("OVSBond", "OVSIntPort"):
            bridge = result.get(settings.get("ovs_bridge", ""))
            if bridge is not None:
                bridge["ovs_ports"] = _names((*bridge.get("ovs_ports", ()), name))
    return result  # type: ignore[return-value]


def _completed(name: str, given: Settings) -> dict[str, Any]:
    settings = dict(given)
    if settings["type"] == "bridge":
        if _has_vlan_aware(settings):
            settings.setdefault("bridge_vids", VLAN_AWARE_VIDS)
        else:
            settings.pop("bridge_vids", None)
    elif settings["type"] == "bond":
        mode = settings.setdefault("bond_mode", "balance-rr")
        if mode not in ("balance-xor", "802.3ad"):
            settings.pop("bond_xmit_hash_policy", None)
        if mode != "active-backup":
            settings.pop("bond-primary", None)
    elif settings["type"] == "vlan":
        parent, vid = vlan_of(name) or ("", None)
        if parent:
            settings["vlan-raw-device"] = parent
        if vid is not None:
            settings["vlan-id"] = vid
    return settings


def creation(settings: Settings) -> dict[str, Any]:
    """Return the parameters that create an interface."""
    sent = {key: BY_KEY[key].send(value) for key, value in settings.items() if key != "type"}
    return {"type": settings["type"], **sent}


def update(before: Settings, after: Settings) -> dict[str, Any]:
    """Return the parameters that change an interface.

    An address is always sent, because PVE drops the addresses that a request does not name
    (pve-manager: API2/Network.pm, update_network).
    """
    data: dict[str, Any] = {"type": after["type"]}
    for key, value in after.items():
        if key != "type" and (key in ("cidr", "cidr6") or before.get(key) != value):
            data[key] = BY_KEY[key].send(value)
    removed = [key for key in before if key != "type" and key not in after]
    if "autostart" in removed:
        removed.remove("autostart")
        data["autostart"] = 0
    if removed:
        data["delete"] = ",".join(removed)
    return data


def as_options(name: str, settings: Settings) -> dict[str, Any]:
    """Return an interface as a task declares it."""
    options: dict[str, Any] = {"name": name, "type": settings["type"]}
    for one in SETTINGS:
        if one.key in settings:
            value = settings[one.key]
            options[one.option] = list(value) if isinstance(value, tuple) else value
    return options


def read_task(params: Mapping[str, Any]) -> NetworkOptions:
    """Return the options of a task. Raises ValidationFailed."""
    declared: list[DeclaredInterface] = []
    for number, item in enumerate(params.get("interfaces") or []):
        one = _declared(item, f"interfaces[{number}]")
        if any(one.name == other.name for other in declared):
            what = f"interfaces[{number}].name"
            raise validate.refused(what, one.name, "is declared twice", "Declare it once")
        declared.append(one)
    return NetworkOptions(
        node=validate.node(params["node"]),
        declared=tuple(declared),
        exact=bool(params.get("exact")),
        pending=str(params.get("pending") or "refuse"),
        allow_own_path=bool(params.get("allow_own_path")),
        answer_timeout=validate.count(params.get("answer_timeout"), 60, "answer_timeout"),
        task_timeout=validate.count(params.get("task_timeout"), 300, "task_timeout"),
    )


def _declared(item: Mapping[str, Any], where: str) -> DeclaredInterface:
    name = _interface(str(item["name"]), f"{where}.name")
    kind = str(item.get("type") or "")
    changes: dict[str, Any] = {}
    for one in SETTINGS:
        value = item.get(one.option)
        if value is None:
            continue
        what = f"{where}.{one.option}"
        if kind and one.types and kind not in one.types:
            types = " or ".join(one.types)
            answer = f"does not belong to an interface of type {kind}, only to {types}"
            raise validate.refused(what, value, answer, "Remove it, or set another type")
        if value in ("", [], 0, False):
            changes[one.key] = None
            continue
        _require_valid(one.option, value, what)
        changes[one.key] = one.read(value)
    _require_same_vlan(name, kind, changes, where)
    return DeclaredInterface(name, item.get("state") != "absent", kind, changes)


def _require_valid(option: str, value: Any, what: str) -> None:
    """Raise ValidationFailed for a value that PVE's schema refuses."""
    if option in _ADDRESSES:
        check = validate.cidr if option.startswith("cidr") else validate.address
        check(str(value), _ADDRESSES[option], what)
    elif option in _INTERFACES:
        _interface(str(value), what)
    elif option in PORT_KEYS:
        for one in value:
            _interface(str(one), what)
    elif option == "mtu":
        validate.number(value, *_MTU, what)
    elif option in ("vlan_id", "ovs_tag"):
        validate.number(value, *_VLAN_IDS, what)
    elif option == "bridge_vids":
        for one in value:
            _require_vids(str(one), what)


def _require_vids(text: str, what: str) -> None:
    found = _RANGE.fullmatch(text)
    low, high = _VLAN_IDS
    numbers = [int(part) for part in found.groups() if part] if found else []
    if not numbers or numbers[0] < low or numbers[-1] > high or numbers[0] > numbers[-1]:
        step = "Use numbers from 1 to 4094, and ranges such as 100-199"
        raise validate.refused(what, text, "is neither a VLAN ID nor a range of them", step)


def _interface(name: str, what: str) -> str:
    if not _NAME.fullmatch(name) or len(name) > 20:
        step = "Use 2 to 20 letters, digits and underscores, such as vmbr1, bond0 or vmbr0.40"
        raise validate.refused(what, name, "is not a name of an interface", step)
    return name


def _require_same_vlan(name: str, kind: str, changes: Mapping[str, Any], where: str) -> None:
    """Raise ValidationFailed if the settings of a VLAN contradict its name."""
    found = vlan_of(name)
    if kind != "vlan" or found is None:
        return
    parent, vid = found
    for key, named in (("vlan-raw-device", parent), ("vlan-id", vid)):
        if named and changes.get(key, named) != named:
            option = key.replace("-", "_")
            answer = f"contradicts the name {name}, which means {named}"
            step = "Remove the option, or use another name"
            raise validate.refused(f"{where}.{option}", changes[key], answer, step)
