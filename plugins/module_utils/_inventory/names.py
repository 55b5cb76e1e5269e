# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VMs whose row in the cluster's listing is still wrong, and the figures from their nodes.

The listing has name, template flag, power state and figures of a VM from its last statistics, by
its VMID alone (pve-manager: PVE/API2Tools.pm, extract_vm_stats). Until pvestatd has run, within
ten seconds, a new VM has none of them, or the values of a removed VM with the same VMID.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from .._api.client import Client
from .._core.errors import NetworkError, NodeUnhealthy
from .._vm.kind import VM
from .listing import Rows, checked_rows

# Locks of a VM that is being made.
_CREATION_LOCKS = frozenset(("create", "clone"))
# Fields that come from the statistics. The tags, the pool and the lock in the listing are current.
_FIGURES = frozenset(
    "name status uptime cpu mem maxmem maxdisk diskread diskwrite netin netout memhost".split()
)


def listed_on(client: Client, node: str) -> Rows:
    """Return the VMs of a node as it lists them itself, none if it does not answer.

    Raises FleetError.
    """
    attempted = f"Could not list the VMs of node {node}"
    try:
        answer = client.get(*VM.path(node), attempted=attempted)
    except (NetworkError, NodeUnhealthy):
        return []
    return [dict(row) for row in checked_rows(answer, attempted)]


def nodes_to_ask(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the nodes with VMs whose row in the listing is recognizably incomplete or doubtful
    (pure).

    These are VMs without a name, VMs whose creation is in progress, and VMs that share name and
    tags with another VM: one of them may have got the VMID of a removed VM. Nodes that are not
    online are left out.
    """
    vms = list(filter(_is_vm, rows))
    online = {row.get("node") for row in rows if row.get("status") == "online"}
    counts = Counter(map(_identity, vms))
    nodes: set[str] = set()
    for row in vms:
        node = str(row.get("node"))
        if _is_doubtful(row, counts):
            nodes.add(node)
    return sorted(nodes & online)


def _is_vm(row: Mapping[str, Any]) -> bool:
    return row.get("type") == VM.type and "vmid" in row


def _identity(row: Mapping[str, Any]) -> tuple[str, str]:
    name = row.get("name", "")
    tags = row.get("tags", "")
    return str(name), str(tags)


def _is_doubtful(row: Mapping[str, Any], counts: Mapping[tuple[str, str], int]) -> bool:
    """Return whether the listing may show something else than the VM.

    A template may have a copy on each node, so its name may be there several times.
    """
    if not row.get("name"):
        return True
    if row.get("lock") in _CREATION_LOCKS:
        return True
    if row.get("template"):
        return False
    return counts[_identity(row)] > 1


def with_figures(
    rows: Sequence[Mapping[str, Any]], of_nodes: Mapping[str, Rows]
) -> list[dict[str, Any]]:
    """Return the rows of the listing, with the figures that these nodes report of their VMs
    (pure).
    """
    known: dict[tuple[str, int], Mapping[str, Any]] = {}
    for node, vms in of_nodes.items():
        for one in vms:
            known[node, int(one["vmid"])] = one
    found: list[dict[str, Any]] = []
    for row in rows:
        merged = dict(row)
        if _is_vm(row):
            place = (str(row.get("node")), int(row["vmid"]))
            merged.update(_figures_of(known.get(place, {})))
        found.append(merged)
    return found


def _figures_of(vm: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a VM on its node, as the listing names them; none of an empty row."""
    if not vm:
        return {}
    figures = {key: vm[key] for key in vm if key in _FIGURES}
    figures["maxcpu"] = vm.get("cpus")
    # a node names the flag of templates only
    figures["template"] = vm.get("template", 0)
    return figures
