# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detects whether a guest may still run at the other site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...._foundation.cluster.state import ClusterState, VmRow, fetch_cluster_state, with_names
from ...._foundation.cluster.tenant import have_same_tenants
from ...._foundation.core.errors import FleetError
from ...backup.run_info import KINDS
from ..choose import ChosenArchive
from .choose import label_of, tags_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_STOPPED = "stopped"


@dataclass(frozen=True)
class OtherSite:
    """The other site: its name, and its state or the error of the reading."""

    name: str
    cluster: ClusterState | None = None
    error: FleetError | None = None


def read_other(client: Client, name: str) -> OtherSite:
    """Return the other site; two requests, and one for each node with guests without a name."""
    try:
        cluster = fetch_cluster_state(client, KINDS)
        return OtherSite(name, with_names(client, cluster, missing=True))
    except FleetError as error:
        return OtherSite(name, error=error)


def find_start_blockers(
    other: OtherSite | None, guests: Iterable[ChosenArchive], prefix: str, *, lost: bool
) -> list[str]:
    """Return why guests must not be started here (pure).

    A guest that runs at the other site is always a problem. A site that does not answer, or a guest
    on an offline node, is a problem unless the task declares the site lost.
    """
    if other is None or other.cluster is None:
        return [] if lost else [_unknown(other)]
    problems: list[str] = []
    for one in guests:
        for row in _same_guests(other.cluster, one, prefix):
            node = other.cluster.nodes.get(row.node)
            is_known = node is not None and node.online
            if is_known and row.status != _STOPPED:
                place = f"guest {row.vmid} on node {row.node} of site {other.name}"
                problems.append(f"{label_of(one)} is {row.status} as {place}")
            elif not is_known and not lost:
                problems.append(
                    f"{label_of(one)} may run at site {other.name}: node {row.node} is offline"
                )
    return problems


def _unknown(other: OtherSite | None) -> str:
    if other is None:
        return "nothing shows whether the guests run elsewhere: set from_site, or lost"
    cause = other.error.cause if other.error is not None else ""
    return f"site {other.name} cannot be asked whether guests run there: {cause}"


def _same_guests(cluster: ClusterState, one: ChosenArchive, prefix: str) -> list[VmRow]:
    """Return the guests with the VMID and kind of the guest, or with its name and tenant."""
    rows: Mapping[int, VmRow] = cluster.vms
    tags = tags_of(one)
    found: list[VmRow] = []
    for vmid in sorted(rows):
        row = rows[vmid]
        is_same_number = vmid == one.archive.vmid and row.type == one.archive.type
        is_named = bool(one.name) and row.own_name == one.name
        is_same_name = is_named and have_same_tenants(row.tags, tags, prefix)
        if is_same_number or is_same_name:
            found.append(row)
    return found
