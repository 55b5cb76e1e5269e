#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_certificate.yml: do not edit.

DOCUMENTATION = r"""
module: node_certificate
short_description: Manage the own certificate of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Uploads, replaces and removes the certificate that the web server and the API of a node use.
  - A certificate that Proxmox VE ordered by ACME is stored in the same file, and is also replaced.
  - The token needs C(Sys.Modify) on the node.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: V(present) uploads the certificate or replaces another one. V(absent) removes the
      own certificate and its key, and the node uses the certificate of the cluster again.
    type: str
    choices: [present, absent]
    default: present
  certificates:
    description: The certificate and its chain in PEM format, without a private key. Required for a
      new certificate. The first certificate is compared. By default, it is not changed.
    type: str
  private_key:
    description:
      - The private key in PEM format, without a password. It is never returned.
      - It is written together with a new certificate. If it is not set, Proxmox VE keeps the
        existing key of the node.
    type: str
  update_secrets:
    description: Whether O(private_key) is written if the certificate is unchanged. Proxmox VE never
      returns it, so it cannot be compared. V(on_create) does not write it then, V(always) writes it
      in each run.
    type: str
    choices: [on_create, always]
    default: on_create
  restart:
    description:
      - Whether the web server of the node restarts after a change, to use the new certificate. Open
        connections are kept.
      - The task must be able to verify the new certificate, see O(ca_path).
    type: bool
    default: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.node_certificate_info}, {module: pve.fleet.node}]
"""

EXAMPLES = r"""
- name: Remove the own certificate
  pve.fleet.node_certificate:
    node: pve2
    state: absent

- name: Upload a certificate if it is given
  pve.fleet.node_certificate:
    node: pve1
    certificates: "{{ lookup('ansible.builtin.env', 'NODE_CERTIFICATE') }}"
    private_key: "{{ lookup('ansible.builtin.env', 'NODE_KEY') }}"
  when: lookup('ansible.builtin.env', 'NODE_CERTIFICATE') | length > 0
  no_log: true
"""

RETURN = r"""
node_certificate:
  description: The result as it is afterwards, or in check mode as it would be. It is null without
    an own certificate. Proxmox VE reads the subject, the names and the times, so check mode shows
    the values of the former certificate. RV(pve.fleet.node_certificate_info#module:certificates)
    describes its fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create the certificate of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: certificates, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_certificate import (
    node_certificate_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.certificate import (
    run_certificate,
    secrets_in,
)

ENTRY = ModuleEntry(
    run_certificate, node_certificate_spec(), secrets=secrets_in, name="node_certificate"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
