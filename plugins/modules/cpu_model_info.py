#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cpu_model.yml: do not edit.

DOCUMENTATION = r"""
module: cpu_model_info
short_description: Gather information about custom CPU models
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one CPU model, or all models on which the token has a mapping privilege. One request is
    made.
options:
  name:
    description: Name of one model. By default, all are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cpu_model}]
"""

EXAMPLES = r"""
- name: Read the CPU models
  pve.fleet.cpu_model_info:
  register: found

- name: List the models that hide KVM
  ansible.builtin.debug:
    msg: "{{ found.cpu_models | selectattr('hidden') | map(attribute='name') }}"
"""

RETURN = r"""
cpu_models:
  description: The models, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: common}
    reported_model: {description: The model of QEMU., type: str, sample: Skylake-Server}
    flags: {description: Its flags., type: list, elements: str, sample: [+aes, -hle]}
    hidden: {description: Whether KVM is hidden., type: bool, sample: false}
    hv_vendor_id: {description: Vendor ID of Hyper-V., type: str, sample: ''}
    phys_bits: {description: Bits of physical addresses., type: str, sample: ''}
    guest_phys_bits: {description: Bits that the guest can use., type: str, sample: ''}
    level: {description: Highest basic CPUID leaf., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cpu_model import (
    cpu_model_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.cpu_model import (
    CPU_MODEL,
)

ENTRY = ModuleEntry(partial(run_info, CPU_MODEL), cpu_model_info_spec(), name="cpu_model_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
