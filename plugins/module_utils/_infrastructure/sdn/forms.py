# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options and answers of PVE <-> objects in canonical form (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.propstring import plain_address, sub_keys
from .model import (
    ADDRESS,
    FABRIC_NODES,
    FABRIC_SECTIONS,
    FABRICS,
    FIELDS,
    FLAG,
    HEX,
    INTERFACES,
    KEYS,
    LIST,
    NETWORK,
    NOUNS,
    NUMBER,
    RANGES,
    SECRETS,
    SECTIONS,
    SUBNETS,
    VNETS,
    ZONES,
    DesiredSdn,
    SdnEntry,
    Section,
    Sections,
)

_ID = re.compile(r"[a-zA-Z][a-zA-Z0-9]{1,7}")
_SHORT = (ZONES, VNETS)
_FABRIC_ID = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9-]{0,6}[a-zA-Z0-9]")
_LISTS_OF_KEYS = {"dhcp-range", "interfaces"}
_INTERFACE_KEYS = ("name", "ip", "ip6", "hello_multiplier")
_SEPARATOR = ";"


def refused(attempted: str, answer: str, step: str = "Nothing was changed") -> ValidationFailed:
    """Return the error for a refused value of a task."""
    return ValidationFailed(f"{attempted}: {answer}", step, "sdn")


# -- options -------------------------------------------------------------------------------------


def read_desired(params: Mapping[str, Any], running: Sections) -> DesiredSdn:
    """Return the objects that a task declares. Raises ValidationFailed."""
    sections: dict[str, dict[str, SdnEntry | None]] = {}
    exact = frozenset(params.get("exact") or ())
    zones = {name: entry.get("zone", "") for name, entry in running[VNETS].items()}
    for row in params.get(VNETS) or ():
        if row.get("zone"):
            zones[row["name"]] = row["zone"]
    for kind in SECTIONS:
        rows = params.get(kind)
        if rows is None and kind in exact:
            raise refused("exact was refused", f"{kind} is not set", f"Set {kind}")
        if rows is not None:
            sections[kind] = _section(kind, rows, zones)
    return DesiredSdn(sections, exact)


def _section(
    kind: str, rows: Iterable[Mapping[str, Any]], zones: Mapping[str, str]
) -> dict[str, SdnEntry | None]:
    found: dict[str, SdnEntry | None] = {}
    for place, row in enumerate(rows):
        label = f"{kind}[{place}]"
        if kind == SUBNETS and row.get("state") == "absent" and row["vnet"] not in zones:
            # it was removed with its VNet, or both are hidden
            found[f"{row['cidr']} of VNet {row['vnet']}"] = None
            continue
        if kind == SUBNETS:
            name = _subnet_id(label, row, zones)
        else:
            name = f"{row['fabric']}_{row['node']}" if kind == FABRIC_NODES else str(row["name"])
        # pve-network: SDN/Zones/Plugin.pm, SDN/VnetPlugin.pm and SDN/Fabrics.pm.
        if kind in _SHORT and not _ID.fullmatch(name):
            answer = f"'{name}' must have 2 to 8 letters and digits, and begin with a letter"
            raise refused(f"{label} was refused", answer)
        if kind == FABRICS and not _FABRIC_ID.fullmatch(name):
            answer = (
                f"'{name}' must have 2 to 8 letters, digits and hyphens, and no hyphen at an end"
            )
            raise refused(f"{label} was refused", answer)
        if kind == FABRIC_NODES and not (row["fabric"] and row["node"]):
            raise refused(f"{label} was refused", "it has no fabric or no node")
        if name in found:
            raise refused(f"{label} was refused", f"'{name}' is listed twice")
        found[name] = None if row.get("state") == "absent" else _entry(kind, row, label)
    return found


