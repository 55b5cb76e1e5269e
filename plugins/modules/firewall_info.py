#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from firewall.yml: do not edit.

DOCUMENTATION = r"""
module: firewall_info
short_description: Gather information about the firewall
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the firewall of one scope in the form of the options of M(pve.fleet.firewall).
  - The token needs C(Sys.Audit) on C(/) for the cluster and security groups, on C(/nodes/NODE) for
    a node, C(VM.Audit) for a guest, and C(SDN.Audit) for a VNet.
options:
  effective:
    description:
      - Whether RV(effective) contains the rules of all scopes that apply to the packets of a guest.
      - The token then also needs C(Sys.Audit) on C(/).
    type: bool
    default: false
extends_documentation_fragment:
  - pve.fleet.firewall_options.scope
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso: [{module: pve.fleet.firewall}, {module: pve.fleet.firewall_check}]
"""

EXAMPLES = r"""
- name: Read the firewall of the cluster
  pve.fleet.firewall_info:
    scope: cluster
  register: cluster_firewall

- name: List its disabled rules
  ansible.builtin.debug:
    msg: "{{ cluster_firewall.firewall.rules | rejectattr('enable') }}"
"""

RETURN = r"""
firewall:
  description:
    - The firewall in the form of the options. RV(firewall) of module M(pve.fleet.firewall) contains
      only the parts that the task sets.
    - Null if the security group does not exist.
  returned: success
  type: dict
  contains:
    comment: {description: Comment of a security group., type: str, sample: Web servers}
    options: {description: Options of the scope that are set., type: dict, sample: {enable: true,
      policy_in: DROP}}
    rules: {description: Rules in order., type: list, elements: dict, sample: [{type: in,
      action: ACCEPT, enable: true, macro: SSH}]}
    aliases: {description: Aliases of the cluster or of a guest., type: list, elements: dict,
      sample: [{name: office, cidr: 192.0.2.0/24, comment: ''}]}
    ip_sets: {description: IP sets of the cluster or of a guest., type: list, elements: dict,
      sample: []}
effective:
  description:
    - The rules that apply to packets of the guest's NICs, in the order of Proxmox VE, with
      O(effective=true).
    - Each has C(nic), C(direction), C(origin) (C(guest), C(group NAME), C(built-in) or the policy),
      C(position) at its origin, C(rule), and C(not_from) if it only matches addresses outside of an
      IP set.
    - The list is empty if the firewall of the cluster or of the guest is disabled. NICs without the
      firewall have no rules.
  returned: success
  type: list
  elements: dict
  sample: [{nic: net0, direction: in, origin: guest, position: 0, rule: {type: in, action: ACCEPT,
    enable: true, macro: SSH}, not_from: null}]
groups:
  description: Security groups, each with C(name) and C(comment), with O(scope=cluster).
  returned: success
  type: list
  elements: dict
  sample: [{name: web, comment: Web servers}]
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.firewall import (
    firewall_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.run_info import run

ENTRY = ModuleEntry(
    run,
    firewall_info_spec(),
    {
        "mutually_exclusive": [
            ("node", "vnet", "group", "name"),
            ("node", "vnet", "group", "vmid"),
        ],
        "required_if": [
            ("scope", "node", ["node"]),
            ("scope", "vnet", ["vnet"]),
            ("scope", "group", ["group"]),
            ("scope", "guest", ["name", "vmid"], True),
        ],
    },
    name="firewall_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
