# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant's quota around one VM: checked before the first write, and as a rule that VMs of other
runs can break (docs/decisions/0007-quotas-of-several-runs.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..._cluster.contents import read_volumes
from ..._cluster.quota import Figures, beyond, excess, figures_by_vm, growth, total
from ..._cluster.state import ClusterState, ask_nodes, fetch_cluster_state, with_names
from ..._cluster.tenant import owns, parse_tags, tenants_of
from ..._core.errors import FleetError
from ..._core.quantities import read_size
from ..._resource.race import Look
from ..config.actual import drives, is_disk
from ..config.memory import memory_of
from ..desired.unread import require_counted
from ..live.making import is_finished
from ..live.read import read_wherever
from ..model import Actual, Desired
from .placement import cores_of

if TYPE_CHECKING:
    from ..._api.client import Client


def figures_of(
    config: Mapping[str, str], images: Mapping[str, int] | None = None, *, template: bool = False
) -> Figures:
    """Return what a VM of that configuration counts.

    `images` are bytes of what is imported, by slot.
    """
    disk = 0
    for slot, drive in drives(config).items():
        if not is_disk(drive):
            continue
        size = read_size(drive.get("size"))
        if not size and images:
            size = images.get(slot)
        disk += size or 0
    if template:
        return Figures(disk=disk)
    return Figures(
        vms=1,
        cores=cores_of(config),
        memory=memory_of(config),
        disk=disk,
    )


def read_usage(client: Client, desired: Desired, cluster: ClusterState) -> dict[int, Figures]:
    """Return what each VM of the tenant counts.

    One request more a node or storage where the listing will not do.
    """
    tag = desired.tenant_tag or ""
    limits = desired.limits or {}
    if limits.keys() - {"vms"}:
        cluster = with_names(client, cluster)
    volumes = None
    if "disk" in limits:
        volumes = read_volumes(client, cluster)
    return figures_by_vm(cluster, tag, desired.tenant_prefix, volumes)


def read_unfinished(client: Client, desired: Desired, cluster: ClusterState) -> dict[int, Figures]:
    """Return what each unfinished VM of the tenant counts.

    PVE gives a clone the tags of its source, so until a run has finished it, only its notes name
    its tenant. They are read where a VM without the tenant's tag has a number that follows from
    this tenant and its name: one request for each, and usually there are none.
    """
    tag = desired.tenant_tag or ""
    found: dict[int, Figures] = {}
    for row in cluster.vms.values():
        owners = tenants_of(row.tags, desired.tenant_prefix)
        if not row.own_name or tag in owners:
            continue
        if not desired.may_have_made(row.vmid, row.name):
            continue
        try:
            actual = read_wherever(client, row.vmid, row.node, status=row.status, pool=row.pool)
        except FleetError:
            continue  # gone, or its node is down
        is_own = actual.marker.tenant == tag
        if is_own and actual.marker.building:
            found[row.vmid] = figures_of(actual.target, template=row.template)
    return found


def read_cluster_now(client: Client, desired: Desired) -> ClusterState:
    """Return a fresh look: tags from the cluster's configuration, figures of the tenant's VMs from
    the nodes themselves.
    """
    cluster = fetch_cluster_state(client)
    tag = desired.tenant_tag or ""
    limits = desired.limits or {}
    if limits.keys() - {"vms"}:
        nodes: set[str] = set()
        for row in cluster.vms.values():
            if owns(tag, row.tags, desired.tenant_prefix):
                nodes.add(row.node)
        cluster = ask_nodes(client, cluster, nodes)
    return cluster


def check_quota(
    client: Client,
    desired: Desired,
    label: str,
    cluster: ClusterState,
    *,
    vmid: int | None,
    before: Figures,
    after: Figures,
    unfinished: bool = True,
) -> frozenset[int]:
    """Raise QuotaExceeded where the VM would grow beyond the tenant's quota.

    Return the VMIDs the tenant has, by their tags.

    `before` is what the VM counts already. A VM that does not grow passes, whatever the quota says.
    `unfinished` says whether unfinished VMs count too.
    """
    if desired.limits is None:
        return frozenset()
    more = growth(before, after)
    if not any(getattr(more, kind) for kind in desired.limits):
        return frozenset()
    usage = read_usage(client, desired, cluster)
    mine = {vmid: before} if vmid is not None else {}
    started = read_unfinished(client, desired, cluster) if unfinished else {}
    all_of_it = {**started, **usage, **mine}
    staying = _staying(desired, all_of_it)
    require_counted(desired, cluster, staying, more)
    over = excess(desired.limits, total(staying.values()), more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{label} was refused",
            "Remove or shrink VMs of this tenant, ask for less, or raise the quota",
        )
    _require_room_beside_leaving(desired, label, all_of_it, more)
    return frozenset(usage)


def _staying(desired: Desired, usage: Mapping[int, Figures]) -> dict[int, Figures]:
    """Return what the VMs count that this run does not remove."""
    return {vmid: figures for vmid, figures in usage.items() if vmid not in desired.leaving}


def _require_room_beside_leaving(
    desired: Desired, label: str, usage: Mapping[int, Figures], more: Figures
) -> None:
    """Raise QuotaExceeded where a tenant would have more than twice its quota until the run removes
    VMs.

    They are removed at the end and only when all went well. Without this bound, each run that fails
    would leave another quota behind.
    """
    if desired.limits is None or not desired.leaving:
        return
    twice = {kind: 2 * limit for kind, limit in desired.limits.items()}
    over = excess(twice, total(usage.values()), more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{label} was refused, although twice the quota is allowed until this run has removed"
            " VMs",
            "Remove some of them by hand, or run with fewer new VMs first",
        )


@dataclass(frozen=True)
class Growth:
    """What a VM counts before an update, and by how much the update lets it grow."""

    before: Figures
    more: Figures


def grow_within(
    client: Client,
    desired: Desired,
    actual: Actual,
    config: Mapping[str, str],
    cluster: ClusterState,
) -> Growth:
    """Return by how much a VM grows that becomes `config`.

    Raise QuotaExceeded where its tenant's quota has no room.

    A VM that is not the tenant's yet counts as new, and so does one that another run left
    unfinished: that run has not counted it.
    """
    owners = tenants_of(parse_tags(actual.target.get("tags")), desired.tenant_prefix)
    before = Figures()
    if desired.tenant_tag in owners and not actual.marker.building:
        before = figures_of(actual.target, template=actual.template)
    after = figures_of(config, template=actual.template)
    check_quota(
        client,
        desired,
        actual.label,
        cluster,
        vmid=actual.vmid,
        before=before,
        after=after,
    )
    return Growth(before, growth(before, after))


def check_grown(client: Client, desired: Desired, actual: Actual, grown: Growth) -> None:
    """Raise QuotaExceeded where others have taken the room that a VM has grown into."""
    limits = desired.limits or {}
    if not any(getattr(grown.more, kind) for kind in limits):
        return
    usage = read_usage(client, desired, read_cluster_now(client, desired))
    usage.pop(actual.vmid, None)
    rest = total(_staying(desired, usage).values()) + grown.before
    over = excess(limits, rest, grown.more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{actual.label} has grown",
            "Another run took the rest of the quota: shrink one of the two VMs, or raise the quota",
        )


@dataclass(frozen=True)
class QuotaRule:
    """A tenant is within its quota with a new VM, which counts `own`."""

    client: Client
    desired: Desired
    label: str
    number: int
    own: Figures
    known: frozenset[int]

    def look(self) -> Look:
        cluster = read_cluster_now(self.client, self.desired)
        others = read_usage(self.client, self.desired, cluster)
        for vmid in (self.number, *self.desired.leaving):
            others.pop(vmid, None)
        limits = self.desired.limits or {}

        def judge(guests: Mapping[int, Figures]) -> Mapping[str, Mapping[str, int]]:
            used = total(guests.values())
            return excess(limits, used, self.own)

        return Look(others, judge, lambda vmid: is_finished(self.client, cluster.vms[vmid]))

    def removed(self, breach: Mapping[str, Mapping[str, int]]) -> FleetError:
        return beyond(
            self.desired.tenant or "",
            breach,
            f"{self.label} was removed again",
            "Another run took the rest of the quota: run again when there is room, or raise the"
            " quota",
            removed=self.number,
        )

    def left(self, breach: Mapping[str, Mapping[str, int]], failure: FleetError) -> FleetError:
        error = self.removed(breach)
        return error.on(
            attempted=f"{self.label} could not be removed again ({failure.message})",
            next_step="Remove it by hand: another run took the rest of the quota",
            details={**error.details, "removed": None},
        )
