#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cpu_model.yml: do not edit.

DOCUMENTATION = r"""
module: cpu_model
short_description: Manage custom CPU models
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a CPU model, which VMs of all nodes can use.
  - A change takes effect when a VM starts. Proxmox VE deletes a model even if VMs use it, and these
    VMs can then no longer start.
  - This needs Proxmox VE 9.2 or newer.
  - The token needs C(Mapping.Modify) on C(/mapping/cpu).
options:
  name:
    description: Name of the model. VMs refer to it as C(custom-NAME); the prefix is optional here.
    type: str
    required: true
  state:
    description: V(present) creates the model or updates settings that differ, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  reported_model:
    description: Model of QEMU that it is based on, such as V(Skylake-Server). Required for a new
      model. By default, it is not changed.
    type: str
  flags:
    description: Flags of the CPU, such as V(+aes) or V(-pcid), which replace the flags of the
      model. An empty list removes them. By default, they are not changed.
    type: list
    elements: str
  hidden:
    description: Whether KVM is hidden from the guest. By default, it is not changed.
    type: bool
  hv_vendor_id:
    description: Vendor ID of Hyper-V, up to 12 letters and digits. An empty text removes it. By
      default, it is not changed.
    type: str
  phys_bits:
    description: Bits of physical addresses that the guest sees, from V(8) to V(64), or V(host). An
      empty text removes it. By default, it is not changed.
    type: str
  guest_phys_bits:
    description: Bits of physical addresses that the guest can use, from V(32) to V(64). An empty
      text removes it. By default, it is not changed.
    type: str
  level:
    description: Highest basic CPUID leaf, such as V(30) for Hyper-V on recent CPUs. An empty text
      removes it. By default, it is not changed.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.cpu_model_info}, {module: pve.fleet.vm}]
"""

EXAMPLES = r"""
- name: Create a model that every node supports
  pve.fleet.cpu_model:
    name: common
    reported_model: Skylake-Server
    flags: [+aes, -hle]

- name: Hide KVM from its guests
  pve.fleet.cpu_model:
    name: common
    hidden: true

- name: Delete the model
  pve.fleet.cpu_model:
    name: common
    state: absent
"""

RETURN = r"""
cpu_model:
  description: The model as it is afterwards, or in check mode as it would be. It is null if it is
    deleted. RV(pve.fleet.cpu_model_info#module:cpu_models) describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create CPU model 'common']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: flags, status: null, path: null, upid: null,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cpu_model import (
    cpu_model_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.cpu_model import (
    CPU_MODEL,
)

ENTRY = ModuleEntry(partial(run, CPU_MODEL), cpu_model_spec(), name="cpu_model")
main = ENTRY.main

if __name__ == "__main__":
    main()
