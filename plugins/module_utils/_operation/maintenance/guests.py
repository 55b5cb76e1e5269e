# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests of a node as items that module vms plans and carries out (pure)."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from ..._foundation.cluster.rules import PlacementRules, VmSelector
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import tenants_of
from ..._foundation.spec.fleet import with_defaults
from ..._guests.fleet.items import VmItem
from ..._guests.guest.registry import list_of
from ..._guests.kinds.model import Actual
from .model import MaintenanceOptions


def guests_on(cluster: ClusterState, node: str) -> list[VmRow]:
    """Return the guests of a node except templates, by memory: the largest is placed first."""
    found = [row for row in cluster.guests if row.node == node and not row.template]
    return sorted(found, key=lambda row: (-row.memory, row.vmid))


def tenant_in(row: VmRow, prefix: str) -> str | None:
    """Return the tenant of a guest, or None if it has none or several."""
    owners = tenants_of(row.tags, prefix)
    if len(owners) != 1:
        return None
    return owners[0][len(prefix) :]


def leaving_item(
    row: VmRow,
    index: int,
    options: MaintenanceOptions,
    rules: PlacementRules,
    excluded: Collection[str],
) -> VmItem:
    """Return the item that moves a guest to another node. `rules` are the rules of the placement.

    The placement keeps guests of one tenant that match the same selector apart or together.
    """
    placement = dict(options.placement)
    placement["exclude"] = sorted({*rules.exclude, *excluded, options.node})
    placement["anti_affinity"] = _matching(rules.anti_affinity, row)
    placement["affinity"] = _matching(rules.affinity, row)
    return guest_item(row, index, options, {"rebalance": True, "placement": placement})


def _matching(selectors: Collection[VmSelector], row: VmRow) -> list[str]:
    return [one.text for one in selectors if one.fits(row)]


def returning_item(row: VmRow, index: int, options: MaintenanceOptions, *, starts: bool) -> VmItem:
    """Return the item that moves a guest back to the node, and starts it if it was shut down."""
    state = "started" if starts else "present"
    return guest_item(row, index, options, {"node": options.node, "state": state})


def stopping_item(row: VmRow, index: int, options: MaintenanceOptions) -> VmItem:
    """Return the item that shuts a guest down."""
    return guest_item(row, index, options, {"state": "stopped"})


def guest_item(
    row: VmRow, index: int, options: MaintenanceOptions, own: Mapping[str, Any]
) -> VmItem:
    """Return the item of a guest: its tenant, the time limits of the task, and these options."""
    kind = list_of(row.type)
    item = {
        "vmid": row.vmid,
        "tenant": tenant_in(row, options.tenant_prefix),
        "tenant_prefix": options.tenant_prefix,
        "task_timeout": options.task_timeout,
        "shutdown_timeout": options.shutdown_timeout,
        **own,
    }
    return VmItem(index, kind.read(with_defaults(kind.specs.whole, item)), kind)


def fingerprint(actual: Actual) -> str:
    """Return the mark by which a guest is recognized later, empty if its kind has none.

    The name is not part of the mark: a guest can be renamed during the maintenance.
    """
    known = actual.identity
    text = known.uuid or known.creation
    if not text:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:12]
