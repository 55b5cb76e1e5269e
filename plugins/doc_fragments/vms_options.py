# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module vms beside those of a VM.

Written by `make options` from vms.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  vms:
    description:
      - The VMs. Each needs a name or a VMID.
      - Options of a VM override those of its class, which override the options for every VM.
        Dictionaries are merged by key, O(disks) and O(nics) by slot, tags are combined, and other
        lists are replaced.
      - All VMs are validated before the first change. An error contains the position in the list,
        the name of the VM and the option.
    type: list
    elements: dict
    required: true
  defaults:
    description:
      - Options for every VM as one dictionary, such as a variable of an estate. It overrides
        the same options next to O(vms). Every option of a VM is allowed except its name and VMID.
    type: dict
    default: {}
  tenants:
    description:
      - Limits the run to the VMs of these tenants, set by O(vms[].tenant) or by the tenant for
        every VM. Names are compared exactly. An empty list means all VMs.
      - If it is set together with O(prune), it must contain exactly one tenant. Pruning is then
        limited to that tenant.
      - The whole list is validated, including the VMs of other tenants.
    type: list
    elements: str
  tenant_settings:
    description:
      - What holds for the VMs of a tenant, by the name of the tenant. Options of a VM and of
        its class override it, and it overrides the options for every VM.
      - Each is a dictionary with any of C(pool), C(tags), C(quota), C(placement), C(networks),
        C(classes), C(storage_classes) and C(class), which are options of a VM; C(defaults), a
        dictionary of other options of its VMs; and C(site), the site of its VMs, see O(site).
        C(comment) and C(access) are for M(pve.fleet.tenant).
      - Where it is given, a VM of a tenant that it does not have is rejected.
      - The VMs of several sites are worked on side by side. If a site fails as a whole, its VMs
        fail, and those of other sites do not. Numbers, names, quotas and placement are those
        of each site, and so is O(prune).
    type: dict
    default: {}
  tenants_required:
    description: Whether each tenant in O(tenants) must have a VM in the list.
    type: bool
    default: true
  remove:
    description:
      - Whether to remove the VMs of the list, regardless of O(vms[].state). Only options that
        identify a VM, stop it or lift its protection are used, so an error in another option
        does not prevent the removal.
      - No VM is removed if an entry has the VMID of a VM with another name, or if an entry without
        a tenant refers to a VM with a tenant's tag.
      - O(prune) has no effect with it.
    type: bool
    default: false
  prune:
    description:
      - Whether to remove VMs, with their disks, that are not in the list and have exactly the
        tag of O(tenant), are in O(pool), or both if both are set. One of them must be set for
        every VM.
      - Templates are never removed. A protected VM is an error.
      - It is an error if the name of a new VM differs only in case from that of a VM that would
        be removed.
      - No VM is removed if the list is empty or a VM of the list fails. Each VM is read again
        right before its removal.
      - With O(tenants), nothing is changed if an entry of another tenant has the same tag in
        different case, or if a VM that would be removed is listed by name for another tenant.
    type: bool
    default: false
  reboot_batch:
    description:
      - Maximum number of running VMs that are down at the same time for a reboot, restart, reset
        or a change that needs a stop. V(0) means unlimited.
      - VMs are taken down in batches of this size. The next batch starts when all VMs of the
        previous one run again, or, with O(vms[].wait_for), when their guests are ready.
      - VMs that C(anti_affinity) in O(vms[].placement) keeps apart are never down at the same
        time.
      - If a VM does not run again, no further VM is taken down, and the remaining ones fail.
    type: int
    default: 5
  details:
    description: Whether RV(vms) includes the properties, plan and conditions of each VM in addition
      to its outcome.
    type: bool
    default: true
  parallel:
    description:
      - Maximum number of concurrent tasks of Proxmox VE. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 32
  parallel_per_node:
    description:
      - Maximum number of concurrent tasks on one node. 0 means unlimited. A clone runs on the
        node of its source.
      - Environment variable E(PROXMOX_PARALLEL_PER_NODE).
    type: int
    default: 4
  parallel_per_storage:
    description:
      - Maximum number of VMs whose disks are created on one storage at the same time. 0 means
        unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_STORAGE).
    type: int
    default: 0
  parallel_per_template:
    description:
      - Maximum number of concurrent clones of one template or VM. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_TEMPLATE).
    type: int
    default: 4
"""
