#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from failover.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: failover
short_description: Bring the guests of a lost site up at another one
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Restores the newest archive of each guest of a lost site, starts the guests in start order,
    and waits until they are up. Storages, networks and addresses change by tables.
  - One plan is made for all guests. If one of them cannot come up, the task is refused before
    the first write, and names every problem - a guest that runs at the other site, room, quota,
    storage, network, address, pool, an archive that cannot be used, and a guest that exists here.
  - A guest that exists here is never overwritten. A guest that an earlier run has restored is
    recognized by its notes. It is not restored again, and started if it is stopped.
  - A guest that fails does not stop the others. The task then fails at the end, and the next
    run completes it.
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
extends_documentation_fragment:
  - pve.fleet.failover_options
  - pve.fleet.connection
  - pve.fleet.attributes
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
    volume:
      description: Its archive.
      type: str
      sample: nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst
    archive_time:
      description: When the archive was made.
      type: str
      sample: '2026-11-20T20:15:33Z'
    archive_age: {description: Age of the archive in seconds., type: int, sample: 43200}
    restore_seconds: {description: Duration of the restore., type: int, sample: 95}
    boot_seconds: {description: Seconds from the start to the answer of the agent., type: int,
      sample: 21}
    new_vmid: {description: VMID here., type: int, sample: 15046}
    new_name: {description: Name here., type: str, sample: web1}
    node: {description: Node here., type: str, sample: pve1}
skipped:
  description: Guests that were left out, each with C(vmid), C(name) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: [{vmid: 9000, name: debian-13, reason: it is a template}]
recovery_point:
  description: Age of the oldest archive in seconds (RPO). Null without guests.
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
  sample:
    - Restore VM 'web1' (15046) on node pve1 from nas:backup/vm/15046/2026-11-20T20:15:33Z
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample:
    - Restore VM 'web1' (15046) on node pve1 from nas:backup/vm/15046/2026-11-20T20:15:33Z
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


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
