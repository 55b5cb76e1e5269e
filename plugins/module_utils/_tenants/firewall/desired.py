# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of a task -> the firewall that it declares (pure)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ValidationFailed
from .evaluate.icmp import ICMP_TYPES
from .evaluate.match import VERSIONS
from .model import DesiredFirewall, IpSet, plain_option
from .rules.model import Rule, canonical, kept_comment
from .scope import GROUP, FirewallScope

_WITH_PORTS = ("tcp", "udp", "udplite", "dccp", "sctp", "6", "17", "33", "132", "136")


def read_desired(params: Mapping[str, Any], scope: FirewallScope) -> DesiredFirewall:
    """Return the desired firewall. Raises ValidationFailed for parts that the scope lacks."""
    rules = params.get("rules")
    aliases, ip_sets = params.get("aliases"), params.get("ip_sets")
    if not scope.has_names:
        _require_unset(scope, {"aliases": aliases, "ip_sets": ip_sets})
    if scope.kind != GROUP:
        _require_unset(scope, {"comment": params.get("comment")})
        if params.get("state") == "absent":
            raise _refused("state=absent was refused", "only a security group can be removed")
    given = params.get("options") or {}
    options: dict[str, str] = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in scope.options:
            known = ", ".join(scope.options) or "no options"
            raise _refused(f"options.{name} was refused", f"{scope.label} has {known}")
        options[name] = plain_option(name, int(value) if isinstance(value, bool) else value)
    return DesiredFirewall(
        options=options,
        rules=None if rules is None else _rules(rules, scope),
        aliases=None if aliases is None else _aliases(aliases),
        ip_sets=None if ip_sets is None else _ip_sets(ip_sets),
        comment=params.get("comment"),
        exact=bool(params.get("exact")),
        is_wanted=params.get("state") != "absent",
    )


def _refused(attempted: str, answer: str, step: str = "Nothing was changed") -> ValidationFailed:
    return ValidationFailed(f"{attempted}: {answer}", step, "firewall")


def _require_unset(scope: FirewallScope, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        if value is not None:
            raise _refused(
                f"{name} was refused", f"{scope.label} has no {name}", "Remove it, or change scope"
            )


def _rules(given: Iterable[Mapping[str, Any]], scope: FirewallScope) -> tuple[Rule, ...]:
    rules = []
    for place, row in enumerate(given):
        rule = _as_kept(canonical({**row, "enable": row.get("enable") is not False}))
        label = f"rules[{place}] ({rule}) was refused"
        if rule.type not in scope.rule_types:
            types = ", ".join(scope.rule_types)
            raise _refused(label, f"rules of {scope.label} have type {types}")
        _require_valid_rule(rule, label)
        rules.append(rule)
    return tuple(rules)


def _as_kept(rule: Rule) -> Rule:
    """Return a rule with the names of groups and IP sets in lower case, as PVE reads them
    (pve-firewall: Firewall.pm, generic_fw_config_parser).
    """
    source, dest, action = rule.source, rule.dest, rule.action
    if source.startswith("+"):
        source = source.lower()
    if dest.startswith("+"):
        dest = dest.lower()
    if rule.type == "group":
        action = action.lower()
    return replace(rule, action=action, source=source, dest=dest)


def _require_valid_rule(rule: Rule, label: str) -> None:
    """Raise ValidationFailed for combinations that PVE refuses (Firewall.pm, verify_rule)."""
    if rule.type != "group" and rule.action not in ("ACCEPT", "DROP", "REJECT"):
        raise _refused(label, "action is ACCEPT, DROP or REJECT", "Write it in upper case")
    if rule.type == "forward" and rule.action == "REJECT":
        raise _refused(label, "rules of type forward cannot have action REJECT", "Use DROP")
    has_ports = rule.dport or rule.sport or rule.icmp_type
    if has_ports and not rule.proto:
        raise _refused(label, "ports and icmp_type need proto", "Set proto, such as tcp")
    if rule.icmp_type:
        _require_icmp_type(rule, label)
    has_dport = rule.dport and rule.proto not in ICMP_TYPES
    if (has_dport or rule.sport) and rule.proto not in _WITH_PORTS:
        protocols = ", ".join(name for name in _WITH_PORTS if not name.isdigit())
        raise _refused(label, f"ports need one of the protocols {protocols}", "Set proto")
    first = [re.split("[,-]", text)[0] for text in (rule.source, rule.dest)]
    versions = {network.version for network in map(validate.network, first) if network}
    if len(versions | {VERSIONS.get(rule.proto, version) for version in versions}) > 1:
        raise _refused(label, "it has both IPv4 and IPv6", "Write a rule for each")


def _require_icmp_type(rule: Rule, label: str) -> None:
    """Raise ValidationFailed for a type that PVE does not know (Firewall.pm, verify_rule)."""
    if rule.proto not in ICMP_TYPES:
        protocols = ", ".join(ICMP_TYPES)
        raise _refused(label, f"icmp_type needs one of the protocols {protocols}", "Set proto")
    if rule.dport:
        raise _refused(label, "icmp_type and dport exclude each other", "Remove dport")
    known = ICMP_TYPES[rule.proto]
    if rule.icmp_type not in known:
        hint = did_you_mean(rule.icmp_type, known)
        answer = f"protocol {rule.proto} has no icmp_type '{rule.icmp_type}'{hint}"
        raise _refused(label, answer, f"Use one of {', '.join(sorted(known))}")


def _aliases(given: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    aliases: dict[str, tuple[str, str]] = {}
    for row in given:
        cidr = clean_cidr(str(row["cidr"]), f"aliases, {row['name']}")
        aliases[str(row["name"])] = (cidr, kept_comment(row.get("comment")))
    _require_distinct(aliases, [str(row["name"]) for row in given], "aliases")
    return aliases


def _require_distinct(found: Iterable[str], names: list[str], option: str) -> None:
    lowered = [name.lower() for name in names]
    for name in found:
        if lowered.count(name.lower()) > 1:
            raise _refused(f"{option} was refused", f"'{name}' is listed more than once")


def _ip_sets(given: Iterable[Mapping[str, Any]]) -> dict[str, IpSet]:
    sets: dict[str, IpSet] = {}
    for row in given:
        members: dict[str, tuple[bool, str]] = {}
        for member in row.get("members") or ():
            cidr = str(member["cidr"])
            if cidr[:1].isdigit() or ":" in cidr:
                cidr = clean_cidr(cidr, f"ip_sets, {row['name']}")
            members[cidr] = (bool(member.get("nomatch")), kept_comment(member.get("comment")))
        # PVE reads the names of IP sets in lower case (Firewall.pm, generic_fw_config_parser).
        sets[str(row["name"]).lower()] = IpSet(kept_comment(row.get("comment")), members)
    _require_distinct(sets, [str(row["name"]) for row in given], "ip_sets")
    return sets


def clean_cidr(text: str, option: str) -> str:
    """Return a network as PVE stores it: a single address has no prefix."""
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise _refused(
            f"{option} was refused", f"'{text}' is not an address or a network"
        ) from None
    if network.prefixlen == network.max_prefixlen:
        return str(network.network_address)
    return str(network)
