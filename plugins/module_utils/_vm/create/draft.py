# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The draft of a new VM: its node, its number and its plan, after every check that needs no
write.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..._cluster.allocation import with_allocations
from ..._cluster.bridges import KnownBridges
from ..._cluster.placement import Choice, Needs, require_node, require_room, why_not
from ..._cluster.quota import Figures
from ..._cluster.state import ClusterState
from ..._cluster.vmids import advice
from ..._core.errors import ValidationFailed
from ..._resource.plan import Plan
from ..config.changes import Change, apply_to, changes, with_images
from ..live.allocation import base_storages, check_allocation
from ..live.requirements import (
    bridges_of,
    check_bridges,
    check_change,
    check_cpus,
    check_pool,
    check_root_only,
    check_version,
)
from ..model import Actual, Desired, Source
from ..plan.create import clone_of, plan_clone, plan_create
from ..plan.room import added, moved_bytes, new_bytes
from .copies import nearest, why_copy
from .images import check_images, guard_drives, guard_volumes
from .placement import needs_of, place_new
from .placement_race import shared_rules
from .quota_race import check_quota, figures_of
from .source import Origin, read_origin

if TYPE_CHECKING:
    from ..._api.client import Client


@dataclass(frozen=True)
class Draft:
    """A VM about to be made: where and why there, which number, from what, and the plan."""

    desired: Desired
    origin: Origin
    choice: Choice
    needs: Needs
    bridges: KnownBridges
    vmid: int
    plan: Plan
    change: Change  # what makes an empty VM, or the copy of the template, the desired one
    run: str
    identity: str
    shared: frozenset[str]
    bases: frozenset[str]
    images: Mapping[str, int]  # slot -> bytes
    figures: Figures  # what it will count against a quota
    siblings: frozenset[int]  # the tenant's VMs that were there before, where there is a quota
    known: frozenset[int]  # all VMs that were there before
    config: Mapping[str, str]  # what its configuration will be

    @property
    def node(self) -> str:
        return self.choice.node

    @property
    def contested(self) -> bool:
        """Whether VMs that others create at the same time can break its quota or its place."""
        return self.desired.limits is not None or shared_rules(self.desired) is not None


def draft_vm(
    client: Client, desired: Desired, cluster: ClusterState, *, run: str, identity: str
) -> Draft:
    """Return the draft of a new VM after every check that needs no write. Raises FleetError."""
    _require_content(desired)
    if desired.node:
        require_node(cluster, desired.node)
    guard_volumes(desired, cluster)
    check_pool(client, desired.pool, cluster)
    origin = read_origin(client, desired, cluster)
    change, config = _outcome(origin)
    label = f"New {origin.desired.label}"
    _check_options(client, label, origin, change, cluster)
    bridges = KnownBridges(client)
    needs = needs_of(origin.desired, config, change)
    needs = replace(needs, only=origin.nodes, room=_room(origin, config))
    choice = place_new(client, origin.desired, needs, cluster, bridges)
    if origin.copies:
        copy = nearest(origin.copies, choice.node, cluster.shared_storages)
        if origin.template is not None and copy.vmid != origin.template.vmid:
            return _from_copy(
                client, desired, cluster, copy, choice, origin, run=run, identity=identity
            )
        choice = replace(choice, reasons=(*choice.reasons, why_copy(copy, origin.copies)))
    check_change(bridges, change, choice.node, cluster)
    check_bridges(bridges, bridges_of(config), choice.node)
    if origin.desired.state == "started":
        check_cpus(label, config, choice.node, cluster)
    images = check_images(client, origin.desired, choice.node)
    change = with_images(change, origin.desired, origin.config, images)
    figures = figures_of(config, images, template=origin.desired.state == "template")
    needs = replace(needs, room=_room(origin, config, images))
    _require_room(client, cluster, origin, choice.node, needs)
    draft = Draft(
        desired=origin.desired,
        origin=origin,
        choice=choice,
        needs=needs,
        bridges=bridges,
        vmid=0,
        plan=Plan(),
        change=change,
        run=run,
        identity=identity,
        shared=cluster.shared_storages,
        bases=base_storages(cluster),
        images=images,
        figures=figures,
        siblings=frozenset(),
        known=frozenset(cluster.vms),
        config=config,
    )
    draft = _within_quota(client, draft, cluster, unfinished=True)
    return numbered(draft, origin.desired.vmid or origin.desired.numbers.free(cluster.taken))


def _require_content(desired: Desired) -> None:
    """Raise ValidationFailed where nothing but a VMID is known of the VM to be made."""
    if desired.name or desired.source is not None or desired.disks:
        return
    raise ValidationFailed(
        attempted=f"{desired.label} was not created",
        answer="there is no such VM, and the task does not describe one",
        next_step="Check the vmid, or give name and source or disks",
        reason="unknown VM",
    )


def _check_options(
    client: Client, label: str, origin: Origin, change: Change, cluster: ClusterState
) -> None:
    """Raise FleetError for options that the server, the user or the storages do not allow."""
    before = origin.config
    check_version(client, label, change.sets)
    check_root_only(client, label, change, {})
    check_allocation(client, origin.desired, before, cluster)
    guard_drives(origin.desired, change.sets, before, cluster)


