#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from restore.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: restore
short_description: Restore VMs and containers from backups
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Restores the newest archive of a guest, an archive of a time, or a named archive,
    as a new guest or over the guest itself. Placement, quota and VMID of a new
    guest are those of any new guest.
  - The owner of an archive is read from its configuration before anything is
    written.
  - A failed restore leaves an empty VM with no name. This module removes it,
    also one that an earlier run of the same login has left, unless an archive
    shows that the VMID belongs to an existing VM.
  - The token needs C(VM.Audit) and C(VM.Backup) on the guest in the archive,
    C(Datastore.AllocateSpace) on its storage and on the target storages, and
    C(VM.Allocate) on the new VMID or its pool. It needs C(VM.Config.*) for what
    O(options) change, and C(SDN.Use) on the bridges.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - With O(confirm) every run restores the guest.
extends_documentation_fragment:
  - pve.fleet.restore_options
  - pve.fleet.connection
  - pve.fleet.attributes
seealso:
  - module: pve.fleet.backup
  - module: pve.fleet.backup_info
  - module: pve.fleet.vm
  - module: pve.fleet.container
"""

EXAMPLES = r"""
- name: Restore the newest backup of a VM beside it
  pve.fleet.restore:
    name: web1
    tenant: acme
    new_name: web1-check
    options:
      pool: acme
      memory: 1G

- name: Restore a guest as it was at noon, on another storage, and start it
  pve.fleet.restore:
    vmid: 15046
    before: 2026-11-20T12:00
    new_name: web1-noon
    storage: ceph
    options:
      state: started

- name: Overwrite a VM with its newest backup, and keep its present state as an archive
  pve.fleet.restore:
    name: web1
    tenant: acme
    confirm: web1
  register: restored

- name: Show the archive of its state before
  ansible.builtin.debug:
    var: restored.kept

- name: Find the archives of a VM
  pve.fleet.backup_info:
    name: web1
  register: found

- name: Restore one of them, with the disks of one storage on another one
  pve.fleet.restore:
    archive: "{{ found.archives[-1].volume }}"
    new_name: web1-first
    storage_map:
      ceph: local-lvm
"""

RETURN = r"""
guest:
  description: The restored guest as M(pve.fleet.vm) or M(pve.fleet.container) returns it, with its
    C(type). In check mode of a new guest, its VMID, node and name.
  returned: success
  type: dict
  sample: {vmid: 15047, name: web1-check, node: pve1, type: qemu}
archive:
  description: The archive, as M(pve.fleet.backup_info) returns it, without notes.
  returned: success
  type: dict
  sample:
    volume: nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst
    vmid: 15046
    time: '2026-11-20T20:15:33Z'
kept:
  description: With O(confirm), the archive of the state before. Null if nothing was kept, and in
    check mode.
  returned: success
  type: str
  sample: nas:backup/vzdump-qemu-15046-2026_11_20-20_20_00.vma.zst
placement:
  description: The node, and why it was chosen. Null for a guest that existed.
  returned: success
  type: dict
  sample: {node: pve1, reasons: [node names it]}
conditions:
  description: The conditions of the guest, as M(pve.fleet.vm) returns them.
  returned: always
  type: list
  elements: dict
  sample: []
plan:
  description: The steps in words.
  returned: success
  type: list
  elements: str
  sample:
    - Restore VM 'web1-check' (15047) on node pve1 from nas:backup/vm/15046/2026-11-20T20:15:33Z
done:
  description: The steps that were carried out.
  returned: success
  type: list
  elements: str
  sample: []
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: no archive
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._restore.guest import restore_secrets
from ansible_collections.pve.fleet.plugins.module_utils._restore.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.restore import restore_spec

ENTRY = Entry(
    run,
    restore_spec(),
    {
        "mutually_exclusive": [("name", "vmid"), ("new_name", "confirm")],
        "required_one_of": [("new_name", "confirm")],
    },
    secrets=restore_secrets,
    name="restore",
)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
