# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The current and the desired firewall of one scope, and canonical options (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..._foundation.core import propstring
from ..._foundation.schema.generated.requests import PARAMETERS
from .rules.model import Rule
from .scope import GROUP, FirewallScope

Named: TypeAlias = "Mapping[str, tuple[str, str]]"
"""Aliases: the network and the comment of each name."""
Members: TypeAlias = "Mapping[str, tuple[bool, str]]"
"""Members of an IP set: whether the address is excluded, and its comment."""


_LIMIT = "log_ratelimit"
_LIMIT_FORMAT = PARAMETERS[_LIMIT]["format"]
_TEXTS = ("policy_", "log_level_", "log_ratelimit", "nf_conntrack_helpers")


def plain_option(name: str, value: object) -> str:
    """Return the value of an option in canonical form. Raises ValidationFailed."""
    if name == _LIMIT:
        return propstring.in_order(str(value), _LIMIT_FORMAT, f"options.{name}")
    if name == "nf_conntrack_helpers":
        return ",".join(sorted(str(value).split(",")))
    return str(value)


@dataclass(frozen=True)
class IpSet:
    """An IP set."""

    comment: str = ""
    members: Members = field(default_factory=dict)


@dataclass(frozen=True)
class Firewall:
    """The firewall of one scope. `exists` is false for a group that is missing."""

    options: Mapping[str, str] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    aliases: Named = field(default_factory=dict)
    ip_sets: Mapping[str, IpSet] = field(default_factory=dict)
    comment: str = ""  # of a group
    exists: bool = True


@dataclass(frozen=True)
class DesiredFirewall:
    """The parts of a firewall that a task declares; None for parts that it does not declare.

    An option with an empty text is removed. With `exact`, aliases, IP sets and members that are not
    listed are removed. Without it, only the aliases and IP sets in `gone` and the members in
    `gone_members` are removed. `only_sets` are the IP sets whose members are read, None for all. A
    first rule that uses one of `kept_groups` stays. `own_names` are the aliases and IP sets of a
    guest, those as C(+name).
    """

    options: Mapping[str, str]
    rules: tuple[Rule, ...] | None = None
    aliases: Named | None = None
    ip_sets: Mapping[str, IpSet] | None = None
    comment: str | None = None
    exact: bool = False
    is_wanted: bool = True
    gone: frozenset[str] = frozenset()
    gone_members: Mapping[str, frozenset[str]] = field(default_factory=dict)
    only_sets: frozenset[str] | None = None
    kept_groups: frozenset[str] = frozenset()
    own_names: frozenset[str] = frozenset()


@dataclass(frozen=True)
class UsableNames:
    """The names that rules can use; None for names that were not read. `own` are the names of the
    guest itself, those of IP sets as C(+name); `networks` are the IP sets of SDN that the login may
    use (pve-firewall: API2/Firewall/Cluster.pm, refs).
    """

    aliases: frozenset[str] = frozenset()
    sets: frozenset[str] = frozenset()
    groups: frozenset[str] | None = None
    macros: frozenset[str] | None = None
    interfaces: frozenset[str] | None = None
    own: frozenset[str] = frozenset()
    networks: frozenset[str] = frozenset()


def view_of(scope: FirewallScope, firewall: Firewall) -> dict[str, Any]:
    """Return the parts of a firewall that the scope has."""
    view: dict[str, Any] = {}
    if scope.kind == GROUP:
        view["comment"] = firewall.comment
    if scope.options:
        options = sorted(firewall.options.items())
        view["options"] = {name: _option(name, value) for name, value in options}
    view["rules"] = [rule.as_view() for rule in firewall.rules]
    if scope.has_names:
        view["aliases"] = [
            {"name": name, "cidr": cidr, "comment": comment}
            for name, (cidr, comment) in sorted(firewall.aliases.items())
        ]
        view["ip_sets"] = [
            {
                "name": name,
                "comment": one.comment,
                "members": [
                    {"cidr": cidr, "nomatch": is_excluded, "comment": comment}
                    for cidr, (is_excluded, comment) in sorted(one.members.items())
                ],
            }
            for name, one in sorted(firewall.ip_sets.items())
        ]
    return view


def _option(name: str, value: str) -> Any:
    """Return an option with the type that the module declares."""
    if name.startswith(_TEXTS) or name.endswith("_log_level"):
        return value
    if name in _NUMBER_OPTIONS and value.isdigit():
        return int(value)
    return value != "0"


_NUMBER_OPTIONS = (
    "nf_conntrack_max",
    "nf_conntrack_tcp_timeout_established",
    "nf_conntrack_tcp_timeout_syn_recv",
    "protection_synflood_rate",
    "protection_synflood_burst",
)
