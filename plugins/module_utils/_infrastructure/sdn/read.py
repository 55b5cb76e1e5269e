# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the parts of SDN that a task needs. Sends requests, decides nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.state import fetch_cluster_state, read_members
from ..._foundation.core.errors import ApiError
from ..._foundation.core.parallel import side_by_side
from ..._guests.kinds.words import kind_of_row
from .forms import has_id, is_in_force, pending_of, running_of, section_of
from .model import (
    CONTROLLERS,
    DNS,
    FABRIC_NODES,
    FABRIC_SECTIONS,
    FABRICS,
    IPAMS,
    NOUNS,
    SUBNETS,
    VNETS,
    ZONES,
    SdnContext,
    SdnEntry,
    SdnReading,
    Section,
    Sections,
)
from .plan import ROOT

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_BRIDGES = ("bridge", "OVSBridge")
_PLACES = ("nodes", "node", "exitnodes", "exitnodes-primary", "bridge", "fabric", "controller")
FIRST_WITH_FABRICS = (9, 0)
"""The version of Proxmox VE with fabrics, the lock, the rollback and the dry run."""


def read_sdn(client: Client, *, subnets: bool = False) -> SdnReading:
    """Return the running objects, with the subnets of all VNets if `subnets` is set.

    Four requests (three before Proxmox VE 9), and with `subnets` one for each VNet.
    """
    running: dict[str, Mapping[str, SdnEntry]] = {}
    pending: list[str] = []
    for kind in (ZONES, VNETS, CONTROLLERS):
        rows = client.get(*ROOT, kind, params={"pending": 1}) or []
        running[kind] = running_of(kind, rows)
        pending += pending_of(kind, rows)
    if client.version() >= FIRST_WITH_FABRICS:
        for kind, rows in _read_fabrics(client, {"pending": 1}).items():
            running[kind] = running_of(kind, rows)
            pending += pending_of(kind, rows)
    running[SUBNETS] = {}
    reading = SdnReading(running, tuple(pending))
    return with_subnets(client, reading) if subnets else reading


