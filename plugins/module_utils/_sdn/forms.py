# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options and answers of PVE <-> objects in canonical form (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._core.errors import ValidationFailed
from .._core.propstring import keyed_parts
from .model import (
    FIELDS,
    FLAG,
    KEYS,
    LIST,
    NUMBER,
    RANGES,
    SECRETS,
    SECTIONS,
    SUBNETS,
    VNETS,
    ZONES,
    Desired,
    Entry,
    Section,
    Sections,
)

_ID = re.compile(r"[a-zA-Z][a-zA-Z0-9]{1,7}")
_SHORT = (ZONES, VNETS)
_SEPARATOR = ";"
_ZONE_ROWS = ("network", "sdn")


def refused(attempted: str, answer: str, step: str = "Nothing was changed") -> ValidationFailed:
    """Return the error about a value of a task."""
    return ValidationFailed(
        attempted=attempted, answer=answer, next_step=step, reason="sdn", dispatched=False
    )


# -- options -------------------------------------------------------------------------------------


def read_desired(params: Mapping[str, Any], running: Sections) -> Desired:
    """Return the objects that a task declares. Raises ValidationFailed."""
    sections: dict[str, dict[str, Entry | None]] = {}
    exact = frozenset(params.get("exact") or ())
    for kind in SECTIONS:
        rows = params.get(kind)
        if rows is None and kind in exact:
            raise refused("exact was refused", f"{kind} is not set", f"Set {kind}")
        if rows is not None:
            zones = _zones_of_vnets(params, running)
            sections[kind] = _section(kind, rows, zones)
    return Desired(sections, exact)


def _zones_of_vnets(params: Mapping[str, Any], running: Sections) -> dict[str, str]:
    zones = {name: entry.get("zone", "") for name, entry in running[VNETS].items()}
    for row in params.get(VNETS) or ():
        if row.get("zone"):
            zones[row["name"]] = row["zone"]
    return zones


def _section(
    kind: str, rows: Iterable[Mapping[str, Any]], zones: Mapping[str, str]
) -> dict[str, Entry | None]:
    found: dict[str, Entry | None] = {}
    for place, row in enumerate(rows):
        label = f"{kind}[{place}]"
        if kind == SUBNETS and row.get("state") == "absent" and row["vnet"] not in zones:
            continue  # it went with its VNet
        name = _subnet_id(label, row, zones) if kind == SUBNETS else str(row["name"])
        if kind in _SHORT and not _ID.fullmatch(name):
            answer = f"'{name}' must have 2 to 8 letters and digits, and begin with a letter"
            raise refused(f"{label} was refused", answer)
        if name in found:
            raise refused(f"{label} was refused", f"'{name}' is listed twice")
        found[name] = None if row.get("state") == "absent" else _entry(kind, row)
    return found


def _subnet_id(label: str, row: Mapping[str, Any], zones: Mapping[str, str]) -> str:
    """Return the ID of a subnet: zone, network and length of its prefix."""
    try:
        network = ipaddress.ip_network(str(row["cidr"]))
    except ValueError:
        raise refused(f"{label} was refused", f"'{row['cidr']}' is not a network") from None
    if row["vnet"] not in zones:
        raise refused(f"{label} was refused", f"there is no VNet '{row['vnet']}'")
    return f"{zones[row['vnet']]}-{network.network_address}-{network.prefixlen}"


def _entry(kind: str, row: Mapping[str, Any]) -> Entry:
    entry: dict[str, str] = {}
    for option, (key, form) in FIELDS[kind].items():
        value = row.get(option)
        if value is not None:
            entry[key] = _canonical(value, form)
    return entry


def _canonical(value: Any, form: str) -> str:
    if form == FLAG:
        return "1" if str(value).lower() in ("1", "true", "yes") else ""
    if form == LIST:
        parts = value if isinstance(value, list) else re.split(r"[,; ]+", str(value))
        return ",".join(sorted(str(part) for part in parts if part))
    if form == RANGES:
        return _SEPARATOR.join(sorted(_range(one) for one in value))
    return str(value)


def _range(one: Any) -> str:
    if isinstance(one, str):
        return _range(keyed_parts(one) or {})
    start = one.get("start_address") or one.get("start-address")
    end = one.get("end_address") or one.get("end-address")
    return f"start-address={start},end-address={end}"


def ranges_of(text: str) -> list[tuple[str, str]]:
    """Return the first and the last address of each DHCP range."""
    found = []
    for part in text.split(_SEPARATOR) if text else ():
        ends = keyed_parts(part) or {}
        found.append((ends.get("start-address", ""), ends.get("end-address", "")))
    return found


# -- answers -------------------------------------------------------------------------------------


def section_of(kind: str, rows: Iterable[Mapping[str, Any]] | None) -> Section:
    """Return the objects of an answer by their IDs."""
    return {str(row[KEYS[kind]]): entry_of_row(kind, row) for row in rows or ()}


def entry_of_row(kind: str, row: Mapping[str, Any]) -> Entry:
    """Return the properties of an object in an answer."""
    entry: dict[str, str] = {}
    for key, form in FIELDS[kind].values():
        value = row.get(key)
        if value is None:
            continue
        text = _canonical(value, form)
        if text:
            entry[key] = text
    return entry


def running_of(kind: str, rows: Sequence[Mapping[str, Any]]) -> Section:
    """Return the running objects of an answer with pending changes."""
    return section_of(kind, [row for row in rows if row.get("state") != "new"])


def pending_of(kind: str, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each object with a pending change."""
    return [f"{KEYS[kind]} {row[KEYS[kind]]} ({row['state']})" for row in rows if row.get("state")]


def is_in_force(rows: Iterable[Mapping[str, Any]], zones: Section) -> bool:
    """Return whether each online node reports each of its zones as available in the listing of
    resources. A zone is a row of type `network` since Proxmox VE 9, and of type `sdn` before.
    """
    online: set[str] = set()
    reported: set[tuple[str, str]] = set()
    for row in rows:
        node, status = str(row.get("node")), row.get("status")
        if row.get("type") == "node" and status == "online":
            online.add(node)
        if row.get("type") in _ZONE_ROWS and status == "available":
            reported.add((node, str(row.get("network") or row.get("sdn"))))
    for name, entry in zones.items():
        members = set(entry["nodes"].split(",")) if entry.get("nodes") else online
        if any((node, name) not in reported for node in members & online):
            return False
    return bool(online)


def data_of(entry: Entry) -> dict[str, Any]:
    """Return the parameters of a request."""
    data: dict[str, Any] = dict(entry)
    if "dhcp-range" in data:
        data["dhcp-range"] = str(data["dhcp-range"]).split(_SEPARATOR)
    return data


# -- results -------------------------------------------------------------------------------------


def view_of(sections: Sections) -> dict[str, list[dict[str, Any]]]:
    """Return objects in the form in which a task declares them, without secrets."""
    return {
        kind: [_view(kind, name, section[name]) for name in sorted(section)]
        for kind, section in sections.items()
    }


def _view(kind: str, name: str, entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    if kind == SUBNETS:
        _zone, network, mask = name.split("-", 2)
        row = {"cidr": f"{network}/{mask}"}
    for option, (key, form) in FIELDS[kind].items():
        if key in entry and option not in SECRETS:
            row[option] = _shown(entry[key], form)
    return row


def _shown(text: str, form: str) -> Any:
    if form == FLAG:
        return text == "1"
    if form == NUMBER:
        return int(text)
    if form == LIST:
        return text.split(",")
    if form == RANGES:
        return [{"start_address": one, "end_address": other} for one, other in ranges_of(text)]
    return text