def _subnet_id(label: str, row: Mapping[str, Any], zones: Mapping[str, str]) -> str:
    """Return the ID of a subnet: zone, network and prefix length."""
    try:
        network = ipaddress.ip_network(str(row["cidr"]))
    except ValueError:
        raise refused(f"{label} was refused", f"'{row['cidr']}' is not a network") from None
    if row["vnet"] not in zones:
        raise refused(
            f"{label} was refused",
            f"there is no VNet '{row['vnet']}'{did_you_mean(str(row['vnet']), zones)}",
        )
    return f"{zones[row['vnet']]}-{network.network_address}-{network.prefixlen}"


def _entry(kind: str, row: Mapping[str, Any], label: str) -> SdnEntry:
    entry: dict[str, str] = {}
    for option, (key, form) in FIELDS[kind].items():
        value = row.get(option)
        if value is None:
            continue
        if key == "mac" and not value:  # pve-network: SDN/Zones/EvpnPlugin.pm, on_update_hook
            raise refused(f"{label} was refused", "PVE gives a zone without mac a new one")
        try:
            entry[key] = _canonical(value, form)
        except ValueError:
            answer = f"'{value}' is not valid for {option}"
            raise refused(f"{label} was refused", answer) from None
    return entry


def _canonical(value: Any, form: str) -> str:
    if form == FLAG:
        return "1" if str(value).lower() in ("1", "true", "yes") else ""
    if form == LIST:
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
        parts = filter(None, re.split(r"[,;\s]+", text))
        return ",".join(sorted(set(map(plain_address, parts))))
    if form == RANGES:
        return _SEPARATOR.join(sorted(_range(one) for one in value))
    if form == INTERFACES:
        return _SEPARATOR.join(sorted(_interface(one) for one in value))
    if form == NETWORK and value:
        return str(ipaddress.ip_network(str(value), strict=False))
    if form == ADDRESS and value:
        return str(ipaddress.ip_address(str(value)))
    if form == HEX:
        return str(value).upper()
    return str(value)


def _interface(one: Any) -> str:
    """Return an interface of a fabric node as a property string in canonical form."""
    parts = sub_keys(one) if isinstance(one, str) else one
    found = []
    for key in _INTERFACE_KEYS:
        value = parts.get(key)
        if value in (None, ""):
            continue
        if key in ("ip", "ip6"):
            value = ipaddress.ip_interface(str(value))
        if re.search(r"[,;=\s]", str(value)):
            raise ValueError(f"{key} has a separator")
        found.append(f"{key}={value}")
    return ",".join(found)


def interfaces_of(text: str) -> list[dict[str, str]]:
    """Return the properties of each interface of a fabric node."""
    return [sub_keys(part) for part in (text.split(_SEPARATOR) if text else ())]


def _range(one: Any) -> str:
    if isinstance(one, str):
        return _range(sub_keys(one))
    start = plain_address(one.get("start_address") or one.get("start-address") or "")
    end = plain_address(one.get("end_address") or one.get("end-address") or "")
    if re.search(r"[,;=\s]", start + end):
        raise ValueError("an address has a separator")
    return f"start-address={start},end-address={end}"


def ranges_of(text: str) -> list[tuple[str, str]]:
    """Return the first and the last address of each DHCP range."""
    found = []
    for part in text.split(_SEPARATOR) if text else ():
        ends = sub_keys(part)
        found.append((ends.get("start-address", ""), ends.get("end-address", "")))
    return found


# -- answers -------------------------------------------------------------------------------------


def section_of(kind: str, rows: Iterable[Mapping[str, Any]] | None) -> Section:
    """Return the objects of an answer by their IDs."""
    return {_name_of(kind, row): entry_of_row(kind, row) for row in rows or ()}


def _name_of(kind: str, row: Mapping[str, Any]) -> str:
    """Return the ID of an object in an answer.

    The ID of a new fabric is among its pending properties (pve-network: SDN.pm, pending_config).
    """
    if kind not in FABRIC_SECTIONS:
        return str(row[KEYS[kind]])
    ids = _with_ids(row)
    own = str(ids[KEYS[kind]])
    return f"{ids['fabric_id']}_{own}" if kind == FABRIC_NODES else own


