# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides about a guest, new or existing, from facts: refusals first, then the plan (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...._foundation.api.settings import ConnectionSettings
from ...._foundation.cluster.placement import PlacementNeeds, require_room
from ...._foundation.cluster.storages.allocation import base_storages
from ...._foundation.cluster.vmids import advice
from ...._foundation.resource.plan import Plan
from ..create.quota_race import require_quota
from ..plan.allocation import require_allocation
from ..plan.creation import plan_creation
from ..plan.planner import GuestPlanner
from ..plan.refusals import require_bridges, require_mtus, require_pool
from .facts import Facts
from .intent import Intent


def refuse(intent: Intent[Any], facts: Facts, connection: ConnectionSettings) -> None:
    """Raise FleetError for a guest that its node, its tenant or the connection does not allow.

    Each kind of guests has further refusals, before these.
    """
    cluster, label = facts.cluster, intent.label
    require_allocation(intent.desired, intent.before, cluster, facts.definitions)
    require_pool(intent.new_pool, facts.pools)
    require_bridges(intent.bridges, facts.bridges, intent.node, connection)
    require_mtus(intent.kind, label, intent.mtus, facts.mtus)
    growth = intent.growth(facts.sizes)
    if growth is not None:
        vmid = intent.start.vmid if intent.source is None else None
        require_quota(intent.guest, label, growth, facts.usage, cluster, vmid)
    _require_room(intent, facts)


def _require_room(intent: Intent[Any], facts: Facts) -> None:
    """Raise QuotaExceeded if the node has no room for the guest.

    A clone that moves to another node first needs room on the template's node.
    """
    cluster, rules, template = facts.cluster, intent.guest.rules, intent.template
    if template is not None and template.node != intent.node:
        shared = cluster.shared_storages
        room = intent.allocated(facts.sizes)
        local = {storage: size for storage, size in room.items() if storage not in shared}
        require_room(cluster, template.node, PlacementNeeds(room=local), rules, intent.label)
    needs = intent.needs_room(intent.room(facts.sizes, cluster))
    require_room(cluster, intent.node, needs, rules, intent.label)


def plan_intent(planner: GuestPlanner[Any, Any], intent: Intent[Any], facts: Facts) -> Plan:
    """Return the plan that creates or changes the guest.

    Raises FleetError for a change that PVE would refuse half way.
    """
    shared, bases = facts.cluster.shared_storages, base_storages(facts.cluster)
    change = planner.with_images(intent.change, intent.desired, intent.before, facts.sizes)
    if intent.source is not None:
        plan = plan_creation(
            planner, intent.desired, intent.source, change, intent.creation, shared=shared
        )
    else:
        plan = planner.plan_change(intent.desired, intent.start, change, shared=shared, bases=bases)
    return replace(plan, warnings=(*plan.warnings, *_remarks(intent, facts)))


def _remarks(intent: Intent[Any], facts: Facts) -> Iterator[str]:
    """Yield warnings about the guest that do not depend on its steps."""
    if intent.vmid and intent.guest.vmid is not None:
        yield from filter(None, [advice(intent.vmid, intent.guest.vmid_ranges)])
    yield from intent.warnings
    if facts.may_hide_pool:
        cause = "the token has no Pool.Audit on /pool"
        yield f"{intent.label}: {cause}, so a pool that it is in may be hidden"
