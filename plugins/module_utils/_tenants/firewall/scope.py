# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The scopes of the firewall: path, options, types of rules and policies of each (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..._foundation.cluster.state import VmRow
from ..._foundation.core.errors import ValidationFailed

CLUSTER, NODE, GUEST, VNET, GROUP = "cluster", "node", "guest", "vnet", "group"
ROOT = ("cluster", "firewall")
Path: TypeAlias = "tuple[str | int, ...]"

_LEVELS = ("log_level_in", "log_level_out", "log_level_forward")
_OPTIONS: Mapping[str, tuple[str, ...]] = {
    CLUSTER: (
        *("enable", "ebtables", "policy_in", "policy_out", "policy_forward", "log_ratelimit"),
    ),
    NODE: (
        *("enable", *_LEVELS, "tcp_flags_log_level", "smurf_log_level", "nosmurfs", "tcpflags"),
        *("nf_conntrack_max", "nf_conntrack_tcp_timeout_established"),
        *("nf_conntrack_tcp_timeout_syn_recv", "ndp", "nf_conntrack_allow_invalid"),
        *("nf_conntrack_helpers", "protection_synflood", "protection_synflood_rate"),
        *("protection_synflood_burst", "log_nf_conntrack", "nftables"),
    ),
    GUEST: (
        *("enable", "macfilter", "dhcp", "ndp", "radv", "ipfilter", "policy_in", "policy_out"),
        *("log_level_in", "log_level_out"),
    ),
    VNET: ("enable", "policy_forward", "log_level_forward"),
    GROUP: (),
}
_TYPES: Mapping[str, tuple[str, ...]] = {
    CLUSTER: ("in", "out", "forward", "group"),
    NODE: ("in", "out", "forward", "group"),
    GUEST: ("in", "out", "group"),
    VNET: ("forward", "group"),
    GROUP: ("in", "out", "forward"),
}
# The decision about packets that no rule matches. Nodes and groups have none: the rules of a node
# are followed by the rules of the cluster, the rules of a group by the next rules of its scope.
_POLICIES: Mapping[str, Mapping[str, str]] = {
    CLUSTER: {"in": "DROP", "out": "ACCEPT", "forward": "ACCEPT"},
    GUEST: {"in": "DROP", "out": "ACCEPT"},
    VNET: {"forward": "ACCEPT"},
}


@dataclass(frozen=True)
class FirewallScope:
    """One scope. `nics` are the NICs of a guest, `tenant_groups` the security groups that can
    isolate it, `config` is its configuration, and `row` its row in the listing.
    """

    kind: str
    label: str
    path: Path
    nics: frozenset[str] = field(default_factory=frozenset)
    name: str = ""  # of a group or a VNet
    tenant_groups: frozenset[str] = frozenset()
    config: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    row: VmRow | None = field(default=None, repr=False, compare=False)

    @property
    def rules_path(self) -> Path:
        """The path of its rules; for a group, it is the path of the group."""
        return self.path if self.kind == GROUP else (*self.path, "rules")

    @property
    def options(self) -> tuple[str, ...]:
        """The names of its options."""
        return _OPTIONS[self.kind]

    @property
    def rule_types(self) -> tuple[str, ...]:
        """The types of its rules."""
        return _TYPES[self.kind]

    @property
    def policies(self) -> Mapping[str, str]:
        """The default policy of each direction; empty if other rules follow."""
        return _POLICIES.get(self.kind, {})

    @property
    def has_names(self) -> bool:
        """Whether it has aliases and IP sets of its own."""
        return self.kind in (CLUSTER, GUEST)

    @property
    def refs_path(self) -> Path:
        """The path of the aliases and IP sets that its rules can name."""
        return (*(self.path if self.kind == GUEST else ROOT), "refs")

    def is_on(self, options: Mapping[str, str]) -> bool:
        """Return whether its rules can be in force with these options."""
        default = "0" if self.kind in (CLUSTER, GUEST, VNET) else "1"
        return options.get("enable", default) != "0"


def plain_scope(kind: str, name: str | None) -> FirewallScope:
    """Return a scope that needs no search: any scope except a guest.

    Raises ValidationFailed if the name is missing.
    """
    if kind == CLUSTER:
        return FirewallScope(kind, "the cluster", ROOT)
    if not name:
        raise ValidationFailed(
            f"The firewall could not be chosen: scope is {kind}, and {kind} is empty",
            f"Set {kind}",
            "no scope",
        )
    if kind == NODE:
        return FirewallScope(kind, f"node {name}", ("nodes", name, "firewall"))
    if kind == VNET:
        path = ("cluster", "sdn", "vnets", name, "firewall")
        return FirewallScope(kind, f"VNet {name}", path, name=name)
    # PVE reads the names of groups in lower case (Firewall.pm, generic_fw_config_parser).
    name = name.lower()
    return FirewallScope(kind, f"group '{name}'", (*ROOT, "groups", name), name=name)
