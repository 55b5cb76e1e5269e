# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings of an audit about networks and isolation of tenants (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from ...._foundation.cluster.tenant import EVERY_TENANT
from ...._foundation.core.marks import marked_tag
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
from ..audit import AuditFinding
from .model import OWN, TenantNetworking
from .overlap import member_network

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
        yield from _foreign_vnets(one, view)
        nics = [nic for nic in one.guest.nics if _is_own(one, nic, view)]
        if one.tag in view.groups and nics:
            yield from _weak_filters(one, nics, view)
            yield from _open_rules(one, nics, view)


def _is_own(one: TenantGuest, nic: FirewallNic, view: NetworkView) -> bool:
    """Return whether a NIC is on a VNet of the guest's tenant."""
    return view.vnets.get(one.bridges.get(nic.name, "")) == one.tag


def _finding(kind: str, one: TenantGuest, view: NetworkView, text: str) -> AuditFinding:
    return AuditFinding(kind, view.name(one.tag), str(one.vmid), f"{one.label} {text}")


def _foreign_vnets(one: TenantGuest, view: NetworkView) -> Iterator[AuditFinding]:
    for nic, bridge in sorted(one.bridges.items()):
        owner = view.vnets.get(bridge)
        if owner is not None and owner != one.tag:
            text = f"uses VNet {bridge} of tenant {view.name(owner)} as {nic}"
            yield _finding("foreign_vnet", one, view, text)


def _weak_filters(
    one: TenantGuest, nics: Iterable[FirewallNic], view: NetworkView
) -> Iterator[AuditFinding]:
    firewall = one.guest.firewall
    if is_off(firewall.options, "0"):
        yield _finding("firewall_off", one, view, "has its firewall switched off")
    elif firewall.options.get("policy_in", "DROP") != "DROP":
        policy = firewall.options["policy_in"]
        yield _finding("firewall_off", one, view, f"has policy_in {policy} instead of DROP")
    for nic in nics:
        lacking = _lacking_filters(one.guest, nic)
        if lacking:
            text = f"has {nic.name} without {', '.join(lacking)}"
            yield _finding("unfiltered_nic", one, view, text)


def _lacking_filters(guest: FirewallGuest, nic: FirewallNic) -> list[str]:
    options = guest.firewall.options
    has_set = f"ipfilter-{nic.name}" in guest.firewall.ip_sets
    filters = {
        "firewall": nic.is_filtered,
        "macfilter": options.get("macfilter", "1") != "0",
        "ipfilter": has_set or options.get("ipfilter", "0") != "0",
    }
    return [name for name, is_set in filters.items() if not is_set]


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
        if not _counts(link) or _is_declared(link, tag, view, described):
            continue
        sources = _sources(link)
        if link.rule.accepts:
            for subnet in _matched(sources, undecided, _overlaps):
                yield link, subnet, undecided[subnet]
        elif _matches_each(link):
            for subnet in _matched(sources, undecided, _contains):
                del undecided[subnet]


def _counts(link: EvaluatedRule) -> bool:
    return link.origin not in _BUILT_IN and link.rule.enable


def _is_declared(
    link: EvaluatedRule, tag: str, view: NetworkView, described: TenantNetworking | None
) -> bool:
    """Return whether a rule accepts packets in the tenant's own group, and the estate declares it.

    If the estate does not describe the tenant, the group itself is the declaration.
    """
    if link.origin != f"group {view.groups[tag]}" or not link.rule.accepts:
        return False
    return described is None or described.isolation != OWN


def _matches_each(link: EvaluatedRule) -> bool:
    """Return whether a rule matches each packet from its sources."""
    rule = link.rule
    return not any((rule.proto, rule.dest, rule.macro, rule.dport, rule.sport))


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
