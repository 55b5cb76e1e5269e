# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides about an existing VM from facts: refusals first, then the plan (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..._api.settings import Connection
from ..._cluster.placement import require_room
from ..._cluster.state import ClusterState
from ..._cluster.storages.allocation import base_storages
from ..._guest.create.quota_race import require_quota
from ..._guest.flow.intent import hidden_pool
from ..._guest.plan.allocation import require_allocation
from ..._guest.plan.capacity import Capacity
from ..._guest.plan.refusals import require_bridges, require_pool, require_template_wanted
from ..._resource.plan import Plan
from ..config.changes import with_images
from .facts import Facts
from .intent import Intent
from .refusals.disks import (
    image_sizes,
    require_images,
    require_no_snapshots,
    require_own_drives,
    require_snippets,
    with_new_volumes,
)
from .refusals.move import require_movable
from .refusals.options import require_rights_of_root, require_version
from .refusals.place import require_cpus, require_snippet_storages, require_storages
from .snippets import with_snippet
from .update import plan_change


@dataclass(frozen=True)
class Decision:
    """The plan of an existing VM, and the room that it takes."""

    plan: Plan
    images: Mapping[str, int]  # bytes of the images that new disks import, by slot
    taken: Capacity


def require_possible(intent: Intent, cluster: ClusterState, connection: Connection) -> None:
    """Raise FleetError for changes that the listing alone shows to be impossible."""
    desired, actual, change = intent.desired, intent.actual, intent.change
    require_own_drives(desired, change.sets, actual.target, cluster, actual.vmid)
    if intent.uses_node:
        require_storages(change, intent.node, cluster, connection)
    require_snippet_storages(intent.snippets, intent.node, cluster)


def decide(intent: Intent, facts: Facts, connection: Connection) -> Decision:
    """Return the plan that makes the VM the desired one. Raises FleetError for each refusal."""
    desired, actual, change = intent.desired, intent.actual, intent.change
    require_version(actual.label, change.sets, facts.release)
    require_rights_of_root(actual.label, change, actual.target, connection)
    require_allocation(desired, actual.target, facts.cluster, facts.definitions)
    require_bridges(intent.bridges, facts.bridges, intent.node, connection)
    if intent.counts_cpus:
        require_cpus(actual.label, intent.after, intent.node, facts.cluster)
    kinds = {row.storage: row.kind for row in facts.cluster.storages}
    require_movable(actual, intent.node, kinds, facts.migration, intent.after)
    require_no_snapshots(desired, actual, change, facts.snapshots)
    new = with_new_volumes(desired, actual.target)
    require_images(new, actual.node, facts.images)
    require_pool(intent.new_pool, facts.pools)
    sizes = image_sizes(new, facts.images)
    if intent.growth is not None:
        require_quota(
            desired.guest, actual.label, intent.growth, facts.usage, facts.cluster, actual.vmid
        )
    room = intent.room(sizes, facts.cluster)
    require_room(
        facts.cluster, intent.node, intent.needs_room(room), desired.guest.rules, actual.label
    )
    plan = _plan(intent, facts, sizes)
    require_template_wanted(desired.guest, actual, plan)
    return Decision(plan, sizes, intent.takes(room))


def _plan(intent: Intent, facts: Facts, sizes: Mapping[str, int]) -> Plan:
    desired, actual = intent.desired, intent.actual
    change = with_images(intent.change, desired, actual.target, sizes)
    storages = facts.cluster.shared_storages
    plan = plan_change(desired, actual, change, shared=storages, bases=base_storages(facts.cluster))
    plan = with_snippet(plan, desired.hardware.snippet, intent.snippet_now, actual, intent.node)
    unknown = require_snippets(facts.snippets, intent.node)
    return replace(plan, warnings=(*plan.warnings, *unknown, *hidden_pool(intent, facts)))
