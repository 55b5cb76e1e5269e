# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a new VM goes (pure): a picture and what the VM needs in, a node with reasons out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .._core.errors import ConfigurationError, NodeUnhealthy
from .picture import Picture


@dataclass(frozen=True)
class Needs:
    """What a node must offer. `storages` maps a storage to the content it must take; `only` pins the choice."""

    storages: Mapping[str, str] = field(default_factory=dict)
    only: frozenset[str] | None = None  # nodes that come into question at all, such as those of a local template
    memory: int = 0  # bytes


@dataclass(frozen=True)
class Choice:
    """The node, and why each other node was not taken."""

    node: str
    refused: Mapping[str, str]


def require_node(picture: Picture, node: str) -> None:
    """Raise ConfigurationError for a node that the cluster does not have, NodeUnhealthy for one that is down."""
    row = picture.nodes.get(node)
    if row is None:
        raise ConfigurationError(
            attempted=f"Node '{node}' could not be used",
            answer=f"the cluster has {', '.join(sorted(picture.nodes)) or 'no node this token may see'}",
            next_step="Name one of its nodes",
            reason="unknown node",
        )
    if not row.online:
        raise NodeUnhealthy(
            attempted=f"Node '{node}' could not be used",
            answer="it is offline",
            next_step="Bring it back or choose another node",
            reason="node offline",
        )


def choose_node(picture: Picture, needs: Needs) -> Choice:
    """Return the online node with what the VM needs and the smallest share of its memory given to VMs.

    Ties go to the node with fewer VMs, then by name. Raises NodeUnhealthy with each node's reason where none fits, and
    ConfigurationError for a storage that no node has.
    """
    _require_known(picture, needs)
    given: dict[str, int] = dict.fromkeys(picture.nodes, 0)
    count: dict[str, int] = dict.fromkeys(picture.nodes, 0)
    for vm in picture.vms.values():
        if vm.node in given and not vm.template:
            given[vm.node] += vm.memory
            count[vm.node] += 1
    refused: dict[str, str] = {}
    fitting: list[tuple[float, int, str]] = []
    for name, row in picture.nodes.items():
        reason = why_not(picture, name, needs)
        if reason:
            refused[name] = reason
        else:
            fitting.append(((given[name] + needs.memory) / max(row.memory, 1), count[name], name))
    if not fitting:
        raise NodeUnhealthy(
            attempted="No node could be chosen",
            answer="; ".join(f"{name}: {reason}" for name, reason in sorted(refused.items())) or "no node is visible",
            next_step="Name a node, or change what the VM needs",
            reason="no node fits",
            details={"nodes": refused},
        )
    best = min(fitting)[2]
    for share, vms, name in fitting:
        if name != best:
            refused[name] = f"{share:.0%} of its memory would be given to {vms + 1} VMs"
    return Choice(best, refused)


def _require_known(picture: Picture, needs: Needs) -> None:
    known = {row.storage for row in picture.storages}
    for storage in sorted(set(needs.storages) - known):
        raise ConfigurationError(
            attempted=f"Storage '{storage}' could not be used",
            answer=f"the cluster has {', '.join(sorted(known)) or 'no storage this token may see'}",
            next_step="Name one of them; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )


def why_not(picture: Picture, node: str, needs: Needs) -> str | None:
    """Return the reason why a node is not fit, or None."""
    row = picture.nodes[node]
    if not row.online:
        return "offline"
    if needs.only is not None and node not in needs.only:
        return f"the source is only on {', '.join(sorted(needs.only))}"
    for storage, content in needs.storages.items():
        found = picture.storage_on(storage, node)
        if found is None or not found.available:
            return f"storage {storage} is not there"
        if content not in found.content:
            return f"storage {storage} does not take {content}"
    return None


def require_storage(picture: Picture, storage: str, node: str, content: str) -> None:
    """Raise ConfigurationError unless a storage is usable on a node for that content."""
    found = picture.storage_on(storage, node)
    attempted = f"Storage '{storage}' could not be used on node {node}"
    if found is None:
        there = sorted({row.storage for row in picture.storages if row.node == node})
        raise ConfigurationError(
            attempted=attempted,
            answer=f"the node has {', '.join(there) or 'no storage this token may see'}",
            next_step="Name one of them; the token needs Datastore.Audit to see a storage",
            reason="unknown storage",
        )
    if not found.available:
        raise ConfigurationError(
            attempted=attempted,
            answer="it is not available there",
            next_step="Check it in Datacenter > Storage",
            reason="storage unavailable",
        )
    if content not in found.content:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"it takes {', '.join(sorted(found.content))}, not {content}",
            next_step=f"Choose a storage with content {content}",
            reason="storage content",
        )
