# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of the items about networks, and the listings after them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._tenants.firewall.desired import read_desired
from ..._tenants.firewall.rules.model import Rule
from ..._tenants.firewall.scope import CLUSTER, GROUP, GUEST, ROOT, VNET, Path, plain_scope
from .planned import RowEdit

Options = Mapping[str, Any]
_NAMES = "names"
_BESIDE_NAMES = ("options", "rules", "exact")


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
        if _has_names_beside(item):
            names.append((_NAMES, {**item, **dict.fromkeys(_BESIDE_NAMES)}))
        places.append(("", item))
    return [*names, *groups, *places, *gone]


def _has_names_beside(item: Options) -> bool:
    """Return whether groups can refer to names of the scope, and its rules to groups."""
    has_names = item.get("aliases") or item.get("ip_sets")
    return item["scope"] == CLUSTER and bool(has_names and item.get("rules"))


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
