#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from container_image.yml: do not edit.

DOCUMENTATION = r"""
module: container_image
short_description: Replace the root file system of a container
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Replaces the root file system of a container with that of an image. VMID, name, MAC addresses,
    mount points and all other settings are kept, including HA, jobs, pools and rights.
  - A running container is stopped when the new root file system is ready, and is started again with
    O(start).
  - A plan of O(state=replaced) also contains the removal of the record, for a task with
    O(state=confirmed) and the same O(vmid).
  - The new root file system gets the size of the old one if the image is smaller. Contents of the
    old one, such as passwords and SSH keys, are not copied.
  - The playbook C(pve.fleet.replace_images) uses it for the containers of an estate, one after the
    other.
options:
  name:
    description: Name of the container.
    type: str
  vmid:
    description: VMID of the container.
    type: int
  tenant:
    description:
      - The tenant of the VM. A VM without exactly the tag O(tenant_prefix) + O(tenant) is refused
        before the first write.
      - By default, VMs of all tenants can be changed, so an empty value is an error.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  source:
    description:
      - The image, such as V(debian-13) or V(debian-13@2026.11.20). Without a version, the newest
        version on the node of the container.
      - Required with O(state=replaced), unless the container has the image of its record already.
    type: str
  shared_sources:
    description:
      - Names and VMIDs of VMs and templates that every tenant may clone.
      - With O(tenant), other sources must have this tenant's tag, or be templates without the tag
        of a tenant.
    type: list
    elements: str
  state:
    description:
      - V(replaced) replaces the root file system of the container with that of the image, unless
        the container was created from the image. The old root file system becomes an unused volume,
        which a stopped container C(replace-VMID) records.
      - V(returned) restores the old root file system. Without such a record, nothing is changed.
      - V(confirmed) removes the container with the record. The old root file system stays as an
        unused volume.
    type: str
    choices: [replaced, returned, confirmed]
    default: replaced
  start:
    description: Whether to start the container with its root file system at the end. Without effect
      with O(state=confirmed).
    type: bool
    default: false
  force:
    description:
      - Whether a guest that has not shut down after O(shutdown_timeout) is stopped by force. With
        V(false), this is an error.
      - A reboot is then a shutdown and a start, because Proxmox VE cannot force a reboot.
    type: bool
    default: false
  shutdown_timeout:
    description:
      - Seconds that a guest may take to shut down, also for a reboot. V(0) stops it at once.
      - Environment variable E(PROXMOX_SHUTDOWN_TIMEOUT).
    type: int
    default: 60
  task_timeout:
    description:
      - Seconds to wait for each task of PVE. The task itself continues after that.
      - Environment variable E(PROXMOX_TASK_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment:
  - pve.fleet.plan_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso: [{module: pve.fleet.container}, {module: pve.fleet.clone}]
"""

EXAMPLES = r"""
- name: Replace the root file system with that of the newest image
  pve.fleet.container_image:
    name: proxy1
    tenant: acme
    source: debian-13-ct

- name: Start the container with the new root file system
  pve.fleet.container:
    name: proxy1
    tenant: acme
    state: started

- name: Remove the record of the old root file system
  pve.fleet.container_image:
    name: proxy1
    tenant: acme
    state: confirmed
"""

RETURN = r"""
container:
  description: The container as it is afterwards, or in check mode as it would be.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: proxy1}
    vmid: {description: Its VMID., type: int, sample: 15047}
    node: {description: Its node., type: str, sample: pve1}
    image: {description: 'The image of its root file system, null if unknown.', type: str,
      sample: debian-13-ct@2026.11.20}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: [~ acme/proxy1  image debian-13-ct@2026.10.02 -> debian-13-ct@2026.11.20, 'Done: 1
    changed']
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Clone image debian-13-ct@2026.11.20 to container 12345 for container 'proxy1' (15047) on
    node pve1]
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.container_image import (
    container_image_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.container.replace.run import (
    run,
)

ENTRY = ModuleEntry(
    run,
    container_image_spec(),
    {"required_one_of": [("name", "vmid")]},
    plans=True,
    plan_subject="vmid",
    name="container_image",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
