# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses rules that use unknown names, and the removal of names that rules use (pure).

Proxmox VE refuses some of these changes halfway. It accepts the others, and ignores the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, Conflict, ValidationFailed
from .evaluate.match import NotInForce, ip_version
from .evaluate.model import RuleNames
from .model import DesiredFirewall, Firewall, Members, UsableNames
from .rules.model import Rule
from .scope import GUEST, FirewallScope

_OF_SDN = "+sdn/"


def require_known(rules: Iterable[Rule], known: UsableNames, desired: DesiredFirewall) -> None:
    """Raise ConfigurationError for the first name that does not exist."""
    aliases = known.aliases | {name.lower() for name in desired.aliases or ()}
    sets = known.sets | {name.lower() for name in desired.ip_sets or ()}
    for place, rule in enumerate(rules):
        label = f"rules[{place}] ({rule}) was refused"
        for address in (rule.source, rule.dest):
            if address.startswith(_OF_SDN):
                name = address.removeprefix(_OF_SDN)
                _require(label, "IP set of SDN", name.lower(), known.networks)
            else:
                _require_address(label, address, aliases, sets)
        if known.groups is not None and rule.type == "group":
            _require(label, "security group", rule.action, known.groups)
        if known.macros is not None and rule.macro:
            _require(label, "macro", rule.macro, known.macros)
        if known.interfaces is not None and rule.iface:
            _require(label, "interface", rule.iface, known.interfaces)
    for name, ip_set in (desired.ip_sets or {}).items():
        for cidr in ip_set.members:
            _require_address(f"ip_sets, {name} was refused", cidr, aliases, sets)


def require_one_version(rules: Iterable[Rule], names: RuleNames) -> None:
    """Raise ValidationFailed for a rule that is for IPv4 and IPv6, whose aliases exist
    (pve-firewall: Firewall.pm, verify_rule).
    """
    for place, rule in enumerate(rules):
        try:
            ip_version(rule, names)
        except NotInForce:
            raise ValidationFailed(
                f"rules[{place}] ({rule}) was refused: it has both IPv4 and IPv6",
                "Write a rule for each",
                "firewall",
            ) from None


def _require_address(
    label: str, address: str, aliases: Collection[str], sets: Collection[str]
) -> None:
    name = plain_name(address)
    if name and address.startswith("+"):
        _require(label, "IP set", name, sets)
    elif name:
        _require(label, "alias", name, aliases)


def plain_name(address: str) -> str:
    """Return the name of an alias or IP set without its scope.

    It is empty for addresses, and for IP sets of SDN, which no task removes.
    """
    text = address.removeprefix("+").removeprefix("dc/").removeprefix("guest/")
    if not text[:1].isalpha() or ":" in text or "/" in text:
        return ""
    return text.lower()


def unqualified(address: str, own: Collection[str]) -> str:
    """Return an address without C(dc/), which means the same unless it is one of the guest's `own`
    names.
    """
    text = address.lower()
    sign = "+" if text.startswith("+") else ""
    name = text.removeprefix("+")
    if name.startswith("dc/") and sign + name[3:] not in own:
        return sign + name[3:]
    return text


def unqualified_rule(rule: Rule, own: Collection[str]) -> Rule:
    """Return a rule with unqualified addresses."""
    source, dest = unqualified(rule.source, own), unqualified(rule.dest, own)
    return replace(rule, source=source, dest=dest)


def members_as_spelled(members: Members, known: Members, own: Collection[str]) -> Members:
    """Return members of an IP set with the spelling of known members that mean the same."""
    spelled = {unqualified(cidr, own): cidr for cidr in known}
    return {
        cidr if cidr in known else spelled.get(unqualified(cidr, own), cidr): values
        for cidr, values in members.items()
    }


def _require(label: str, noun: str, name: str, known: Collection[str]) -> None:
    if name in known:
        return
    hint = did_you_mean(name, known)
    if not hint and len(known) <= 12:
        hint = f"; there is {', '.join(sorted(known)) or 'none'}"
    raise ConfigurationError(
        f"{label}: there is no {noun} '{name}'{hint}",
        f"Create it first, or name an existing {noun}; nothing was changed",
        f"unknown {noun}",
    )


@dataclass(frozen=True)
class RemovedNames:
    """Aliases and IP sets that a task removes, in lower case, and the prefix of names that cannot
    mean them: C(guest/) for names of the cluster, C(dc/) for names of a guest.
    """

    aliases: frozenset[str]
    sets: frozenset[str]
    other_scope: str

    def is_used(self, address: str, own: Collection[str] = ()) -> bool:
        """Return whether an address means a removed name.

        `own` are the aliases and IP sets (C(+name)) of a guest: they precede those of the cluster
        (pve-firewall: Firewall.pm, ipt_gen_src_or_dst_match and resolve_alias).
        """
        name = plain_name(address)
        is_set = address.startswith("+")
        if not name or address.removeprefix("+").startswith(self.other_scope):
            return False
        is_qualified = "/" in address
        if not is_qualified and ("+" if is_set else "") + name in own:
            return False
        return name in (self.sets if is_set else self.aliases)


def removed_names(scope: FirewallScope, before: Firewall, after: Firewall) -> RemovedNames:
    """Return the aliases and IP sets that a change of a scope removes."""
    aliases = {name.lower() for name in before.aliases} - {name.lower() for name in after.aliases}
    sets = {name.lower() for name in before.ip_sets} - {name.lower() for name in after.ip_sets}
    other = "dc/" if scope.kind == GUEST else "guest/"
    return RemovedNames(frozenset(aliases), frozenset(sets), other)


def uses_of(
    removed: RemovedNames, firewall: Firewall, own: Collection[str] = ()
) -> Iterator[tuple[str, str]]:
    """Yield each rule and each member of an IP set that means a removed name, with the name."""
    for place, rule in enumerate(firewall.rules):
        for address in (rule.source, rule.dest):
            if removed.is_used(address, own):
                yield plain_name(address), f"rules[{place}] ({rule})"
    for set_name, ip_set in firewall.ip_sets.items():
        for cidr in ip_set.members:
            if removed.is_used(cidr, own):
                yield plain_name(cidr), f"member {cidr} of IP set '{set_name}'"


def raise_in_use(name: str, use: str) -> NoReturn:
    """Raise Conflict for an alias or IP set that was not removed."""
    raise Conflict(
        f"'{name}' was not removed: {use} uses it, and Proxmox VE ignores rules and members "
        "without it",
        "List it, or remove the use first",
        "in use",
    )
