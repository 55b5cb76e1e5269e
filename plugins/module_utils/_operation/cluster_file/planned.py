# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of the cluster after the planned changes, for the checks of later resources.

A file can create a role and give it to a user: the check of the right must know the role before
it exists. Items about networks have an order of their own.
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
from ..._tenants.firewall.desired import read_desired
from ..._tenants.firewall.rules.model import Rule
from ..._tenants.firewall.scope import CLUSTER, GROUP, GUEST, ROOT, VNET, Path, plain_scope

ANY = "*"
"""A segment in the path of an edit that matches any name."""

_RESOURCES = ("cluster", "resources")
Options = Mapping[str, Any]
_NAMES = "names"
_BESIDE_NAMES = ("options", "rules", "exact")


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
        found.append(RowEdit(("cluster", "notifications", "targets"), {"name": keys["name"]}, row))
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


def _concerns(edit: RowEdit, request: Request) -> bool:
    """Return whether the answer to a request has the row of an edit; a query can exclude it."""
    if len(edit.path) != len(request.path):
        return False
    pairs = zip(edit.path, request.path, strict=True)
    if not all(one in (ANY, other) for one, other in pairs):
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


def edits_of_sdn(item: Options) -> list[RowEdit]:
    """Return the edits for the VNets and their firewalls, which can be new."""
    found: list[RowEdit] = []
    for vnet in item.get("vnets") or ():
        row: dict[str, Any] | None = None if vnet.get("state") == "absent" else {}
        found.append(RowEdit(("cluster", "sdn", "vnets"), {"vnet": str(vnet["name"])}, row))
        if vnet.get("state") != "absent":
            path = tuple(map(str, plain_scope(VNET, vnet["name"]).path))
            found.append(RowEdit((*path, "rules"), {"pos": ""}, None, is_new=True))
            found.append(RowEdit((*path, "options"), {}, None, is_new=True, empty={}))
    return found


def arrange_firewall(items: Iterable[Options]) -> list[tuple[str, Options]]:
    """Return the scopes in the order that their references need: aliases and IP sets of the
    cluster, security groups, rules, and removed groups.
    """
    names: list[tuple[str, Options]] = []
    groups: list[tuple[str, Options]] = []
    places: list[tuple[str, Options]] = []
    gone: list[tuple[str, Options]] = []
    for item in items:
        if item["scope"] == GROUP:
            is_gone = item.get("state") == "absent"
            (gone if is_gone else groups).append(("", item))
            continue
        # Groups can refer to names of the cluster, and its rules to groups.
        has_names = item.get("aliases") or item.get("ip_sets")
        if item["scope"] == CLUSTER and has_names and item.get("rules"):
            names.append((_NAMES, {**item, **dict.fromkeys(_BESIDE_NAMES)}))
        places.append(("", item))
    return [*names, *groups, *places, *gone]


def edits_of_firewall(item: Options) -> list[RowEdit]:
    """Return the edits for the names of a scope to which rules of other scopes can refer."""
    scope = str(item["scope"])
    if scope == GROUP:
        return _edits_of_group(item)
    if scope == GUEST:
        return []
    place = plain_scope(scope, item.get(scope))
    desired = read_desired(item, place)
    found = edits_of_rules(place.rules_path, desired.rules)
    for name, (cidr, comment) in (desired.aliases or {}).items():
        row = {"cidr": cidr, "comment": comment}
        found += _named("alias", "aliases", name, row)
    for name, one in (desired.ip_sets or {}).items():
        found += _named("ipset", "ipset", name, {"comment": one.comment})
        path = (*ROOT, "ipset", name)
        found.append(RowEdit(path, {"cidr": ""}, None, is_new=True))
        for cidr, (is_excluded, comment) in one.members.items():
            values = {"nomatch": int(is_excluded), "comment": comment}
            found.append(RowEdit(path, {"cidr": cidr}, values))
    return found


def _named(kind: str, listing: str, name: str, row: Mapping[str, Any]) -> list[RowEdit]:
    """Return the edits of both listings that contain a name."""
    return [
        RowEdit((*ROOT, listing), {"name": name}, row),
        RowEdit((*ROOT, "refs"), {"type": kind, "name": name}, {}),
    ]


def _edits_of_group(item: Options) -> list[RowEdit]:
    listing = (*ROOT, "groups")
    place = plain_scope(GROUP, item["group"])
    identity = {"group": place.name}
    if item.get("state") == "absent":
        return [RowEdit(listing, identity, None)]
    desired = read_desired(item, place)
    found = [RowEdit(listing, identity, {"comment": item.get("comment") or ""})]
    return [*found, *edits_of_rules(place.rules_path, desired.rules)]


def edits_of_rules(path: Path, rules: Sequence[Rule] | None) -> list[RowEdit]:
    """Return the edits for a list of rules, which is replaced; none if it is not declared."""
    if rules is None:
        return []
    names = tuple(map(str, path))
    found = [RowEdit(names, {}, None, is_new=True)]
    for place, rule in enumerate(rules):
        found.append(RowEdit(names, {"pos": str(place)}, rule.as_data()))
    return found


def edits_of_interfaces(item: Options) -> list[RowEdit]:
    """Return the edits for the interfaces of a node, which zones of SDN can use."""
    listing = ("nodes", str(item["node"]), "network")
    found: list[RowEdit] = []
    for one in item.get("interfaces") or ():
        row = None if one.get("state") == "absent" else _typed(one)
        found.append(RowEdit(listing, {"iface": str(one["name"])}, row))
    return found


def _typed(interface: Options) -> dict[str, Any]:
    """Return the option `type`, if it is set; otherwise an existing interface keeps its type."""
    return {"type": interface["type"]} if interface.get("type") else {}
