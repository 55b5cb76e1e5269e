# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module estate_info.

Written by `make options` from estate_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  tenant:
    description:
      - Only VMs and containers with this tenant's tag and without the tag of another tenant.
      - By default, guests of all tenants are returned. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  pool:
    description: Only guests in this resource pool.
    type: str
  tags:
    description: Only guests that have all of these tags.
    type: list
    elements: str
  vms:
    description: Only these VMs and containers, by name or VMID. One that is not there is an
      error.
    type: list
    elements: str
  templates:
    description: Whether templates are part of the estate.
    type: bool
    default: true
  adopt:
    description:
      - Tenant that the VMs without one get. In the estate they have it with C(adopt=true),
        and a run of C(pve.fleet.provision) adds its tag to them, and nothing else.
      - Templates keep to no tenant, because each tenant can clone these. O(adopt) cannot be
        combined with O(tenant).
    type: str
  power:
    description:
      - Whether VMs have their power state. If V(false), a run of the estate leaves it alone,
        and VMs that it creates are not started.
    type: bool
    default: true
  on_nodes:
    description:
      - Whether VMs have their node. A run of such an estate moves a VM back that was migrated.
    type: bool
    default: false
  quotas:
    description:
      - Whether each tenant has what its VMs use as its quota. Proxmox VE has no quotas, so
        by default the use is a comment in RV(text).
    type: bool
    default: false
"""
