# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup.yml: do not edit.
"""The options of modules backup and backup_info."""


class ModuleDocFragment:
    CHOICE = r"""
options:
  name:
    description:
      - The exact name of one VM or container.
      - Mutually exclusive with O(vms).
    type: str
  vmid:
    description:
      - The number of one VM or container. With O(name) too, a guest of that number with another
        name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs and containers, each by its exact name or its number.
    type: list
    elements: str
  tenant:
    description:
      - The tenant whose guests these are. A guest that is named and does not have exactly this
        tenant's tag is refused.
      - By default, guests of every tenant are meant. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  tags:
    description:
      - Chooses the guests that have all of these tags, with O(tenant) only those of the tenant.
      - It has no effect on a guest that is named.
    type: list
    elements: str
  pool:
    description:
      - Chooses the guests in this resource pool, with O(tenant) only those of the tenant.
      - It has no effect on a guest that is named.
    type: str
"""
