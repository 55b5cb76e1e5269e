# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guest of a connection, shared by the connection plugins."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  vmid:
    description: The VMID of the guest. The inventory sets it.
    type: int
    vars:
      - name: ansible_pve_vmid
      - name: proxmox_vmid
  guest_name:
    description:
      - The name of the guest in Proxmox VE. The inventory sets it.
      - A guest with this VMID and another name is refused, since its VMID has been reused.
      - Without O(vmid) it is the name by which the guest is found, by default the name of the host.
    type: str
    vars:
      - name: ansible_pve_guest_name
      - name: proxmox_name
  node:
    description: The node to ask first. The guest is found wherever it is. The inventory sets it.
    type: str
    vars:
      - name: ansible_pve_node
      - name: proxmox_node
  command_timeout:
    description: How many seconds a command may take. It is killed after that.
    type: float
    default: 3600
    vars: [{name: ansible_pve_command_timeout}]
  tenant:
    description:
      - The tenant of the guest. A guest of another tenant is refused.
      - Environment variable E(PROXMOX_TENANT).
    type: str
    env: [{name: PROXMOX_TENANT}]
    vars: [{name: ansible_pve_tenant}]
  tenant_prefix:
    description:
      - How the tag of a tenant begins.
      - Environment variable E(PROXMOX_TENANT_PREFIX).
    type: str
    default: tenant_
    env: [{name: PROXMOX_TENANT_PREFIX}]
    vars: [{name: ansible_pve_tenant_prefix}]
"""