def _with_ids(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return row.get("pending") or {} if row.get("state") == "new" else row


def has_id(kind: str, row: Mapping[str, Any]) -> bool:
    """Return whether the row of a fabric or a fabric node contains its ID."""
    keys = ("fabric_id", "node_id") if kind == FABRIC_NODES else ("id",)
    return all(_with_ids(row).get(key) for key in keys)


def entry_of_row(kind: str, row: Mapping[str, Any]) -> SdnEntry:
    """Return the properties of an object in an answer."""
    entry: dict[str, str] = {}
    for key, form in FIELDS[kind].values():
        value = row.get(key)
        if value is None:
            continue
        text = _read(value, form)
        if text:
            entry[key] = text
    return entry


def _read(value: Any, form: str) -> str:
    """Return a property of an answer in canonical form, or as text if its form is unknown."""
    try:
        return _canonical(value, form)
    except ValueError:
        return _SEPARATOR.join(map(str, value)) if isinstance(value, list) else str(value)


def running_of(kind: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return the running objects of an answer that includes pending changes."""
    return section_of(kind, [row for row in rows if row.get("state") != "new"])


def pending_of(kind: str, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each object with a pending change."""
    noun = NOUNS[kind] if kind in FABRIC_SECTIONS else KEYS[kind]
    return [f"{noun} {_name_of(kind, row)} ({row['state']})" for row in rows if row.get("state")]


def is_in_force(rows: Iterable[Mapping[str, Any]], zones: Section) -> bool:
    """Return whether each online node reports each of its zones as available.

    `rows` are the listing of resources. A zone is a row of type `network` since Proxmox VE 9, and
    of type `sdn` before.
    """
    online: set[str] = set()
    reported: set[tuple[str, str]] = set()
    for row in rows:
        node, status = str(row.get("node")), row.get("status")
        if row.get("type") == "node" and status == "online":
            online.add(node)
        if row.get("type") in ("network", "sdn") and status == "available":
            reported.add((node, str(row.get("network") or row.get("sdn"))))
    for name, entry in zones.items():
        members = set(entry["nodes"].split(",")) if entry.get("nodes") else online
        if any((node, name) not in reported for node in members & online):
            return False
    return bool(online)


def data_of(entry: SdnEntry) -> dict[str, Any]:
    """Return the parameters of a request."""
    data: dict[str, Any] = dict(entry)
    for key in _LISTS_OF_KEYS & data.keys():
        data[key] = str(data[key]).split(_SEPARATOR)
    return data


# -- results -------------------------------------------------------------------------------------


def view_of(sections: Sections) -> dict[str, list[dict[str, Any]]]:
    """Return objects in the form in which a task declares them, without secrets."""
    return {
        kind: [_view(kind, name, section[name]) for name in sorted(section)]
        for kind, section in sections.items()
    }


def _view(kind: str, name: str, entry: SdnEntry) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    if kind == SUBNETS:
        _zone, network, mask = name.split("-", 2)
        row = {"cidr": f"{network}/{mask}"}
    if kind == FABRIC_NODES:
        row = {}
    for option, (key, form) in FIELDS[kind].items():
        if key in entry and option not in SECRETS:
            row[option] = _format_value(entry[key], form)
    return row


def _format_value(text: str, form: str) -> Any:
    if form == FLAG:
        return text == "1"
    if form == NUMBER:
        return int(text)
    if form == LIST:
        return text.split(",")
    if form == RANGES:
        return [{"start_address": one, "end_address": other} for one, other in ranges_of(text)]
    if form == INTERFACES:
        interfaces: list[dict[str, Any]] = [*interfaces_of(text)]
        for interface in interfaces:
            if interface.get("hello_multiplier", "").isdigit():
                interface["hello_multiplier"] = int(interface["hello_multiplier"])
        return interfaces
    return text
