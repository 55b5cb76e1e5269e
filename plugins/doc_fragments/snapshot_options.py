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
      - The number of one VM. With O(name) too, a VM of that number with another name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs, each by its exact name or its number.
    type: list
    elements: str
  tenant:
    description:
      - The tenant whose VMs these are. A VM that is named and does not have exactly this tenant's
        tag is refused.
      - Left out, VMs of every tenant are meant, so it is an error when it is given without a value.
      - Without O(name), O(vmid) and O(vms) all VMs of the tenant with O(tags) are chosen, without
        templates.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description:
      - Chooses the VMs that have all of these tags, with O(tenant) only those of the tenant.
      - It has no effect on a VM that is named.
    type: list
    elements: str
"""
