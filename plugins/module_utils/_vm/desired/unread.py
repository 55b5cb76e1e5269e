# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the VM that a task names may be one whose name cannot be read (pure)."""

from __future__ import annotations

from ..._cluster.state import ClusterState, VmRow
from ..._cluster.tenant import is_of_others, tenants_of
from ..._cluster.unread import refuse_unread
from ..model import Desired


def refuse_unread_vm(desired: Desired, cluster: ClusterState) -> None:
    """Raise NodeUnhealthy where a VM that was not found by its name may exist all the same.

    A VM without a tenant tag is a tenant's only where it may be adopted, or where a run of that
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

    refuse_unread(cluster, desired.label, may_be)
