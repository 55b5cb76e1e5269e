#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from failover.yml: do not edit.

DOCUMENTATION = r"""
module: failover
short_description: Bring up the guests of a lost site at another site
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Restores the newest archive of each guest of a lost site, starts the guests in start order, and
    waits until they are up. Storages, networks and addresses are translated by tables.
  - With O(lost_nodes), it brings up the guests of lost nodes of the same cluster from their
    replicas.
  - One plan is made for all guests. If one of them cannot be brought up, the task is refused before
    the first write, and names every problem - a guest that runs at the other site, capacity, quota,
    storage, network, address, pool, an unusable archive, and a guest that already exists here.
  - An existing guest is never overwritten. A guest that an earlier run restored is recognized by
    its notes. It is not restored again, but started if it is stopped.
  - A guest that fails does not stop the others. The task then fails at the end, and the next run
    completes it.
  - To fail back, run the same task at the first site.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - A rehearsal creates copies in each run.
options:
  from_site:
    description:
      - Name of the site whose guests are brought up here, from O(sites) or O(sites_file). The
        module checks whether the guests run there. Nothing is written there.
      - Without it, O(lost) is required.
    type: str
  lost:
    description:
      - Whether the other site is lost. If it does not answer, its guests count as stopped, as do
        guests on its offline nodes.
      - If a guest still runs there, the task is refused even then.
    type: bool
    default: false
  rehearsal:
    description:
      - Whether the guests are restored as isolated copies, as by M(pve.fleet.drill), for a
        rehearsal. They may run at the other site.
      - With O(lost_nodes), nothing is copied or written. The plan is made as if the nodes were
        lost, and is refused for the same reasons.
      - The copies remain until M(pve.fleet.drill) with O(run) and C(state=absent) removes them, as
        the role does.
    type: bool
    default: false
  run:
    description: ID of a rehearsal, such as the RV(run) of a preview. By default, a random ID is
      used.
    type: str
  storages:
    description: Storages of this site with the backups of the other site. One of O(storages) and
      O(lost_nodes) is required.
    type: list
    elements: str
  lost_nodes:
    description:
      - Lost nodes of this cluster. Their guests are brought up on other nodes from the replicas of
        replication jobs, see M(pve.fleet.replication).
      - The API cannot move the configuration of a guest from an offline node. The module marks the
        replication jobs, and returns the files in RV(moves). They must be moved with C(mv) on a
        node, as the role does. A second run starts the guests.
      - The task is refused without a quorum, and if one of the nodes is online. It also needs
        C(VM.Replicate) on the guests, and C(Sys.Audit) on C(/).
      - O(networks) and O(addresses) change the NICs of a guest after its move and before its start.
      - O(from_site), O(storage), O(storage_map), O(pools), O(quotas), O(node), O(placement),
        O(copy_pool), O(network) and O(vmid_range) are refused, because a replica is fixed to its
        node and its storages. MAC addresses stay.
    type: list
    elements: str
  configurations:
    description: The configurations of the guests of O(lost_nodes), as C(grep -r ''
      /etc/pve/nodes/NODE/qemu-server /etc/pve/nodes/NODE/lxc) prints them on a remaining node.
    type: list
    elements: str
  replicas:
    description: Snapshots by remaining node, as C(zfs list -H -t snapshot -o name) prints them
      there. Guests are only brought up on these nodes.
    type: dict
  vms:
    description:
      - Only these guests, each by its name or by its VMID at the other site. If a named guest has
        no archive, the task is refused.
      - By default, all guests with an archive are selected.
    type: list
    elements: str
  exclude:
    description: Guests to exclude, each by its name or by its VMID at the other site.
    type: list
    elements: str
  tenant:
    description: Only guests of this tenant. By default, guests of all tenants are selected. An
      empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  max_age:
    description: Maximum age of the newest archive or replica, such as V(26h). Guests with an older
      one are excluded. An archive does not show whether its guest was removed later. By default,
      there is no limit.
    type: str
  storage:
    description: Storage for all disks that O(storage_map) does not name. By default, a disk is
      restored to the storage of the same name.
    type: str
  storage_map:
    description: The new storage of disks, by their former storage.
    type: dict
  networks:
    description: The new bridge or VNet of NICs, by their former one. NICs on other bridges keep the
      name of their bridge. VLAN tags are kept.
    type: dict
  addresses:
    description:
      - The new network of static addresses and gateways, by their former network, such as
        C(10.1.0.0/24) and C(10.2.0.0/24). Both networks must have the same size, and an address
        keeps its position in the network. The most specific network applies.
      - It applies to addresses of containers and of cloud-init. Addresses that a guest configures
        itself are not changed. Name servers in these networks are changed, and others are kept.
      - By default, addresses are kept. If networks are set and an address is in none of them, the
        task is refused.
    type: dict
  keep_macs:
    description: Whether guests keep their MAC addresses. Copies of a rehearsal never keep them.
    type: bool
    default: true
  pools:
    description: Resource pools by tenant. By default, guests of a tenant are added to the pool that
      M(pve.fleet.tenant) created for it here. If a tenant has no pool, the task is refused.
    type: dict
  quotas:
    description: Quotas by tenant, each a dictionary like O(pve.fleet.vm#module:quota). By default,
      there are none.
    type: dict
    default: {}
  node:
    description: The node of all guests. By default, each guest is placed like a new guest.
    type: str
  placement:
    description: Rules for the nodes, see O(pve.fleet.vm#module:placement). A restore writes whole
      disks, so C(storage_overcommit) is 1 by default.
    type: dict
  copy_pool:
    description: Resource pool of the copies of a rehearsal. By default, they are not in a pool.
    type: str
  network:
    description:
      - An isolated bridge or VNet for all NICs of the copies of a rehearsal, which are then
        connected. The module does not check the isolation.
      - By default, all their NICs are disconnected.
    type: str
  vmid_range:
    description:
      - First and last VMID of the guests here. By default, guests keep their VMIDs.
      - Copies of a rehearsal get VMIDs from this range, by default 900000 to 909999.
    type: list
    elements: int
  start:
    description: Guests to start. V(onboot) starts guests that start with their node.
    type: str
    choices: [all, onboot, none]
    default: all
  parallel:
    description:
      - Number of guests that are restored at the same time.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 4
  wait_timeout:
    description:
      - Seconds to wait for the guest agent of a guest whose configuration has an agent.
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
extends_documentation_fragment: [pve.fleet.plan_options, pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.drill
  - module: pve.fleet.restore
  - module: pve.fleet.backup_info
  - module: pve.fleet.tenant
"""

