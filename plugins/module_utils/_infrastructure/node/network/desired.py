# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of a task: interfaces with their settings in canonical form (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...._foundation.core import validate
from .model import DeclaredInterface, NetworkOptions
from .settings import SETTINGS, InterfaceSetting, vlan_of

# pve-common: JSONSchema.pm, pve_verify_iface, and the maximum length in the API
_NAME = re.compile(r"[a-z][a-z0-9_]{1,19}(?:[:.]\d+)?", re.IGNORECASE)
_LONGEST_NAME = 20
_MTU = (1280, 65520)
_VLAN_IDS = (1, 4094)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_ADDRESSES = {"cidr": 4, "cidr6": 6, "gateway": 4, "gateway6": 6}
_INTERFACES = ("bond_primary", "vlan_raw_device", "ovs_bridge")
_LISTS_OF_INTERFACES = ("bridge_ports", "slaves", "ovs_ports", "ovs_bonds")


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
        changes[one.key] = _value(one, value, what)
    _require_same_vlan(name, kind, changes, where)
    return DeclaredInterface(name, item.get("state") != "absent", kind, changes)


def _value(setting: InterfaceSetting, value: Any, what: str) -> Any:
    """Return a value in canonical form, or None if it removes the setting."""
    if value in ("", [], 0, False):
        return None
    _require_valid(setting.option, value, what)
    return setting.read(value)


def _require_valid(option: str, value: Any, what: str) -> None:
    """Raise ValidationFailed for a value that PVE's schema refuses."""
    if option in _ADDRESSES:
        check = validate.cidr if option.startswith("cidr") else validate.address
        check(str(value), _ADDRESSES[option], what)
    elif option in _INTERFACES:
        _interface(str(value), what)
    elif option in _LISTS_OF_INTERFACES:
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
    if not _NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
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
