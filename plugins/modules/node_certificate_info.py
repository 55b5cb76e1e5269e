#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node_certificate.yml: do not edit.

DOCUMENTATION = r"""
module: node_certificate_info
short_description: Gather information about the own certificate of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the own certificate of a node, without its key. One request is made.
  - Every login may read it.
options:
  node:
    description: Name of the node.
    type: str
    required: true
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.node_certificate}]
"""

EXAMPLES = r"""
- name: Read the certificate
  pve.fleet.node_certificate_info:
    node: pve1
  register: found

- name: Show when it expires
  ansible.builtin.debug:
    msg: "{{ found.certificates | map(attribute='not_after') }}"
"""

RETURN = r"""
certificates:
  description: The own certificate of the node, an empty list if it has none.
  returned: success
  type: list
  elements: dict
  contains:
    node: {description: The node., type: str, sample: pve1}
    certificates: {description: 'The certificate in PEM format, and in check mode its chain.',
      type: str}
    fingerprint: {description: Its SHA-256 fingerprint., type: str}
    subject: {description: Its subject., type: str, sample: /CN=pve1.example.com}
    issuer: {description: Its issuer., type: str, sample: /CN=Example CA}
    names: {description: Its alternative names., type: list, elements: str, sample:
      [pve1.example.com]}
    not_before: {description: 'When it becomes valid, in ISO 8601 format, UTC.', type: str,
      sample: '2026-01-01T00:00:00Z'}
    not_after: {description: 'When it expires, in ISO 8601 format, UTC.', type: str,
      sample: '2027-01-01T00:00:00Z'}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node_certificate import (
    node_certificate_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.identity.certificate import (
    NODE_CERTIFICATE,
)

ENTRY = ModuleEntry(
    partial(run_info, NODE_CERTIFICATE), node_certificate_info_spec(), name="node_certificate_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
