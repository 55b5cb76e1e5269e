# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module drift_info.

Written by `make options` from drift_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  vms:
    description: The VMs of the estate, each with the options of an item of
      O(pve.fleet.vms#module:vms).
    type: list
    elements: dict
  containers:
    description:
      - The containers of the estate, each with the options of an item of
        O(pve.fleet.vms#module:containers).
      - Containers are compared, and those that are not in the estate reported,
        only if there is this list. It may be empty.
    type: list
    elements: dict
  cluster:
    description:
      - A cluster file, with the options of M(pve.fleet.cluster). It is compared
        with each site that the VMs name, or with the site of the task.
      - By default, only VMs and containers are compared.
    type: dict
  defaults:
    description: Options for every VM, see O(pve.fleet.vms#module:defaults).
    type: dict
    default: {}
  classes:
    description: Named sizes, see O(pve.fleet.vm#module:classes).
    type: dict
    default: {}
  networks:
    description: Named networks, see O(pve.fleet.vm#module:networks).
    type: dict
    default: {}
  storage_classes:
    description: Named storages, see O(pve.fleet.vm#module:storage_classes).
    type: dict
    default: {}
  state:
    description: State of a VM if neither the VM nor O(defaults) sets one.
    type: str
    choices: [present, started, stopped]
    default: present
  tenants:
    description:
      - Compares only the VMs of these tenants. Names are compared exactly.
        An empty list means all VMs.
      - The whole list is validated, including the VMs of other tenants.
    type: list
    elements: str
  tenant_settings:
    description: What holds for the VMs of a tenant, see O(pve.fleet.vms#module:tenant_settings).
    type: dict
    default: {}
  tenants_required:
    description: Whether each tenant in O(tenants) must have a VM in the list.
    type: bool
    default: true
  backup_jobs:
    description: Whether the backup jobs of guests with the option C(backup)
      are compared, which needs C(Sys.Audit) on C(/). A guest whose jobs cannot
      be read is unknown.
    type: bool
    default: true
  unlisted:
    description:
      - Whether to report VMs that are not in the list. With O(tenants), only
        those of these tenants.
      - Templates are not reported.
    type: bool
    default: true
  ignore:
    description:
      - Differences that are expected, as patterns V(VM) or V(VM:OPTION).
        V(*) stands for any characters.
      - C(VM) is compared with the name of a VM, with C(TENANT/NAME), and
        with the VMID. C(OPTION) is compared with the option as Proxmox VE
        calls it, such as V(memory) or V(net0), and with V(status), V(node)
        and V(pool).
      - V(acme/web*:description) ignores the notes of some VMs, V(*:cpu*)
        options of all VMs, and V(globex/*) everything about the VMs of a
        tenant. What is ignored is counted in RV(drift.summary).
      - A resource of O(cluster) is called C(SECTION/NAME), as V(storages/media:content).
    type: list
    elements: str
    default: []
"""
