# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module restore.

Written by `make options` from restore.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description:
      - The exact name of the guest whose archive is restored. A guest that no longer
        exists is found by the name in its archives.
      - Mutually exclusive with O(vmid).
    type: str
  vmid:
    description:
      - The number of the guest whose archive is restored.
      - Mutually exclusive with O(name).
    type: int
  tenant:
    description:
      - The tenant that restores. The archive must be of a guest with exactly this
        tenant's tag, as its configuration has it, and a new guest gets the tag.
      - By default, archives of every tenant can be restored. An empty value is therefore
        an error.
    type: str
  tenant_prefix:
    description: What a tenant's tag starts with.
    type: str
    default: tenant_
  archive:
    description: V(newest), or the volume of an archive as M(pve.fleet.backup_info)
      returns it. An archive of the state before a restore, see O(keep), is never
      V(newest).
    type: str
    default: newest
  before:
    description:
      - The newest archive that is not younger than this time is restored, such as
        V(2026-11-20T12:00) or V(2026-11-20T12:00+01:00). Without an offset the time
        is in UTC.
      - By default, the newest archive is restored.
    type: str
  storages:
    description: Storages on which archives are searched. By default, all storages
      with content V(backup).
    type: list
    elements: str
  new_name:
    description:
      - The name of the new guest. It gets a VMID from the range, and MAC addresses
        and a UUID of its own.
      - If a guest of that name exists that was restored from an archive of the same
        guest, it is not restored again.
      - Mutually exclusive with O(confirm), and one of them is required.
    type: str
  confirm:
    description:
      - The name of the guest in the archive. The guest is overwritten, and keeps
        its VMID. Every run restores it again.
      - A guest that a failed restore has left without a name is confirmed by its
        name in the archive.
      - A container that a failed restore has removed is restored with its VMID, on
        its node. This needs C(VM.Allocate) on the VMID or its pool.
    type: str
  keep:
    description:
      - With O(confirm), how the present state is kept. V(archive) backs the guest
        up first, as a protected archive; a guest with snapshots, or with disks that
        backups leave out, is then refused.
      - V(none) keeps nothing.
    type: str
    choices: [archive, none]
    default: archive
  keep_storage:
    description: Storage for the present state. By default, the storage of the archive
      that is restored.
    type: str
  stop:
    description: Whether O(confirm) stops a running guest first. It is started again
      after the restore, unless O(options) have C(state=stopped). V(false) refuses
      a guest that runs.
    type: bool
    default: true
  options:
    description:
      - Options of M(pve.fleet.vm) or M(pve.fleet.container) for the restored guest,
        such as C(vmid), C(node), C(pool), C(memory), C(nics) or C(state). They replace
        the values in the archive. With O(confirm) the place is fixed.
      - A new guest is stopped by default.
    type: dict
  storage:
    description: Storage for all disks that O(storage_map) does not name. By default,
      a disk is restored to the storage that it was on.
    type: str
  storage_map:
    description: The new storage of disks by the storage that they were on.
    type: dict
  live:
    description:
      - Whether the VM starts at once, while its disks are still being restored. This
        needs a backup server.
      - O(options) can then only set the place, the owner, the tags and the notes
        of the VM.
    type: bool
    default: false
  task_timeout:
    description:
      - Seconds to wait for the restore. A restore that takes longer continues on
        the node, and the next run completes the guest.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 10800
"""
