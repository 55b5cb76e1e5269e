#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage_scan_info.yml: do not edit.

DOCUMENTATION = r"""
module: storage_scan_info
short_description: Gather information about storages that a node finds
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the exports of an NFS server, the shares of a CIFS server, the datastores of a Proxmox
    Backup Server, the targets of an iSCSI portal, or the volume groups, thin pools or ZFS pools of
    a node. One request is made.
  - Each entry has the options with which M(pve.fleet.storage) defines the storage, except its name
    and the password.
  - An iSCSI portal that does not answer has no targets.
  - The token needs C(Datastore.Allocate) on C(/storage).
options:
  node:
    description: Name of the node that looks for storages.
    type: str
    required: true
  type:
    description: Type of the storages, as in M(pve.fleet.storage).
    type: str
    required: true
    choices: [cifs, iscsi, lvm, lvmthin, nfs, pbs, zfspool]
  server:
    description: Name or address of the server. Required for types V(cifs), V(nfs) and V(pbs), and
      refused for others.
    type: str
  portal:
    description: Address of the iSCSI portal, with a port if needed. Required for type V(iscsi), and
      refused for others.
    type: str
  vgname:
    description: Volume group with the thin pools. Required for type V(lvmthin), and refused for
      others.
    type: str
  username:
    description: User on the server. Required for type V(pbs), optional for type V(cifs), and
      refused for others.
    type: str
  server_password:
    description:
      - Password on the server. Required for type V(pbs), optional for type V(cifs), and refused for
        others.
      - Proxmox VE accepts it in the URL of the request, which the node writes to
        C(/var/log/pveproxy/access.log).
    type: str
  domain:
    description: Domain of the user. Optional for type V(cifs), and refused for others.
    type: str
  server_port:
    description: Port of the server. Optional for type V(pbs), and refused for others. By default,
      V(8007).
    type: int
  fingerprint:
    description: SHA-256 fingerprint of the server's certificate. Optional for type V(pbs), and
      refused for others.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.storage}, {module: pve.fleet.storage_info}]
"""

EXAMPLES = r"""
- name: Read the exports of an NFS server
  pve.fleet.storage_scan_info:
    node: pve1
    type: nfs
    server: 10.99.0.6
  register: scan

- name: Define a storage on the first export
  pve.fleet.storage:
    name: nas
    type: nfs
    server: "{{ scan.found[0].storage.server }}"
    export: "{{ scan.found[0].storage.export }}"
    content: [backup]

- name: Read the datastores of a Proxmox Backup Server
  pve.fleet.storage_scan_info:
    node: pve1
    type: pbs
    server: 10.99.0.6
    username: fleet@pbs!pve
    server_password: "{{ lookup('ansible.builtin.env', 'PBS_SECRET') or 'secret' }}"

- name: Read the thin pools of a volume group
  pve.fleet.storage_scan_info:
    node: pve1
    type: lvmthin
    vgname: pve
"""

RETURN = r"""
node:
  description: Name of the node.
  returned: success
  type: str
  sample: pve1
found:
  description: The storages that were found.
  returned: success
  type: list
  elements: dict
  contains:
    storage: {description: Options of M(pve.fleet.storage)., type: dict, sample: {type: nfs,
      server: 10.99.0.6, export: /export/backup}}
    description: {description: 'The clients of an NFS export, the addresses of an iSCSI target, or
      the comment of a share or datastore. Empty for other types.', type: str, sample: 10.99.0.0/24}
    size: {description: 'Its size in bytes, for types V(lvm) and V(lvmthin), else null.', type: int}
    free: {description: 'Its free space in bytes, for types V(lvm) and V(lvmthin), else null.',
      type: int}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.storage_scan_info import (
    storage_scan_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.scan import run

ENTRY = ModuleEntry(run, storage_scan_info_spec(), name="storage_scan_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
