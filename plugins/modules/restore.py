#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from restore.yml: do not edit.

DOCUMENTATION = r"""
module: restore
short_description: Restore VMs and containers from backups
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Restores the newest archive of a guest, the archive of a point in time, or a named archive, as a
    new guest or over the existing guest. The rules for placement, quota and VMID are the same as
    for any new guest.
  - The owner of an archive is read from its configuration before anything is written.
  - A failed restore leaves an empty VM without a name. This module removes it, also after an
    earlier run of the same login, unless an archive shows that the VMID belongs to an existing VM.
  - The token needs C(VM.Audit) and C(VM.Backup) on the guest in the archive,
    C(Datastore.AllocateSpace) on its storage and on the target storages, and C(VM.Allocate) on the
    new VMID or its pool. It needs C(VM.Config.*) for the changes of O(options), and C(SDN.Use) on
    the bridges.
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: partial
    details:
      - With O(confirm) every run restores the guest.
options:
  name:
    description:
      - The exact name of the guest whose archive is restored. A guest that no longer exists is
        found by the name in its archives.
      - Mutually exclusive with O(vmid).
    type: str
  vmid:
    description:
      - The VMID of the guest whose archive is restored.
      - Mutually exclusive with O(name).
    type: int
  tenant:
    description:
      - The tenant that restores. The configuration in the archive must have exactly this tenant's
        tag, and a new guest gets the tag.
      - By default, archives of every tenant can be restored. An empty value is therefore an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  archive:
    description: V(newest), or the volume of an archive as M(pve.fleet.backup_info) returns it. An
      archive of the state before a restore, see O(keep), is never V(newest).
    type: str
    default: newest
  before:
    description:
      - Time such as V(2026-11-20T12:00) or V(2026-11-20T12:00+01:00). The newest archive that is
        not younger is restored. Without an offset, the time is in UTC.
      - By default, the newest archive is restored.
    type: str
  storages:
    description: Storages to search for archives. By default, all storages with content V(backup).
    type: list
    elements: str
  new_name:
    description:
      - The name of the new guest. The guest gets a VMID from the range, and its own MAC addresses
        and UUID.
      - If a guest of this name already was restored from an archive of the same guest, it is not
        restored again.
      - Mutually exclusive with O(confirm), and one of them is required.
    type: str
  confirm:
    description:
      - The name of the guest in the archive. The guest is overwritten and keeps its VMID. Every run
        restores it again.
      - A guest without a name after a failed restore is confirmed by its name in the archive.
      - A container that a failed restore removed is restored with its VMID on its node. This needs
        C(VM.Allocate) on the VMID or its pool.
    type: str
  keep:
    description:
      - With O(confirm), how the current state is kept. V(archive) backs the guest up first, as a
        protected archive. A guest with snapshots, or with disks that backups exclude, is then
        refused.
      - V(copy) clones the guest first, with the name O(keep_name). The copy has other MAC
        addresses, is stopped, does not start with its node, and counts towards the quota of the
        tenant. A guest with snapshots and a running container are refused.
      - V(none) keeps nothing.
    type: str
    choices: [archive, copy, none]
    default: archive
  keep_name:
    description: Name of the copy that O(keep=copy) creates. The task is refused if a guest of this
      name exists, unless an interrupted run created the copy and the guest has had no task since
      then.
    type: str
  keep_storage:
    description: Storage for the current state. By default, the storage of the restored archive, or
      for a copy, the storages of the guest's disks.
    type: str
  stop:
    description: Whether O(confirm) stops a running guest first. It is started again after the
      restore, unless O(options) have C(state=stopped). V(false) refuses a running guest.
    type: bool
    default: true
  options:
    description:
      - Options of M(pve.fleet.vm) or M(pve.fleet.container) for the restored guest, such as
        C(vmid), C(node), C(pool), C(memory), C(nics) or C(state). They replace the values in the
        archive. With O(confirm), node and VMID cannot be changed.
      - A new guest is stopped by default. The default of C(pool) is the pool of the original guest,
        if that exists.
    type: dict
  storage:
    description: Storage for all disks that O(storage_map) does not name. By default, a disk is
      restored to its former storage.
    type: str
  storage_map:
    description: The new storage of disks, by their former storage.
    type: dict
  live:
    description:
      - Whether the VM starts immediately, while its disks are still being restored. This needs a
        backup server.
      - O(options) can then only set the place, the owner, the tags and the notes of the VM.
    type: bool
    default: false
  task_timeout:
    description:
      - Seconds to wait for the restore. A restore that takes longer continues on the node, and the
        next run completes the guest.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes]
seealso:
  - module: pve.fleet.backup
  - module: pve.fleet.backup_info
  - module: pve.fleet.vm
  - module: pve.fleet.container
"""

EXAMPLES = r"""
- name: Restore the newest backup of a VM as a new VM
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

- name: Overwrite a VM with its newest backup, and keep its current state as an archive
  pve.fleet.restore:
    name: web1
    tenant: acme
    confirm: web1
  register: restored

- name: Show the archive of its former state
  ansible.builtin.debug:
    var: restored.kept

- name: Find the archives of a VM
  pve.fleet.backup_info:
    name: web1
  register: found

- name: Restore one of them, and move the disks of one storage to another
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
  description: The archive, as M(pve.fleet.backup_info) returns it, without notes. Its C(left_out)
    lists the disks whose data is not in it, because their backup is off. A restore leaves such
    disks of a VM out, and creates such volumes of a container empty.
  returned: success
  type: dict
  sample: {volume: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst', vmid: 15046,
    time: '2026-11-20T20:15:33Z'}
kept:
  description: With O(confirm), the archive of the former state, or the name of its copy. Null in
    check mode, or if nothing was kept.
  returned: success
  type: str
  sample: nas:backup/vzdump-qemu-15046-2026_11_20-20_20_00.vma.zst
placement:
  description: The selected node and the reasons. Null for an existing guest.
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
  sample: ['Restore VM ''web1-check'' (15047) on node pve1 from
    nas:backup/vm/15046/2026-11-20T20:15:33Z']
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
  sample: {category: Conflict, reason: no archive, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.restore import (
    restore_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.desired import sites_of
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.guest import (
    restore_secrets,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.run import run

ENTRY = ModuleEntry(
    run,
    restore_spec(),
    {
        "mutually_exclusive": [("name", "vmid"), ("new_name", "confirm")],
        "required_one_of": [("new_name", "confirm")],
    },
    secrets=restore_secrets,
    sites=SiteSupport(names=sites_of),
    names={"keep_storage": "storage"},
    name="restore",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
