# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module failover.

Written by `make options` from failover.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  from_site:
    description:
      - Name of the site whose guests come up here, one of O(sites) or O(sites_file). It is
        asked whether the guests run there. Nothing is written there.
      - Without it, O(lost) is required.
    type: str
  lost:
    description:
      - Whether the other site is lost, so that a site that does not answer, and guests on its
        nodes that are offline, count as stopped.
      - A guest that runs there is a reason to refuse the task even then.
    type: bool
    default: false
  rehearsal:
    description:
      - Whether the guests are restored as isolated copies, as M(pve.fleet.drill) makes them,
        for a rehearsal. It does not matter whether they run at the other site.
      - The copies stay until M(pve.fleet.drill) with O(run) and C(state=absent) removes them,
        as the role does.
    type: bool
    default: false
  run:
    description: ID of a rehearsal, such as the RV(run) of a preview. By default, it is chosen
      at random.
    type: str
  storages:
    description: Storages of this site with the backups of the other one.
    type: list
    elements: str
    required: true
  vms:
    description:
      - Only these guests, each by its name or by its VMID at the other site. A name without
        an archive is a reason to refuse the task.
      - By default, all guests with an archive are chosen.
    type: list
    elements: str
  exclude:
    description: Guests that are left out, each by its name or by its VMID at the other site.
    type: list
    elements: str
  tenant:
    description: Only guests of this tenant. By default, guests of all tenants are chosen. An
      empty value is therefore an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  max_age:
    description: Guests whose newest archive is older are left out, such as V(26h). An archive
      does not say whether its guest was removed later. By default, the age does not matter.
    type: str
  storage:
    description: Storage for all disks that O(storage_map) does not name. By default, a disk
      is restored to the storage of the same name.
    type: str
  storage_map:
    description: The storage of disks by the storage that they were on.
    type: dict
  networks:
    description: The bridge or VNet of NICs by the one that they were on. NICs on others keep
      its name. VLAN tags stay.
    type: dict
  addresses:
    description:
      - The network of static addresses and gateways by the network that they were in, such
        as C(10.1.0.0/24) and C(10.2.0.0/24). Both have the same size, and an address keeps
        its place in the network. The most specific network counts.
      - These are addresses of containers and of cloud-init. Addresses that a system has configured
        itself stay.
      - By default, addresses stay. With a table, an address in none of its networks is a reason
        to refuse the task.
    type: dict
  keep_macs:
    description: Whether guests keep their MAC addresses. A copy of a rehearsal never does.
    type: bool
    default: true
  pools:
    description: Resource pools by tenant. By default, guests of a tenant come into the pool
      that M(pve.fleet.tenant) has created for it here. A tenant without a pool is a reason
      to refuse the task.
    type: dict
  quotas:
    description: Quotas by tenant, each a dictionary like O(pve.fleet.vm#module:quota). By default,
      there are none.
    type: dict
    default: {}
  node:
    description: The node of all guests. By default, each guest is placed like a new one.
    type: str
  placement:
    description: Rules about the nodes, see O(pve.fleet.vm#module:placement). A restore writes
      whole disks, so that C(storage_overcommit) is 1 by default.
    type: dict
  copy_pool:
    description: Resource pool of the copies of a rehearsal. By default, they are in none.
    type: str
  network:
    description:
      - An isolated bridge or VNet for all NICs of the copies of a rehearsal, which then are
        connected. Nothing checks that it leads nowhere.
      - By default, all their NICs are disconnected.
    type: str
  vmid_range:
    description:
      - First and last VMID of the guests here. By default, guests keep their VMIDs.
      - Copies of a rehearsal have VMIDs of this range, from 900000 to 909999 by default.
    type: list
    elements: int
  start:
    description: Guests that are started. V(onboot) starts those that start with their node.
    type: str
    choices: [all, onboot, none]
    default: all
  parallel:
    description:
      - Guests that are restored at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  wait_timeout:
    description:
      - Seconds to wait for the guest agent of a guest that has one in its configuration.
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
  settle:
    description: Seconds during which a guest without an agent must stay running.
    type: int
    default: 10
  task_timeout:
    description:
      - Seconds to wait for a restore.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
"""
