# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Nodes of an HA rule that cannot run a guest of the rule.

Proxmox VE accepts the rule. The HA manager moves the guest there, its start fails, and after
C(max_relocate) other nodes the guest is in state error (pve-ha-manager: PVE/HA/Manager.pm,
next_state_started).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ...._foundation.api.interface import Api
from ...._foundation.cluster.bridges import KnownBridges
from ...._foundation.cluster.placement import PlacementNeeds, why_unfit_hardware
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.core.errors import Conflict, FleetError
from ...._foundation.core.parallel import side_by_side
from ...._guests.kinds.words import VM, kind_of_row
from .contradictions import EnabledRule
from .rule import PLACE
from .sids import sid_of, vmid_of

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def read_unable(
    client: Api, rule: EnabledRule | None, sids: Iterable[str], cluster: ClusterState
) -> dict[str, dict[str, str]]:
    """Return the nodes of a node-affinity rule that cannot run a guest, each with its reason, by
    guest; one request for each guest, and one for each type of mapped devices.
    """
    if rule is None or rule.type != PLACE:
        return {}
    rows = [row for row in map(cluster.guest, map(vmid_of, sorted(sids))) if row is not None]
    bridges = KnownBridges(cast("Client", client))

    def read(row: VmRow) -> dict[str, str]:
        try:
            config = client.get(*row.path, "config") or {}
        except FleetError:  # it is hidden, or has moved: the HA manager decides
            return {}
        return {key: str(text) for key, text in config.items()}

    found: dict[str, dict[str, str]] = {}
    for row, config in zip(rows, side_by_side(read, rows), strict=True):
        needs = bridges.with_devices(needs_of(row, config))
        reasons = {node: why_unable(node, needs, cluster) for node in rule.allowed(cluster.nodes)}
        found[sid_of(row)] = {node: reason for node, reason in reasons.items() if reason}
    return {sid: reasons for sid, reasons in found.items() if reasons}


def needs_of(row: VmRow, config: Mapping[str, str]) -> PlacementNeeds:
    """Return the storages and the hardware that a guest needs on its node (pure)."""
    kind = kind_of_row(row)
    return PlacementNeeds(
        storages=dict.fromkeys(kind.storages_in(config), ""),
        devices=dict.fromkeys(kind.devices_in(config)),
        arch=kind.arch_in(config),
        emulated=kind is VM,
        like=row.node,
    )


def why_unable(node: str, needs: PlacementNeeds, cluster: ClusterState) -> str:
    """Return the storage, the mapped device or the architecture that a node lacks (pure).

    A storage that no node lists is hidden, and an offline node lists no architecture.
    """
    if node not in cluster.nodes:
        return ""
    known = {row.storage for row in cluster.storages}
    for storage in sorted(known.intersection(needs.storages)):
        if cluster.storage_on(storage, node) is None:
            return f"storage {storage} is not there"
    if not cluster.nodes[node].online:
        needs = replace(needs, arch="", like="")
    return why_unfit_hardware(cluster, node, needs) or ""


def require_able(
    rule: EnabledRule | None,
    unable: Mapping[str, Mapping[str, str]],
    nodes: Collection[str],
    attempted: str,
) -> tuple[str, ...]:
    """Return warnings about nodes of a rule that cannot run a guest. Raises Conflict for a guest
    that no node of the rule can run (pure).
    """
    allowed = frozenset() if rule is None else rule.allowed(nodes)
    texts = {
        sid: "; ".join(f"{node}: {reason}" for node, reason in sorted(reasons.items()))
        for sid, reasons in unable.items()
    }
    stuck = [sid for sid in sorted(unable) if unable[sid].keys() >= allowed]
    if stuck:
        raise Conflict(
            f"{attempted}: no node of the rule can run {stuck[0]} ({texts[stuck[0]]})",
            "Choose nodes that have the storages and devices of the guest, or leave it out",
            "unable nodes",
            details={"resources": stuck},
        )
    return tuple(
        f"The HA manager cannot run {sid} on every node of the rule ({text})"
        for sid, text in sorted(texts.items())
    )
