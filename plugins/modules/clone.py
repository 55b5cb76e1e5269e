#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from clone.yml: do not edit.

DOCUMENTATION = r"""
module: clone
short_description: Clone a template, virtual machine or container
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Ensures that a clone exists. A new clone can be configured in the same task with the options of
    M(pve.fleet.vm). If O(source) is a container, the clone is also a container, and only options
    that both kinds of guests have can be set.
  - 'A first clone: C(pve.fleet.clone: {name: web1, source: debian-13, cores: 2, memory: 4G,
    state: started}). Only O(source) and either O(name) or O(vmid) are required. With several
    tenants, set O(tenant) in every task.'
  - B(Which clone:) O(name), O(vmid), O(tenant). B(Source:) O(source), O(snapshot).
  - B(Copy:) O(full), O(storage), O(format).
  - B(Power:) O(state), O(reboot), O(graceful), O(force), O(wait_for).
  - B(Hardware:) O(cores), O(memory), O(cpu), O(disks), O(nics), O(agent), and any other option of
    PVE in O(options).
  - B(Guest:) O(cloud_init), and addresses in O(nics[].ip).
  - B(Place and limits:) O(node), O(placement), O(pool), O(tags), O(quota), O(allowed),
    O(allow_privileged).
  - B(Connection:) O(host), O(token_id), O(token_secret), O(ca_path), best set in the environment by
    E(PROXMOX_HOST), E(PROXMOX_TOKEN_ID), E(PROXMOX_TOKEN_SECRET) and E(PROXMOX_CA_PATH).
  - The guide C(docs/snapshots-and-clones.md) of this collection shows clones by example, and
    C(docs/vm.md) lists the options of a VM by purpose.
  - The notes of a clone contain a hidden comment with the VMID of its source. An existing clone
    with this name, tenant and source is not changed, even if its options differ, and its VMID is
    returned. Only its power state follows O(state). To change a clone, use M(pve.fleet.vm) or
    M(pve.fleet.container).
  - An unfinished clone of an interrupted run is completed. If Proxmox VE is still creating it, the
    task waits.
  - A guest with the same name or VMID but another source is a conflict. It is never replaced, and
    no second guest is created.
  - Impossible requests are rejected before the first write. If other clones hold the lock of the
    source, the task waits at most O(lock_timeout) seconds.
options:
  source:
    description:
      - The template, VM or container to clone. Digits are a VMID; any other text is an exact name.
      - A name refers to the template with that name, or else to the VM or container. Guests of
        O(tenant) are preferred. It must be unique, except for copies on several nodes and versions
        of an image, such as V(debian-13@2026.11.20). Without a version, the newest version on the
        node of the clone is used.
      - With O(tenant), templates without a tenant and the tenant's own guests and templates can be
        cloned. Any other source must be in O(shared_sources).
      - For the clone of a container, the options that M(pve.fleet.container) also has can be set.
        An option that only VMs have, such as O(disks), is refused before the first write.
      - A running container can only be cloned from a O(snapshot).
    type: str
    required: true
  state:
    description:
      - V(present) ensures that the clone exists and does not change its power state. A new clone is
        not started.
      - V(started) and V(stopped) also start or stop it.
    type: str
    choices: [present, started, stopped]
    default: present
  full:
    description:
      - Whether the disks are copied (V(true)), or linked to those of the template (V(false)).
      - By default, a clone of a template is linked if its storages support that, and any other
        clone is full.
      - Volumes of a container can be linked to a snapshot on Ceph (rbd) and thin LVM.
    type: bool
  storage:
    description:
      - Storage for the disks of a full clone. By default, that of the disk in the source.
      - O(disks[].storage) overrides it for one disk.
    type: str
  format:
    description: Format of the disks of a full clone of a VM on a file-based storage.
    type: str
    choices: [raw, qcow2, vmdk]
  snapshot:
    description: Snapshot to clone; by default, the current state.
    type: str
  allow_privileged:
    description:
      - Whether the clone can be a privileged container. With V(false), the clone of a privileged
        container is refused before the first write.
      - A VM is never privileged.
    type: bool
    default: true
  pool:
    description: Resource pool for a new clone. It must exist.
    type: str
  wait_for:
    description:
      - What to wait for after the clone has started. V(agent) waits until its guest agent answers,
        V(address) until the agent reports an address that O(address_family), O(address_nics) and
        O(address_subnets) allow.
      - Check mode does not wait.
    type: str
    choices: [none, agent, address]
    default: none
  wait_timeout:
    description:
      - Seconds to wait for O(wait_for).
      - Environment variable E(PROXMOX_WAIT_TIMEOUT).
    type: int
    default: 300
extends_documentation_fragment:
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.identity
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.vm
  - module: pve.fleet.container
  - module: pve.fleet.snapshot
"""