def _within_quota(
    client: Client, draft: Draft, cluster: ClusterState, *, unfinished: bool
) -> Draft:
    """Return the draft with the tenant's other VMs. Raises QuotaExceeded."""
    siblings = check_quota(
        client,
        draft.desired,
        f"New {draft.desired.label}",
        cluster,
        vmid=None,
        before=Figures(),
        after=draft.figures,
        unfinished=unfinished,
    )
    return replace(draft, siblings=siblings)


def _from_copy(
    client: Client,
    desired: Desired,
    cluster: ClusterState,
    copy: Actual,
    choice: Choice,
    origin: Origin,
    *,
    run: str,
    identity: str,
) -> Draft:
    """Return the draft of a clone of that copy, on the node that was chosen for it."""
    source = replace(desired.source or Source(), vmid=copy.vmid, name=None)
    draft = draft_vm(client, replace(desired, source=source), cluster, run=run, identity=identity)
    reasons = choice.reasons if draft.node == choice.node else draft.choice.reasons
    reasons = (*reasons, why_copy(copy, origin.copies))
    return replace(draft, choice=Choice(draft.node, choice.refused, reasons))


def _room(
    origin: Origin, config: Mapping[str, str], images: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Return the bytes that making the VM allocates, by storage.

    A linked clone allocates those of its new disks only.
    """
    copied = origin.template is not None and origin.full
    return new_bytes(origin.config, config, images, copied=copied)


def _require_room(
    client: Client, cluster: ClusterState, origin: Origin, node: str, needs: Needs
) -> None:
    """Raise QuotaExceeded where a node has no room for the VM.

    A clone that goes to another node needs room on the template's node before that.
    """
    rules, label, template = origin.desired.rules, f"New {origin.desired.label}", origin.template
    shared = cluster.shared_storages
    if template is not None and template.node != node:
        local = {storage: size for storage, size in needs.room.items() if storage not in shared}
        if not origin.full:  # it is copied when it goes to its node
            needs = replace(needs, room=added(needs.room, moved_bytes(template.target, shared)))
        first = replace(needs, running_memory=0, room=local)
        cluster = with_allocations(client, cluster, needs.room)
        require_room(cluster, template.node, first, rules, label)
    cluster = with_allocations(client, cluster, needs.room)
    require_room(cluster, node, needs, rules, label)


def confirm(client: Client, draft: Draft, cluster: ClusterState) -> Draft:
    """Return the draft checked against a newer cluster state; its node is kept where it still fits.

    The number is kept even where it is taken by now: when PVE refuses it, the VM that has it is
    read. Raises FleetError where the new VM is not possible any more.
    """
    desired = draft.desired
    cluster = with_allocations(client, cluster, draft.needs.room)
    row = cluster.nodes.get(draft.node)
    if desired.node or row is None:
        require_node(cluster, draft.node)
    elif why_not(cluster, draft.node, draft.needs, desired.rules) is not None:
        choice = place_new(client, desired, draft.needs, cluster, draft.bridges)
        draft = replace(draft, choice=choice)
    # Those of this run are being made now, and count again when they have their tag.
    draft = _within_quota(client, draft, cluster, unfinished=False)
    return numbered(draft, draft.vmid)


def _outcome(origin: Origin) -> tuple[Change, dict[str, str]]:
    """Return the change and the configuration it leads to, from an empty VM or from the
    template.
    """
    desired, template = origin.desired, origin.template
    if template is None:
        change = changes(desired, {}, new=True)
        return change, apply_to(change, {})
    data = {"description": "", "name": desired.name}
    copy = clone_of(template, vmid=template.vmid, node=template.node, data=data)
    change = changes(desired, copy.target)
    return change, apply_to(change, copy.target)


def numbered(draft: Draft, vmid: int) -> Draft:
    """Return the draft with that VMID and the plan for it."""
    if draft.origin.template is None:
        plan = plan_create(
            draft.desired,
            draft.change,
            vmid=vmid,
            node=draft.node,
            identity=draft.identity,
            run=draft.run,
            contested=draft.contested,
        )
    else:
        plan = plan_clone(
            draft.desired,
            draft.origin.template,
            vmid=vmid,
            node=draft.node,
            full=draft.origin.full,
            run=draft.run,
            shared=draft.shared,
            contested=draft.contested,
        )
    if draft.desired.vmid is not None:
        note = advice(vmid, draft.desired.bands)
        if note:
            plan = replace(plan, warnings=(*plan.warnings, note))
    return replace(draft, vmid=vmid, plan=plan)


def placed_again(client: Client, draft: Draft, cluster: ClusterState) -> Draft:
    """Return the draft with its node chosen again, now that the winner of the race is visible."""
    if not can_be_placed_again(draft):
        return draft
    choice = place_new(client, draft.desired, draft.needs, cluster, draft.bridges)
    return numbered(replace(draft, choice=choice), draft.vmid)


def can_be_placed_again(draft: Draft) -> bool:
    """Return whether another node can be chosen: images and ISOs were checked on this one only."""
    return not any(disk.import_from or disk.volume for disk in draft.desired.disks)
