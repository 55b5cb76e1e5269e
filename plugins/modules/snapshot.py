#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: snapshot
short_description: Take, remove and roll back snapshots of virtual machines
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Makes sure that a snapshot of one VM or of several exists or does not, or rolls VMs back to one.
  - Several VMs are worked on side by side. One that fails does not stop the others; the task fails at the end and lists
    what became of each VM in RV(error).
  - Every task of Proxmox VE is waited for. A run that meets one that an earlier run left behind waits for it first.
  - What cannot be is refused before anything is written, such as a snapshot on a storage that can have none.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.vm_choice
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - With O(state=rolled_back), and with O(state=present) without O(snapshot), every run does its work anew.
options:
  state:
    description:
      - V(present) takes the snapshot unless there is one of that name. Of one that exists only the description is
        changed.
      - V(absent) deletes the snapshot. Snapshots that stand on it then stand on the one below it.
      - V(rolled_back) brings the VM back to the snapshot. What changed since then is lost, options and tags too, but
        neither the description nor whose the VM is, so the tenant's tag stays the one that it has now.
    type: str
    choices: [present, absent, rolled_back]
    default: present
  snapshot:
    description:
      - The name of the snapshot, 2 to 40 letters, digits, V(_) and V(-), the first one a letter.
      - Left out with O(state=present), the name is O(prefix) and the time in UTC, such as V(auto-20260131-235959).
      - Left out with O(state=absent), only the snapshots of O(pattern) are deleted.
    type: str
  prefix:
    description: What an automatic name starts with.
    type: str
    default: auto-
  description:
    description: A text that is kept with the snapshot.
    type: str
  vmstate:
    description: Whether the memory of a running VM is saved too. A VM that does not run has none; a warning says so.
    type: bool
    default: false
  keep:
    description:
      - How many of the newest snapshots that match O(pattern) stay; the others that match are deleted.
      - With O(keep_for) too, a snapshot goes only when both let it go.
    type: int
  keep_for:
    description:
      - How long a snapshot that matches O(pattern) stays, as a number with V(s), V(m), V(h), V(d) or V(w), such as
        V(12h) or V(7d).
      - With O(keep) too, a snapshot goes only when both let it go.
    type: str
  pattern:
    description:
      - A shell pattern for the names that O(keep) and O(keep_for) are about, such as V(nightly-*). Upper and lower case
        differ. No other snapshot is ever touched, nor one that Proxmox VE has not finished.
      - It may be left out with automatic names, and is then what those of the same O(prefix) match.
      - With O(state=absent) and neither O(keep) nor O(keep_for), all that match are deleted.
    type: str
  restart:
    description:
      - Whether a VM that ran before a rollback is started after it. Proxmox VE leaves it stopped otherwise.
      - A snapshot with memory lets the VM run in any case.
    type: bool
    default: true
  force:
    description:
      - Whether a rollback may cost newer snapshots. They are then deleted first, the newest one first.
      - This matters on storages that can only go back to the newest snapshot, which are ZFS, LVM, and files with
        snapshots as volume chains. On all others newer snapshots stay, and nothing needs this.
    type: bool
    default: false
  parallel:
    description: How many VMs are worked on at once.
    type: int
    default: 4
  task_timeout:
    description:
      - Seconds to wait for each task of Proxmox VE.
      - A task that lasts longer goes on; RV(error) then has its C(upid), and the next run picks it up.
    type: int
    default: 300
seealso:
  - module: pve.fleet.snapshot_info
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: A snapshot before an upgrade, with memory
  pve.fleet.snapshot:
    name: web1
    tenant: acme
    snapshot: before-upgrade
    description: Debian 12, all tests green
    vmstate: true

- name: Back to it; the VM is started again if it ran
  pve.fleet.snapshot:
    name: web1
    tenant: acme
    snapshot: before-upgrade
    state: rolled_back

- name: A snapshot of each web server of a tenant, of which the newest seven stay
  pve.fleet.snapshot:
    tenant: acme
    tags: [web]
    prefix: nightly-
    keep: 7

- name: Delete what matches and is older than two weeks from two VMs
  pve.fleet.snapshot:
    vms: [web1, "10001"]
    state: absent
    pattern: nightly-*
    keep_for: 2w

- name: Delete one snapshot
  pve.fleet.snapshot:
    vmid: 10000
    snapshot: before-upgrade
    state: absent
"""

RETURN = r"""
snapshot:
  description: The name of the snapshot, also an automatic one. Null where only a pattern was given.
  returned: success
  type: str
  sample: auto-20260131-235959
vms:
  description:
    - Each VM that was meant, in check mode with the snapshots as they are before the change.
    - When the task fails for some of several VMs, the same list is in RV(error) as C(vms).
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: Its number., type: int, sample: 10000}
    name: {description: Its name., type: str, sample: web1}
    node: {description: The node it is on., type: str, sample: pve1}
    tenant: {description: "The tenant whose tag it bears, null with none or several.", type: str, sample: acme}
    tags: {description: Its tags., type: list, elements: str, sample: [tenant_acme, web]}
    status: {description: V(running) or V(stopped)., type: str, sample: running}
    lock: {description: What has it locked., type: str, sample: null}
    changed: {description: Whether something was or would be changed., type: bool, sample: true}
    failed: {description: "Whether it failed; then C(msg) and C(error) say why.", type: bool, sample: false}
    restarted: {description: Whether it was started again after a rollback., type: bool, sample: false}
    plan:
      description: The steps that were needed, in words and in order.
      type: list
      elements: str
      sample: ["Take snapshot 'before-upgrade' of VM 'web1' (10000) on node pve1"]
    done: {description: The steps that were carried out., type: list, elements: str, sample: []}
    snapshots:
      description: Its snapshots, as RV(pve.fleet.snapshot_info#module:vms[].snapshots) has them.
      type: list
      elements: dict
      sample: []
    current: {description: The snapshot its present state stands on., type: str, sample: before-upgrade}
    conditions:
      description: C(Ready), with status and reason.
      type: list
      elements: dict
      sample: [{type: Ready, status: true, reason: AsWished}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: newer snapshots
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._snapshot.converge import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.snapshot import snapshot_spec

ENTRY = Entry(
    run,
    snapshot_spec(),
    {
        "mutually_exclusive": [("name", "vms"), ("vmid", "vms")],
        "required_one_of": [("name", "vmid", "vms", "tenant", "tags")],
        "required_if": [("state", "rolled_back", ["snapshot"])],
    },
)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
