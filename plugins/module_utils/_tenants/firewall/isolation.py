# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The firewall of a guest that is separated from guests of other tenants (pure).

Source: pve-firewall, src/PVE/Firewall.pm, generate_tap_rules_direction: rules of a guest apply to a
NIC with C(firewall=1), option macfilter drops other MAC addresses, and the IP set C(ipfilter-netN)
contains the addresses that the NIC may use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from .model import DesiredFirewall, Firewall, IpSet
from .rules.model import Rule

OPTIONS: Mapping[str, str] = {"enable": "1", "policy_in": "DROP", "macfilter": "1", "ipfilter": "1"}
_COMMENT = "set by pve.fleet"


def filter_name(nic: str) -> str:
    """Return the name of the IP set with the addresses that a NIC may use."""
    return f"ipfilter-{nic}"


def sets_to_read(nics: Mapping[str, tuple[str, ...]]) -> DesiredFirewall:
    """Return the parts of a firewall that must be read before the goal is known."""
    names = {filter_name(nic) for nic in nics}
    return DesiredFirewall(dict(OPTIONS), (), None, {}, only_sets=frozenset(names))


def goal_of(actual: Firewall, group: str, nics: Mapping[str, tuple[str, ...]]) -> DesiredFirewall:
    """Return the desired firewall: the security group as first rule, and a filter for each NIC.

    Other rules of the guest stay. `nics` are the addresses that each NIC may use.
    """
    mine = Rule("group", group)
    others = [rule for rule in actual.rules if (rule.type, rule.action) != ("group", group)]
    sets: dict[str, IpSet] = {}
    gone: dict[str, frozenset[str]] = {}
    for nic, addresses in nics.items():
        name = filter_name(nic)
        known = actual.ip_sets.get(name, IpSet())
        comments = {one: comment for one, (_excluded, comment) in known.members.items()}
        wanted = {one: (False, comments.get(one, _COMMENT)) for one in addresses}
        sets[name] = IpSet(known.comment, wanted)
        gone[name] = frozenset(known.members) - set(addresses)
    return DesiredFirewall(
        dict(OPTIONS),
        (mine, *others) if actual.rules[:1] != (mine,) else actual.rules,
        None,
        sets,
        gone_members=gone,
        only_sets=frozenset(sets),
    )


def without_isolation(firewall: Firewall, groups: Collection[str]) -> Firewall:
    """Return a firewall without the options, the rule and the filters of its isolation.

    `groups` are the security groups of tenants. If the first rule uses none of them, the firewall
    is returned unchanged.
    """
    first = firewall.rules[:1]
    if not first or first[0].type != "group" or first[0].action not in groups:
        return firewall
    options = {key: one for key, one in firewall.options.items() if OPTIONS.get(key) != one}
    sets = dict(firewall.ip_sets)
    for name, ip_set in firewall.ip_sets.items():
        comments = {comment for _excluded, comment in ip_set.members.values()}
        if name.startswith(filter_name("")) and comments <= {_COMMENT}:
            del sets[name]
    return replace(firewall, options=options, rules=firewall.rules[1:], ip_sets=sets)
