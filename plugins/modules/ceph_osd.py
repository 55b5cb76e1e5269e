#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from ceph_osd.yml: do not edit.

DOCUMENTATION = r"""
module: ceph_osd
short_description: Manage OSDs of Ceph
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates an OSD on an unused disk, marks it in or out, starts, stops and deletes it. Fails with
    the category C(NotSupported) on a node without Ceph.
  - A disk in use is refused before the first write, and the error names its use.
  - An OSD is deleted only if it is out and stopped. An OSD that Ceph cannot lose is neither stopped
    nor deleted unless O(force) is set.
  - O(db_dev), O(wal_dev), their sizes and O(encrypted) apply only to a new OSD. They are not
    compared with an existing OSD.
  - Proxmox VE only lets C(root@pam) with a password create and delete OSDs. To mark, start and stop
    an OSD, the token needs C(Sys.Modify) and C(Sys.Audit) on C(/).
options:
  node:
    description: Node of the OSD. Ceph must be installed on it.
    type: str
    required: true
  dev:
    description: Disk of the OSD, such as V(/dev/sdb). Either O(dev) or O(osdid) is required.
    type: str
  osdid:
    description: Number of an existing OSD, instead of O(dev), for example after its disk has
      failed.
    type: int
  state:
    description: V(present) creates an OSD on the disk if there is none, V(absent) deletes the OSD,
      which must be out and stopped.
    type: str
    choices: [present, absent]
    default: present
  in:
    description: Whether Ceph places data on the OSD. By default, a new OSD is in. Otherwise it is
      not changed.
    type: bool
  running:
    description: Whether the service of the OSD runs. By default, a new OSD runs. Otherwise it is
      not changed.
    type: bool
  db_dev:
    description: Disk for the database of a new OSD. The disk must be unused, or have a GPT or
      volume groups of Ceph. By default, the database is on O(dev).
    type: str
  db_dev_size:
    description: Size of the database in GiB. By default, the size in the configuration of Ceph, or
      10 % of O(dev).
    type: float
  wal_dev:
    description: Disk for the write-ahead log of a new OSD, with the same rules as for O(db_dev). By
      default, the disk of the database.
    type: str
  wal_dev_size:
    description: Size of the write-ahead log in GiB. By default, the size in the configuration of
      Ceph, or 1 % of O(dev).
    type: float
  encrypted:
    description: Whether a new OSD is encrypted. An existing OSD is not compared.
    type: bool
    default: false
  crush_device_class:
    description: Device class of a new OSD, such as V(nvme). By default, Ceph detects it. The class
      of an existing OSD cannot be changed.
    type: str
  cleanup:
    description: Whether V(absent) also removes the volumes from the disk, so the disk becomes
      unused.
    type: bool
    default: false
  force:
    description: Whether an OSD is stopped or deleted even if Ceph reports that it currently cannot
      lose the OSD. Data can be lost.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.ceph_flag}, {module: pve.fleet.ceph_pool}]
"""

EXAMPLES = r"""
- name: Read the pools, if the cluster has Ceph
  pve.fleet.ceph_pool_info:
  register: found
  ignore_errors: true

- name: Create an OSD on an unused disk, with its database on a faster disk
  pve.fleet.ceph_osd:
    node: pve1
    dev: /dev/sdb
    db_dev: /dev/sdc
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'PVE_ROOT_PASSWORD') }}"
  when: found is success

- name: Let Ceph move the data away from an OSD
  pve.fleet.ceph_osd:
    node: pve1
    osdid: 3
    in: false
  when: found is success

- name: Stop the OSD as soon as Ceph can lose it
  pve.fleet.ceph_osd:
    node: pve1
    osdid: 3
    running: false
  register: stopped
  until: stopped is success
  retries: 60
  delay: 60
  when: found is success

- name: Delete the OSD and clean its disk
  pve.fleet.ceph_osd:
    node: pve1
    osdid: 3
    state: absent
    cleanup: true
    user: root@pam
    password: "{{ lookup('ansible.builtin.env', 'PVE_ROOT_PASSWORD') }}"
  when: found is success
"""

RETURN = r"""
ceph_osd:
  description: The OSD as it is afterwards, or in check mode as it would be. It is null if the OSD
    is deleted.
  returned: success
  type: dict
  contains:
    osdid: {description: 'Its number, null before it is created.', type: int, sample: 3}
    node: {description: Its node., type: str, sample: pve1}
    in: {description: Whether Ceph places data on it., type: bool, sample: true}
    running: {description: Whether it runs., type: bool, sample: true}
    crush_device_class: {description: Its device class., type: str, sample: ssd}
    size: {description: Its size in bytes., type: int, sample: 960197124096}
    used: {description: Bytes in use., type: int, sample: 1073741824}
    version: {description: Version of Ceph that it runs., type: str, sample: 19.2.3}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create OSD on /dev/sdb of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create OSD on /dev/sdb of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.ceph_osd import (
    ceph_osd_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.disk.run_osd import (
    run_osd,
)

ENTRY = ModuleEntry(run_osd, ceph_osd_spec(), name="ceph_osd")
main = ENTRY.main

if __name__ == "__main__":
    main()
