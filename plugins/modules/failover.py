#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from failover.yml: do not edit.

DOCUMENTATION = r"""
module: failover
short_description: Bring the guests of a lost site up at another one
version_added: 0.2.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Restores the newest archive of each guest of a lost site, starts the guests in start order, and
    waits until they are up. Storages, networks and addresses change by tables.
  - With O(lost_nodes), the guests of lost nodes of the same cluster come up from their replicas.
  - One plan is made for all guests. If one of them cannot come up, the task is refused before the
    first write, and names every problem - a guest that runs at the other site, room, quota,
    storage, network, address, pool, an archive that cannot be used, and a guest that exists here.
  - A guest that exists here is never overwritten. A guest that an earlier run has restored is
    recognized by its notes. It is not restored again, and started if it is stopped.
  - A guest that fails does not stop the others. The task then fails at the end, and the next run
    completes it.
  - The way back is the same task at the first site.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A rehearsal makes copies in each run.
options:
  from_site:
    description:
      - Name of the site whose guests come up here, one of O(sites) or O(sites_file). It is asked
        whether the guests run there. Nothing is written there.
      - Without it, O(lost) is required.
    type: str
  lost:
    description:
      - Whether the other site is lost, so that a site that does not answer, and guests on its nodes
        that are offline, count as stopped.
      - A guest that runs there is a reason to refuse the task even then.
    type: bool
    default: false
  rehearsal:
    description:
      - Whether the guests are restored as isolated copies, as M(pve.fleet.drill) makes them, for a
        rehearsal. It does not matter whether they run at the other site.
      - With O(lost_nodes), nothing is copied or written. The plan is made as if the nodes were
        lost, and refused for the same reasons.
      - The copies stay until M(pve.fleet.drill) with O(run) and C(state=absent) removes them, as
        the role does.
    type: bool
    default: false
  run:
    description: ID of a rehearsal, such as the RV(run) of a preview. By default, it is chosen at
      random.
    type: str
  storages:
    description: Storages of this site with the backups of the other one. One of O(storages) and
      O(lost_nodes) is required.
    type: list
    elements: str
  lost_nodes:
    description:
      - Nodes of this cluster that are lost. Their guests come up on other nodes from the replicas
        that replication jobs have made, see M(pve.fleet.replication).
      - The API cannot move the configuration of a guest of a node that is offline. The module marks
        the replication jobs, and returns the files in RV(moves); they are moved by C(mv) on a node,
        as the role does. A second run starts the guests.
      - The task is refused without a quorum, and if one of the nodes is online. It also needs
        C(VM.Replicate) on the guests, and C(Sys.Audit) on C(/).
      - O(networks) and O(addresses) change the NICs of a guest after it was moved and before it is
        started.
      - O(from_site), O(storage), O(storage_map), O(pools), O(quotas), O(node), O(placement),
        O(copy_pool), O(network) and O(vmid_range) are refused, because a replica is fixed to its
        node and its storages. MAC addresses stay.
    type: list
    elements: str
  configurations:
    description: The configurations of the guests of O(lost_nodes), as C(grep -r ''
      /etc/pve/nodes/NODE/qemu-server /etc/pve/nodes/NODE/lxc) prints them on a node that is left.
    type: list
    elements: str
  replicas:
    description: By node that is left, its snapshots as C(zfs list -H -t snapshot -o name) prints
      them there. Guests come up on these nodes only.
    type: dict
  vms:
    description:
      - Only these guests, each by its name or by its VMID at the other site. A name without an
        archive is a reason to refuse the task.
      - By default, all guests with an archive are chosen.
    type: list
    elements: str
  exclude:
    description: Guests that are left out, each by its name or by its VMID at the other site.
    type: list
    elements: str
  tenant:
    description: Only guests of this tenant. By default, guests of all tenants are chosen. An empty
      value is therefore an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  max_age:
    description: Guests whose newest archive or replica is older are left out, such as V(26h). An
      archive does not say whether its guest was removed later. By default, the age does not matter.
    type: str
  storage:
    description: Storage for all disks that O(storage_map) does not name. By default, a disk is
      restored to the storage of the same name.
    type: str
  storage_map:
    description: The storage of disks by the storage that they were on.
    type: dict
  networks:
    description: The bridge or VNet of NICs by the one that they were on. NICs on others keep its
      name. VLAN tags stay.
    type: dict
  addresses:
    description:
      - The network of static addresses and gateways by the network that they were in, such as
        C(10.1.0.0/24) and C(10.2.0.0/24). Both have the same size, and an address keeps its place
        in the network. The most specific network counts.
      - These are addresses of containers and of cloud-init. Addresses that a system has configured
        itself stay. Name servers in these networks change, and others stay.
      - By default, addresses stay. With a table, an address in none of its networks is a reason to
        refuse the task.
    type: dict
  keep_macs:
    description: Whether guests keep their MAC addresses. A copy of a rehearsal never does.
    type: bool
    default: true
  pools:
    description: Resource pools by tenant. By default, guests of a tenant come into the pool that
      M(pve.fleet.tenant) has created for it here. A tenant without a pool is a reason to refuse the
      task.
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
    description: Rules about the nodes, see O(pve.fleet.vm#module:placement). A restore writes whole
      disks, so that C(storage_overcommit) is 1 by default.
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
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.drill
  - module: pve.fleet.restore
  - module: pve.fleet.backup_info
  - module: pve.fleet.tenant
"""

