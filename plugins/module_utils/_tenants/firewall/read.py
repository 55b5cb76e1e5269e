# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the parts of a firewall that a task needs. Sends requests, decides nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.core.errors import NotSupported
from ..._foundation.core.parallel import side_by_side
from .evaluate.match import VERSIONS
from .evaluate.model import RuleNames
from .model import DesiredFirewall, Firewall, IpSet, UsableNames, plain_option
from .rules.model import Rule, kept_comment, rule_of_row
from .scope import GROUP, GUEST, NODE, ROOT, FirewallScope, Path

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def read_firewall(
    client: Client, scope: FirewallScope, desired: DesiredFirewall | None = None
) -> Firewall:
    """Return the parts of a firewall that `desired` needs, or all parts if it is None."""
    comment = ""
    if scope.kind == GROUP:
        groups = groups_of(client.get(*ROOT, "groups"))
        if scope.name not in groups:
            return Firewall(exists=False)
        comment = groups[scope.name]
    parts = parts_of(scope, desired)
    only = None if desired is None else desired.only_sets
    aliases = aliases_of(client.get(*scope.path, "aliases")) if "aliases" in parts else {}
    sets = read_sets(client, scope.path, only) if "ip_sets" in parts else {}
    options = options_of(client.get(*scope.path, "options")) if "options" in parts else {}
    rules = rules_of(client.get(*scope.rules_path)) if "rules" in parts else ()
    return Firewall(options, rules, aliases, sets, comment)


def vnets_of(client: Client) -> list[str]:
    """Return the names of the running VNets; none if Proxmox VE has no SDN.

    A VNet has a firewall once it is applied (pve-firewall: API2/Firewall/Helpers.pm,
    check_vnet_access).
    """
    try:
        rows = client.get("cluster", "sdn", "vnets", params={"running": 1}) or ()
    except NotSupported:
        return []
    return [str(row["vnet"]) for row in rows]


def parts_of(scope: FirewallScope, desired: DesiredFirewall | None) -> set[str]:
    """Return the parts that a task needs (pure).

    Changes of rules or policies, and removals of names, need both options and rules.
    """
    names = {"aliases", "ip_sets"} if scope.has_names else set()
    others = {"options", "rules"} if scope.options else {"rules"}
    if desired is None:
        return names | others
    parts = {name for name in names if getattr(desired, name) is not None}
    has_policies = any(name.startswith("policy_") for name in desired.options)
    is_removal = not desired.is_wanted or bool(desired.gone) or (desired.exact and bool(parts))
    if desired.rules is not None or has_policies or is_removal:
        return parts | others
    return parts | {"options"} if desired.options else parts


def read_sets(client: Client, path: Path, only: frozenset[str] | None = None) -> dict[str, IpSet]:
    """Return the IP sets of a scope; with `only`, other sets have no members."""
    names = sets_of(client.get(*path, "ipset"))

    def read_one(name: str) -> IpSet:
        if only is not None and name not in only:
            return IpSet(names[name])
        return IpSet(names[name], members_of(client.get(*path, "ipset", name)))

    return dict(zip(names, side_by_side(read_one, list(names)), strict=True))


def read_known(client: Client, scope: FirewallScope, desired: DesiredFirewall) -> UsableNames:
    """Return the names that rules and members of IP sets can use; only kinds of names that they use
    are read.
    """
    listed = list(desired.rules or ())
    addresses = [one for rule in listed for one in (rule.source, rule.dest)]
    for ip_set in (desired.ip_sets or {}).values():
        addresses += ip_set.members
    aliases: set[str] = set()
    sets: set[str] = set()
    own: set[str] = set()
    networks: set[str] = set()
    if any(is_name(one) for one in addresses):
        for row in client.get(*scope.refs_path) or ():
            name, is_set = str(row["name"]).lower(), row["type"] == "ipset"
            if row.get("scope") == "sdn":
                networks.add(name)
            (sets if is_set else aliases).add(name)
            if row.get("scope") == "guest":
                own.add(f"+{name}" if is_set else name)
    groups = macros = interfaces = None
    if any(rule.type == "group" for rule in listed):
        groups = frozenset(groups_of(client.get(*ROOT, "groups")))
    if any(rule.macro for rule in listed):
        rows = client.get(*ROOT, "macros") or ()
        macros = frozenset(str(row["macro"]) for row in rows)
    if scope.kind == GUEST:
        interfaces = scope.nics
    elif scope.kind == NODE and any(rule.iface for rule in listed):
        rows = client.get("nodes", scope.path[1], "network") or ()
        interfaces = frozenset(str(row["iface"]) for row in rows)
    return UsableNames(
        frozenset(aliases),
        frozenset(sets),
        groups,
        macros,
        interfaces,
        frozenset(own),
        frozenset(networks),
    )


def read_aliases(
    client: Client, scope: FirewallScope, desired: DesiredFirewall
) -> RuleNames | None:
    """Return the aliases that rules can name; None if no rule has an alias beside something else
    with a version of IP.
    """
    if not any(_is_mixed(rule) for rule in desired.rules or ()):
        return None
    cluster = aliases_of(client.get(*ROOT, "aliases"))
    guest = aliases_of(client.get(*scope.path, "aliases")) if scope.kind == GUEST else {}
    own = guest if scope.kind == GUEST else cluster
    own.update(desired.aliases or {})
    return RuleNames(guest=Firewall(aliases=guest), cluster=Firewall(aliases=cluster))


def _is_mixed(rule: Rule) -> bool:
    addresses = [one for one in (rule.source, rule.dest) if one and not one.startswith("+")]
    has_alias = any(is_name(one) for one in addresses)
    return has_alias and len(addresses) + (rule.proto in VERSIONS) > 1


def is_name(text: str) -> bool:
    """Return whether an address is the name of an alias or an IP set (pure)."""
    plain = text[1:] if text.startswith("+") else text
    return plain[:1].isalpha() and ":" not in plain


def options_of(answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the options as texts (pure)."""
    return {key: plain_option(key, value) for key, value in answer.items() if key != "digest"}


def rules_of(rows: Iterable[Mapping[str, Any]] | None) -> tuple[Rule, ...]:
    """Return the rules in order (pure)."""
    ordered = sorted(rows or (), key=lambda row: int(row["pos"]))
    return tuple(rule_of_row(row) for row in ordered)


def aliases_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, tuple[str, str]]:
    """Return the network and the comment of each alias (pure)."""
    return {
        str(row["name"]): (str(row["cidr"]), kept_comment(row.get("comment"))) for row in rows or ()
    }


def sets_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """Return the comment of each IP set (pure)."""
    return {str(row["name"]): kept_comment(row.get("comment")) for row in rows or ()}


def members_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, tuple[bool, str]]:
    """Return the members of an IP set (pure)."""
    found: dict[str, tuple[bool, str]] = {}
    for row in rows or ():
        is_excluded = str(row.get("nomatch") or "0") != "0"
        found[str(row["cidr"])] = (is_excluded, kept_comment(row.get("comment")))
    return found


def groups_of(rows: Iterable[Mapping[str, Any]] | None) -> dict[str, str]:
    """Return the comment of each security group (pure)."""
    return {str(row["group"]): kept_comment(row.get("comment")) for row in rows or ()}
