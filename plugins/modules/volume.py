#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from volume.yml: do not edit.

DOCUMENTATION = r"""
module: volume
short_description: Manage volumes of a storage, such as ISOs and backups
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Uploads a local file to a storage, lets a node download one from a URL, copies a volume to
    another node, allocates a disk, sets notes and protection of backups, and deletes volumes.
  - An upload that fails leaves no file. Proxmox VE first writes it to a temporary file on the node
    that answers the API, so that node also needs the space in C(/var/tmp).
  - The API accepts uploads of ISOs, disk images to import and container templates. It does not
    accept snippets, so the module writes them to a mounted directory, or to the node by SSH.
  - The token needs C(Datastore.AllocateTemplate) on the storage to upload and download,
    C(Sys.AccessNetwork) on the node to download, C(Datastore.AllocateSpace) to allocate, and
    C(Datastore.Allocate) to delete. To delete, it also needs C(VM.Audit) on C(/vms), because every
    guest may use the volume.
options:
  state:
    description:
      - V(present) creates the volume if it does not exist, and updates settings that differ.
        V(absent) deletes it.
      - A protected backup is not deleted. A volume is only deleted with O(force) if a guest uses it
        in its configuration, in a pending change, in a snapshot, as the base of a linked clone, or
        as a replica.
    type: str
    choices: [present, absent]
    default: present
  volume:
    description: Volume ID, such as V(local:iso/debian.iso), V(local-lvm:vm-100-data) or the volume
      ID of a backup. By default, it is derived from O(storage), O(content) and O(filename).
    type: str
  storage:
    description: Storage of the volume. Required without O(volume).
    type: str
  node:
    description: Node that handles the requests. For a storage that is not shared, the node that has
      the storage. By default, the default node of the connection, or else the first online node
      with the storage.
    type: str
  src:
    description:
      - Local file to upload, on the machine that runs the task. It is read in parts while it is
        sent.
      - A file with another size on the storage is replaced. The content is not compared.
      - With O(content=snippets), the file becomes a snippet, whose content is compared by its
        checksum.
    type: path
  text:
    description: Content of a snippet, whose name is set with O(filename) or O(volume). A diff only
      shows its checksum.
    type: str
  snippet_directory:
    description:
      - Path at which the C(snippets) directory of the storage is mounted on the machine that runs
        the task. The API of Proxmox VE does not accept snippets, so the file is written there,
        first under a temporary name.
      - A file that begins with C(#!) becomes executable, as hook scripts must be.
      - A snippet needs this option or O(ssh).
    type: path
  ssh:
    description: SSH login to O(node) with which a snippet is written to the directory of its
      storage. C({}) means C(root) with the keys of the user that runs the task.
    type: dict
    suboptions:
      address:
        description: Address of the node. By default, its address in the cluster.
        type: str
      user:
        description: User on the node.
        type: str
        default: root
      become:
        description: Whether the user runs the commands with C(sudo), without a password.
        type: bool
        default: false
      port:
        description: SSH port. By default, the port in the configuration of C(ssh).
        type: int
      private_key_file:
        description: Private key. By default, the keys in the configuration of C(ssh).
        type: path
      args:
        description: Additional arguments for C(ssh). By default, there are none.
        type: str
      executable:
        description: The program for SSH.
        type: str
        default: ssh
  source_url:
    description: URL from which a node downloads the file. An existing file is not changed.
    type: str
  source_volume:
    description:
      - Volume of the same storage to copy, such as V(local:iso/debian.iso). O(volume) is the name
        of the copy, by default the same name. An existing volume of the same size is not changed.
      - A node reads the volume and writes it to O(node) by SSH, so volumes of a storage that is not
        shared can be copied from another node. Types C(dir), C(btrfs), C(lvm), C(lvmthin) and
        C(zfspool) support this. Proxmox VE does not copy backups, or disks in the formats qcow2 and
        vmdk.
      - Proxmox VE only allows it for C(root@pam) with a password, and calls it experimental.
    type: str
  source_node:
    description: Node that has O(source_volume). By default, O(node).
    type: str
  template:
    description:
      - Container template of Proxmox that a node downloads, by its file name such as
        V(debian-13-standard_13.1-2_amd64.tar.zst), or by its package such as V(debian-13-standard),
        whose newest version is used.
      - Proxmox VE verifies its checksum.
    type: str
  image:
    description: OCI image with its tag, such as V(registry.example.com/library/nginx:1.29), that a
      node pulls from a registry as a container template (Proxmox VE 9.1). An existing file is not
      changed. O(filename) is its name without C(.tar).
    type: str
  filename:
    description: Name of the file on the storage. By default, the last part of O(src) or
      O(source_url). With O(content=import), the extension C(.img) becomes C(.qcow2).
    type: str
  content:
    description: Content type of the file. By default, it is derived from the extension of the name.
    type: str
    choices: [import, iso, snippets, vztmpl]
  checksum:
    description:
      - Checksum of the file as C(ALGORITHM:DIGITS), such as V(sha256:...), or only the digits.
      - Checksum of the file as C(ALGORITHM:DIGITS), such as V(sha256:...), or only the digits. -
        The checksum of O(src) is verified before the upload, and by Proxmox VE after it. Proxmox VE
        deletes a file with another checksum, and the task fails.
    type: str
  checksum_algorithm:
    description: Algorithm of O(checksum) if that has no prefix. By default, it is derived from the
      number of digits.
    type: str
    choices: [md5, sha1, sha224, sha256, sha384, sha512]
  compression:
    description: Compression of the file at O(source_url). The node decompresses it, which Proxmox
      VE supports for ISOs only; O(checksum) is the checksum of the compressed file.
    type: str
    choices: [bz2, gz, lzo, zst]
  verify_certificates:
    description: Whether the node verifies the TLS certificate of the server of O(source_url).
    type: bool
    default: true
  size:
    description: Size of a new disk, such as V(32G). O(volume) is then its name. An existing disk of
      another size is an error.
    type: str
  vmid:
    description: Guest to which a new disk belongs. Required with O(size).
    type: int
  format:
    description: Format of a new disk. By default, the default of the storage.
    type: str
    choices: [qcow2, raw, subvol, vmdk]
  notes:
    description: Notes on a backup. An empty text removes them. By default, they are not changed.
    type: str
  protected:
    description: Whether a backup is protected from deletion and pruning. By default, it is not
      changed.
    type: bool
  force:
    description: Whether O(src) is uploaded even if a file of the same size exists, and whether
      O(state=absent) also deletes a volume that a guest uses.
    type: bool
    default: false
  task_timeout:
    description:
      - Seconds to wait for the answer to an upload, and for the task on the node.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 1800
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.volume_info
  - module: pve.fleet.storage
  - module: pve.fleet.storage_download
"""

