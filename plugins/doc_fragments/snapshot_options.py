# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from snapshot.yml: do not edit.
"""The options of modules snapshot and snapshot_info."""


class ModuleDocFragment:
    CHOICE = r"""
options:
  name:
    description:
      - The exact name of one VM.
      - Mutually exclusive with O(vms).
    type: str
  vmid:
    description:
      - The VMID of one VM. If O(name) is also set, a VM with this VMID and another name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs, each by its exact name or VMID.
    type: list
    elements: str
  tenant:
    description:
      - The tenant of the VMs. A named VM without exactly this tenant's tag is refused.
      - By default, VMs of all tenants are selected. An empty value is therefore an error.
      - Without O(name), O(vmid) and O(vms), all VMs of the tenant with O(tags) are selected, except
        templates.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  tags:
    description:
      - Selects the VMs that have all of these tags, with O(tenant) only the VMs of the tenant.
      - A named VM without one of them is refused.
    type: list
    elements: str
"""
