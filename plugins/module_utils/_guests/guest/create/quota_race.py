# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The quota of a tenant for one VM: checked before the first write, and again as a rule that VMs of
other runs can break (docs/decisions/0007-quotas-of-several-runs.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...._foundation.cluster.find.restoring import first_restored, suspects
from ...._foundation.cluster.quota import QuotaFigures, beyond, excess, figures_by_vm, growth, total
from ...._foundation.cluster.state import (
    ClusterState,
    fetch_cluster_state,
    query_nodes,
    with_names,
    with_other_names,
)
from ...._foundation.cluster.storages.contents import read_volumes
from ...._foundation.cluster.tenant import owns, parse_tags, tenants_of
from ...._foundation.core.errors import BeingRestored, FleetError, NodeUnhealthy
from ...._foundation.core.formatting import first_of
from ...._foundation.resource.race import RaceReading
from ...kinds.model import Actual, Guest
from ..live.creation import is_finished
from ..live.read import read_wherever

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def read_usage(client: Client, desired: Guest, cluster: ClusterState) -> dict[int, QuotaFigures]:
    """Return the figures of each guest of the tenant: both kinds share one quota.

    One more request for each node or storage if the listing is not enough.
    """
    tag = desired.tenant_tag or ""
    limits = desired.limits or {}
    nodes: set[str] = set()
    for row in cluster.others.values():
        if owns(desired.tenant_tag, row.tags, desired.tenant_prefix):
            nodes.add(row.node)
    if limits.keys() - {"vms"}:
        cluster = with_names(client, cluster)
        cluster = with_other_names(client, cluster, nodes)
    volumes = None
    if "disk" in limits:
        kind = desired.kind
        contents = (kind.content, kind.other.content) if nodes else (kind.content,)
        volumes = read_volumes(client, cluster, contents)
    cluster = replace(cluster, vms={**cluster.others, **cluster.vms})
    return figures_by_vm(cluster, tag, desired.tenant_prefix, volumes)


def read_in_creation(
    client: Client, desired: Guest, cluster: ClusterState
) -> dict[int, QuotaFigures]:
    """Return the figures of each unfinished VM of the tenant.

    PVE gives a clone the tags of its source, so only the notes of an unfinished clone name its
    tenant. They are read if a VM without the tenant's tag has a VMID that follows from this tenant
    and the VM's name: one request for each such VM; usually there are none.
    """
    tag = desired.tenant_tag or ""
    found: dict[int, QuotaFigures] = {}
    for row in cluster.vms.values():
        owners = tenants_of(row.tags, desired.tenant_prefix)
        if not row.own_name or tag in owners:
            continue
        if not desired.may_have_created(row.vmid, row.name):
            continue
        try:
            actual = read_wherever(
                client, desired.kind, row.vmid, row.node, status=row.status, pool=row.pool
            )
        except FleetError:
            continue  # gone, or its node is down
        is_own = actual.marker.tenant == tag
        if is_own and actual.marker.building:
            found[row.vmid] = desired.kind.figures_of(actual.target, template=row.template)
    return found


def read_cluster_now(client: Client, desired: Guest) -> ClusterState:
    """Return a new cluster state: tags from the cluster's configuration, figures of the tenant's
    VMs from the nodes themselves.
    """
    cluster = fetch_cluster_state(client, {desired.kind.type})
    tag = desired.tenant_tag or ""
    limits = desired.limits or {}
    if limits.keys() - {"vms"}:
        nodes: set[str] = set()
        for row in cluster.vms.values():
            if owns(tag, row.tags, desired.tenant_prefix):
                nodes.add(row.node)
        cluster = query_nodes(client, cluster, nodes)
    return cluster


@dataclass(frozen=True)
class TenantUsage:
    """The usage of a tenant, by VM."""

    owned: Mapping[int, QuotaFigures]  # VMs with its tag
    in_creation: Mapping[int, QuotaFigures]
    restored: BeingRestored | None = None  # a VM whose tags and sizes a restore has not written yet


@dataclass(frozen=True)
class QuotaGrowth:
    """The figures of a VM before an update, and the growth by the update."""

    before: QuotaFigures
    more: QuotaFigures

    def is_limited(self, desired: Guest) -> bool:
        """Return whether a figure grows for which the tenant has a quota."""
        return any(getattr(self.more, kind) for kind in desired.limits or ())


def gather_usage(
    client: Client, desired: Guest, cluster: ClusterState, *, in_creation: bool = True
) -> TenantUsage:
    """Return the figures of the tenant's VMs; `in_creation` adds unfinished VMs of other runs."""
    restored = suspects(cluster, desired.tenant_tag, desired.tenant_prefix)
    attempted = f"The quota of tenant {desired.tenant} could not be checked"
    being_restored = first_restored(client, restored, attempted)
    if being_restored is not None:
        return TenantUsage({}, {}, being_restored)
    owned = read_usage(client, desired, cluster)
    created = read_in_creation(client, desired, cluster) if in_creation else {}
    return TenantUsage(owned, created)


def require_quota(
    desired: Guest,
    label: str,
    growth: QuotaGrowth,
    usage: TenantUsage | None,
    cluster: ClusterState,
    vmid: int | None = None,
) -> frozenset[int]:
    """Raise QuotaExceeded if the VM would grow beyond the tenant's quota (pure).

    Return the VMIDs with the tenant's tag. Raise BeingRestored if a restore has not yet written the
    tags and sizes of a VM that may count. `usage` is None for a VM that does not grow: it always
    passes. `vmid` is given for an existing VM.
    """
    if usage is None or desired.limits is None:
        return frozenset()
    if usage.restored is not None:
        raise usage.restored
    mine = {vmid: growth.before} if vmid is not None else {}
    all_of_it = {**usage.in_creation, **usage.owned, **mine}
    staying = _staying(desired, all_of_it)
    require_counted(desired, cluster, staying, growth.more)
    over = excess(desired.limits, total(staying.values()), growth.more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{label} was refused",
            "Remove or shrink VMs of this tenant, ask for less, or raise the quota",
        )
    _require_room_beside_leaving(desired, label, all_of_it, growth.more)
    return frozenset(usage.owned)


def require_counted(
    desired: Guest, cluster: ClusterState, usage: Mapping[int, QuotaFigures], more: QuotaFigures
) -> None:
    """Raise NodeUnhealthy if a limit on `more` cannot be checked because VMs cannot be read.

    Every VM has memory: a figure of 0 means that it is unknown.
    """
    unread = sorted(vmid for vmid, one in usage.items() if one.vms and not one.memory)
    kinds = (desired.limits or {}).keys() - {"vms"}
    is_limited = any(getattr(more, kind) for kind in kinds)
    if not unread or not is_limited:
        return
    rows = filter(None, map(cluster.guest, unread))
    places = ", ".join(sorted({row.node for row in rows}))
    raise NodeUnhealthy(
        f"The quota of tenant {desired.tenant} could not be checked: VMs on {places} cannot be "
        f"read while the node does not answer: {first_of(unread)}",
        "Bring the node back, or leave out the quota",
        "quota not readable",
        details={"vmids": unread},
    )


def _staying(desired: Guest, usage: Mapping[int, QuotaFigures]) -> dict[int, QuotaFigures]:
    """Return the figures of the VMs that this run does not remove."""
    return {vmid: figures for vmid, figures in usage.items() if vmid not in desired.leaving}


def _require_room_beside_leaving(
    desired: Guest, label: str, usage: Mapping[int, QuotaFigures], more: QuotaFigures
) -> None:
    """Raise QuotaExceeded if a tenant would use more than twice its quota until the run removes
    VMs.

    The run removes them at its end, and only if it succeeds. Without this bound, each failed run
    could add VMs of a whole quota.
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


def growth_of(desired: Guest, actual: Actual, config: Mapping[str, str]) -> QuotaGrowth:
    """Return by how much a VM grows if its configuration becomes `config` (pure).

    A VM counts as new if it does not belong to the tenant yet, or if another run left it
    unfinished: that run has not counted it.
    """
    owners = tenants_of(parse_tags(actual.target.get("tags")), desired.tenant_prefix)
    before = QuotaFigures()
    if desired.tenant_tag in owners and not actual.marker.building:
        before = desired.kind.figures_of(actual.target, template=actual.template)
    after = desired.kind.figures_of(config, template=actual.template)
    return QuotaGrowth(before, growth(before, after))


def usage_of_others(client: Client, desired: Guest, actual: Actual) -> dict[int, QuotaFigures]:
    """Return the present figures of the tenant's other VMs."""
    usage = read_usage(client, desired, read_cluster_now(client, desired))
    usage.pop(actual.vmid, None)
    return usage


def require_grown_within(
    desired: Guest, actual: Actual, grown: QuotaGrowth, others: Mapping[int, QuotaFigures]
) -> None:
    """Raise QuotaExceeded if other VMs have used the quota that a VM has grown into (pure)."""
    rest = total(_staying(desired, others).values()) + grown.before
    over = excess(desired.limits or {}, rest, grown.more)
    if over:
        raise beyond(
            desired.tenant or "",
            over,
            f"{actual.label} has grown",
            "Another run took the rest of the quota: shrink one of the two VMs, or raise the quota",
        )


@dataclass(frozen=True)
class QuotaRule:
    """A tenant stays within its quota with a new VM, whose figures are `own`."""

    client: Client
    desired: Guest
    label: str
    vmid: int
    own: QuotaFigures
    known: frozenset[int]

    def read(self) -> RaceReading:
        cluster = read_cluster_now(self.client, self.desired)
        others = read_usage(self.client, self.desired, cluster)
        for vmid in (self.vmid, *self.desired.leaving):
            others.pop(vmid, None)
        limits = self.desired.limits or {}
        everyone = {row.vmid: row for row in cluster.guests}

        def find_breach(guests: Mapping[int, QuotaFigures]) -> Mapping[str, Mapping[str, int]]:
            used = total(guests.values())
            return excess(limits, used, self.own)

        return RaceReading(
            others,
            find_breach,
            lambda vmid: is_finished(self.client, self.desired.kind, everyone[vmid]),
        )

    def removed(self, breach: Mapping[str, Mapping[str, int]]) -> FleetError:
        return beyond(
            self.desired.tenant or "",
            breach,
            f"{self.label} was removed again",
            "Another run took the rest of the quota: run again when there is room, or raise the"
            " quota",
            removed=self.vmid,
        )

    def not_removed(
        self, breach: Mapping[str, Mapping[str, int]], failure: FleetError
    ) -> FleetError:
        error = self.removed(breach)
        return error.on(
            attempted=f"{self.label} could not be removed again ({failure.message})",
            next_step="Remove it by hand: another run took the rest of the quota",
            details={**error.details, "removed": None},
        )
