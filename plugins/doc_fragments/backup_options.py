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
      - The VMID of one VM or container. If O(name) is also set, a guest with this VMID and another
        name is refused.
      - Mutually exclusive with O(vms).
    type: int
  vms:
    description: Several VMs and containers, each by its exact name or VMID.
    type: list
    elements: str
  tenant:
    description:
      - The tenant of the guests. A named guest without exactly this tenant's tag is refused.
      - By default, guests of all tenants are selected. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  tags:
    description:
      - Selects the guests that have all of these tags, with O(tenant) only the guests of the
        tenant.
      - A named guest without one of them is refused.
    type: list
    elements: str
  pool:
    description:
      - Selects the guests in this resource pool, with O(tenant) only the guests of the tenant.
      - A named guest outside of it is refused.
    type: str
"""