EXAMPLES = r"""
- name: Create a linked clone of a template and start it
  pve.fleet.clone:
    name: web1
    source: debian-13
    tenant: acme
    cores: 4
    memory: 8G
    disks:
      - name: scsi0
        size: 40G
    nics:
      - network: lan
        ip: 10.20.0.11/24
        gateway: 10.20.0.1
    cloud_init:
      user: ops
    state: started

- name: Create a full clone on another storage and node
  pve.fleet.clone:
    name: db1
    source: 9000
    node: pve2
    full: true
    storage: local-lvm

- name: Clone a VM from a snapshot
  pve.fleet.clone:
    name: web1-before
    source: web1
    snapshot: before-upgrade
    full: true

- name: Clone a container and increase its memory
  pve.fleet.clone:
    name: proxy2
    source: proxy1
    memory: 2G
    state: started

- name: Create ten clones of one template in parallel
  pve.fleet.clone:
    name: "worker{{ item }}"
    source: debian-13
    lock_timeout: 300
  loop: "{{ range(10) | list }}"
  async: 1800
  poll: 0
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
vm:
  description:
    - The clone, with the keys of RV(pve.fleet.vm_info#module:vms), also if it is a container.
      C(vmid) is the VMID of the clone, C(cloned_from) the VMID of its source.
    - In check mode, the current clone, or only name, node, VMID, C(phase) and C(checked) of a clone
      that would be created.
  returned: success
  type: dict
  sample: {vmid: 15046, name: web1, node: pve1, phase: Running, cloned_from: 9000}
kind:
  description: The kind of the clone, V(vm) or V(container).
  returned: success
  type: str
  sample: vm
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Clone VM 'debian-13' (9000) on node pve1 to VM 'web1' (15046) on node pve1 (linked)]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
applied:
  description: Options that were changed and apply immediately. In check mode, options that would
    be.
  returned: success
  type: list
  elements: str
  sample: [description]
pending:
  description: Options that are set but apply only after a stop or reboot of the VM.
  returned: success
  type: list
  elements: str
  sample: []
needs_reboot:
  description: Whether the VM needs a stop or reboot, see RV(pending).
  returned: success
  type: bool
  sample: false
conditions:
  description:
    - C(Ready), C(VMCreated), C(ResourcesAllocated) and C(NetworkConfigured), each with status and
      reason.
    - If the task failed, the reason is the category of RV(error), and a status that is not known is
      null.
  returned: always
  type: list
  elements: dict
  sample: [{type: Ready, status: true, reason: Running}]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: other origin, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.clone import clone_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.clone.run import run
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.describe import (
    conditions_of_failure,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.guest import (
    sites_of_quota,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.desired.layers import (
    class_secrets,
)

ENTRY = ModuleEntry(
    run,
    clone_spec(),
    {"required_one_of": [("name", "vmid")]},
    secrets=class_secrets,
    conditions=conditions_of_failure,
    sites=SiteSupport(names=sites_of_quota),
    returns_site=True,
    name="clone",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
