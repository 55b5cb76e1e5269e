#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from preflight_info.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: preflight_info
short_description: Check the requirements of a playbook before it runs
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Checks the endpoint, credentials, version, quorum and nodes, and the storages, bridges,
    templates, VMs and pool that are listed.
  - Checks that the caller has the privileges that O(tasks) need on the listed objects. The
    effective privileges are queried from Proxmox VE, including inherited ones.
  - Returns a table of passed and failed checks, with a next step for each failed one. A failed
    check does not fail the task; RV(passed) is false if a required check failed. The role
    P(pve.fleet.preflight#role) fails in that case.
  - Lists what interrupted runs left unfinished about the VMs of O(tenant).
extends_documentation_fragment:
  - pve.fleet.preflight_info_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso:
  - module: pve.fleet.cluster_info
  - module: pve.fleet.tidy
"""

EXAMPLES = r"""
- name: Check that VMs of the tenant can be cloned and started
  pve.fleet.preflight_info:
    tasks: [vm_clone, vm_power]
    templates: [debian-13]
    pool: acme
    nodes: [pve1, pve2]
    storages:
      - name: ceph
      - name: local
        content: snippets
    bridges: [vmbr0]
  register: preflight

- name: Check that containers of the tenant can be created from a template
  pve.fleet.preflight_info:
    tasks: [container_create, vm_power]
    templates: [debian-13-standard]
    pool: acme
    nodes: [pve1, pve2]
    storages:
      - name: ceph
        content: rootdir
    bridges: [vmbr0]
  register: preflight

- name: List what interrupted runs left of a tenant's VMs
  pve.fleet.preflight_info:
    tenant: acme
  register: left

- name: Show what ends it
  ansible.builtin.debug:
    msg: "{{ item.name }} ({{ item.vmid }}): {{ item.detail }}. {{ item.next_step }}"
  loop: "{{ left.unfinished }}"

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ preflight.table }}"

- name: Stop if a requirement is not met
  ansible.builtin.assert:
    that: preflight.passed
    fail_msg: "{{ preflight.failed_checks | map(attribute='next_step') | join('; ') }}"
"""

RETURN = r"""
passed:
  description: Whether all required checks passed.
  returned: success
  type: bool
  sample: true
checks:
  description: All checks.
  returned: success
  type: list
  elements: dict
  contains:
    check: {description: 'Kind of check, such as V(endpoint), V(quorum), V(node), V(storage),
        V(privilege) or V(unfinished).', type: str, sample: privilege}
    subject: {description: What was checked., type: str, sample: VM.Clone on /vms/9000}
    status:
      description:
        - V(pass), V(fail), V(unknown) if the caller lacks permission or a node did not answer,
          V(skipped) after the failure of a check on which all others depend.
      type: str
      sample: fail
    required: {description: Whether it counts for RV(passed)., type: bool, sample: true}
    detail: {description: Result of the check., type: str, sample: 'ops@pve!auto lacks VM.Clone
        on /vms/9000, for vm_clone'}
    next_step: {description: 'What to do, empty for a check that passed.', type: str, sample: Give
        ops@pve!auto a role}
failed_checks:
  description: Required checks that failed.
  returned: success
  type: list
  elements: dict
  sample: []
table:
  description: The checks as aligned lines of text.
  returned: success
  type: list
  elements: str
  sample: [PASS  quorum     cluster              quorate]
unfinished:
  description: What interrupted runs left of the VMs of O(tenant), in the form of
    RV(pve.fleet.tidy#module:unfinished). Empty without O(tenant).
  returned: success
  type: list
  elements: dict
  sample:
    - vmid: 38648
      name: web1
      node: pve1
      kind: creation
      detail: it has the creation marker, and no task works on it
      remedy: remove
      next_step: Run the task that created it again, which completes it
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._preflight.info import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.preflight_info import (
    preflight_info_spec,
)

ENTRY = Entry(run, preflight_info_spec(), name="preflight_info")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
