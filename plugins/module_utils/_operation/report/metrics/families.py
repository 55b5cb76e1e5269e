# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The families of metrics that this collection exports: name, kind and help text (data)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

GAUGE, COUNTER, SUMMARY = "gauge", "counter", "summary"


class MetricFamily(NamedTuple):
    """One family: a gauge, a counter, or a summary (the number of events and their sum)."""

    kind: str
    help: str

    @property
    def is_counted(self) -> bool:
        """Whether values add up over runs."""
        return self.kind != GAUGE


def _gauge(text: str) -> MetricFamily:
    return MetricFamily(GAUGE, text)


MACHINES = "proxmox_machines_total"
DURATION = "proxmox_reconciliation_duration_seconds"
REQUESTS = "proxmox_api_requests_total"
ERRORS = "proxmox_errors_total"
NODES_AVAILABLE = "proxmox_cluster_nodes_available"
CONNECTION = "proxmox_cluster_connection_status"

FAMILIES: Mapping[str, MetricFamily] = {
    CONNECTION: _gauge("Whether Proxmox VE answers (1) or not (0)."),
    "proxmox_metrics_complete": _gauge("Whether everything could be read (1) or not (0)."),
    "proxmox_unread_parts": _gauge("Number of things that could not be read, by part and error."),
    "proxmox_metrics_timestamp_seconds": _gauge("When these metrics were read, since the epoch."),
    "proxmox_cluster_info": _gauge("Name and version of the cluster, always 1."),
    "proxmox_cluster_quorate": _gauge("Whether the cluster has a quorum (1) or not (0)."),
    "proxmox_cluster_nodes": _gauge("Number of nodes of the cluster."),
    NODES_AVAILABLE: _gauge("Number of nodes that are online."),
    "proxmox_node_up": _gauge("Whether a node is online (1) or not (0)."),
    "proxmox_node_maintenance": _gauge(
        "Whether a node is in the maintenance mode of the HA manager (1) or not (0)."
    ),
    "proxmox_node_info": _gauge("Version of Proxmox VE on a node, always 1."),
    "proxmox_node_cores": _gauge("Number of cores of a node."),
    "proxmox_node_cpu_usage_ratio": _gauge("Load of a node's cores, 1 if all are busy."),
    "proxmox_node_memory_bytes": _gauge("Memory of a node."),
    "proxmox_node_memory_used_bytes": _gauge("Memory of a node that is in use."),
    "proxmox_node_free_cores": _gauge(
        "Cores that the placement rules leave for guests on a node, which may be given several"
        " times (proxmox_node_cpu_overcommit_ratio); below 0 if they are exceeded."
    ),
    "proxmox_node_free_memory_bytes": _gauge(
        "Memory that the placement rules leave for guests on a node, which may be given several"
        " times (proxmox_node_memory_overcommit_ratio); below 0 if they are exceeded."
    ),
    "proxmox_node_cpu_overcommit_ratio": _gauge(
        "How often the cores of a node may be given to guests under the placement rules."
    ),
    "proxmox_node_memory_overcommit_ratio": _gauge(
        "How often the memory of a node may be given to guests under the placement rules."
    ),
    "proxmox_node_free_vms": _gauge("Number of guests that the placement rules leave on a node."),
    "proxmox_storage_size_bytes": _gauge("Size of a storage; a shared one has no node."),
    "proxmox_storage_used_bytes": _gauge("Space of a storage that is in use."),
    MACHINES: _gauge(
        "Number of guests by node, kind (vm or container) and phase: running, stopped, template, or"
        " unknown, for example on a node that is offline."
    ),
    "proxmox_machines_without_tenant": _gauge("Number of guests that belong to no tenant."),
    "proxmox_tenant_vms": _gauge("Number of VMs and containers of a tenant."),
    "proxmox_tenant_cores": _gauge("Cores of the guests of a tenant."),
    "proxmox_tenant_memory_bytes": _gauge("Memory of the guests of a tenant."),
    "proxmox_tenant_disk_bytes": _gauge(
        "Size of all disks of the guests and templates of a tenant."
    ),
    "proxmox_tenant_quota_vms": _gauge("Number of VMs and containers that a tenant may have."),
    "proxmox_tenant_quota_cores": _gauge("Cores that the guests of a tenant may have."),
    "proxmox_tenant_quota_memory_bytes": _gauge("Memory that the guests of a tenant may have."),
    "proxmox_tenant_quota_disk_bytes": _gauge("Size of all disks that a tenant may have."),
    "proxmox_vm_snapshots": _gauge("Number of snapshots of a guest; none if it is not known."),
    "proxmox_vm_newest_snapshot_timestamp_seconds": _gauge(
        "When the newest snapshot of a guest was made, since the epoch."
    ),
    "proxmox_vm_backups": _gauge("Number of backups of a guest; none if it is not known."),
    "proxmox_vm_newest_backup_timestamp_seconds": _gauge(
        "When the newest backup of a guest was made, since the epoch."
    ),
    "proxmox_vm_proven_restore_timestamp_seconds": _gauge(
        "When a drill last proved a restore of a guest, since the epoch; 0 if none did."
    ),
    "proxmox_vm_proven_restore_seconds": _gauge(
        "Seconds of the last proven restore of a guest until it was up."
    ),
    "proxmox_drift_vms": _gauge("Number of VMs by what differs from the estate, and tenant."),
    "proxmox_drift_complete": _gauge("Whether all VMs could be compared (1) or not (0)."),
    "proxmox_drift_timestamp_seconds": _gauge("When the estate was compared, since the epoch."),
    "proxmox_playbook_success": _gauge(
        "Whether the last run of a playbook succeeded (1) or not (0)."
    ),
    "proxmox_playbook_timestamp_seconds": _gauge("When a playbook ended last, since the epoch."),
    DURATION: MetricFamily(SUMMARY, "Duration of tasks by action."),
    REQUESTS: MetricFamily(COUNTER, "Requests to the API by method, endpoint and status."),
    ERRORS: MetricFamily(COUNTER, "Errors by category."),
}
"""All families in the order of the file."""


def family_of(sample: str) -> str:
    """Return the name of the family of a sample, or an empty text for a foreign sample."""
    if sample in FAMILIES:
        return sample
    for suffix in ("_count", "_sum"):
        name = sample.removesuffix(suffix)
        if name != sample and name in FAMILIES and FAMILIES[name].kind == SUMMARY:
            return name
    return ""
