# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the node of a new guest, and confirms it from a newer reading."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.bridges import choose_with_bridges
from ...._foundation.cluster.placement import NodeChoice, PlacementNeeds, require_hardware
from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.rules import find_unmatched
from ...._foundation.cluster.state import ClusterState, with_names
from ...._foundation.cluster.storages.allocation import with_allocations
from ...._foundation.cluster.tenant import owns
from ...kinds.model import Actual, Guest
from ..create.quota_race import QuotaGrowth, TenantUsage, gather_usage
from ..plan.copies import nearest, why_copy
from .placed import (
    AnyBlueprint,
    GuestBlueprint,
    NumberedGuest,
    PlacedGuest,
    fixed_place,
    placed_again,
    require_node_exists,
    rules_of,
    still_fits,
)
from .reads import GuestReads

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def choose_place(
    reads: GuestReads, blueprint: GuestBlueprint[Any], needs: PlacementNeeds, cluster: ClusterState
) -> NodeChoice:
    """Return the node of a new guest: the node that the task names, or a chosen node."""
    connection = reads.client.connection
    choice = fixed_place(blueprint, cluster, connection)
    if choice is not None:
        if blueprint.desired.guest.state != "started":
            needs = replace(needs, devices={})
        require_hardware(cluster, choice.node, reads.bridges.with_devices(needs))
        return choice
    rules = rules_of(blueprint, connection)
    if rules.needs_names:
        cluster = with_names(reads.client, cluster)
    guest: Guest = blueprint.desired.guest
    cluster = with_allocations(reads.client, cluster, needs.room, guest.kind.content)
    choice = choose_with_bridges(cluster, needs, rules, reads.bridges)
    prefix = guest.tenant_prefix
    others = [row for row in cluster.guests if owns(guest.tenant_tag, row.tags, prefix)]
    unmatched = find_unmatched(rules, others, guest.name or "", guest.own_tags)
    return replace(choice, warnings=unmatched)


def with_nearest_copy(
    reads: GuestReads,
    blueprint: AnyBlueprint,
    choice: NodeChoice,
    cluster: ClusterState,
    blueprint_from: Callable[[Actual], AnyBlueprint],
) -> tuple[AnyBlueprint, NodeChoice]:
    """Return the guest as a clone of the copy of its template that the chosen node uses.

    `blueprint_from` makes it a clone of another copy. The reasons of the choice name the copy.
    """
    copies, first = blueprint.copies, choice
    if not copies:
        return blueprint, choice
    copy = nearest(copies, choice.node, cluster.shared_storages)
    if blueprint.template is None or blueprint.template.vmid != copy.vmid:
        blueprint = blueprint_from(copy)
        choice = choose_place(reads, blueprint, blueprint.needs({}), cluster)
    reasons = first.reasons if first.node == choice.node else choice.reasons
    reasons = (*reasons, why_copy(copy, copies))
    return blueprint, NodeChoice(choice.node, first.refused, reasons, first.warnings)


def usage_for(
    reads: GuestReads,
    desired: Guest,
    figures: QuotaFigures,
    cluster: ClusterState,
    *,
    in_creation: bool,
) -> TenantUsage | None:
    """Return the usage of the tenant, None if its quota does not limit the guest's figures."""
    if not QuotaGrowth(QuotaFigures(), figures).is_limited(desired):
        return None
    return gather_usage(reads.client, desired, cluster, in_creation=in_creation)


def confirm(
    client: Client, guest: NumberedGuest[AnyBlueprint], cluster: ClusterState
) -> NumberedGuest[AnyBlueprint]:
    """Confirm the guest from a newer cluster state; its node is kept if the guest still fits there.

    The VMID is kept even if it is already taken: if PVE refuses it, the guest with that VMID is
    read. Raises FleetError if the new guest is no longer possible.
    """
    before = guest.placed
    reads = GuestReads(client, before.bridges)
    require_node_exists(before, cluster)
    choice = _choose_again(reads, before, cluster)
    # The guests of this run are being created now, and count again once they have their tag.
    desired = before.desired.guest
    usage = usage_for(reads, desired, before.figures, cluster, in_creation=False)
    return guest.on(placed_again(before, choice, usage, cluster))


def _choose_again(
    reads: GuestReads, placed: PlacedGuest[AnyBlueprint], cluster: ClusterState
) -> NodeChoice:
    """Return the node of a new guest from a newer cluster state: the same node if it still fits."""
    content = placed.desired.guest.kind.content
    cluster = with_allocations(reads.client, cluster, placed.needs.room, content)
    if still_fits(placed, cluster):
        return placed.choice
    return choose_place(reads, placed.blueprint, placed.needs, cluster)
