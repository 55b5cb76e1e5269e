# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module storage_download.

Written by `make options` from storage_download.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  state:
    description: Whether the file must exist. V(absent) removes it, even if it is in use.
    type: str
    choices: [present, absent]
    default: present
  storage:
    description: Storage for the file. It must allow O(content).
    type: str
    required: true
  node:
    description:
      - Node that downloads the file. For a storage that is not shared, the node of the storage.
      - By default, the default node of the connection, or else the first online node with the
        storage.
    type: str
  source_url:
    description:
      - URL of the file, with C(https) or C(http).
      - Without it, the task only checks that the file exists, and a missing file is an error.
    type: str
  filename:
    description:
      - Name of the file on the storage. By default, the last part of O(source_url).
      - With O(content=import), the extension C(.img) in O(source_url) is replaced by C(.qcow2),
        because Proxmox VE rejects C(.img).
    type: str
  content:
    description:
      - Content type of the file, V(iso) for an ISO, V(import) for a disk image (Proxmox VE 8.3
        or newer), V(vztmpl) for a container template.
      - By default, it is derived from the extension of the file name.
    type: str
    choices: [import, iso, vztmpl]
  checksum:
    description:
      - Checksum of the downloaded file as C(ALGORITHM:DIGITS), such as V(sha256:...), or only
        the digits.
      - Proxmox VE deletes a file with another checksum, and the task fails.
    type: str
  checksum_algorithm:
    description: Algorithm of O(checksum) if that has no prefix. By default, it is derived from
      the number of digits.
    type: str
    choices: [md5, sha1, sha224, sha256, sha384, sha512]
  compression:
    description: Compression of the file. The node decompresses it; O(checksum) is that of the
      compressed file.
    type: str
    choices: [bz2, gz, lzo, zst]
  verify_certificates:
    description: Whether the node verifies the TLS certificate of the server.
    type: bool
    default: true
  task_timeout:
    description:
      - Seconds to wait for the download. A task that takes longer keeps running on the node.
        RV(error) then contains its C(upid), and the next run waits for it.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 1800
"""
