#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from relocate.yml: do not edit.

DOCUMENTATION = r"""
module: relocate
short_description: Move guests to another cluster
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Moves VMs and containers to another cluster with the remote migration of Proxmox VE. Running VMs
    move with their memory, containers are restarted.
  - One plan is made for all guests. If one of them cannot move, the task is refused before the
    first write, and names every problem - snapshots, local media, devices, pending changes, formats
    of disks, storages, bridges, room, quota, names, VMIDs, CPU models, and versions.
  - The record of the move is written into the notes of the guest before the move. A later run reads
    it with the state of both sides, and does the next step, whatever interrupted the run before.
  - The source is never removed by the migration. It stays stopped and locked until the guest at the
    target is proven and O(hold) has passed.
  - An HA resource is removed before the move, because the HA manager removes the lock of a guest
    after the fencing of its node. The target becomes one with the same settings once it is proven.
  - Only root can remove the lock of a migration, and lock the source of a guest that moves by an
    archive. The commands are in RV(commands). A second run continues after them, as the role does.
  - Firewall, notes, tags, MAC addresses, the HA resource and its rules come along, and replication
    if the target can. The guest joins backup jobs of the same IDs. Permissions do not come along.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  to_site:
    description: Name of the site to which the guests move, from O(sites) or O(sites_file). Its
      login must be an API token, which the nodes of the source use.
    type: str
    required: true
  state:
    description:
      - V(present) moves the guests, proves them, and removes their sources once O(hold) has passed.
        A run does as much as it can now. The next run does the rest.
      - V(returned) is the way back while the source exists. The guest at the target is shut down,
        and the source is started. O(confirm) must name the guest, because the data that it wrote at
        the target is lost.
    type: str
    choices: [present, returned]
    default: present
  all:
    description: V(true) empties the site, it moves all guests except O(exclude). It is never the
      default, an empty list is an error.
    type: bool
  vms:
    description: Guests to move, each by its name or by its VMID at the source.
    type: list
    elements: str
  exclude:
    description: Guests to exclude, each by its name or by its VMID at the source.
    type: list
    elements: str
  tags:
    description: Guests that have all of these tags.
    type: list
    elements: str
  tenant:
    description: Guests of this tenant. An empty value is an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  confirm:
    description: Guests whose data at the target may be lost, each by its name or by one of its
      VMIDs. With O(state=returned).
    type: list
    elements: str
  storage:
    description: Storage at the target for all disks that O(storage_map) does not name. By default,
      a disk moves to the storage of the same name.
    type: str
  storage_map:
    description: The storage at the target by the storage at the source.
    type: dict
  archive_storage:
    description:
      - Storage for backups at the source, by which guests move that C(remote_migrate) cannot take,
        such as a linked clone, a disk on ZFS for a storage of another type, and with
        O(archive_without) a guest with snapshots. The guest is stopped, backed up and restored, and
        root locks its source in between.
      - The target must have the same storage under any name, on the same server - type C(pbs),
        C(nfs), C(cifs) or C(cephfs). The archive stays there.
      - By default, no guest moves by an archive, and one that is on its way by one is taken back.
    type: str
  archive_without:
    description: Parts of a guest that may stay behind if it moves by an archive. V(snapshots) are
      all of its snapshots, V(disks) its disks that backups leave out. A VM loses these disks, a
      container gets them empty.
    type: list
    elements: str
    choices: [snapshots, disks]
  networks:
    description: The bridge or VNet at the target by the one at the source. Other NICs keep the name
      of their bridge. MAC addresses, VLAN tags and addresses are kept.
    type: dict
  ha_rules:
    description: The HA rule at the target by the HA rule or group at the source, empty to leave it
      out. By default, a guest that is an HA resource joins the rule of the same name. A
      node-affinity rule that the target lacks is created if it has all of its nodes.
    type: dict
  replication_targets:
    description: The node to which the guest is replicated at the target, by the node at the source,
      empty for none. By default, the node of the same name. The job ends if the target has no such
      node, if the guest is on it, or unless all local storages are of type zfspool.
    type: dict
  pools:
    description: Resource pools at the target by tenant. By default, a guest is put into the pool
      that M(pve.fleet.tenant) created for its tenant, or into the pool with the name of its present
      one.
    type: dict
  quotas:
    description: Quotas at the target by tenant, each a dictionary like
      O(pve.fleet.vm#module:quota). By default, there are none.
    type: dict
    default: {}
  node:
    description: The node at the target of all guests. By default, each guest is placed like a new
      guest.
    type: str
  endpoints:
    description: Addresses of nodes at the target as the nodes of the source reach them, by node,
      such as C(10.2.0.1:8006). By default, the address of the connection for the node that answers,
      and the address in the cluster for others.
    type: dict
  vmid_range:
    description: First and last VMID of the guests at the target. By default, guests keep their
      VMIDs.
    type: list
    elements: int
  bwlimit:
    description: Maximum bandwidth of each migration in KiB/s. By default, the limits of the
      storages apply.
    type: int
  transfer_rate:
    description:
      - Transfer rate of the link between the sites in MiB/s, for the estimate of the duration. It
        limits nothing.
      - By default, O(bwlimit) is the rate of each move. Without both, the duration is not
        estimated.
    type: int
  windows:
    description:
      - Time windows in which moves start, such as V(22:00-05:00), as in
        O(pve.fleet.evacuation#module:windows). By default, they start at any time.
      - A move that has started is not interrupted at the end of a window. The other steps of a
        move, such as the removal of its source, are done at any time.
    type: list
    elements: str
  hold:
    description: Time for which the source of a proven guest stays, stopped and locked, such as
      V(12h) or V(7d).
    type: str
    default: 1d
  parallel:
    description:
      - Number of guests that move at the same time. Guests with the same start order move together,
        the first order first.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 2
  parallel_per_storage:
    description:
      - Number of guests that move from or to one storage at the same time. Storages of one name on
        several nodes of a site count as one. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_STORAGE).
    type: int
    default: 0
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
  shutdown_timeout:
    description:
      - Seconds for the shutdown of a guest on its way back.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 180
  task_timeout:
    description:
      - Seconds to wait for a migration, also for one that another run has started.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 86400
extends_documentation_fragment: [pve.fleet.plan_options, pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.failover
  - module: pve.fleet.vms
  - module: pve.fleet.restore
"""

