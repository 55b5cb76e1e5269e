# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.
"""The options of modules firewall, firewall_info and firewall_check."""


class ModuleDocFragment:
    SCOPE = r"""
options:
  scope:
    description: Scope of the firewall. V(guest) is a VM or a container, V(group) a security group.
    type: str
    required: true
    choices: [cluster, node, guest, vnet, group]
  node:
    description: Name of the node, with O(scope=node).
    type: str
  vnet:
    description: Name of the VNet, with O(scope=vnet).
    type: str
  group:
    description: Name of the security group, with O(scope=group). Proxmox VE keeps it in lower case.
    type: str
  name:
    description: Exact name of the guest, with O(scope=guest).
    type: str
  vmid:
    description: VMID of the guest, with O(scope=guest). If O(name) is also set, a guest with this
      VMID and another name is refused.
    type: int
  tenant:
    description:
      - Tenant of the guest, VNet or security group. A guest without exactly this tenant's tag is
        refused, and so is a VNet or a group without this tenant's mark in its comment.
      - By default, the guest can belong to any tenant. An empty value is therefore an error.
      - The firewall of the cluster or of a node does not belong to a tenant, so the task is
        refused.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
"""
