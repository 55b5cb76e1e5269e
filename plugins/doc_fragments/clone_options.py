# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module clone except the options of a VM.

Written by `make options` from clone.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  source:
    description:
      - The template, VM or container to clone. Digits are a VMID, any other text is an exact name.
      - A name refers to the template with that name, or else to the VM or container, preferring
        those of O(tenant). It must be unique, except for copies on several nodes and versions of
        an image, such as V(debian-13@2026.11.20); without a version, it is the newest one on the
        node of the clone.
      - With O(tenant), templates without a tenant and the tenant's own guests and templates can
        be cloned. Any other source must be in O(shared_sources).
      - The clone of a container takes the options that M(pve.fleet.container) has under the same
        name. An option that only a VM has, such as O(disks), is refused before the first write.
      - A running container can be cloned from a O(snapshot) only.
    type: str
    required: true
  state:
    description:
      - V(present) ensures that the clone exists and does not change its power state. A new clone
        is not started.
      - V(started) and V(stopped) also start or stop it.
    type: str
    choices: [present, started, stopped]
    default: present
  full:
    description:
      - Whether the disks are copied (V(true)), or linked to those of the template (V(false)).
      - By default, a clone of a template is linked if its storages support that, and any other
        clone is full.
      - Volumes of a container can be linked to a snapshot on Ceph (rbd) and thin LVM.
    type: bool
  storage:
    description:
      - Storage for the disks of a full clone. By default, each disk stays on the storage of the
        source's disk.
      - O(disks[].storage) overrides it for one disk.
    type: str
  format:
    description: Format of the disks of a full clone of a VM on a file-based storage.
    type: str
    choices: [raw, qcow2, vmdk]
  snapshot:
    description: Snapshot of the source to clone. By default, the current state is cloned.
    type: str
  allow_privileged:
    description:
      - Whether the clone can be a privileged container. With V(false), the clone of a privileged
        container is refused before the first write.
      - A VM is never privileged.
    type: bool
    default: true
  pool:
    description: Resource pool for a new clone. It must exist.
    type: str
  wait_for:
    description:
      - What to wait for after the clone was started. V(agent) waits until its guest agent answers,
        V(address) until the agent reports an address that O(address_family), O(address_nics) and
        O(address_subnets) allow.
      - Check mode does not wait.
    type: str
    choices: [none, agent, address]
    default: none
  wait_timeout:
    description:
      - Seconds to wait for O(wait_for).
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
"""
