# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the facts that the plan of a VM needs."""

from __future__ import annotations

from dataclasses import replace

from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.storages.allocation import with_allocations
from ....kinds.vm.kind import VM
from ...flow.gather import gather_shared
from ...flow.place import usage_for
from ...plan.allocation import needs_definitions
from ..plan.decide import VmBlueprint
from ..plan.facts import VmFacts
from ..plan.intent import VmIntent
from ..plan.refusals.disks import converts, image_sizes, lost_volumes, with_new_volumes
from .reads import VmReads


def gather_existing(reads: VmReads, intent: VmIntent, cluster: ClusterState) -> VmFacts:
    """Return the facts for the plan; each is read only if the change needs it."""
    desired, actual, change = intent.desired, intent.actual, intent.change
    new = with_new_volumes(desired, actual.target)
    facts = VmFacts(
        cluster,
        release=reads.release_for(change.sets),
        bridges=reads.bridges_on(intent.node, intent.bridges),
        mtus=reads.mtus_on(intent.node, intent.mtus),
        images=reads.images(new, actual.node),
    )
    if needs_definitions(desired, actual.target, cluster):
        facts = replace(facts, definitions=reads.definitions())
    if intent.checks_migration:
        answer = reads.migration(actual, intent.node)
        keeps = actual.running and reads.keeps_connections(actual, answer, intent.node)
        facts = replace(facts, migration=answer, keeps_connections=keeps)
    lost = lost_volumes(actual, change)
    if converts(desired, actual) or lost:
        facts = replace(facts, snapshots=reads.snapshots(actual, with_volumes=bool(lost)))
    facts = gather_shared(reads, intent, facts)
    known = {row.storage for row in cluster.storages}
    room = intent.room(image_sizes(new, facts.images), cluster)
    return replace(
        facts,
        cluster=with_allocations(reads.client, cluster, room),
        snippets=reads.snippets(intent.snippets, intent.node, known, desired.hardware.snippet),
    )


def gather_new(reads: VmReads, blueprint: VmBlueprint, node: str, cluster: ClusterState) -> VmFacts:
    """Return the facts for the plan; each is read only if the VM needs it."""
    desired = blueprint.desired
    facts = VmFacts(
        cluster,
        release=reads.release_for(blueprint.options),
        bridges=reads.bridges_on(node, blueprint.bridges),
        mtus=reads.mtus_on(node, VM.mtus_in(blueprint.config)),
        images=reads.images(desired, node),
    )
    if needs_definitions(desired, blueprint.origin.config, cluster):
        facts = replace(facts, definitions=reads.definitions())
    if desired.guest.pool and desired.guest.pool not in cluster.pools:
        facts = replace(facts, pools=reads.pools())
    known = {row.storage for row in cluster.storages}
    sizes = image_sizes(desired, facts.images)
    room = blueprint.needs_on(node, sizes, cluster.shared_storages).room
    figures = blueprint.figures(sizes)
    return replace(
        facts,
        usage=usage_for(reads, desired.guest, figures, cluster, in_creation=True),
        cluster=with_allocations(reads.client, cluster, room),
        snippets=reads.snippets(blueprint.snippets, node, known, desired.hardware.snippet),
    )
