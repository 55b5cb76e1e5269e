#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage_download.yml: do not edit.

DOCUMENTATION = r"""
module: storage_download
short_description: Download an image or ISO to a storage
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Ensures that a file exists on a storage. A node of the cluster downloads it; the machine that
    runs Ansible does not transfer data.
  - The file is identified by its volume ID. An existing file is not changed, and its checksum is
    not verified again.
  - Proxmox VE verifies O(checksum) before it renames the file, so an existing file is complete.
  - If an earlier run started the download and it is still running, the task waits for it instead of
    starting another one.
  - The token needs C(Datastore.AllocateTemplate) on the storage and C(Sys.AccessNetwork) on the
    node. To remove an ISO, it needs C(Datastore.Allocate) and C(VM.Audit) on C(/vms).
options:
  state:
    description: Whether the file exists. V(absent) removes it, unless a guest uses it.
    type: str
    choices: [present, absent]
    default: present
  force:
    description: Whether O(state=absent) also removes a file that a guest uses.
    type: bool
    default: false
  storage:
    description: Storage for the file. It must allow O(content).
    type: str
    required: true
  node:
    description:
      - Node that downloads the file. For a storage that is not shared, the node that has the
        storage.
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
      - Content type of the file, V(iso) for an ISO, V(import) for a disk image (Proxmox VE 8.3 or
        newer), V(vztmpl) for a container template.
      - By default, it is derived from the extension of the file name.
    type: str
    choices: [import, iso, vztmpl]
  checksum:
    description:
      - Checksum of the downloaded file as C(ALGORITHM:DIGITS), such as V(sha256:...), or only the
        digits.
      - Proxmox VE deletes a file with another checksum, and the task fails.
    type: str
  checksum_algorithm:
    description: Algorithm of O(checksum) if that has no prefix. By default, it is derived from the
      number of digits.
    type: str
    choices: [md5, sha1, sha224, sha256, sha384, sha512]
  compression:
    description: Compression of the file. The node decompresses it, which Proxmox VE supports for
      ISOs only; O(checksum) is that of the compressed file.
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
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Download a cloud image for new VMs
  pve.fleet.storage_download:
    storage: local
    node: pve1
    source_url:
      https://cloud.debian.org/images/cloud/trixie/latest/debian-13-genericcloud-amd64.qcow2
    content: import

- name: Download an ISO and verify its checksum
  pve.fleet.storage_download:
    storage: local
    source_url:
      https://cdimage.debian.org/debian-cd/current/amd64/iso-cd/debian-13.2.0-amd64-netinst.iso
    checksum: sha256:677c4d57aa034dc192b5191870141057574c1b05df2b9569c0ee08aa4e32125d

- name: Create a VM from the image
  pve.fleet.vm:
    name: web1
    node: pve1
    source: local:import/debian-13-genericcloud-amd64.qcow2
    cloud_init:
      user: ops

- name: Remove the image
  pve.fleet.storage_download:
    storage: local
    node: pve1
    filename: debian-13-genericcloud-amd64.qcow2
    state: absent
"""

RETURN = r"""
volume:
  description:
    - The file. In check mode, values of a new file that only Proxmox VE knows are null.
    - Null if the file does not exist.
  returned: success
  type: dict
  contains:
    volid: {description: Volume ID of the file., type: str,
      sample: 'local:import/debian-13-genericcloud-amd64.qcow2'}
    storage: {description: Storage of the file., type: str, sample: local}
    node: {description: Node that has the file or downloads it., type: str, sample: pve1}
    content: {description: Content type of the file., type: str, sample: import}
    filename: {description: Name of the file., type: str,
      sample: debian-13-genericcloud-amd64.qcow2}
    format: {description: Format of the file., type: str, sample: qcow2}
    size: {description: Size in bytes., type: int, sample: 335544320}
    ctime: {description: Time of creation in seconds since 1970., type: int, sample: 1795213002}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Remove local:iso/debian.iso from node pve1']
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ValidationFailed, reason: checksum, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.storage_download import (
    storage_download_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.download import run

ENTRY = ModuleEntry(
    run,
    storage_download_spec(),
    {
        "required_one_of": [("source_url", "filename")],
        "required_by": {"checksum_algorithm": ["checksum"]},
    },
    name="storage_download",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
