#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
---
module: preflight_info
short_description: Check whether tasks could be carried out, before they are
version_added: "0.1.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Checks that the endpoint answers, that it accepts the credentials, the version, the quorum, the nodes, and whatever
    is named of storages, bridges, templates, VMs and a pool.
  - Checks that the caller has the privileges that O(tasks) need, on the objects that are named. Proxmox VE itself is
    asked what the caller has on each path, with everything that is inherited.
  - The result is one table of passed and failed checks, each failed one with its next step. A failed check does not
    fail the task; RV(passed) says whether any that is required failed. The role P(pve.fleet.preflight#role) fails then.
extends_documentation_fragment:
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
options:
  tasks:
    description:
      - What shall be done.
      - V(vm_create) makes VMs from nothing, an ISO or an image, V(vm_clone) from O(templates). V(vm_disks) adds, grows
        and moves disks. V(vm_agent) asks guests for their addresses. V(tenant) makes users, roles, pools and ACLs.
    type: list
    elements: str
    default: []
    choices:
      - cluster_info
      - ha
      - image_download
      - image_upload
      - network
      - node_info
      - pool
      - rollback
      - snapshot
      - storage
      - tenant
      - vm_agent
      - vm_clone
      - vm_console
      - vm_create
      - vm_delete
      - vm_disks
      - vm_info
      - vm_migrate
      - vm_power
      - vm_template
      - vm_update
  vms:
    description:
      - The VMs that the tasks work on, each by its exact name or its number. They must be there.
      - Left out, the tasks must be possible on any VM, or on those of O(pool).
    type: list
    elements: str
    default: []
  templates:
    description: The templates or VMs to clone, each by its exact name or its number. They must be there.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - The nodes that the tasks work on. They must be online.
      - Left out, all nodes are looked at, and one that is down is told but does not count.
      - A node in maintenance is told but does not count.
    type: list
    elements: str
    default: []
  storages:
    description: The storages that the tasks use.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the storage.
        type: str
        required: true
      content:
        description: What it must take, such as V(images), V(iso), V(import) or V(snippets).
        type: str
        default: images
      node:
        description: The node on which it must be available. Left out, on each of O(nodes), or else on any node.
        type: str
  bridges:
    description: The bridges or VNets that the tasks use. They must be on each of O(nodes), or else on every node.
    type: list
    elements: str
    default: []
  pool:
    description: The resource pool in which the tasks work. It must be there.
    type: str
  min_version:
    description: The oldest version of Proxmox VE that will do.
    type: str
    default: "8.0"
seealso:
  - module: pve.fleet.cluster_info
"""

EXAMPLES = r"""
- name: Could VMs of the tenant be cloned and started?
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

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ preflight.table }}"

- name: Stop where something is missing
  ansible.builtin.assert:
    that: preflight.passed
    fail_msg: "{{ preflight.failed_checks | map(attribute='next_step') | join('; ') }}"
"""

RETURN = r"""
passed:
  description: Whether no check that is required failed.
  returned: success
  type: bool
  sample: true
checks:
  description: Every check.
  returned: success
  type: list
  elements: dict
  contains:
    check:
      description: What was checked, such as V(endpoint), V(quorum), V(node), V(storage) or V(privilege).
      type: str
      sample: privilege
    subject: {description: On what., type: str, sample: VM.Clone on /vms/9000}
    status:
      description:
        - V(pass), V(fail), V(unknown) where the caller may not see it or it did not answer, V(skipped) after a failure
          that everything else depends on.
      type: str
      sample: fail
    required: {description: Whether it counts for RV(passed)., type: bool, sample: true}
    detail: {description: What was found., type: str, sample: "ops@pve!auto lacks VM.Clone on /vms/9000, for vm_clone"}
    next_step: {description: "What to do, empty for a check that passed.", type: str, sample: Give ops@pve!auto a role}
failed_checks:
  description: The checks that failed and are required.
  returned: success
  type: list
  elements: dict
  sample: []
table:
  description: The checks as lines of text, aligned, for people.
  returned: success
  type: list
  elements: str
  sample: ["PASS  quorum     cluster              quorate"]
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry import Entry
from ansible_collections.pve.fleet.plugins.module_utils._preflight.info import gather as run
from ansible_collections.pve.fleet.plugins.module_utils._spec.preflight import preflight_info_spec

ENTRY = Entry(run, preflight_info_spec())


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
