# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A site as samples (pure). Unknown values have no sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ...._foundation.cluster.quota import KINDS, Limits, figures_by_vm, total
from ...._foundation.cluster.state import ClusterState, VmRow
from ...._foundation.cluster.tenant import tenant_of, tenant_tag
from ...._guests.kinds.words import GUESTS, kind_name
from ..backups import CopySummary
from ..metrics import model
from ..tenants import is_at
from .families import CONNECTION, MACHINES, NODES_AVAILABLE
from .model import MetricsOptions, SiteFacts
from .samples import Samples

_RUNNING, _STOPPED, _TEMPLATE, _UNKNOWN = "running", "stopped", "template", "unknown"
_IN_BYTES = ("memory", "disk")
QUOTA = "proxmox_tenant_quota_"


def add_site(samples: Samples, site: SiteFacts, wanted: MetricsOptions) -> None:
    """Add the gauges of a site; for a site that does not answer, these are only a few."""
    label = {"site": site.name}
    samples.put(CONNECTION, site.cluster is not None, **label)
    samples.put("proxmox_metrics_timestamp_seconds", int(site.checked), **label)
    samples.put("proxmox_metrics_complete", not site.missing, **label)
    unread = Counter((one.part, one.category) for one in site.missing)
    for (part, category), number in unread.items():
        samples.put("proxmox_unread_parts", number, part=part, error_type=category, **label)
    if site.cluster is None:
        return
    samples.put("proxmox_cluster_info", 1, name=site.cluster_name, version=site.version, **label)
    samples.put("proxmox_cluster_quorate", site.quorate, **label)
    _add_nodes(samples, site, label)
    _add_storages(samples, site.cluster, label)
    _add_guests(samples, site.cluster, wanted.prefix, label)
    _add_tenants(samples, site, site.cluster, wanted)
    _add_copies(samples, site, wanted, "snapshot", site.snapshots)
    _add_copies(samples, site, wanted, "backup", site.backups)
    _add_proofs(samples, site.cluster, wanted, label)


def _add_nodes(samples: Samples, site: SiteFacts, label: Mapping[str, str]) -> None:
    if not site.nodes:
        return
    online = [node for node in site.nodes if node["status"] == "online"]
    samples.put("proxmox_cluster_nodes", len(site.nodes), **label)
    samples.put(NODES_AVAILABLE, len(online), **label)
    for node in site.nodes:
        if node["status"] != _UNKNOWN:
            up = node["status"] == "online"
            samples.put("proxmox_node_up", up, node=node["node"], **label)
        samples.put("proxmox_node_maintenance", node["maintenance"], node=node["node"], **label)
    for node in online:
        if node["version"]:
            labels = {"node": node["node"], "version": node["version"], **label}
            samples.put("proxmox_node_info", 1, **labels)
        for name, value in _figures_of(node).items():
            samples.put(f"proxmox_node_{name}", value, node=node["node"], **label)


def _figures_of(node: Mapping[str, Any]) -> dict[str, float | None]:
    """Return size, load and capacity of a node, None for figures that the caller may not see."""
    cores = node["cpu"]["cores"]
    figures: dict[str, float | None] = {
        "cores": cores,
        "cpu_usage_ratio": node["cpu"]["used"],
        "memory_bytes": node["memory"]["total"],
        "memory_used_bytes": node["memory"]["used"],
    }
    capacity = node["capacity"]
    if cores is not None and capacity is not None:
        figures["free_cores"] = capacity["cores_left"]
        figures["free_memory_bytes"] = capacity["memory_left"]
        figures["free_vms"] = capacity["vms_left"]
        figures["cpu_overcommit_ratio"] = capacity["cpu_overcommit"]
        figures["memory_overcommit_ratio"] = capacity["memory_overcommit"]
    return figures


def _add_storages(samples: Samples, cluster: ClusterState, label: Mapping[str, str]) -> None:
    """Add each storage that is available; a shared one once, without a node."""
    for row in cluster.storages:
        node = cluster.nodes.get(row.node)
        if not row.available or (node is not None and not node.online):
            continue
        labels = {"storage": row.storage, "node": row.place, **label}
        samples.put("proxmox_storage_size_bytes", row.total, **labels)
        samples.put("proxmox_storage_used_bytes", row.used, **labels)


def _add_guests(
    samples: Samples, cluster: ClusterState, prefix: str, label: Mapping[str, str]
) -> None:
    """Add the number of guests of each node by kind and phase; unknown on a node not online."""
    numbers: Counter[tuple[str, str, str]] = Counter()
    without_tenant: Counter[str] = Counter()
    for kind in GUESTS:
        without_tenant[kind] = 0
        for name, node in cluster.nodes.items():
            if node.online:
                numbers.update({(name, kind, _RUNNING): 0, (name, kind, _STOPPED): 0})
    for row in cluster.vms.values():
        kind = kind_name(row.type)
        numbers[row.node, kind, phase_of(row, cluster)] += 1
        tenant, _why = tenant_of(row.tags, prefix)
        if tenant is None and not row.template:
            without_tenant[kind] += 1
    for (name, kind, phase), number in numbers.items():
        samples.put(MACHINES, number, node=name, kind=kind, phase=phase, **label)
    for kind, number in without_tenant.items():
        samples.put("proxmox_machines_without_tenant", number, kind=kind, **label)


