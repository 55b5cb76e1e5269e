# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules cpu_model and cpu_model_info.

Written by `make options` from cpu_model.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the model. VMs refer to it as C(custom-NAME); the prefix is optional here.
    type: str
    required: true
  state:
    description: V(present) creates the model or changes what differs, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  reported_model:
    description: Model of QEMU that it is based on, such as V(Skylake-Server). Required for a new
      model. By default, it is not changed.
    type: str
  flags:
    description: Flags of the CPU, such as V(+aes) or V(-pcid), which replace those of the model.
      An empty list removes them. By default, they are not changed.
    type: list
    elements: str
  hidden:
    description: Whether the guest does not see that it runs on KVM. By default, it is not changed.
    type: bool
  hv_vendor_id:
    description: Vendor ID of Hyper-V, up to 12 letters and digits. An empty text removes it. By
      default, it is not changed.
    type: str
  phys_bits:
    description: Bits of physical addresses that the guest sees, from V(8) to V(64), or V(host).
      An empty text removes it. By default, it is not changed.
    type: str
  guest_phys_bits:
    description: Bits of physical addresses that the guest can use, from V(32) to V(64). An empty
      text removes it. By default, it is not changed.
    type: str
  level:
    description: Highest basic CPUID leaf, such as V(30) for Hyper-V on recent CPUs. An empty text
      removes it. By default, it is not changed.
    type: str
"""

    INFO = r"""
options:
  name:
    description: Name of one model. By default, all are returned.
    type: str
"""
