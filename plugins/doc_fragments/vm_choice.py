# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say which VMs a task is about."""

from __future__ import annotations


class ModuleDocFragment:
    """The fragment `pve.fleet.vm_choice`."""

    DOCUMENTATION = r"""
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
      - The tenant whose VMs these are. A VM that is named and does not bear exactly this tenant's tag is refused.
      - Without O(name), O(vmid) and O(vms) all VMs of the tenant are meant that bear O(tags), without templates.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description:
      - All VMs are meant that bear all of these tags, with O(tenant) only those of the tenant.
      - It has no effect on a VM that is named.
    type: list
    elements: str
"""
