#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: storage_download
short_description: Let Proxmox VE download an image or ISO to a storage
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Makes sure that a file is on a storage. A node of the cluster fetches it from its URL; nothing goes through the
    machine where Ansible runs.
  - The file is known by its volume ID. One that is there is left alone, and its checksum is not computed again.
  - Proxmox VE verifies O(checksum) before the file gets its name, so a file that is there is complete.
  - A download that an earlier run began and did not wait for is waited for, not begun again.
  - The token needs C(Datastore.AllocateTemplate) on the storage and C(Sys.AccessNetwork) on the node.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
options:
  state:
    description: Whether the file shall be there. V(absent) removes it, whatever uses it.
    type: str
    choices: [present, absent]
    default: present
  storage:
    description: The storage. It must take O(content).
    type: str
    required: true
  node:
    description:
      - The node that downloads. On a storage that is not shared, the node whose storage is meant.
      - Left out, the default node of the connection, or else the first online node that has the storage.
    type: str
  source_url:
    description:
      - Where the file is, with C(https) or C(http).
      - Without it a file that is missing is an error, so the task makes sure that somebody has put it there.
    type: str
  filename:
    description:
      - Name of the file on the storage. Left out, the last part of O(source_url).
      - An image to import that has the ending C(.img) in O(source_url) gets C(.qcow2) instead, because Proxmox VE
        refuses the other.
    type: str
  content:
    description:
      - What the file is, V(iso) for an ISO, V(import) for a disk image that VMs are made from (Proxmox VE 8.3 or
        newer), V(vztmpl) for a container template.
      - Left out, the ending of the file name decides.
    type: str
    choices: [import, iso, vztmpl]
  checksum:
    description:
      - Checksum of the file as it is downloaded, as C(ALGORITHM:DIGITS), such as V(sha256:...), or the digits alone.
      - A file with another one is refused by Proxmox VE, and nothing is left of it.
    type: str
  checksum_algorithm:
    description: Algorithm of O(checksum) where that has no prefix. Left out, the number of digits decides.
    type: str
    choices: [md5, sha1, sha224, sha256, sha384, sha512]
  compression:
    description: How the file is compressed. It is unpacked on the node; O(checksum) is that of the packed file.
    type: str
    choices: [bz2, gz, lzo, zst]
  verify_certificates:
    description: Whether the node verifies the TLS certificate of the server.
    type: bool
    default: true
  task_timeout:
    description:
      - Seconds to wait for the download. The task itself goes on after that; RV(error) then has its C(upid), and the
        next run waits for it.
    type: int
    default: 1800
seealso:
  - module: pve.fleet.vm
"""

EXAMPLES = r"""
- name: A cloud image that VMs can be made from
  pve.fleet.storage_download:
    storage: local
    node: pve1
    source_url: https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2
    content: import

- name: An ISO, verified
  pve.fleet.storage_download:
    storage: local
    source_url: https://cdimage.debian.org/debian-cd/current/amd64/iso-cd/debian-13.2.0-amd64-netinst.iso
    checksum: sha256:677c4d57aa034dc192b5191870141057574c1b05df2b9569c0ee08aa4e32125d

- name: A VM from the image
  pve.fleet.vm:
    name: web1
    node: pve1
    source: local:import/debian-13-genericcloud-amd64.qcow2
    cloud_init:
      user: ops

- name: The image is not needed any more
  pve.fleet.storage_download:
    storage: local
    node: pve1
    filename: debian-13-genericcloud-amd64.qcow2
    state: absent
"""

RETURN = r"""
volume:
  description:
    - The file, also one that check mode would download; then what only Proxmox VE can know is null.
    - It is null when the file is gone.
  returned: success
  type: dict
  contains:
    volid: {description: Its volume ID., type: str, sample: "local:import/debian-13-genericcloud-amd64.qcow2"}
    storage: {description: The storage., type: str, sample: local}
    node: {description: The node that has it or works on it., type: str, sample: pve1}
    content: {description: What it is., type: str, sample: import}
    filename: {description: Its name., type: str, sample: debian-13-genericcloud-amd64.qcow2}
    format: {description: Its format., type: str, sample: qcow2}
    size: {description: Its size in bytes., type: int, sample: 335544320}
    ctime: {description: "When it came there, in seconds since 1970.", type: int, sample: 1795213002}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ["Remove local:iso/debian.iso from node pve1"]
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: ["Remove local:iso/debian.iso from node pve1"]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: ValidationFailed
    reason: checksum
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.storage import storage_download_spec
from ansible_collections.pve.fleet.plugins.module_utils._storage.download import run

ENTRY = Entry(
    run,
    storage_download_spec(),
    {"required_one_of": [("source_url", "filename")], "required_by": {"checksum_algorithm": ["checksum"]}},
)


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