EXAMPLES = r"""
- name: Show how the guests of a tenant would move to Munich
  pve.fleet.relocate:
    sites_file: /etc/fleet/sites.yml
    site: vienna
    to_site: munich
    tenant: acme
    storage: ceph
    networks: {vmbr1: vmbr0}
  check_mode: true
  register: planned

- name: Print the plan
  ansible.builtin.debug:
    var: planned.report

- name: Move a guest, and keep its source for a week
  pve.fleet.relocate:
    sites_file: /etc/fleet/sites.yml
    site: vienna
    to_site: munich
    vms: [web1]
    hold: 7d
  register: moved

- name: Bring it back without the data that it wrote in Munich
  pve.fleet.relocate:
    sites_file: /etc/fleet/sites.yml
    site: vienna
    to_site: munich
    vms: [web1]
    state: returned
    confirm: [web1]

- name: Move a drained site, one night after the other
  pve.fleet.relocate:
    sites_file: /etc/fleet/sites.yml
    site: vienna
    to_site: munich
    all: true
    storage: ceph
"""

RETURN = r"""
guests:
  description: The guests in start order.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID at the source., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Its name., type: str, sample: web1}
    tenant: {description: Its tenant., type: str, sample: acme}
    outcome: {description: 'V(planned) in check mode, V(waits) outside of O(windows), V(moving) if a
      migration of another run is not over, V(held) while the source waits, V(root) if
      RV(guests[].command) is the next step, V(complete), V(at source), or V(failed).', type: str,
      sample: held}
    side: {description: 'The side with the right data, V(source) or V(target).', type: str,
      sample: target}
    mode: {description: 'V(online), V(offline), V(restart) or V(archive).', type: str,
      sample: online}
    new_vmid: {description: VMID at the target., type: int, sample: 15046}
    node: {description: Node at the target., type: str, sample: pve1}
    bytes: {description: Size of its disks., type: int, sample: 34359738368}
    seconds: {description: 'Estimated seconds of its move, null without a rate, and if it has
      moved.', type: int, sample: 280}
    left_behind: {description: Things that do not come along., type: list, elements: str, sample:
      [backup job nightly]}
    backup: {description: 'The backup jobs that have it at the target, and whether its chain of
      backups continues, which needs the same VMID, server, datastore and namespace. Null if no job
      had it, and once the source is removed.', type: str, sample: 'in job nightly, a new chain'}
    held_until: {description: When the hold time ends., type: str, sample: '2026-12-01T20:15:33Z'}
    command: {description: 'The command for root, see RV(commands).', type: dict, sample: null}
    proof: {description: 'V(agent) if its agent answered, V(started) if it stayed running, null for
      a stopped guest.', type: str, sample: agent}
    msg: {description: Why it failed., type: str, sample: null}
complete:
  description: Number of guests of the task whose move was complete before.
  returned: success
  type: int
  sample: 12
commands:
  description: Commands that root must give, each with C(site), C(node), both as C(place), and
    C(command).
  returned: success
  type: list
  elements: dict
  sample: [{site: vienna, node: pve1, place: vienna/pve1, command: qm unlock 15046}]
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['~ acme/web1  held until 2026-12-01T20:15:33Z as 15046 on pve1', 'Done: 1 changed']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Move VM 'web1' (15046) at site vienna online to site munich as 15046 on node pve1]
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
    reason: refused move
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
    problems:
      - 'VM ''web1'' (15046) on node pve1: it has the snapshots before: delete them'
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.relocate import (
    relocate_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.run import (
    run,
    run_at_sites,
    sites_of,
)

ENTRY = ModuleEntry(
    run,
    relocate_spec(),
    {"required_one_of": [("all", "vms", "tags", "tenant")]},
    sites=SiteSupport(names=sites_of, run=run_at_sites),
    plans=True,
    plan_subject="to_site",
    names={"tags": "tag", "tenant": "tenant"},
    name="relocate",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
