#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from apt_repository.yml: do not edit.

DOCUMENTATION = r"""
module: apt_repository
short_description: Manage the package repositories of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Enables or disables a repository on a node, a standard repository of Proxmox VE or Ceph, or
    another one in its files. Other repositories are not changed.
  - No packages are updated.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on the node.
options:
  node:
    description: Name of the node.
    type: str
    required: true
  handle:
    description: Handle of a standard repository, such as V(enterprise), V(no-subscription), V(test)
      or V(ceph-squid-no-subscription). The available repositories depend on the version of Proxmox
      VE. Required without O(uri).
    type: str
  uri:
    description: URI of any repository in the files of the node, instead of O(handle). All entries
      with this URI are changed, with all their suites. A missing one is refused, because the API
      adds only standard repositories.
    type: str
  state:
    description: Whether the repository is enabled. V(enabled) adds a missing repository. A missing
      repository counts as V(disabled).
    type: str
    choices: [enabled, disabled]
    default: enabled
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.apt_repository_info}, {module: pve.fleet.node}]
"""

EXAMPLES = r"""
- name: Enable the repository for use without a subscription
  pve.fleet.apt_repository:
    node: pve1
    handle: no-subscription

- name: Disable the enterprise repository
  pve.fleet.apt_repository:
    node: pve1
    handle: enterprise
    state: disabled

- name: Enable a repository of Debian
  pve.fleet.apt_repository:
    node: pve1
    uri: http://deb.debian.org/debian
"""

RETURN = r"""
apt_repository:
  description: The repository, or in check mode the repository as it would be.
  returned: success
  type: dict
  contains:
    node: {description: Name of the node., type: str, sample: pve1}
    handle: {description: 'Handle of a standard repository, else null.', type: str,
      sample: no-subscription}
    uri: {description: 'URI of another repository, else null.', type: str, sample: null}
    state: {description: Whether it is enabled., type: str, sample: enabled}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Enable repository no-subscription of node pve1]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: unknown repository, status: null, path: null,
    upid: null, retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.apt_repository import (
    apt_repository_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.apt.run import run

ENTRY = ModuleEntry(run, apt_repository_spec(), name="apt_repository")
main = ENTRY.main

if __name__ == "__main__":
    main()
