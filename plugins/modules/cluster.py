#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cluster
short_description: Manage all resources of a cluster from one file
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Brings the resources of a cluster to the state that a file declares. Each item of a section
    has the options of the module of its kind, with the same defaults, and is planned, refused
    and written as that module does.
  - All resources are planned before the first write, each with the changes of those before
    it, so that a file can create a role and grant it. If one is refused, nothing is written.
  - Resources are written in the order of the options below, and removed in the opposite order,
    after all others were written.
  - An unchanged file takes one request for each section and for each type of mappings and
    endpoints, one for each realm, metric server and pool with members, and one for each part
    of a node that is declared.
  - The token needs the privileges of the modules whose sections the file has.
extends_documentation_fragment:
  - pve.fleet.cluster_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.cluster_export_info
  - module: pve.fleet.vms
  - module: pve.fleet.tenant
"""

EXAMPLES = r"""
- name: Declare a storage, a role and its right
  pve.fleet.cluster:
    storages:
      - {name: media, type: dir, path: /srv/media, content: [iso, vztmpl]}
    roles:
      - {name: media-user, privileges: [Datastore.Audit, Datastore.AllocateSpace]}
    groups:
      - {name: editors, comment: Editors}
    acls:
      - path: /storage/media
        grants: [{group: editors, role: media-user}]

- name: Remove every HA rule that is not listed
  pve.fleet.cluster:
    ha_rules: []
    exact: [ha_rules]

- name: Show what differs from a file
  pve.fleet.cluster:
    options:
      registered_tags: [tenant_globex]
    backup_jobs:
      - {name: nightly, schedule: "02:30", all: true, storage: local}
  check_mode: true
  register: differences
"""

RETURN = r"""
resources:
  description: Each declared resource and each that is removed, in the order in which they are
    written.
  returned: success
  type: list
  elements: dict
  contains:
    section: {description: Its section., type: str, sample: storages}
    name: {description: 'Its keys, joined by slashes.', type: str, sample: media}
    changed: {description: Whether it differs., type: bool, sample: true}
    plan: {description: Its steps., type: list, elements: str, sample: [Create storage 'media']}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create storage 'media']
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create storage 'media']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: ValidationFailed
    reason: declared twice
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._cluster_file.desired import secrets_in
from ansible_collections.pve.fleet.plugins.module_utils._cluster_file.run import run
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.cluster import cluster_spec

ENTRY = Entry(run, cluster_spec(), secrets=secrets_in, name="cluster")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