EXAMPLES = r"""
- name: Download an ISO, and verify its checksum
  pve.fleet.volume:
    storage: local
    node: pve1
    source_url:
      https://cdimage.debian.org/debian-cd/current/amd64/iso-cd/debian-13.2.0-amd64-netinst.iso
    checksum: sha256:677c4d57aa034dc192b5191870141057574c1b05df2b9569c0ee08aa4e32125d

- name: Download the newest Debian template for containers
  pve.fleet.volume:
    storage: local
    node: pve1
    template: debian-13-standard

- name: Pull an OCI image
  pve.fleet.volume:
    storage: local
    node: pve1
    image: registry.example.com/library/nginx:1.29

- name: Copy the ISO to another node
  pve.fleet.volume:
    source_volume: local:iso/debian-13.2.0-amd64-netinst.iso
    source_node: pve1
    node: pve2
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'PVE_ROOT_PASSWORD') }}"

- name: Write a snippet to a node by SSH
  pve.fleet.volume:
    storage: local
    node: pve1
    filename: web.yml
    text: "{{ lookup('ansible.builtin.file', 'web.yml') }}"
    ssh: {}

- name: Allocate a disk for a guest that another tool creates
  pve.fleet.volume:
    volume: local-lvm:vm-4711-data
    node: pve1
    vmid: 4711
    size: 2G

- name: Delete the disk
  pve.fleet.volume:
    volume: local-lvm:vm-4711-data
    node: pve1
    state: absent

- name: Delete the ISO
  pve.fleet.volume:
    volume: local:iso/debian-13.2.0-amd64-netinst.iso
    node: pve1
    state: absent
"""

RETURN = r"""
volume:
  description:
    - The volume as it is afterwards, or in check mode as it would be. In check mode, values that
      only Proxmox VE knows are null.
    - It is null if the volume is deleted.
    - RV(pve.fleet.volume_info#module:volumes) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: ['Upload /home/ops/debian.iso to local:iso/debian.iso on node pve1']
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.volume import (
    volume_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.run import (
    run_volume,
)

ENTRY = ModuleEntry(
    run_volume,
    volume_spec(),
    {
        "required_one_of": [
            ("volume", "storage", "source_volume"),
            ("volume", "src", "source_url", "source_volume", "template", "image", "filename"),
        ],
        "mutually_exclusive": [
            ("src", "text", "source_url", "source_volume", "template", "image", "size"),
            ("snippet_directory", "ssh"),
            ("source_volume", "filename"),
            ("volume", "src"),
            ("volume", "source_url"),
            ("volume", "template"),
            ("volume", "image"),
            ("template", "filename"),
        ],
        "required_together": [("size", "vmid")],
        "required_by": {
            "checksum_algorithm": ["checksum"],
            "source_node": ["source_volume"],
            "source_volume": ["node"],
        },
    },
    name="volume",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
