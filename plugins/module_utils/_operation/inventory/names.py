# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests whose row in the cluster's listing is still wrong, and the figures from their nodes.

The listing takes name, template flag, power state and figures of a guest from the last statistics
of its VMID (pve-manager: PVE/API2Tools.pm, extract_vm_stats). Until pvestatd has run, within ten
seconds, the row of a new guest contains none of them, or the values of a removed VM with the same
VMID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ..._foundation.api.client import Client
from ..._foundation.cluster.state import CREATION_LOCKS
from ..._foundation.core.errors import ApiError, NetworkError, NodeUnhealthy
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.words import GUESTS, VM
from .kinds import is_guest, kind_of

Rows = list[dict[str, Any]]


def listed(client: Client) -> Rows:
    """Return the VMs of `/cluster/resources`. Raises FleetError."""
    attempted = "Could not list the VMs"
    answer = client.get("cluster", "resources", type="vm", attempted=attempted)
    rows = checked_rows(answer, attempted)
    return [dict(row) for row in rows if row.get("type") == VM.type]


def checked_rows(answer: Any, attempted: str) -> list[Mapping[str, Any]]:
    """Return the rows of a listing.

    Raises ApiError for an answer that is not a listing: it must not count as an empty listing.
    """
    if not isinstance(answer, list):
        raise ApiError(
            attempted=attempted,
            answer="the answer is not a list",
            next_step="Check that host and port lead to Proxmox VE, and the proxies on the way",
            reason="not a listing",
        )
    return [row for row in answer if isinstance(row, Mapping)]


# Fields that come from the statistics. The tags, the pool and the lock in the listing are current.
_FIGURES = frozenset(
    "name status uptime cpu mem maxmem maxdisk diskread diskwrite netin netout memhost".split()
)


def listed_on(client: Client, kind: Kind, node: str) -> Rows:
    """Return the guests in the list of a node, none if it does not answer. Raises FleetError."""
    attempted = f"Could not list the {kind.noun}s of node {node}"
    try:
        answer = client.get(*kind.path(node), attempted=attempted)
    except (NetworkError, NodeUnhealthy):
        return []
    return [dict(row) for row in checked_rows(answer, attempted)]


def lists_to_query(
    rows: Sequence[Mapping[str, Any]], kinds: Collection[str] = tuple(GUESTS)
) -> list[tuple[str, str]]:
    """Return pairs of kind and node: the lists with guests of these kinds whose row in the listing
    is recognizably incomplete or doubtful (pure).

    These are guests without a name, guests whose creation is in progress, and guests with the same
    name and tags: one of these may have the VMID of a removed guest. Nodes that are not online are
    left out.
    """
    guests = [row for row in rows if is_guest(row, kinds)]
    online = {row.get("node") for row in rows if row.get("status") == "online"}
    counts = Counter(map(_identity, guests))
    lists: set[tuple[str, str]] = set()
    for row in guests:
        if row.get("node") in online and _is_unverified(row, counts):
            lists.add((kind_of(row), str(row["node"])))
    return sorted(lists)


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    name = row.get("name", "")
    tags = row.get("tags", "")
    return str(name), str(tags)


def _is_unverified(row: Mapping[str, Any], counts: Mapping[tuple[str, str], int]) -> bool:
    """Return whether the row may show the values of another guest.

    A template may have a copy on each node, so its name may be listed several times.
    """
    if not row.get("name"):
        return True
    if row.get("lock") in CREATION_LOCKS:
        return True
    if row.get("template"):
        return False
    return counts[_identity(row)] > 1


def with_figures(
    rows: Sequence[Mapping[str, Any]], of_nodes: Iterable[tuple[str, Rows]]
) -> list[dict[str, Any]]:
    """Return the rows of the listing with the figures of guests that nodes report (pure)."""
    known: dict[tuple[str, int], Mapping[str, Any]] = {}
    for node, guests in of_nodes:
        for one in guests:
            known[node, int(one["vmid"])] = one
    found: list[dict[str, Any]] = []
    for row in rows:
        merged = dict(row)
        if is_guest(row):
            place = (str(row.get("node")), int(row["vmid"]))
            merged.update(_figures_of(known.get(place, {})))
        found.append(merged)
    return found


def _figures_of(guest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures that a node reports under the names of the listing; none without a row."""
    if not guest:
        return {}
    figures = {key: guest[key] for key in guest if key in _FIGURES}
    figures["maxcpu"] = guest.get("cpus")
    # a node sends the flag for templates only
    figures["template"] = guest.get("template", 0)
    return figures
