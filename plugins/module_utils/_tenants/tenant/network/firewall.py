# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names and rules of the cluster's firewall that separate a tenant from others (pure).

The IP set and the security group of a tenant have the same name. The group is the first rule of a
guest: it accepts the tenant itself and its peers, and drops all other tenants. So no rule that the
tenant adds can open the guest to another tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...._foundation.cluster.tenant import EVERY_TENANT, group_name
from ...._foundation.core.errors import Conflict
from ...._foundation.core.marks import marked_tag, with_mark
from ...firewall.desired import clean_cidr
from ...firewall.model import DesiredFirewall, Firewall, IpSet
from ...firewall.rules.model import Rule
from .model import NONE, OWN, TenantNetworking
from .sdn import require_no_overlap

_EVERY_COMMENT = "subnets of all tenants"


def sets_of(networking: TenantNetworking, tag: str) -> frozenset[str]:
    """Return the IP sets that the isolation of a tenant uses."""
    peers = (group_name(peer) for peer in networking.peers)
    return frozenset((EVERY_TENANT, group_name(tag), *peers))


def names_goal(networking: TenantNetworking, tag: str, actual: Firewall) -> DesiredFirewall:
    """Return the desired aliases and IP sets of a tenant. Raises Conflict if others own a name."""
    mark, group = with_mark("", tag), group_name(tag)
    aliases: dict[str, tuple[str, str]] = {}
    stale: set[str] = set()
    gone: set[str] = set()
    for network in networking.networks:
        known = actual.aliases.get(network.vnet)
        if known is not None:
            _require_own(f"alias '{network.vnet}'", known[1], tag)
            stale.add(known[0])
        if network.is_wanted and network.subnet:
            cidr = clean_cidr(network.subnet, f"networks.{network.name}")
            aliases[network.vnet] = (cidr, with_mark(network.name, tag))
        elif known is not None:
            gone.add(network.vnet)
    subnets = {cidr for cidr, _comment in aliases.values()}
    if networking.isolation == NONE:
        return without_sets(aliases, gone, tag, actual)
    members = actual.ip_sets.get(EVERY_TENANT, IpSet()).members
    others = [cidr for cidr, (_no, comment) in members.items() if marked_tag(comment) != tag]
    require_no_overlap(subnets, others)
    if group in actual.ip_sets:
        _require_own(f"IP set '{group}'", actual.ip_sets[group].comment, tag)
    sets = {
        EVERY_TENANT: _set(actual, EVERY_TENANT, _EVERY_COMMENT, subnets, mark),
        group: _set(actual, group, mark, subnets, mark),
    }
    for peer in networking.peers:
        name = group_name(peer)
        if name not in actual.ip_sets:
            sets[name] = IpSet(with_mark("", peer))
    outdated = frozenset(stale - subnets)
    return DesiredFirewall(
        {},
        None,
        aliases,
        sets,
        gone=frozenset(gone),
        gone_members={EVERY_TENANT: outdated, group: outdated},
        only_sets=sets_of(networking, tag),
    )


def _set(actual: Firewall, name: str, comment: str, subnets: Iterable[str], mark: str) -> IpSet:
    known = actual.ip_sets.get(name)
    return IpSet(comment if known is None else known.comment, dict.fromkeys(subnets, (False, mark)))


def without_sets(
    aliases: Mapping[str, tuple[str, str]], gone: Iterable[str], tag: str, actual: Firewall
) -> DesiredFirewall:
    """Return the desired aliases and IP sets of a tenant that is removed or not isolated."""
    group = group_name(tag)
    removed = set(gone)
    if group in actual.ip_sets and marked_tag(actual.ip_sets[group].comment) == tag:
        removed.add(group)
    every = actual.ip_sets.get(EVERY_TENANT, IpSet())
    mine = {cidr for cidr, (_no, comment) in every.members.items() if marked_tag(comment) == tag}
    return DesiredFirewall(
        {},
        None,
        dict(aliases),
        {},
        gone=frozenset(removed),
        gone_members={EVERY_TENANT: frozenset(mine)},
        only_sets=frozenset((EVERY_TENANT, group)),
    )


def group_goal(networking: TenantNetworking, tag: str) -> DesiredFirewall:
    """Return the desired security group of a tenant."""
    comment = with_mark("", tag)
    if networking.isolation == NONE:
        return DesiredFirewall({}, is_wanted=False)
    every = f"+dc/{EVERY_TENANT}"
    if networking.isolation == OWN:
        names = [group_name(one) for one in (tag, *networking.peers)]
        accepted = [Rule("in", "ACCEPT", source=f"+dc/{name}") for name in names]
        rules = (*accepted, Rule("in", "DROP", source=every))
    else:
        rules = (Rule("in", "ACCEPT", source=every),)
    return DesiredFirewall({}, rules, comment=comment)


def require_own_group(tag: str, comments: Mapping[str, str]) -> None:
    """Raise Conflict if the security group with the tenant's name does not belong to the tenant."""
    group = group_name(tag)
    if group in comments:
        _require_own(f"security group '{group}'", comments[group], tag)


def require_on(options: Mapping[str, str], networking: TenantNetworking, label: str) -> None:
    """Raise Conflict if the firewall of the cluster is off: then no rule is in force."""
    if networking.isolation == NONE or options.get("enable", "0") != "0":
        return
    raise Conflict(
        f"{label} was not changed: the firewall of the cluster is off, so nothing would separate "
        "tenants",
        "Switch it on with module firewall (scope: cluster), or set isolation: none",
        "firewall off",
    )


def _require_own(what: str, comment: str, tag: str) -> None:
    if marked_tag(comment) != tag:
        raise Conflict(
            f"{what[:1].upper()}{what[1:]} was not changed: it exists without the mark "
            f"{with_mark('', tag)} of the tenant",
            "Remove or rename it, or put the mark at the end of its comment",
            "not marked",
        )