def phase_of(row: VmRow, cluster: ClusterState) -> str:
    """Return running, stopped, template or unknown.

    After a node has failed, the listing shows the last power state of its guests for some minutes.
    """
    if row.template:
        return _TEMPLATE
    if not _is_online(row, cluster):
        return _UNKNOWN
    if row.status in (_STOPPED, _UNKNOWN):
        return row.status
    return _RUNNING


def _is_online(row: VmRow, cluster: ClusterState) -> bool:
    node = cluster.nodes.get(row.node)
    return node is None or node.online


def _add_tenants(
    samples: Samples, site: SiteFacts, cluster: ClusterState, wanted: MetricsOptions
) -> None:
    """Add use and quota of each tenant that has guests or a quota."""
    limits = {one.name: one.limits for one in wanted.tenants if is_at(one, site.name)}
    limits |= {tenant.lower(): limit or {} for tenant, limit in wanted.quotas.items()}
    names = set(limits)
    for row in cluster.vms.values():
        tenant, _why = tenant_of(row.tags, wanted.prefix)
        if tenant is not None:
            names.add(tenant)
    for tenant in sorted(names):
        labels = {"tenant": tenant, "site": site.name}
        used = _use_of(tenant, site, cluster, wanted)
        for kind in KINDS:
            name = _in_base_units(kind)
            samples.put(f"proxmox_tenant_{name}", used.get(kind), **labels)
            samples.put(f"{QUOTA}{name}", limits.get(tenant, {}).get(kind), **labels)


def add_totals(samples: Samples, totals: Mapping[str, Limits]) -> None:
    """Add the quotas over sites; their samples have no label C(site)."""
    for tenant, limits in totals.items():
        for kind, limit in limits.items():
            samples.put(f"{QUOTA}{_in_base_units(kind)}", limit, tenant=tenant)


def _in_base_units(kind: str) -> str:
    if kind in _IN_BYTES:
        return f"{kind}_bytes"
    return kind


def _use_of(
    tenant: str, site: SiteFacts, cluster: ClusterState, wanted: MetricsOptions
) -> dict[str, int]:
    """Return the usage of a tenant by kind, without unknown figures.

    Cores and memory come from the statistics of the nodes; an offline node sends none.
    """
    tag = tenant_tag(tenant, wanted.prefix)
    by_vm = figures_by_vm(cluster, tag, wanted.prefix, site.disks)
    figures = total(by_vm.values())
    used = {kind: getattr(figures, kind) for kind in KINDS}
    if not wanted.disks or site.is_missing(model.DISK, tenant):
        del used["disk"]
    rows = [cluster.vms[vmid] for vmid in by_vm]
    if not all(_is_online(row, cluster) for row in rows):
        del used["cores"]
        del used["memory"]
    return used


def _add_copies(
    samples: Samples,
    site: SiteFacts,
    wanted: MetricsOptions,
    kind: str,
    copies: Mapping[int, CopySummary],
) -> None:
    """Add number and newest time of the snapshots or backups of each guest if they are known."""
    if site.cluster is None:
        return
    for vmid, found in copies.items():
        labels = {**_labels_of(site.cluster.vms[vmid], wanted.prefix), "site": site.name}
        samples.put(f"proxmox_vm_{kind}s", found.number, **labels)
        if found.number:
            newest = f"proxmox_vm_newest_{kind}_timestamp_seconds"
            samples.put(newest, found.newest, **labels)


def _labels_of(row: VmRow, prefix: str) -> dict[str, Any]:
    tenant, _why = tenant_of(row.tags, prefix)
    kind = kind_name(row.type)
    return {"vmid": row.vmid, "name": row.own_name, "kind": kind, "tenant": tenant}


def _add_proofs(
    samples: Samples, cluster: ClusterState, wanted: MetricsOptions, label: Mapping[str, str]
) -> None:
    """Add the last proven restore of each guest, if there is a record of drills."""
    if wanted.proofs is None:
        return
    for row in cluster.vms.values():
        if row.template:
            continue
        labels = {**_labels_of(row, wanted.prefix), **label}
        proof = wanted.proofs.get((row.type, row.vmid, row.own_name))
        moment = 0 if proof is None else proof.time
        samples.put("proxmox_vm_proven_restore_timestamp_seconds", moment, **labels)
        if proof is not None and proof.restore_seconds is not None:
            seconds = proof.restore_seconds + (proof.boot_seconds or 0)
            samples.put("proxmox_vm_proven_restore_seconds", seconds, **labels)
