# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Separates a guest from guests of other tenants before the guest starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.lookup import require_own_guest
from ..._foundation.cluster.tenant import parse_tags
from ..._foundation.resource.engine import apply_plan
from ..._foundation.resource.plan import Step
from ..._tenants.firewall.isolation import goal_of, sets_to_read
from ..._tenants.firewall.model import Firewall
from ..._tenants.firewall.plan import plan_firewall
from ..._tenants.firewall.read import groups_of, read_firewall
from ..._tenants.firewall.resource import FirewallOfScope
from ..._tenants.firewall.scope import GUEST, ROOT, FirewallScope
from ..kinds.model import Actual, GuestIsolation
from .context import AnyContext

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def isolated(context: AnyContext, actual: Actual | None) -> AnyContext:
    """Read the firewall of the guest; return the context with the isolation left to write."""
    isolation = context.desired.guest.isolation
    if isolation is None:
        return context
    missing = missing_isolation(context.client, isolation, actual)
    return context.with_desired(context.desired.with_guest(isolation=missing))


def isolate(client: Client, step: Step) -> None:
    """Execute a step that writes the firewall of a guest."""
    write_isolation(client, FirewallScope(GUEST, step.data["label"], step.path), step.data)


def missing_isolation(
    client: Client, isolation: GuestIsolation, actual: Actual | None
) -> GuestIsolation | None:
    """Return the isolation if the firewall of the guest differs from it, else None.

    A tenant without a security group is not isolated. Every user may list the groups
    (pve-firewall: PVE/API2/Firewall/Groups.pm, list_security_groups).
    """
    groups = groups_of(client.get(*ROOT, "groups"))
    if isolation.group not in groups:
        return None
    if actual is None or not is_isolated(client, isolation, actual):
        return isolation
    return None


def is_isolated(client: Client, isolation: GuestIsolation, actual: Actual) -> bool:
    """Return whether the firewall of a guest isolates it; three or more requests."""
    scope = FirewallScope(GUEST, actual.label, (*actual.path, "firewall"))
    firewall = read_firewall(client, scope, sets_to_read(isolation.members))
    goal = goal_of(firewall, isolation.group, isolation.members)
    return not plan_firewall(scope, firewall, goal).changed


def write_isolation(client: Client, scope: FirewallScope, data: Mapping[str, Any]) -> None:
    """Write the parts of a guest's firewall that differ. Raises FleetError.

    The request before each write reads the guest, because its VMID can have a new owner by then.
    """
    group = data["group"]
    members = {nic: tuple(ips) for nic, *ips in map(str.split, data["members"])}

    def look() -> None:
        config = client.get(*scope.path[:-1], "config")
        tags = parse_tags(str(config.get("tags") or ""))
        require_own_guest(scope.label, tags, data["tag"], data["prefix"], unnamed=scope.label)

    firewall = read_firewall(client, scope, sets_to_read(members))
    goal = goal_of(firewall, group, members)
    apply_plan(FirewallOfScope(client, scope, goal, firewall, _unchecked, look), False)


def _unchecked(_before: Firewall, _after: Firewall) -> tuple[str, ...]:
    """Return no warnings, because the rules of a guest cannot cut off the caller."""
    return ()