EXAMPLES = r"""
- name: Show how the guests of a lost site would come up here
  pve.fleet.failover:
    storages: [local]
    lost: true
    storage_map: {local-lvm: ceph}
    networks: {vmbr1: vmbr0}
    pools: {acme: acme}
  check_mode: true
  register: planned

- name: Print the plan
  ansible.builtin.debug:
    var: planned.report

- name: Bring the guests of a tenant up, and leave out a guest that was removed
  pve.fleet.failover:
    storages: [local]
    lost: true
    tenant: acme
    pools: {acme: acme}
    exclude: [old1]
    max_age: 26h

- name: Rehearse that with isolated copies
  pve.fleet.failover:
    storages: [local]
    pools: {acme: acme}
    rehearsal: true
  register: rehearsed

- name: Remove the copies
  pve.fleet.drill:
    run: "{{ rehearsed.run }}"
    state: absent

- name: Check that the guests of a node could come up from their replicas
  pve.fleet.failover:
    lost_nodes: [pve3]
    configurations: []
    replicas: {pve1: []}
    rehearsal: true
"""

RETURN = r"""
run:
  description: ID of the run.
  returned: success
  type: str
  sample: 3f9a01c2d4e5
began:
  description: When it began.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
rehearsal:
  description: Whether it was a rehearsal.
  returned: success
  type: bool
  sample: false
guests:
  description: The guests in start order.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID at the other site., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Its name., type: str, sample: web1}
    tenant: {description: Its tenant., type: str, sample: acme}
    order: {description: Its start order. Null if it has none., type: int, sample: 1}
    outcome: {description: 'V(planned) in check mode, V(up), V(restored) if it was not to be
      started, V(unchanged), or V(failed).', type: str, sample: up}
    proof: {description: V(agent) if its agent answered and V(started) if it stayed running.,
      type: str, sample: agent}
    msg: {description: Why it failed., type: str, sample: null}
    volume: {description: 'Its archive, or V(replica) and its job.', type: str,
      sample: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    archive_time: {description: When the archive or replica was made., type: str,
      sample: '2026-11-20T20:15:33Z'}
    archive_age: {description: Age of the archive or replica in seconds., type: int, sample: 43200}
    restore_seconds: {description: Duration of the restore., type: int, sample: 95}
    boot_seconds: {description: Seconds from the start to the answer of the agent., type: int,
      sample: 21}
    new_vmid: {description: VMID here., type: int, sample: 15046}
    new_name: {description: Name here., type: str, sample: web1}
    node: {description: Node here., type: str, sample: pve1}
moves:
  description: Configurations that must be moved before the guests of O(lost_nodes) are started,
    each with C(vmid), C(name), C(node), the paths C(source) and C(destination), and the C(changes)
    of its NICs in words.
  returned: success
  type: list
  elements: dict
  sample: []
skipped:
  description: Guests that were left out, each with C(vmid), C(name) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 9000, name: debian-13, reason: it is a template}]
recovery_point:
  description: Age of the oldest archive or replica in seconds (RPO). Null without guests.
  returned: success
  type: int
  sample: 43200
recovery_time:
  description: Seconds that the run took (RTO). Null in check mode.
  returned: success
  type: int
  sample: 640
report:
  description: One line for each guest.
  returned: success
  type: list
  elements: str
  sample: ['web1 (15046) up: 15046 on node pve1']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Restore VM ''web1'' (15046) on node pve1 from nas:backup/vm/15046/2026-11-20T20:15:33Z']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: refused failover
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
    problems:
      - 'VM ''web1'' (15046): bridge or VNet vmbr7 is not here (networks)'
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry, Sites
from ansible_collections.pve.fleet.plugins.module_utils._failover.run import (
    run,
    run_at_sites,
    sites_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.failover import (
    failover_spec,
)

ENTRY = Entry(run, failover_spec(), sites=Sites(names=sites_of, run=run_at_sites), name="failover")
main = ENTRY.main

if __name__ == "__main__":
    main()
