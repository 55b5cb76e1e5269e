# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of resource mappings (pve-manager: API2/Cluster/Mapping; pve-guest-common: Mapping)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import propstring, validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.result import Result
from ..._foundation.resource.run import list_values, run_info
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, Table
from ..._foundation.resource.values import flag_field, text_field
from .devices import precheck_devices

TYPES = ("dir", "pci", "usb")
_ALL = Call(("cluster", "mapping", "{type}"))
_WORDS = {"subsystem_id": "subsystem-id"}
_DIRECTORY = re.compile(r"/[^;,=()]*")  # pve-storage-path-in-property-string
_DEVICE = re.compile(r"[0-9A-Fa-f]{4}:[0-9A-Fa-f]{4}")
# The allowed and the required keys of an entry, by type (Mapping/PCI.pm, USB.pm, Dir.pm).
_KEYS = {
    "dir": {"node", "path"},
    "pci": {"node", "path", "id", "iommugroup", "subsystem_id", "description"},
    "usb": {"node", "path", "id", "description"},
}
_NEEDED = {"dir": {"path"}, "pci": {"path", "id"}, "usb": {"id"}}

MappingEntry = tuple[tuple[str, str], ...]
"""The keys and values of a device or directory of a node, the node first."""


def _entry(values: Mapping[str, Any]) -> MappingEntry:
    given = {key: str(value) for key, value in values.items() if value not in (None, "")}
    return tuple(sorted(given.items(), key=lambda item: (item[0] != "node", item)))


def read_entries(texts: Iterable[str] | None) -> frozenset[MappingEntry]:
    """Return the entries of an answer."""
    back = {name: option for option, name in _WORDS.items()}
    found: set[MappingEntry] = set()
    for text in texts or ():
        values = propstring.sub_keys(str(text))
        found.add(_entry({back.get(key, key): value for key, value in values.items()}))
    return frozenset(found)


def want_entries(items: Iterable[Mapping[str, Any]]) -> frozenset[MappingEntry]:
    """Return the entries of the option."""
    return frozenset(_entry(item) for item in items)


def _send(entries: Iterable[MappingEntry]) -> list[str]:
    return [
        ",".join(f"{_WORDS.get(key, key)}={value}" for key, value in entry)
        for entry in sorted(entries)
    ]


def _sorted_entries(entries: Iterable[MappingEntry]) -> list[dict[str, Any]]:
    items = [dict(entry) for entry in sorted(entries)]
    return [
        {key: int(value) if key == "iommugroup" else value for key, value in entry.items()}
        for entry in items
    ]


def _merge(known: Any, wanted: Any, desired: DesiredResource) -> Any:
    """Return the wanted entries and, unless the list is exact, the known entries of other nodes."""
    if desired.exact:
        return wanted
    listed = {entry[0] for entry in wanted}
    return wanted | {entry for entry in known if entry[0] not in listed}


def resolve(_client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises ValidationFailed for entries that do not fit the type
    (pure).
    """
    kind = desired.keys["type"]
    for entry in desired.values.get("map", ()):
        values = dict(entry)
        place = f"the entry of node {values['node']}" if "node" in values else "an entry"
        odd = sorted(values.keys() - _KEYS[kind])
        missing = sorted({*_NEEDED[kind], "node"} - values.keys())
        if odd or missing:
            answer = f"{place} has {odd[0]}" if odd else f"{place} has no {missing[0]}"
            raise ValidationFailed(
                f"map was refused: {answer}, and a mapping of type {kind} has "
                f"{', '.join(sorted(_KEYS[kind]))}",
                "Correct map",
                "map",
            )
        if kind == "dir" and not _DIRECTORY.fullmatch(values["path"]):
            reason = "is not an absolute path without ; , = ( )"
            raise validate.refused("path", values["path"], reason, "Write it as /srv/data")
        if "id" in values and not _DEVICE.fullmatch(values["id"]):
            raise validate.refused(
                "id", values["id"], "is not a vendor and a device", "Write it as 8086:10fb"
            )
    return desired


def _rows(answer: Any, keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [{**row, "type": keys["type"]} for row in answer or []]


MAPPING = Table(
    kind="mapping",
    keys=(Key("type", "type", lambda value, _what: value), Key("name", "id", validate.config_id)),
    fields=(
        text_field("description"),
        Field(
            "map",
            "map",
            want=want_entries,
            read=read_entries,
            send=_send,
            show=_sorted_entries,
            merge=_merge,
            always=True,
            required=True,
        ),
        flag_field("mdev", variants=("pci",)),
        flag_field("live_migration_capable", variants=("pci",)),
    ),
    variant="type",
    digest=("PUT",),
    list_call=_ALL,
    read_call=Call(("cluster", "mapping", "{type}", "{name}")),
    create_call=Call(_ALL.path, {"id": "{name}"}),
    rows=_rows,
    resolve=resolve,
    precheck=precheck_devices,
)


def _checked_rows(answer: Any, keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the rows with C(checks), which PVE names C(errors) in USB mappings."""
    rows = _rows(answer, keys)
    return [{**row, "checks": row.get("checks") or row.get("errors")} for row in rows]


def _read_checks(rows: Iterable[Mapping[str, Any]] | None) -> list[dict[str, str]]:
    return [
        {"severity": str(row.get("severity", "")), "message": str(row.get("message", "")).strip()}
        for row in rows or ()
    ]


def run_mapping_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the mappings of one type or of all types; one request for each type."""
    kinds = [params["type"]] if params.get("type") else list(TYPES)
    found: list[Any] = []
    if params.get("check_node"):
        # PVE checks the entries for a node (pve-manager: PVE/API2/Cluster/Mapping, check-node).
        node = validate.node(params["check_node"], "check_node")
        table = replace(
            MAPPING,
            list_call=Call(_ALL.path, {"check-node": node}),
            rows=_checked_rows,
            read_only=(Field("checks", "checks", read=_read_checks),),
        )
        for kind in kinds:
            rows = list_values(table, client, {"type": kind})
            found += [table.show(keys, values) for keys, values in rows]
        name = params.get("name")
        named = [one for one in found if name in (None, one["name"])]
        return Result(False, {MAPPING.plural: named})
    for kind in kinds:
        one = run_info(MAPPING, {**params, "type": kind}, client, check_mode)
        found += one.values[MAPPING.plural]
    return Result(False, {MAPPING.plural: found})
