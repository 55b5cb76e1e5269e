#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster.yml: do not edit.

DOCUMENTATION = r"""
module: cluster_export_info
short_description: Gather the configuration of a cluster as a file
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the resources of a cluster as variables of the role C(pve.fleet.cluster), and as the
    text of a file with comments. A run of C(pve.fleet.cluster) with that file changes nothing.
  - Options with the default of Proxmox VE, and the roles of Proxmox VE, are omitted. Guests of
    pools are omitted because the estate contains their pools.
  - Secrets are omitted because Proxmox VE does not return them. A comment names them.
  - Offline nodes are omitted.
options:
  sections:
    description: The sections to return. By default, all are returned.
    type: list
    elements: str
    choices:
      - options
      - realms
      - realm_sync_jobs
      - roles
      - groups
      - users
      - tokens
      - acme_accounts
      - acme_plugins
      - nodes
      - certificates
      - subscriptions
      - apt_repositories
      - networks
      - sdn
      - firewall
      - ceph_pools
      - storages
      - mappings
      - cpu_models
      - pools
      - acls
      - metric_servers
      - notification_endpoints
      - notification_matchers
      - ha_groups
      - ha_resources
      - ha_rules
      - replications
      - backup_jobs
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cluster}, {module: pve.fleet.estate_info}]
"""

EXAMPLES = r"""
- name: Read the configuration of a cluster
  pve.fleet.cluster_export_info:
  register: found

- name: Write it to a file
  ansible.builtin.copy:
    content: "{{ found.text }}"
    dest: "{{ playbook_dir }}/cluster.yml"
    mode: "0600"

- name: Read only its storages and backup jobs
  pve.fleet.cluster_export_info:
    sections: [storages, backup_jobs]
  register: found
"""

RETURN = r"""
cluster:
  description: The variables of the file, in the form of the role C(pve.fleet.cluster).
  returned: success
  type: dict
  sample: {cluster_storages: [{name: media, type: dir, path: /srv/media}]}
text:
  description: The same variables as the text of a file, with comments.
  returned: success
  type: str
  sample: '---

    cluster_storages: []

    '
complete:
  description: Whether every section could be read.
  returned: success
  type: bool
  sample: true
missing:
  description: Sections that could not be read, each with C(section) and C(reason).
  returned: success
  type: list
  elements: dict
  sample: []
secrets:
  description: Possible secrets of resources, which are omitted, each with C(section) and C(secret).
  returned: success
  type: list
  elements: dict
  sample: [{section: metric_servers, secret: 'influx: token'}]
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster import (
    cluster_export_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file.run_export import (
    run,
)

ENTRY = ModuleEntry(run, cluster_export_info_spec(), name="cluster_export_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
