# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read a site for its metrics. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.privileges import Privileges
from ...._foundation.api.path_templates import count_requests
from ...._foundation.cluster.drill.copies import without_copies
from ...._foundation.cluster.state import VmRow, cluster_state_of, with_names
from ...._foundation.cluster.storages.contents import disk_sizes, read_contents
from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core.errors import FleetError, NodeUnhealthy, PermissionDenied
from ...._foundation.core.parallel import side_by_side
from ...._guests.kinds.words import TYPES, contents_of
from ...._infrastructure.facts.nodes import NodeFacts, report
from ...._infrastructure.facts.partial_read import node_states, standing
from ..backups import CopySummary, read_backups, read_snapshots
from ..metrics import model
from .model import MetricsOptions, SiteFacts

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# Privileges that show all guests, all storages, and all disks of a guest to the caller.
_VMS, _STORAGES, _DISKS = "VM.Audit", "Datastore.Audit", "VM.Config.Disk"


def read_site(client: Client, wanted: MetricsOptions, name: str) -> SiteFacts:
    """Return a site. If it cannot be read, it has no cluster, and C(missing) has the reason."""
    started = client.clock.monotonic()
    site = SiteFacts(name, client.clock.time())
    try:
        answer = client.get("version", attempted="Could not read the version") or {}
        site.version = answer.get("version")
        rows = client.get(
            "cluster", "resources", attempted="Could not read the listing of the cluster"
        )
        listed = without_copies(cluster_state_of(rows, TYPES))
        cluster = with_names(client, listed, missing=True)
        site.cluster = cluster
        _read_nodes(client, wanted, site, rows)
        held = _read_privileges(client, site)
        vms = [row for row in cluster.vms.values() if not row.template]
        if wanted.disks:
            _read_disks(client, wanted, site, held)
        if wanted.snapshots:
            site.snapshots = _known(site, model.SNAPSHOTS, read_snapshots(client, cluster, vms))
        if wanted.backups and held is not None:
            found = read_backups(client, cluster, vms, held)
            site.backups = _known(site, model.BACKUPS, found)
    except FleetError as error:
        site.cluster = None
        site.missing = []
        site.lacks(model.SITE, error)
    site.duration = client.clock.monotonic() - started
    site.requests = count_requests(client.requests)
    return site


def _read_nodes(
    client: Client, wanted: MetricsOptions, site: SiteFacts, rows: list[Mapping[str, Any]]
) -> None:
    """Read name and quorum of the cluster, and note the nodes that are offline."""
    head = standing(None)
    try:
        path = ("cluster", "status")
        head = standing(client.get(*path, attempted="Could not read the cluster's status"))
    except FleetError as error:
        site.lacks(model.SITE, error, "status")
    site.cluster_name = head["name"]
    site.quorate = head["quorate"]
    states = node_states(None, rows)
    listed = [row for row in rows if row.get("type") == "node"]
    versions = _read_versions(client, site, listed) if wanted.versions else {}
    for row in listed:
        name = row["node"]
        facts = NodeFacts(head["members"].get(name, {}), states.get(name), versions.get(name))
        node = report(name, row, rows, facts, wanted.rules)
        site.nodes.append(node)
        if node["status"] != "online":
            site.lacks(model.NODE, _not_online(name, node["status"]), name)


def _read_versions(
    client: Client, site: SiteFacts, rows: Sequence[Mapping[str, Any]]
) -> dict[str, str | None]:
    """Return the version of each online node: one request each, as no listing contains it."""

    def read(name: str) -> str | None | FleetError:
        attempted = f"Could not read the version of node {name}"
        try:
            answer = client.get("nodes", name, "version", attempted=attempted, tries=1) or {}
        except FleetError as error:
            return error
        return answer.get("version")

    versions: dict[str, str | None] = {}
    online = [row["node"] for row in rows if row.get("status") == "online"]
    for name, found in zip(online, side_by_side(read, online), strict=True):
        if isinstance(found, FleetError):
            site.lacks(model.NODE, found, name)
        else:
            versions[name] = found
    return versions


def _read_privileges(client: Client, site: SiteFacts) -> Privileges | None:
    """Return the privileges of the caller, None if they are not known."""
    attempted = "Could not read the privileges of the caller"
    try:
        held = Privileges(client.get("access", "permissions", attempted=attempted) or {})
    except FleetError as error:
        site.lacks(model.PRIVILEGES, error)
        return None
    if _VMS not in held.below("/vms"):
        site.lacks(model.VMS, _hidden("VMs and containers may be hidden", f"{_VMS} on /vms"))
    return held


def _read_disks(
    client: Client, wanted: MetricsOptions, site: SiteFacts, held: Privileges | None
) -> None:
    """Read the sizes of all disks, and note the tenants for whom they are not complete."""
    if site.cluster is None:
        return
    down: dict[str, FleetError] = {}
    for content in contents_of(site.cluster.vms.values()):
        found = read_contents(client, site.cluster, content)
        site.disks |= disk_sizes(found)
        for storage, error in found.unread:
            down[storage.place] = error
    for row in site.cluster.vms.values():
        tenant, _why = tenant_of(row.tags, wanted.prefix)
        if tenant is None or site.is_missing(model.DISK, tenant):
            continue
        failure = down.get("") or down.get(row.node) or _hidden_disk(held, row)
        if failure is not None:
            site.lacks(model.DISK, failure.on(attempted=_disk_use(tenant)), tenant)


def _hidden_disk(held: Privileges | None, row: VmRow) -> FleetError | None:
    """Return why disks of a guest can be missing in the listings of storages, or None.

    PVE leaves out volumes that the caller may not access (pve-storage: PVE/Storage.pm,
    check_volume_access).
    """
    if held is None:
        return _hidden("", "privileges that could be read")
    if _STORAGES not in held.below("/storage"):
        return _hidden("", f"{_STORAGES} on /storage")
    path = f"/vms/{row.vmid}"
    if _DISKS not in held.on(path) and "Datastore.Allocate" not in held.below("/storage"):
        return _hidden("", f"{_DISKS} on {path}")
    return None


def _disk_use(tenant: str) -> str:
    return f"Could not read the disk use of tenant {tenant}"


def _known(
    site: SiteFacts, part: str, found: Mapping[int, CopySummary | FleetError]
) -> dict[int, CopySummary]:
    """Return the known copies by VMID, and note the guests whose copies are unknown.

    If there may be more copies, neither their number nor the newest time is known.
    """
    known: dict[int, CopySummary] = {}
    for vmid, one in found.items():
        if isinstance(one, FleetError):
            site.lacks(part, one, vmid)
        elif one.uncertainty is not None:
            site.lacks(part, one.uncertainty, vmid)
        else:
            known[vmid] = one
    return known


def _not_online(node: str, status: str) -> NodeUnhealthy:
    return NodeUnhealthy(
        f"Could not read node {node} and the guests on it: the node is {status}",
        "Bring the node back",
        "node not online",
    )


def _hidden(attempted: str, missing: str) -> PermissionDenied:
    return PermissionDenied(f"{attempted}: the caller lacks {missing}", "Grant it", missing)
