# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of an audit about networks and isolation of tenants (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import VmRow
from ...._foundation.cluster.tenant import EVERY_TENANT, tenants_of
from ...._foundation.core.errors import FleetError, NotFound, NotSupported
from ...._foundation.core.marks import marked_tag
from ...._foundation.core.parallel import side_by_side
from ...._guests.kinds.words import kind_of_row, label_of
from ...._infrastructure.sdn.model import VNETS
from ...._infrastructure.sdn.read import read_sdn
from ...firewall.evaluate.chains import IN, guest_chain, is_off
from ...firewall.evaluate.match import NotInForce, networks_of
from ...firewall.evaluate.model import (
    EvaluatedRule,
    FirewallCluster,
    FirewallGuest,
    FirewallNic,
    Network,
)
from ...firewall.model import IpSet
from ...firewall.reach.read import read_cluster, read_cluster_firewall, read_guest
from ...firewall.read import groups_of
from ...firewall.rules.model import Rule
from ...firewall.scope import GUEST, ROOT, FirewallScope
from ..audit import UNKNOWN, AuditFinding
from ..facts import TenantFacts
from .model import OWN, TenantNetworking
from .sdn import member_network, owners_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_BUILT_IN = ("built-in", "policy_in")


@dataclass(frozen=True)
class TenantGuest:
    """A guest of one tenant, with its firewall and the bridge of each NIC."""

    vmid: int
    label: str
    tag: str
    guest: FirewallGuest
    bridges: Mapping[str, str]


@dataclass(frozen=True)
class NetworkView:
    """The networks of a cluster.

    `vnets` are the tags of tenants by VNet, `groups` are the security groups by tag, and
    `described` are the networks of tenants as an estate describes them, by tag.
    """

    cluster: FirewallCluster
    vnets: Mapping[str, str]
    groups: Mapping[str, str]
    guests: tuple[TenantGuest, ...]
    prefix: str
    described: Mapping[str, TenantNetworking] = field(default_factory=dict)

    def name(self, tag: str) -> str:
        return tag.removeprefix(self.prefix)

    @cached_property
    def subnets(self) -> dict[Network, str]:
        """The tags of tenants, by subnet."""
        members = self.cluster.firewall.ip_sets.get(EVERY_TENANT, IpSet()).members
        found: dict[Network, str] = {}
        for cidr, (_excluded, comment) in members.items():
            tag, network = marked_tag(comment), member_network(cidr)
            if tag is not None and network is not None:
                found[network] = tag
        return found


def find_network_faults(view: NetworkView) -> Iterator[AuditFinding]:
    """Yield guests on foreign VNets, disabled firewalls, NICs without filters and open rules."""
    if view.groups and is_off(view.cluster.firewall.options, "0"):
        names = ", ".join(sorted(view.name(tag) for tag in view.groups))
        text = f"The firewall of the cluster is off, so nothing isolates {names}"
        yield AuditFinding("firewall_off", None, "cluster", text)
    for one in view.guests:
        for nic_name, bridge in sorted(one.bridges.items()):
            owner = view.vnets.get(bridge)
            if owner is not None and owner != one.tag:
                text = f"uses VNet {bridge} of tenant {view.name(owner)} as {nic_name}"
                yield _finding("foreign_vnet", one, view, text)
        # the NICs on VNets of the guest's tenant
        own = {name for name, bridge in one.bridges.items() if view.vnets.get(bridge) == one.tag}
        nics = [nic for nic in one.guest.nics if nic.name in own]
        if one.tag in view.groups and nics:
            yield from _weak_filters(one, nics, view)
            yield from _open_rules(one, nics, view)


def _finding(kind: str, one: TenantGuest, view: NetworkView, text: str) -> AuditFinding:
    return AuditFinding(kind, view.name(one.tag), str(one.vmid), f"{one.label} {text}")


def _weak_filters(
    one: TenantGuest, nics: Iterable[FirewallNic], view: NetworkView
) -> Iterator[AuditFinding]:
    firewall = one.guest.firewall
    if is_off(firewall.options, "0"):
        yield _finding("firewall_off", one, view, "has its firewall switched off")
    elif firewall.options.get("policy_in", "DROP") != "DROP":
        policy = firewall.options["policy_in"]
        yield _finding("firewall_off", one, view, f"has policy_in {policy} instead of DROP")
    options = firewall.options
    for nic in nics:
        has_set = f"ipfilter-{nic.name}" in firewall.ip_sets
        filters = {
            "firewall": nic.is_filtered,
            "macfilter": options.get("macfilter", "1") != "0",
            "ipfilter": has_set or options.get("ipfilter", "0") != "0",
        }
        lacking = [name for name, is_set in filters.items() if not is_set]
        if lacking:
            text = f"has {nic.name} without {', '.join(lacking)}"
            yield _finding("unfiltered_nic", one, view, text)