EXAMPLES = r"""
- name: Show how the guests of a lost site would be brought up here
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

- name: Bring up the guests of a tenant, except a guest that was removed
  pve.fleet.failover:
    storages: [local]
    lost: true
    tenant: acme
    pools: {acme: acme}
    exclude: [old1]
    max_age: 26h

- name: Rehearse the failover with isolated copies
  pve.fleet.failover:
    storages: [local]
    pools: {acme: acme}
    rehearsal: true
  register: rehearsed

- name: Remove the copies
  pve.fleet.drill:
    run: "{{ rehearsed.run }}"
    state: absent

- name: Check that the guests of a node could be brought up from their replicas
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
  description: Start time of the run.
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
    proof: {description: V(agent) if its agent answered or V(started) if it stayed running.,
      type: str, sample: agent}
    msg: {description: Why it failed., type: str, sample: null}
    volume: {description: 'Its archive, or V(replica) and its job.', type: str,
      sample: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    archive_time: {description: Time of the archive or replica., type: str,
      sample: '2026-11-20T20:15:33Z'}
    archive_age: {description: Age of the archive or replica in seconds., type: int, sample: 43200}
    left_out: {description: 'Disks whose data is not in the archive, because their backup is off.',
      type: list, elements: str, sample: [scsi1]}
    restore_seconds: {description: Duration of the restore., type: int, sample: 95}
    boot_seconds: {description: Seconds from the start to the answer of the agent., type: int,
      sample: 21}
    new_vmid: {description: VMID at this site., type: int, sample: 15046}
    new_name: {description: Name at this site., type: str, sample: web1}
    node: {description: Node at this site., type: str, sample: pve1}
moves:
  description: Configurations that must be moved before the guests of O(lost_nodes) are started,
    each with C(vmid), C(name), C(node), the paths C(source) and C(destination), and the C(changes)
    to its NICs in words.
  returned: success
  type: list
  elements: dict
  sample: []
left_out:
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
  description: Duration of the run in seconds (RTO). Null in check mode.
  returned: success
  type: int
  sample: 640
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['+ acme/web1  up as 15046 on pve1, from nas:backup/vm/15046/2026-11-20T20:15:33Z', 'Done:
    1 created']
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

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.failover import (
    failover_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.failover.run import (
    run,
    run_at_sites,
    sites_of,
)

ENTRY = ModuleEntry(
    run,
    failover_spec(),
    sites=SiteSupport(names=sites_of, run=run_at_sites),
    plans=True,
    names={"storage": "storage", "node": "node", "copy_pool": "pool", "network": "network"},
    name="failover",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
