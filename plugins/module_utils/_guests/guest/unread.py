# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The effect of unreadable VMs on a task: any of them may be the task's VM, and each counts
for its quota (pure).
"""

from __future__ import annotations

from collections.abc import Mapping

from ..._foundation.cluster.find.unread import require_readable
from ..._foundation.cluster.quota import QuotaFigures
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import is_of_others, tenants_of
from ..._foundation.core.errors import NodeUnhealthy
from ..._foundation.core.formatting import first_of
from ..kinds.model import Guest


def require_readable_vm(desired: Guest, cluster: ClusterState) -> None:
    """Raise NodeUnhealthy if the VM may exist but its name cannot be read.

    A VM without a tenant tag can be the task's VM only if the task may adopt it, or if a run of the
    tenant may have left it unfinished.
    """
    tag = desired.tenant_tag
    prefix = desired.tenant_prefix

    def may_be(row: VmRow) -> bool:
        if is_of_others(tag, row.tags, prefix):
            return False
        if tag is None or tenants_of(row.tags, prefix):
            return True
        return desired.adopt or row.vmid in (desired.likely_vmids or ())

    require_readable(cluster, desired.label, may_be)


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
        attempted=f"The quota of tenant {desired.tenant} could not be checked",
        answer=(
            f"VMs on {places} cannot be read while the node does not answer: {first_of(unread)}"
        ),
        next_step="Bring the node back, or leave out the quota",
        reason="quota not readable",
        details={"vmids": unread},
    )
