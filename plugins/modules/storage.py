#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage.yml: do not edit.

DOCUMENTATION = r"""
module: storage
short_description: Manage storages
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Defines, changes and removes a storage of the cluster, of any type that Proxmox VE has.
  - An option of another type is an error, and so is a change to an option that Proxmox VE cannot
    change. Options that are not set are not changed.
  - Proxmox VE silently drops content types that a storage type does not support, and accepts nodes
    that do not exist. This module refuses both before the first write.
  - Proxmox VE checks a new storage on the node that answers the API, unless that node does not have
    it or the storage is disabled. With type V(nfs), it waits for a server that does not answer.
  - The token needs C(Datastore.Allocate) on C(/storage). Before a storage is removed, the module
    searches for its users, which needs C(VM.Audit) on C(/vms), C(Sys.Audit) on C(/) and
    C(Datastore.Audit) on the storage.
options:
  name:
    description: Name of the storage.
    type: str
    required: true
  state:
    description:
      - V(present) defines the storage if it does not exist, and updates options that differ.
      - V(absent) removes the definition. Volumes are never deleted. A storage that a guest, a
        backup job, a replication job or another storage uses is only removed with O(force).
    type: str
    choices: [present, absent]
    default: present
  type:
    description: Type of the storage. Required for a new storage. It cannot be changed.
    type: str
    choices:
      - btrfs
      - cephfs
      - cifs
      - dir
      - esxi
      - iscsi
      - iscsidirect
      - lvm
      - lvmthin
      - nfs
      - pbs
      - rbd
      - zfs
      - zfspool
  content:
    description:
      - Content types that the storage holds. The list replaces the content types of the storage. An
        empty list means none.
      - By default, it is not changed; a new storage gets the default of its type, which is
        V(images) for most types.
    type: list
    elements: str
  nodes:
    description: Nodes that have the storage. An empty list means all nodes. By default, they are
      not changed.
    type: list
    elements: str
  disable:
    description: Whether the storage is disabled. Proxmox VE does not check a new storage that is
      disabled. By default, it is not changed.
    type: bool
  shared:
    description: Whether all nodes see the same volumes, for types V(dir), V(btrfs), V(lvm) and
      V(esxi). Proxmox VE does not share them itself. By default, it is not changed.
    type: bool
  path:
    description: Directory of the storage on the node. Required for a new storage of type V(dir) or
      V(btrfs), by default C(/mnt/pve/NAME) for V(nfs), V(cifs) and V(cephfs). It cannot be changed.
    type: str
  content_dirs:
    description: Folders of content types within the storage, such as C(iso=images/iso), by content
      type. An empty value removes them. By default, they are not changed.
    type: dict
  prune_backups:
    description: Backups of each guest that are kept. The value replaces the whole retention. An
      empty value removes it. By default, it is not changed.
    type: dict
    suboptions:
      keep_all:
        description: Whether all backups are kept. It excludes the other keys.
        type: bool
      keep_last:
        description: Number of the newest backups.
        type: int
      keep_hourly:
        description: Number of hours with a backup.
        type: int
      keep_daily:
        description: Number of days with a backup.
        type: int
      keep_weekly:
        description: Number of weeks with a backup.
        type: int
      keep_monthly:
        description: Number of months with a backup.
        type: int
      keep_yearly:
        description: Number of years with a backup.
        type: int
  max_protected_backups:
    description: Maximum number of protected backups of a guest. V(-1) means no limit. An empty text
      removes it. By default, it is not changed.
    type: str
  format:
    description: Format of new disk images. With an empty text, the default of the type applies. By
      default, it is not changed.
    type: str
    choices: ['', qcow2, raw, subvol, vmdk]
  preallocation:
    description: How images are allocated, for types V(dir), V(btrfs), V(nfs) and V(cifs). An empty
      text removes it. By default, it is not changed.
    type: str
    choices: ['', 'off', metadata, falloc, full]
  create_base_path:
    description: Whether Proxmox VE creates the directory of the storage. By default, it is not
      changed, and Proxmox VE creates the directory of a new storage.
    type: bool
  create_subdirs:
    description: Whether Proxmox VE creates the folders of content types. By default, it is not
      changed, and Proxmox VE creates the folders of a new storage.
    type: bool
  is_mountpoint:
    description: V(yes) if O(path) is a mount point, V(no), or the path of the mount point. The
      storage is offline while nothing is mounted there. By default, it is not changed.
    type: str
  nocow:
    description: Whether new images of type V(btrfs) are files without copy on write. By default, it
      is not changed.
    type: bool
  server:
    description: Name or address of the server. Required for a new storage of type V(nfs), V(cifs),
      V(pbs) or V(esxi). It can only be changed for V(esxi).
    type: str
  server_port:
    description: Port of the server, for types V(pbs) and V(esxi). An empty text removes it. By
      default, it is not changed.
    type: str
  export:
    description: Exported path. Required for a new storage of type V(nfs). It cannot be changed.
    type: str
  share:
    description: Name of the share. Required for a new storage of type V(cifs). It cannot be
      changed.
    type: str
  subdir:
    description: Folder that is mounted, for types V(cifs) and V(cephfs). An empty text removes it.
      By default, it is not changed.
    type: str
  options:
    description: Mount options separated by commas, such as V(vers=4.2,soft), for types V(nfs),
      V(cifs) and V(cephfs). An empty text removes them. By default, they are not changed.
    type: str
  username:
    description: User on the server, for types V(cifs), V(pbs), V(rbd), V(cephfs) and V(esxi). An
      empty text removes it. By default, it is not changed.
    type: str
  server_password:
    description:
      - Password on the server, for types V(cifs), V(pbs) and V(esxi). Proxmox VE never returns it,
        so it is not compared.
      - It is sent for a new storage, and with O(update_secrets=always) also for an existing one. An
        empty text then removes it.
    type: str
  keyring:
    description: Secret of the Ceph user, for types V(rbd) and V(cephfs). It is handled like
      O(server_password).
    type: str
  encryption_key:
    description: Key for the encryption of backups of type V(pbs), as JSON, or V(autogen) for a new
      key that stays on the cluster. It is handled like O(server_password).
    type: str
  master_pubkey:
    description: Public key in PEM format that encrypts the copy of the encryption key beside the
      backups of type V(pbs). It needs O(encryption_key). It is handled like O(server_password).
    type: str
  update_secrets:
    description:
      - Whether O(server_password), O(keyring), O(encryption_key) and O(master_pubkey) are also sent
        for an existing storage.
      - V(always) sends them in every run, which then reports a change.
    type: str
    choices: [on_create, always]
    default: on_create
  domain:
    description: Domain of the user, for type V(cifs). An empty text removes it. By default, it is
      not changed.
    type: str
  smbversion:
    description: Version of the protocol, for type V(cifs). An empty text removes it. By default, it
      is not changed.
    type: str
    choices: ['', default, '2.0', '2.1', '3', '3.0', '3.11']
  skip_cert_verification:
    description: Whether the certificate of the server is not verified, for type V(esxi). By
      default, it is not changed.
    type: bool
  datastore:
    description: Datastore of the backup server. Required for a new storage of type V(pbs). It
      cannot be changed.
    type: str
  namespace:
    description: Namespace within the datastore (V(pbs)) or the pool (V(rbd)). An empty text removes
      it. By default, it is not changed.
    type: str
  fingerprint:
    description: SHA-256 fingerprint of the server's certificate, for type V(pbs). An empty text
      removes it. By default, it is not changed.
    type: str
  vgname:
    description: Volume group. Required for a new storage of type V(lvm) or V(lvmthin). It cannot be
      changed.
    type: str
  thinpool:
    description: Thin pool in O(vgname). Required for a new storage of type V(lvmthin). It cannot be
      changed.
    type: str
  base:
    description: Volume on which Proxmox VE creates the volume group, such as a LUN of an V(iscsi)
      storage, for type V(lvm). It cannot be changed.
    type: str
  saferemove:
    description: Whether a volume of type V(lvm) is overwritten when it is deleted. By default, it
      is not changed.
    type: bool
  saferemove_stepsize:
    description: Number of MiB that are overwritten at once (Proxmox VE 9.1). An empty text removes
      it. By default, it is not changed.
    type: str
    choices: ['', '1', '2', '4', '8', '16', '32']
  saferemove_throughput:
    description: Limit for overwriting, as option C(-t) of C(cstream). An empty text removes it. By
      default, it is not changed.
    type: str
  tagged_only:
    description: Whether only volumes of type V(lvm) with the tag C(pve-vm-ID) are listed. By
      default, it is not changed.
    type: bool
  snapshot_as_volume_chain:
    description: Whether snapshots are chains of volumes, for types V(lvm), V(dir), V(nfs) and
      V(cifs) (Proxmox VE 9.0). It can only be changed for V(lvm). By default, it is not changed.
    type: bool
  pool:
    description: Pool of ZFS (V(zfspool), V(zfs)) or Ceph (V(rbd)). For V(zfspool) and V(zfs), it is
      required for a new storage and cannot be changed. For V(rbd), an empty text removes it, and
      pool C(rbd) is used.
    type: str
  blocksize:
    description: Block size of volumes, such as V(16k), for types V(zfspool) and V(zfs). For V(zfs),
      it is required for a new storage and cannot be changed. For V(zfspool), an empty text removes
      it.
    type: str
  sparse:
    description: Whether volumes of types V(zfspool) and V(zfs) allocate space only when data is
      written. By default, it is not changed.
    type: bool
  mountpoint:
    description: Mount point of the pool, for type V(zfspool). An empty text removes it. By default,
      it is not changed.
    type: str
  portal:
    description: Address of the iSCSI portal, with a port if needed. Required for a new storage of
      type V(iscsi), V(iscsidirect) or V(zfs). It cannot be changed.
    type: str
  target:
    description: Name of the iSCSI target. Required for a new storage of type V(iscsi),
      V(iscsidirect) or V(zfs). It cannot be changed.
    type: str
  iscsiprovider:
    description: Software of the iSCSI target. Required for a new storage of type V(zfs). It cannot
      be changed.
    type: str
    choices: [comstar, istgt, iet, LIO]
  nowritecache:
    description: Whether the write cache of the target is disabled, for type V(zfs). By default, it
      is not changed.
    type: bool
  comstar_hg:
    description: Host group of a Comstar target, for type V(zfs). An empty text removes it. By
      default, it is not changed.
    type: str
  comstar_tg:
    description: Target group of a Comstar target, for type V(zfs). An empty text removes it. By
      default, it is not changed.
    type: str
  lio_tpg:
    description: Target portal group of an LIO target, for type V(zfs). An empty text removes it. By
      default, it is not changed.
    type: str
  zfs_base_path:
    description: Folder of the block devices on the target, for type V(zfs) (Proxmox VE 9.0). By
      default, it is not changed, and Proxmox VE derives it for a new storage.
    type: str
  monhost:
    description: Addresses of the monitors of an external Ceph cluster, for types V(rbd) and
      V(cephfs). With an empty list, the cluster's own Ceph is used. By default, they are not
      changed.
    type: list
    elements: str
  data_pool:
    description: Erasure-coded pool for the data, for type V(rbd). An empty text removes it. By
      default, it is not changed.
    type: str
  krbd:
    description: Whether the kernel maps volumes of type V(rbd). By default, it is not changed.
    type: bool
  fuse:
    description: Whether V(cephfs) is mounted by FUSE. By default, it is not changed.
    type: bool
  fs_name:
    description: Name of the file system of V(cephfs). An empty text removes it. By default, it is
      not changed.
    type: str
  bwlimit:
    description: Bandwidth limits of tasks, in KiB/s. V(0) means no limit. An empty text removes a
      limit, and the limit of the cluster applies. Keys that are not set are not changed.
    type: dict
    suboptions:
      clone:
        description: Limit for cloning disks.
        type: str
      default:
        description: Limit for all other tasks.
        type: str
      migration:
        description: Limit for migrating guests.
        type: str
      move:
        description: Limit for moving disks.
        type: str
      restore:
        description: Limit for restoring guests from backups.
        type: str
  force:
    description: Whether O(state=absent) also removes a storage that is in use. Its use is then not
      checked.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.storage_info}, {module: pve.fleet.storage_download}]
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

- name: Change the password
  pve.fleet.storage:
    name: pbs1
    server_password: "{{ lookup('ansible.builtin.env', 'PBS_SECRET') }}"
    update_secrets: always

- name: Let every node use the directory, and allow snippets in it
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
    - The storage as it is afterwards, or in check mode as it would be. It has the options of its
      type, without secrets.
    - It is null if the storage is removed.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: media}
    type: {description: Its type., type: str, sample: dir}
    content: {description: Its content types., type: list, elements: str, sample: [iso, vztmpl]}
    nodes: {description: 'The nodes that have it, empty for all.', type: list, elements: str,
      sample: [pve1]}
    disable: {description: Whether it is disabled., type: bool, sample: false}
    path: {description: Its directory., type: str, returned: with types that have it,
      sample: /srv/media}
    prune_backups: {description: The backups that are kept., type: dict, returned: with types that
      have it, sample: {keep_last: 3}}
    encryption_key_fingerprint: {description: 'Fingerprint of the encryption key, empty for none.',
      type: str, returned: with type V(pbs), sample: ''}
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
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.storage import (
    storage_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.table import STORAGE

ENTRY = ModuleEntry(partial(run, STORAGE), storage_spec(), name="storage")
main = ENTRY.main

if __name__ == "__main__":
    main()
