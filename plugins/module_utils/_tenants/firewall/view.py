# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A firewall in the results of modules, in the same form as their options (pure)."""

from __future__ import annotations

from typing import Any

from .model import Firewall
from .scope import GROUP, FirewallScope

_TEXTS = ("policy_", "log_level_", "log_ratelimit", "nf_conntrack_helpers")


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
