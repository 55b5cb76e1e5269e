# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from metrics.yml: do not edit.
"""The options of modules metrics and metrics_info."""


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  quotas:
    description:
      - Quotas by tenant, each a dictionary like O(pve.fleet.vm#module:quota), for the metrics about
        quotas.
      - The use of each tenant is reported in any case.
    type: dict
    default: {}
  tenants:
    description:
      - The tenants as an estate describes them, by name, for the metrics about quotas, see
        O(pve.fleet.vms#module:tenant_settings). A tenant has C(quota) at its C(site), or
        C(site_quotas) at its C(sites) and C(quota) over all of them, in a metric without a site.
      - O(quotas) overrides it at each site.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  snapshots:
    description: Whether to read the snapshots of each guest. This takes one request for each guest.
    type: bool
    default: true
  backups:
    description:
      - Whether to read the backups of each guest. This takes one request for each storage with
        backups, on each node if it is not shared, and two for each node.
      - Proxmox VE shows a backup to a caller with C(Datastore.AllocateSpace) on the storage and
        C(VM.Backup) on the guest, or with C(Datastore.Allocate) on the storage. Without these
        privileges, the backups of a guest are unknown.
    type: bool
    default: true
  volumes:
    description:
      - Whether to read the sizes of all disks. This takes one request for each storage with disks,
        on each node if it is not shared.
      - Proxmox VE shows a disk to a caller with C(Datastore.Audit) on the storage and
        C(VM.Config.Disk) on the guest, or with C(Datastore.Allocate) on the storage. Without these
        privileges, the disk use of a tenant is unknown.
    type: bool
    default: true
  versions:
    description:
      - Whether to read the version of Proxmox VE on each node, which is not part of any listing.
        This takes one request for each online node.
    type: bool
    default: true
  drift:
    description: The value C(drift) that M(pve.fleet.drift_info) returned. Without it, there are no
      metrics about drift.
    type: dict
  drills:
    description: The text of the record of drills, C(drill.json) of the role
      P(pve.fleet.drill#role). Without it, there are no metrics about proven restores.
    type: str
    default: ''
  cpu_overcommit:
    description:
      - Overcommit factor for the cores of a node.
      - This and the next three options have the same meaning as in
        O(pve.fleet.vm#module:placement).
    type: float
    default: 4.0
  memory_overcommit:
    description: Overcommit factor for the memory of a node.
    type: float
    default: 1.0
  min_free_memory:
    description: Memory that must stay free on a node, such as V(4G). A bare number is MiB.
    type: raw
  max_vms_per_node:
    description: Maximum number of VMs on a node, as one number or as a dictionary by node.
    type: raw
"""
