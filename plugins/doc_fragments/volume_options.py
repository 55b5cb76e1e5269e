# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules volume and volume_info.

Written by `make options` from volume.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) creates the volume if it does not exist, and changes what differs.
        V(absent) deletes it.
      - A protected backup is not deleted, and a disk that its guest uses with O(force)
        only.
    type: str
    choices: [present, absent]
    default: present
  volume:
    description: Volume ID, such as V(local:iso/debian.iso), V(local-lvm:vm-100-data)
      or that of a backup. By default, it follows from O(storage), O(content) and O(filename).
    type: str
  storage:
    description: Storage of the volume. Required without O(volume).
    type: str
  node:
    description: Node that works on the volume. For a storage that is not shared, the
      node of the storage. By default, the default node of the connection, or else the
      first online node with the storage.
    type: str
  src:
    description:
      - Local file that is uploaded, on the machine that runs the task. It is read as
        it is sent, and never as a whole.
      - A file of another size on the storage is replaced. The content is not compared.
    type: path
  source_url:
    description: URL from which a node downloads the file. An existing file is not changed.
    type: str
  template:
    description:
      - Container template of Proxmox that a node downloads, by its file name such as
        V(debian-13-standard_13.1-2_amd64.tar.zst), or by its package such as V(debian-13-standard),
        whose newest version is taken.
      - Proxmox VE verifies its checksum.
    type: str
  image:
    description: OCI image with its tag, such as V(registry.example.com/library/nginx:1.29),
      that a node pulls from a registry as a container template (Proxmox VE 9.1). An existing
      file is not changed. O(filename) is its name without C(.tar).
    type: str
  filename:
    description: Name of the file on the storage. By default, the last part of O(src)
      or O(source_url). With O(content=import), the extension C(.img) becomes C(.qcow2).
    type: str
  content:
    description: Content type of the file. By default, it is derived from the extension
      of the name.
    type: str
    choices: [import, iso, vztmpl]
  checksum:
    description:
      - Checksum of the file as C(ALGORITHM:DIGITS), such as V(sha256:...), or only the
        digits.
      - That of O(src) is verified before the upload and by Proxmox VE after it. Proxmox
        VE deletes a file with another checksum, and the task fails.
    type: str
  checksum_algorithm:
    description: Algorithm of O(checksum) if that has no prefix. By default, it is derived
      from the number of digits.
    type: str
    choices: [md5, sha1, sha224, sha256, sha384, sha512]
  compression:
    description: Compression of the file at O(source_url). The node decompresses it; O(checksum)
      is that of the compressed file.
    type: str
    choices: [bz2, gz, lzo, zst]
  verify_certificates:
    description: Whether the node verifies the TLS certificate of the server of O(source_url).
    type: bool
    default: true
  size:
    description: Size of a new disk, such as V(32G). O(volume) is its name then. A disk
      of another size is an error.
    type: str
  vmid:
    description: Guest that a new disk belongs to. Required with O(size).
    type: int
  format:
    description: Format of a new disk. By default, the default of the storage.
    type: str
    choices: [qcow2, raw, subvol, vmdk]
  notes:
    description: Notes on a backup. An empty text removes them. By default, they are not
      changed.
    type: str
  protected:
    description: Whether a backup is protected from deletion and pruning. By default,
      it is not changed.
    type: bool
  force:
    description: Whether O(src) is uploaded even if a file of its size is there, and whether
      O(state=absent) also deletes a disk that its guest uses.
    type: bool
    default: false
  task_timeout:
    description:
      - Seconds to wait for the answer to an upload, and for the task on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 1800
"""

    INFO = r"""
options:
  storage:
    description: Storage whose volumes are returned.
    type: str
    required: true
  node:
    description: Node that lists the volumes. By default, the default node of the connection, or
      else the first online node with the storage.
    type: str
  content:
    description: Content type of the volumes. By default, all volumes are returned.
    type: str
    choices: [backup, images, import, iso, rootdir, snippets, vztmpl]
  vmid:
    description: Guest whose volumes are returned. By default, those of all guests are.
    type: int
"""
