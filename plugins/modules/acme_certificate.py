#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from acme_certificate.yml: do not edit.

DOCUMENTATION = r"""
module: acme_certificate
short_description: Manage the certificate of a node by ACME
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Orders a certificate for the domains that M(pve.fleet.node) sets, and waits for the CA. Nothing
    is ordered while the certificate of the node has these domains and is valid for O(renew_days).
    An uploaded certificate with other domains is replaced.
  - Proxmox VE renews such a certificate itself. The account must exist. C(pvenode acme account
    register) creates one.
  - The web server of the node loads the certificate. The token needs C(Sys.Modify) on the node, and
    C(Sys.Audit) on C(/).
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: V(present) orders a certificate if the node needs one, V(absent) revokes and
      removes it.
    type: str
    choices: [present, absent]
    default: present
  renew_days:
    description: Days of validity below which the certificate is ordered again. V(0) waits until it
      has expired.
    type: int
    default: 30
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.node
  - module: pve.fleet.acme_plugin
  - module: pve.fleet.node_certificate_info
"""

EXAMPLES = r"""
- name: Set the domain of the node
  pve.fleet.node:
    node: pve1
    acme:
      domains: [{domain: pve1.lab.example.com}]

- name: Order its certificate
  pve.fleet.acme_certificate:
    node: pve1

- name: Order the certificate again two months before it expires
  pve.fleet.acme_certificate:
    node: pve1
    renew_days: 60

- name: Revoke it
  pve.fleet.acme_certificate:
    node: pve1
    state: absent
"""

RETURN = r"""
acme_certificate:
  description: The certificate as it is afterwards, in check mode the current one. It is null
    without a certificate.
  returned: success
  type: dict
  contains:
    node: {description: The node., type: str, sample: pve1}
    domains: {description: Its domains., type: list, elements: str, sample: [pve1.lab.example.com]}
    fingerprint: {description: Its SHA-256 fingerprint., type: str}
    subject: {description: Its subject., type: str, sample: /CN=pve1.lab.example.com}
    issuer: {description: Its issuer., type: str}
    not_before: {description: Start of its validity., type: str, sample: '2026-11-20T20:15:33Z'}
    not_after: {description: End of its validity., type: str, sample: '2027-02-18T20:15:33Z'}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create the certificate of node pve1]
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create the certificate of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: no domains, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.acme_certificate import (
    acme_certificate_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.certificate import (
    run_acme_certificate,
)

ENTRY = ModuleEntry(run_acme_certificate, acme_certificate_spec(), name="acme_certificate")
main = ENTRY.main

if __name__ == "__main__":
    main()