def _read_fabrics(client: Client, params: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of fabrics and of their nodes, with one request."""
    return fabrics_of(client.get(*ROOT, FABRICS, "all", params=params) or {})


def fabrics_of(found: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the rows of fabrics and nodes (pure). Raises ApiError for a row without an ID."""
    rows = {FABRICS: found.get("fabrics") or [], FABRIC_NODES: found.get("nodes") or []}
    for kind, listed in rows.items():
        if not all(has_id(kind, row) for row in listed):
            raise ApiError(
                f"Could not read the fabrics: a {NOUNS[kind]} of the answer has no ID",
                "Look at GET /cluster/sdn/fabrics/all?pending=1",
                "malformed answer",
            )
    return rows


def with_servers(client: Client, reading: SdnReading) -> SdnReading:
    """Return a reading with the IPAMs and name servers; two requests."""
    servers = {kind: section_of(kind, client.get(*ROOT, kind)) for kind in (IPAMS, DNS)}
    return SdnReading({**reading.running, **servers}, reading.pending)


def with_subnets(client: Client, reading: SdnReading) -> SdnReading:
    """Return a reading with the subnets of all VNets; one request for each VNet.

    PVE does not show the running subnets of a VNet whose removal is pending.
    """
    gone = set(reading.pending)
    vnets = [name for name in reading.running[VNETS] if f"vnet {name} (deleted)" not in gone]

    def read_one(vnet: str) -> list[Mapping[str, Any]]:
        return client.get(*ROOT, VNETS, vnet, SUBNETS, params={"pending": 1}) or []

    rows = [row for found in side_by_side(read_one, vnets) for row in found]
    running = {**reading.running, SUBNETS: running_of(SUBNETS, rows)}
    return SdnReading(running, (*reading.pending, *pending_of(SUBNETS, rows)))


def read_outdated(client: Client, zones: Section, *, is_sure: bool) -> list[str]:
    """Return the nodes that do not run the applied configuration yet.

    With `is_sure`, one request is enough if each node reports each zone as available. If not, or
    without `is_sure`, one request lists the nodes, and one follows for each node. Nodes report
    every ten seconds (pve-manager: PVE/Service/pvestatd.pm).
    """
    if is_sure and is_in_force(client.get("cluster", "resources") or (), zones):
        return []
    nodes = online_nodes(client)
    found = side_by_side(lambda node: read_status(client, node), nodes)
    return [node for node, zones in zip(nodes, found, strict=True) if "pending" in zones.values()]


def read_configured(client: Client, kind: str, entry: Mapping[str, str]) -> Mapping[str, SdnEntry]:
    """Return the configured objects of a section; for subnets, only of the VNet of `entry`."""
    if kind == SUBNETS:
        return section_of(kind, client.get(*ROOT, VNETS, entry["vnet"], SUBNETS))
    if kind in FABRIC_SECTIONS:
        return section_of(kind, _read_fabrics(client, {})[kind])
    return section_of(kind, client.get(*ROOT, kind))


def _changed(kind: str, running: Sections, after: Sections) -> list[SdnEntry]:
    """Return the objects that are new or change (pure)."""
    before = running.get(kind, {})
    return [one for name, one in after.get(kind, {}).items() if before.get(name) != one]


def read_surroundings(
    client: Client, running: Sections, after: Sections, leaving: Collection[int] = ()
) -> SdnContext:
    """Return the nodes, bridges and guests that the changes concern.

    `leaving` are guests that are removed before the changes.
    """
    changed = [*_changed(ZONES, running, after), *_changed(CONTROLLERS, running, after)]
    placed = {one["node_id"] for one in _changed(FABRIC_NODES, running, after)}
    nodes: frozenset[str] = frozenset()
    bridges: Mapping[str, frozenset[str]] = {}
    interfaces: Mapping[str, frozenset[str]] = {}
    if placed or any(entry.get(key) for entry in changed for key in _PLACES):
        rows = read_members(client)
        nodes = frozenset(str(row["name"]) for row in rows)
        online = [str(row["name"]) for row in rows if row.get("online")]
        if any(entry.get("bridge") for entry in changed):
            bridges = _interfaces_on(client, online, _BRIDGES)
        interfaces = _interfaces_on(client, [node for node in online if node in placed], None)
    gone = running[VNETS].keys() - after[VNETS].keys()
    users = _users(client, gone, leaving) if gone else {}
    is_smaller = bool(running[SUBNETS].keys() - after[SUBNETS].keys())
    leased = _leased(client, leaving) if is_smaller else {}
    return SdnContext(nodes, bridges, interfaces, users, leased)


def _leased(client: Client, leaving: Collection[int]) -> dict[str, tuple[str, ...]]:
    """Return the addresses that Proxmox VE's IPAM assigned from each subnet; one request.

    Addresses of gateways and of `leaving` guests are left out.
    """
    found: dict[str, tuple[str, ...]] = {}
    for row in client.get(*ROOT, IPAMS, "pve", "status") or ():
        if row.get("gateway") or row.get("vmid") in leaving:
            continue
        subnet = f"{row.get('zone')}-{row.get('subnet')}".replace("/", "-")
        found[subnet] = (*found.get(subnet, ()), str(row.get("ip")))
    return found


def online_nodes(client: Client) -> list[str]:
    """Return the names of the nodes that are online."""
    return sorted(str(row["name"]) for row in read_members(client) if row.get("online"))


def _interfaces_on(
    client: Client, nodes: list[str], types: Collection[str] | None
) -> dict[str, frozenset[str]]:
    """Return the names of each node's interfaces of these types; None means all types."""

    def read_one(node: str) -> frozenset[str]:
        found: set[str] = set()
        for row in client.get("nodes", node, "network") or ():
            if types is None or row.get("type") in types:
                found |= {str(row["iface"]), *(row.get("altnames") or ())}
        return frozenset(found)

    return dict(zip(nodes, side_by_side(read_one, nodes), strict=True))


def _users(
    client: Client, vnets: Iterable[str], leaving: Collection[int]
) -> dict[str, tuple[str, ...]]:
    """Return the guests whose NICs use each VNet; one request for each guest."""
    state = fetch_cluster_state(client)
    rows = [row for row in state.vms.values() if row.vmid not in leaving]
    configs = side_by_side(lambda row: client.get(*row.path, "config"), rows)
    used: dict[str, list[str]] = {vnet: [] for vnet in vnets}
    for row, config in zip(rows, configs, strict=True):
        for bridge in kind_of_row(row).bridges_in(config).values():
            if bridge in used:
                used[bridge].append(f"guest {row.vmid}")
    return {vnet: tuple(sorted(set(guests))) for vnet, guests in used.items()}


def read_status(client: Client, node: str) -> dict[str, str]:
    """Return the status of each zone on a node: available, pending or error."""
    rows = client.get("nodes", node, "sdn", "zones") or ()
    return {str(row["zone"]): str(row["status"]) for row in rows}


def read_dry_run(client: Client, node: str) -> dict[str, str]:
    """Return the difference that an apply makes to the files of a node."""
    answer = client.get(*ROOT, "dry-run", params={"node": node}) or {}
    diffs = {"interfaces": answer.get("interfaces-diff"), "frr": answer.get("frr-diff")}
    return {name: str(text) for name, text in diffs.items() if text}
