# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the cluster after the planned changes, for the checks of later resources.

A file can create a role and give it to a user: the check of the right must know the role before
it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.api.layers.caching import CachingLayer, CachingReader
from ..._foundation.api.protocols import Sender
from ..._foundation.api.request import Request
from ..._foundation.core.errors import FleetError, NotFound
from ..._foundation.resource.table import Table, Values
from ..._tenants.access.acl import ACL

ANY = "*"
"""A segment in the path of an edit that matches any name."""

_RESOURCES = ("cluster", "resources")
_TARGETS = ("cluster", "notifications", "targets")


@dataclass(frozen=True)
class RowEdit:
    """A row of a listing that will be added, changed or, without `row`, removed.

    `identity` contains the properties by which the row is found; an empty identity finds all rows.
    `each_node`: the listing has a row for each node. `is_new`: the listing may not exist yet; if
    so, its content before the edits is `empty`.
    """

    path: tuple[str, ...]
    identity: Mapping[str, str]
    row: Mapping[str, Any] | None
    each_node: bool = False
    is_new: bool = False
    empty: Any = field(default_factory=list)


def edited(answer: Any, edits: Iterable[RowEdit]) -> Any:
    """Return the answer with the edits (pure); an answer that is not a listing is unchanged."""
    if not isinstance(answer, list):
        return answer
    for edit in edits:
        answer = list(_edited(answer, edit))
    return answer


def _edited(rows: list[Any], edit: RowEdit) -> Iterator[Any]:
    is_found = False
    for row in rows:
        if not edit.identity.items() <= dict(row).items():
            yield row
            continue
        is_found = True
        if edit.row is not None:
            yield {**row, **edit.row}
    if is_found or edit.row is None:
        return
    new = {**edit.identity, **edit.row}
    if not edit.each_node:
        yield new
        return
    for row in rows:
        if row.get("type") == "node":
            yield {**new, "node": row["node"]}


def edits_of(table: Table, keys: Mapping[str, str], values: Values | None) -> list[RowEdit]:
    """Return the edits of the listings for a resource with new values, None if it is removed."""
    if table is ACL:
        return _edits_of_rights(keys["path"], values or {})
    if table.permanent:
        return []
    row = None if values is None else _row(table, keys, values)
    identity = {key.property: keys[key.option] for key in table.keys}
    found = [RowEdit(table.list_call.path_for(keys), identity, row)]
    if table.kind == "storage":
        listed = None if row is None else {"status": "available", "content": row.get("content", "")}
        of_nodes = {"type": "storage", "storage": keys["name"]}
        found.append(RowEdit(_RESOURCES, of_nodes, listed, each_node=True))
        content = ("nodes", ANY, "storage", keys["name"], "content")
        found.append(RowEdit(content, {"volid": ""}, None, is_new=row is not None))
    if table.kind == "pool":
        listed = None if row is None else {}
        found.append(RowEdit(_RESOURCES, {"type": "pool", "pool": keys["name"]}, listed))
    if table.kind == "notification_endpoint":
        found.append(RowEdit(_TARGETS, {"name": keys["name"]}, row))
    return found


def _edits_of_rights(path: str, values: Values) -> list[RowEdit]:
    """Return the edits of the listing of rights: the rows of a path are replaced."""
    listing = ACL.list_call.path
    found = [RowEdit(listing, {"path": path}, None)]
    for grant in values.get("grants", ()):
        row = {"path": path, "type": grant.kind, "ugid": grant.who, "roleid": grant.role}
        found.append(RowEdit(listing, row, {"propagate": int(grant.propagate)}))
    return found


def _row(table: Table, keys: Mapping[str, str], values: Values) -> dict[str, Any]:
    """Return the row of a listing: the values in the form of a request."""
    found: dict[str, Any] = {}
    variant = table.variant_of(keys, values)
    for one in table.fields:
        if one.exists_in(variant):
            found[one.property] = one.send(values.get(one.option, one.read(None)))
    for group in table.members:
        if group.own:
            found[group.property] = group.joined(values.get(group.option, ()))
    return {name: value for name, value in found.items() if value is not None}


class _PlannedLayer(CachingLayer):
    """A layer that caches answers, and applies the planned changes to them."""

    def __init__(self, edits: list[RowEdit], below: Sender) -> None:
        super().__init__(below)
        self._edits = edits

    def send(self, request: Request) -> Any:
        edits = [edit for edit in self._edits if _concerns(edit, request)]
        try:
            answer = super().send(request)
        except FleetError as error:
            new = [edit.empty for edit in edits if edit.is_new]
            answer = edited(new[0] if new else [], edits)
            if not new and not (isinstance(error, NotFound) and answer):
                raise
            return answer
        return edited(answer, edits)


def _is_same_path(pattern: Sequence[str], path: Sequence[str]) -> bool:
    if len(pattern) != len(path):
        return False
    pairs = zip(pattern, path, strict=True)
    return all(one in (ANY, other) for one, other in pairs)


def _concerns(edit: RowEdit, request: Request) -> bool:
    """Return whether the answer to a request has the row of an edit; a query can exclude it."""
    if not _is_same_path(edit.path, request.path):
        return False
    return all(request.values.get(name, value) == value for name, value in edit.identity.items())


class PlannedReader(CachingReader):
    """A client that sends each request once, cannot write, and knows the planned changes."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._edits: list[RowEdit] = []
        layer = partial(_PlannedLayer, self._edits)
        self._assemble(replace(client._layers, above=layer))

    def plan(self, edits: Iterable[RowEdit]) -> None:
        """Add edits that apply to all later answers."""
        self._edits.extend(edits)
