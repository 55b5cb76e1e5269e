#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: storage
short_description: Manage storages
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Defines, changes and removes a storage of the cluster, of any type that Proxmox VE has.
  - An option of another type is an error, and so is a change of an option that Proxmox VE cannot
    change. What is not set is not changed.
  - Proxmox VE drops content types that a type cannot hold, and accepts nodes that do not exist.
    This module refuses both before the first write.
  - Proxmox VE looks at a new storage from the node that answers the API, unless that node does
    not have it or the storage is disabled. The type V(nfs) waits for a server that does not answer.
  - The token needs C(Datastore.Allocate) on C(/storage). Before a storage is removed, its users
    are searched, which needs C(VM.Audit) on C(/vms), C(Sys.Audit) on C(/) and C(Datastore.Audit)
    on the storage.
extends_documentation_fragment:
  - pve.fleet.storage_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.storage_info
  - module: pve.fleet.storage_download
"""

EXAMPLES = r"""
- name: Define a directory for ISOs and templates on one node
  pve.fleet.storage:
    name: media
    type: dir
    path: /srv/media
    content: [iso, vztmpl]
    nodes: [pve1]

- name: Define an NFS share for backups, and keep the last three of each guest
  pve.fleet.storage:
    name: nas
    type: nfs
    server: 192.0.2.9
    export: /export/backup
    options: vers=4.2,soft
    content: [backup]
    prune_backups:
      keep_last: 3
    disable: true  # until the server is there

- name: Define a datastore of a Proxmox Backup Server
  pve.fleet.storage:
    name: pbs1
    type: pbs
    server: backup.example.com
    datastore: main
    username: fleet@pbs!pve
    server_password: "{{ lookup('ansible.builtin.env', 'PBS_SECRET') }}"
    disable: true

- name: Send another password
  pve.fleet.storage:
    name: pbs1
    server_password: "{{ lookup('ansible.builtin.env', 'PBS_SECRET') }}"
    update_secrets: always

- name: Let every node use the directory, and hold snippets as well
  pve.fleet.storage:
    name: media
    nodes: []
    content: [iso, vztmpl, snippets]

- name: Remove a storage that nothing uses
  pve.fleet.storage:
    name: nas
    state: absent
"""

RETURN = r"""
storage:
  description:
    - The storage as it is afterwards, or in check mode as it would be. It has the options
      of its type, without secrets.
    - It is null when the storage is removed.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: media}
    type: {description: Its type., type: str, sample: dir}
    content: {description: Its content types., type: list, elements: str, sample: [iso,
        vztmpl]}
    nodes: {description: 'The nodes that have it, empty for all.', type: list, elements: str,
      sample: [pve1]}
    disable: {description: Whether it is switched off., type: bool, sample: false}
    path: {description: Its directory., type: str, returned: with types that have it,
      sample: /srv/media}
    prune_backups: {description: The backups that are kept., type: dict, returned: with
        types that have it, sample: {keep_last: 3}}
    encryption_key_fingerprint: {description: 'Fingerprint of the encryption key, empty
        for none.', type: str, returned: with type V(pbs), sample: ''}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set content of storage 'media']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: in use
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Set content of storage 'media']
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.storage import storage_spec
from ansible_collections.pve.fleet.plugins.module_utils._storage.table import STORAGE

ENTRY = Entry(partial(run, STORAGE), storage_spec(), name="storage")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
