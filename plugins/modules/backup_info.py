#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from backup.yml: do not edit.

DOCUMENTATION = r"""
module: backup_info
short_description: Gather information about backups of VMs and containers
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the archives on the storages of a cluster, each with its guest and tenant, and the
    guests without an archive.
  - The module sends one request for the list of guests, one for the privileges, and one for each
    storage (on each node if the storage is not shared).
  - A storage that cannot be read does not fail the task. RV(missing) has the reason, and a warning
    is shown. Archives that Proxmox VE hides from the token are reported in the same way.
  - A token sees the archives of a guest if it has C(Datastore.AllocateSpace) on the storage and
    C(VM.Backup) on the guest.
options:
  storages:
    description: Only archives on these storages. By default, all storages with content V(backup)
      are read.
    type: list
    elements: str
  max_age:
    description:
      - A guest whose newest archive is older than this age counts as a guest without a backup. The
        age is a number with the unit V(s), V(m), V(h), V(d) or V(w), such as V(26h).
      - By default, an archive of any age is enough.
    type: str
  newest:
    description: Whether to return only the newest archive of each guest. The figures in RV(guests)
      cover all archives.
    type: bool
    default: false
  detect_reuse:
    description:
      - Whether to recognize archives of an earlier guest with the same VMID by the task that
        removed the guest. This takes two more requests for each node.
      - With O(tenant), this is always done.
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.backup_options.choice
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.backup}, {module: pve.fleet.backup_job}]
"""

EXAMPLES = r"""
- name: List the backups of a VM
  pve.fleet.backup_info:
    name: web1
    tenant: acme
  register: web1

- name: Find the guests without a backup from the last 26 hours
  pve.fleet.backup_info:
    max_age: 26h
    newest: true
  register: backups

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ backups.without_backup | map(attribute='name') }}"

- name: List backups that their backup server could not verify
  ansible.builtin.debug:
    msg: "{{ backups.archives | selectattr('verification', 'eq', 'failed') | map(attribute='volume')
      }}"
"""

RETURN = r"""
archives:
  description: The archives, the newest first.
  returned: success
  type: list
  elements: dict
  contains:
    volume: {description: Name of the volume., type: str,
      sample: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    storage: {description: Name of the storage., type: str, sample: nas}
    node: {description: Node of a storage that is not shared. Null for a shared storage., type: str,
      sample: null}
    vmid: {description: VMID of the guest. Null for a renamed archive., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest. Null if it is not one of RV(guests)., type: str,
      sample: web1}
    tenant: {description: 'Tenant of the guest. Null if RV(archives[].name) is null, or without a
      tenant.', type: str, sample: acme}
    time: {description: 'Time of the backup in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    ctime: {description: Time of the backup in seconds since 1970., type: int, sample: 1795205733}
    age: {description: Seconds since the backup., type: int, sample: 3600}
    size: {description: Size in bytes., type: int, sample: 1073741824}
    format: {description: Format of the archive., type: str, sample: vma.zst}
    notes: {description: Notes of the archive., type: str, sample: web1}
    protected: {description: Whether the archive is protected from removal., type: bool,
      sample: false}
    encrypted: {description: Whether the archive is encrypted., type: bool, sample: false}
    verification: {description: 'V(ok) or V(failed) after a verification by a backup server, else
      null.', type: str, sample: ok}
guests:
  description: The selected guests, by VMID.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: VMID of the guest., type: int, sample: 15046}
    type: {description: V(qemu) for a VM and V(lxc) for a container., type: str, sample: qemu}
    name: {description: Name of the guest., type: str, sample: web1}
    node: {description: Node on which the guest is., type: str, sample: pve1}
    tenant: {description: Tenant of the guest. Null without a tenant's tag or with several.,
      type: str, sample: acme}
    tags: {description: Tags of the guest., type: list, elements: str, sample: [tenant_acme, web]}
    template: {description: Whether the guest is a template., type: bool, sample: false}
    archives: {description: Number of its archives., type: int, sample: 7}
    size: {description: Size of its archives in bytes., type: int, sample: 7516192768}
    newest: {description: 'Volume of its newest archive, null for none.', type: str,
      sample: 'nas:backup/vzdump-qemu-15046-2026_11_20-20_15_33.vma.zst'}
    newest_time: {description: 'Time of its newest archive in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    age: {description: 'Seconds since its newest archive, null for none.', type: int, sample: 3600}
    backed_up: {description: Whether it has an archive that is not older than O(max_age).,
      type: bool, sample: true}
    left_out: {description: 'Disks that its backups leave out, because their backup is off. The
      default of a container''s mounts is off. Null if its configuration cannot be read.',
      type: list, elements: str, sample: [mp0]}
without_backup:
  description: The guests of RV(guests) without an archive, or without a recent enough archive.
    RV(guests) describes its fields.
  returned: success
  type: list
  elements: dict
missing:
  description: Storages whose archives may be missing, each with C(storage), C(node), C(category)
    and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
complete:
  description: Whether everything could be read.
  returned: success
  type: bool
  sample: true
checked:
  description: Time of the query in ISO 8601 format, UTC.
  returned: success
  type: str
  sample: '2026-11-20T20:15:33Z'
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.backup import (
    backup_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.backup.run_info import run

ENTRY = ModuleEntry(
    run,
    backup_info_spec(),
    {"mutually_exclusive": [("name", "vms"), ("vmid", "vms")]},
    names={"tenant": "tenant", "tags": "tag", "pool": "pool"},
    name="backup_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
