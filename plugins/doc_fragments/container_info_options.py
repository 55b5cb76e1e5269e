# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module container_info.

Written by `make options` from container_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Only containers with exactly this name.
    type: str
  vmid:
    description: Only the container with this VMID.
    type: int
  node:
    description: Only containers on this node.
    type: str
  tenant:
    description:
      - Only containers with this tenant's tag and without the tag of another tenant.
      - By default, containers of all tenants are returned. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  tags:
    description: Only containers that have all of these tags.
    type: list
    elements: str
  pool:
    description: Only containers in this resource pool.
    type: str
  template:
    description: Only templates (V(true)) or only other containers (V(false)).
    type: bool
  config:
    description:
      - Whether to read the configuration. Without it RV(containers[].config) is null, and status
        and name can be about 10 seconds old, because they come from the listing of Proxmox VE.
    type: bool
    default: false
"""
