# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses rules that use unknown names, and the removal of names that rules use (pure).

Proxmox VE refuses some of these changes halfway. It accepts the others, and ignores the rules.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from .._core.arguments.options import did_you_mean
from .._core.errors import ConfigurationError, Conflict
from .model import DesiredFirewall, Firewall, UsableNames
from .rules.model import Rule

_SCOPES = ("dc/", "guest/")


def require_known(rules: Iterable[Rule], known: UsableNames, desired: DesiredFirewall) -> None:
    """Raise ConfigurationError for the first name that does not exist."""
    aliases = known.aliases | {name.lower() for name in desired.aliases or ()}
    sets = known.sets | {name.lower() for name in desired.ip_sets or ()}
    for place, rule in enumerate(rules):
        label = f"rules[{place}] ({rule}) was refused"
        for address in (rule.source, rule.dest):
            _require_address(label, address, aliases, sets)
        if known.groups is not None and rule.type == "group":
            _require(label, "security group", rule.action, known.groups)
        if known.macros is not None and rule.macro:
            _require(label, "macro", rule.macro, known.macros)
        if known.interfaces is not None and rule.iface:
            _require(label, "interface", rule.iface, known.interfaces)


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

    It is empty for addresses, and for IP sets of SDN, which are not listed.
    """
    text = address.removeprefix("+")
    for scope in _SCOPES:
        text = text.removeprefix(scope)
    if not text[:1].isalpha() or ":" in text or "/" in text:
        return ""
    return text.lower()


def _require(label: str, noun: str, name: str, known: Collection[str]) -> None:
    if name in known:
        return
    hint = did_you_mean(name, known)
    if not hint and len(known) <= 12:
        hint = f"; there is {', '.join(sorted(known)) or 'none'}"
    raise ConfigurationError(
        attempted=label,
        answer=f"there is no {noun} '{name}'{hint}",
        next_step=f"Create it first, or name an existing {noun}; nothing was changed",
        reason=f"unknown {noun}",
        dispatched=False,
    )


def require_unused(actual: Firewall, after: Firewall) -> None:
    """Raise Conflict if a removed alias or IP set is used by a rule of the scope."""
    gone = {name.lower() for name in (*actual.aliases, *actual.ip_sets)}
    gone -= {name.lower() for name in (*after.aliases, *after.ip_sets)}
    for place, rule in enumerate(after.rules):
        for address in (rule.source, rule.dest):
            if plain_name(address) in gone:
                raise Conflict(
                    attempted=f"'{plain_name(address)}' was not removed",
                    answer=f"rules[{place}] ({rule}) uses it",
                    next_step="List it, or remove the rule in the same task",
                    reason="in use",
                    dispatched=False,
                )
