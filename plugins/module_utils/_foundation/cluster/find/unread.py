# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs whose names cannot be read: any of them may have the name in question (pure).

The listing has neither name nor figures of a VM whose node has reported no statistics for five
minutes (pve-manager: PVE/API2Tools.pm, extract_vm_stats; pve-cluster: status.c, cfs_rrd_dump). The
configuration has the name, but the node is down or does not answer.
"""

from __future__ import annotations

from collections.abc import Callable

from ...core.errors import NodeUnhealthy
from ...core.formatting import first_of
from ..state import ClusterState, VmRow


def require_readable(cluster: ClusterState, label: str, may_be: Callable[[VmRow], bool]) -> None:
    """Raise NodeUnhealthy if the VM may exist but its name cannot be read.

    `cluster` is the cluster state of `locate`, which has asked all nodes. `may_be` returns whether
    a VM without a name can be the VM in question.
    """
    unread = [row for row in _unread(cluster) if may_be(row)]
    if not unread:
        return
    vmids = sorted(row.vmid for row in unread)
    places = _places(unread)
    raise NodeUnhealthy(
        f"{label} could not be found: it may be {_one_of(vmids)} on {places}, which cannot be "
        "read while the node does not answer",
        "Bring the node back, or give the vmid of the VM that you mean",
        "name not readable",
        details={"vmids": vmids},
    )


def remark_on_unread(cluster: ClusterState) -> str:
    """Return the addition to a message about an unknown name if VMs could not be read."""
    unread = _unread(cluster)
    if not unread:
        return ""
    return f"; VMs on {_places(unread)} cannot be read while the node does not answer"


def _unread(cluster: ClusterState) -> list[VmRow]:
    """Return the VMs without a name in the listing and in the answer of their node."""
    found: list[VmRow] = []
    for row in cluster.vms.values():
        is_named = row.name or row.node in cluster.queried_nodes or row.planned
        if not is_named:
            found.append(row)
    return found


def _places(rows: list[VmRow]) -> str:
    return ", ".join(sorted({row.node for row in rows}))


def _one_of(vmids: list[int]) -> str:
    if len(vmids) == 1:
        return f"VM {vmids[0]}"
    return f"one of VMs {first_of(vmids)}"
