# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of Ceph pools (pve-manager: PVE/API2/Ceph/Pool.pm, PVE/Ceph/Tools.pm).

Proxmox VE creates two pools for an erasure-coded pool: NAME-data, and NAME-metadata, which is
replicated and has the size, the minimum size and the CRUSH rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ...._foundation.core import propstring, validate
from ...._foundation.core.errors import Conflict
from ...._foundation.core.quantities import parse_size
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, Table
from ...._foundation.resource.values import number_field, text_field

PLACE = ("nodes", "{node}", "ceph", "pool")
_ONE = Call((*PLACE, "{name}"), is_task=True)
_CODING: propstring.Format = {
    name: {} for name in ("k", "m", "failure-domain", "device-class", "profile")
}


def _application(known: str, wanted: str, desired: DesiredResource) -> str:
    """Return the applications of a pool after a task.

    Raises Conflict for a second application, which Ceph refuses only after other changes are
    written.
    """
    if not known or wanted in known.split(","):
        return known or wanted
    raise Conflict(
        f"{POOL.label(desired.keys)} was not changed: Ceph keeps its application {known}",
        "Leave out application, or create another pool",
        "application",
    )


def rows(answer: Any, _keys: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Return the pools of a listing, keyed like the parameters of requests."""
    return [
        {
            **row,
            "crush_rule": row.get("crush_rule_name"),
            "application": ",".join(sorted(row.get("application_metadata") or {})),
        }
        for row in answer or []
    ]


def pick(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the named pool of a listing."""
    return _named(rows(answer, keys), keys["name"])


def pick_coded(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return an erasure-coded pool, with the values of both of its pools."""
    found = rows(answer, keys)
    data = _named(found, f"{keys['name']}-data")
    metadata = _named(found, f"{keys['name']}-metadata")
    if data is None or metadata is None:
        return None
    replicated = {name: metadata.get(name) for name in ("size", "min_size", "crush_rule")}
    return {**data, **replicated, "pool_name": keys["name"]}


def _named(found: Iterable[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((row for row in found if row.get("pool_name") == name), None)


def pool_name(value: str, option: str) -> str:
    """Return the name of a pool. Raises ValidationFailed."""
    text = str(value)
    if not text or any(one in ":/" or one.isspace() for one in text):
        raise validate.refused(
            option, text, "is not the name of a Ceph pool", "Leave out blanks, colons and slashes"
        )
    return text


def _ratio(value: Any) -> float:
    return float(value or 0)


POOL = Table(
    kind="ceph_pool",
    title="Ceph pool",
    keys=(Key("name", "pool_name", pool_name),),
    fields=(
        number_field("size", 3),
        number_field("min_size", 2),
        number_field("pg_num", 128),
        number_field("pg_num_min", 0),
        text_field("pg_autoscale_mode", default="warn", name="pg_autoscale_mode"),
        Field(
            "target_size",
            "target_size",
            want=lambda value: parse_size(value, bare=1, what="target_size"),
            read=lambda value: int(value or 0),
            send=str,
        ),
        Field("target_size_ratio", "target_size_ratio", want=_ratio, read=_ratio, send=_ratio),
        Field("crush_rule", "crush_rule"),
        Field(
            "application",
            "application",
            read=lambda value: "rbd" if value is None else str(value),
            merge=_application,
        ),
    ),
    read_only=(
        Field("type", "type"),
        Field("used", "bytes_used", read=lambda value: int(value or 0)),
    ),
    read_call=Call(PLACE),
    create_call=Call(PLACE, {"name": "{name}"}, is_task=True),
    update_call=_ONE,
    delete_call=_ONE,
    pick=pick,
    rows=rows,
)


def on_node(table: Table, node: str) -> Table:
    """Return the table whose calls go to a node with Ceph."""
    return replace(
        table,
        list_call=_at(table.list_call, node),
        read_call=_at(table.read_call, node),
        create_call=_at(table.create_call, node),
        update_call=_at(table.update_call, node),
        delete_call=_at(table.delete_call, node),
    )


def _at(call: Call, node: str) -> Call:
    return replace(call, path=tuple(one.replace("{node}", node) for one in call.path))


def coded(table: Table, coding: Mapping[str, Any]) -> Table:
    """Return the table of an erasure-coded pool, whose two pools are changed by their own names."""
    create = table.create_call
    keys = {name.replace("_", "-"): str(one) for name, one in coding.items() if one is not None}
    return replace(
        table,
        title="erasure-coded Ceph pool",
        fields=tuple(replace(one, fixed=True) for one in table.fields),
        create_call=replace(
            create, data={**create.data, "erasure-coding": propstring.render(keys, _CODING)}
        ),
        pick=pick_coded,
    )


def with_storages(table: Table, params: Mapping[str, Any]) -> Table:
    """Return the table whose calls also create or remove storages, if the task asks for it."""
    create, delete = table.create_call, table.delete_call
    if params.get("add_storages") is not None:
        sent = {**create.data, "add_storages": str(int(params["add_storages"]))}
        create = replace(create, data=sent)
    if params.get("remove_storages"):
        delete = replace(delete, data={**delete.data, "remove_storages": "1"})
    return replace(table, create_call=create, delete_call=delete)
