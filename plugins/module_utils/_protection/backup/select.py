# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests of a task: named guests, or guests with a tenant, tags and a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.drill.copies import without_copies
from ..._foundation.cluster.find.owner import OwnerScope
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.core.errors import FleetError
from ..snapshot.select import GuestTarget, targets, with_tags

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def is_named(params: Mapping[str, Any]) -> bool:
    """Return whether the task names its guests."""
    return any(params.get(key) is not None for key in ("name", "vmid", "vms"))


def select(
    client: Client, cluster: ClusterState, params: Mapping[str, Any], owner: OwnerScope
) -> list[GuestTarget]:
    """Return each guest of the task once; a missing or foreign guest has an error."""
    if is_named(params):
        return [_owned(target, owner) for target in targets(client, cluster, params)]
    return [
        GuestTarget(f"{row.name} ({row.vmid})", row) for row in matching(cluster, params, owner)
    ]


def matching(cluster: ClusterState, params: Mapping[str, Any], owner: OwnerScope) -> list[VmRow]:
    """Return the guests with the tenant, tags and pool of the task, sorted by VMID (pure).

    Copies of drills are left out.
    """
    rows = with_tags(without_copies(cluster), params, owner)
    return [row for row in rows if params.get("pool") in (None, row.pool)]


def _owned(target: GuestTarget, owner: OwnerScope) -> GuestTarget:
    """Return the target, with an error if its guest belongs to another tenant."""
    row = target.row
    if row is None:
        return target
    label = label_of(row)
    try:
        owner.require_owned(label, row.tags, unnamed=f"guest {row.vmid}")
        target.require_name(label, row.own_name)
    except FleetError as error:
        return GuestTarget(target.label, error=error)
    return target


def label_of(row: VmRow) -> str:
    """Return the label of a guest in messages."""
    name = row.own_name
    return f"guest '{name}' ({row.vmid})" if name else f"guest {row.vmid}"