def _open_rules(
    one: TenantGuest, nics: Iterable[FirewallNic], view: NetworkView
) -> Iterator[AuditFinding]:
    found: dict[str, None] = {}
    for nic in nics:
        links = guest_chain(view.cluster, one.guest, nic, IN)
        for link, subnet, owner in _openings(links, one.tag, view):
            rule = f"{link.origin} rule {link.position} ({link.rule})"
            found[f"is open to {subnet} of tenant {view.name(owner)} by {rule}"] = None
    for text in found:
        yield _finding("open_rule", one, view, text)


def _openings(
    links: Iterable[EvaluatedRule], tag: str, view: NetworkView
) -> Iterator[tuple[EvaluatedRule, Network, str]]:
    """Yield the rules that accept packets from a subnet of another tenant that is not a peer.

    A rule that drops a whole subnet closes it for the rules after it.
    """
    described = view.described.get(tag)
    allowed = {tag} if described is None else {tag, *described.peers}
    undecided = {net: owner for net, owner in view.subnets.items() if owner not in allowed}
    for link in links:
        if not undecided:
            return
        rule = link.rule
        if link.origin in _BUILT_IN or not rule.enable:
            continue
        if _is_declared(link, tag, view, described):
            continue
        sources = _sources(link)
        # a rule without these matches each packet from its sources
        is_limited = any((rule.proto, rule.dest, rule.macro, rule.dport, rule.sport))
        if rule.accepts:
            for subnet in _matched(sources, undecided, _overlaps):
                yield link, subnet, undecided[subnet]
        elif not is_limited:
            for subnet in _matched(sources, undecided, _contains):
                del undecided[subnet]


def _is_declared(
    link: EvaluatedRule, tag: str, view: NetworkView, described: TenantNetworking | None
) -> bool:
    """Return whether a rule accepts packets in the tenant's own group, and the estate declares it.

    If the estate does not describe the tenant, the group itself is the declaration.
    """
    if link.origin != f"group {view.groups[tag]}" or not link.rule.accepts:
        return False
    return described is None or described.isolation != OWN


def _sources(link: EvaluatedRule) -> frozenset[Network] | None:
    """Return the networks that a rule matches, None for all."""
    try:
        found = networks_of(link.rule.source, link.names)
    except NotInForce:
        return frozenset()
    return None if found is None else frozenset(found)


def _matched(
    sources: frozenset[Network] | None,
    subnets: Iterable[Network],
    compare: Callable[[Network, Network], bool],
) -> list[Network]:
    """Return the subnets for which `compare` is true with one of the sources."""
    if sources is None:
        return list(subnets)
    return [
        subnet
        for subnet in subnets
        if subnet in sources or any(compare(one, subnet) for one in sources)
    ]


def _overlaps(one: Network, other: Network) -> bool:
    return one.version == other.version and one.overlaps(other)


def _contains(one: Network, other: Network) -> bool:
    if one.version != other.version:
        return False
    return one.prefixlen <= other.prefixlen and one.overlaps(other)


def audit_networks(
    client: Client, facts: TenantFacts, prefix: str, described: Mapping[str, TenantNetworking]
) -> list[AuditFinding]:
    """Return the findings about networks; guests are read only if a tenant has VNets or groups.

    Four requests if no tenant has any; otherwise about five more for each guest with exactly one
    tenant.
    """
    try:
        comments = groups_of(client.get(*ROOT, "groups"))
        marks = {name: marked_tag(comment) for name, comment in comments.items()}
        groups = {tag: name for name, tag in marks.items() if tag is not None}
        vnets = owners_of(read_sdn(client).running[VNETS])
        if not groups and not vnets:
            return []
        firewall = read_cluster_firewall(client)
    except NotSupported:
        return []
    except FleetError as error:
        return [AuditFinding(UNKNOWN, None, "networks", error.message)]
    rows = facts.of_both_kinds.vms.values()
    owned = [row for row in rows if _owner(row, prefix) and not row.template]
    found = side_by_side(lambda row: _read(client, row, prefix), owned)
    guests = tuple(one for one in found if isinstance(one, TenantGuest))
    errors = [one for one in found if isinstance(one, AuditFinding)]
    rules = [Rule("group", name) for name in groups.values()]
    rules += [rule for one in guests for rule in one.guest.firewall.rules]
    cluster: FirewallCluster = read_cluster(client, firewall, rules)
    view = NetworkView(cluster, vnets, groups, guests, prefix, described)
    return [*errors, *find_network_faults(view)]


def _owner(row: VmRow, prefix: str) -> str | None:
    owners = tenants_of(row.tags, prefix)
    return owners[0] if len(owners) == 1 else None


def _read(client: Client, row: VmRow, prefix: str) -> TenantGuest | AuditFinding | None:
    """Return a guest, a finding if it could not be read, or None if it is gone."""
    label = label_of(row)
    try:
        config = client.get(*row.path, "config")
        scope = FirewallScope(GUEST, label, (*row.path, "firewall"))
        guest = read_guest(client, scope, config)
    except NotFound:
        return None
    except FleetError as error:
        text = f"{label} could not be checked: {error.message}"
        return AuditFinding(UNKNOWN, None, str(row.vmid), text)
    bridges = kind_of_row(row).bridges_in(config)
    return TenantGuest(row.vmid, label, str(_owner(row, prefix)), guest, bridges)
