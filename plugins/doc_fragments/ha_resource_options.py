# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules ha_resource and ha_resource_info.

Written by `make options` from ha_resource.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  sid:
    description: ID of the resource, V(vm:100) for a VM and V(ct:100) for a container.
    type: str
    required: true
  state:
    description: V(present) puts the guest under the HA manager or changes what differs, V(absent)
      removes it from the HA manager. The guest itself stays as it is.
    type: str
    choices: [present, absent]
    default: present
  request_state:
    description:
      - State that the HA manager maintains. V(started) starts the guest and restarts it on
        another node if its node fails, V(stopped) keeps it stopped and moves it if its node
        fails, V(disabled) keeps it stopped on its node, V(ignored) suspends the work of the
        HA manager on it.
      - By default, V(started) for a new resource. Otherwise it is not changed.
    type: str
    choices: [started, stopped, disabled, ignored]
  max_restart:
    description: Number of attempts to restart the guest on its node after a failed start. By
      default, V(1) for a new resource. Otherwise it is not changed.
    type: int
  max_relocate:
    description: Number of attempts to start the guest on another node. By default, V(1) for
      a new resource. Otherwise it is not changed.
    type: int
  failback:
    description: Whether the guest moves back to a node of higher priority that is online again.
      Needs Proxmox VE 9.0. By default, V(true) for a new resource. Otherwise it is not changed.
    type: bool
  group:
    description: HA group of the resource, with Proxmox VE 8 only. An empty text removes it.
      By default, it is not changed.
    type: str
  comment:
    description: Comment on the resource. An empty text removes it. By default, it is not changed.
    type: str
  tenant:
    description: Tenant to which the guest must belong. A guest without exactly the tag of this
      tenant is refused. By default, guests of every tenant are accepted.
    type: str
"""

    INFO = r"""
options:
  sid:
    description: ID of one resource, such as V(vm:100). By default, all resources are returned.
    type: str
"""
