#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster.yml: do not edit.

DOCUMENTATION = r"""
module: cluster
short_description: Manage all resources of a cluster from one file
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Brings the resources of a cluster to the state that a file declares. Each item of a section has
    the options of the module for its kind, with the same defaults, and is planned, refused and
    written as by that module.
  - All resources are planned before the first write, each based on the changes of the previous
    ones, so a file can create a role and grant it. If one is refused, nothing is written.
  - Resources are written in the order of the options below. Then resources are removed in reverse
    order.
  - An unchanged file takes one request for each section and for each type of mappings and
    endpoints, one for each realm, metric server and pool with members, and one for each declared
    part of a node.
  - The token needs the privileges of the modules of all sections in the file.
options:
  options:
    description:
      - Options of the cluster, as the options of M(pve.fleet.cluster_options).
      - By default, nothing is changed.
    type: dict
  realms:
    description:
      - Realms, each with the options of M(pve.fleet.realm).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  realm_sync_jobs:
    description:
      - Jobs that synchronize realms, each with the options of M(pve.fleet.realm_sync_job).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  roles:
    description:
      - Roles, each with the options of M(pve.fleet.role).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  groups:
    description:
      - Groups, each with the options of M(pve.fleet.group).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  users:
    description:
      - Users, each with the options of M(pve.fleet.user).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  tokens:
    description:
      - API tokens, each with the options of M(pve.fleet.token). A new token needs
        C(credentials_file), the file for its login.
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  acme_accounts:
    description:
      - ACME accounts, each with the options of M(pve.fleet.acme_account). Needs a login of
        C(root@pam) with a password.
      - By default, nothing is changed.
    type: list
    elements: dict
  acme_plugins:
    description:
      - ACME plugins, each with the options of M(pve.fleet.acme_plugin).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  nodes:
    description:
      - Settings of nodes, each with the options of M(pve.fleet.node).
      - By default, nothing is changed.
    type: list
    elements: dict
  certificates:
    description:
      - Own certificates of nodes, each with the options of M(pve.fleet.node_certificate).
      - By default, nothing is changed.
    type: list
    elements: dict
  subscriptions:
    description:
      - Subscriptions of nodes, each with the options of M(pve.fleet.subscription).
      - By default, nothing is changed.
    type: list
    elements: dict
  apt_repositories:
    description:
      - Standard package repositories of nodes, each with the options of
        M(pve.fleet.apt_repository).
      - By default, nothing is changed.
    type: list
    elements: dict
  networks:
    description:
      - Networks of nodes, each with the options of M(pve.fleet.node_network).
      - By default, nothing is changed.
    type: list
    elements: dict
  sdn:
    description:
      - Zones, VNets, subnets and controllers of SDN, as the options of M(pve.fleet.sdn). Its option
        C(exact) names the sections whose unlisted objects are removed.
      - By default, nothing is changed.
    type: dict
  firewall:
    description:
      - Firewalls of the cluster, nodes, VNets, guests and security groups, each with the options of
        M(pve.fleet.firewall).
      - Aliases and IP sets of the cluster are written before security groups, and groups before
        rules that refer to them.
      - By default, nothing is changed.
    type: list
    elements: dict
  ceph_pools:
    description:
      - Ceph pools, each with the options of M(pve.fleet.ceph_pool).
      - By default, nothing is changed.
    type: list
    elements: dict
  storages:
    description:
      - Storages, each with the options of M(pve.fleet.storage).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  volumes:
    description:
      - Files and volumes on storages, each with the options of M(pve.fleet.volume).
      - By default, nothing is changed.
    type: list
    elements: dict
  mappings:
    description:
      - Mappings of devices and directories, each with the options of M(pve.fleet.mapping).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  cpu_models:
    description:
      - CPU models, each with the options of M(pve.fleet.cpu_model).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  pools:
    description:
      - Pools, each with the options of M(pve.fleet.pool).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  acls:
    description:
      - Rights, each with the options of M(pve.fleet.acl).
      - By default, nothing is changed.
    type: list
    elements: dict
  metric_servers:
    description:
      - Metric servers, each with the options of M(pve.fleet.metric_server).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  notification_endpoints:
    description:
      - Notification targets, each with the options of M(pve.fleet.notification_endpoint).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  notification_matchers:
    description:
      - Notification rules, each with the options of M(pve.fleet.notification_matcher).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  ha_groups:
    description:
      - HA groups of Proxmox VE 8, each with the options of M(pve.fleet.ha_group).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  ha_resources:
    description:
      - HA resources, each with the options of M(pve.fleet.ha_resource).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  ha_rules:
    description:
      - HA rules, each with the options of M(pve.fleet.ha_rule).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  replications:
    description:
      - Replication jobs, each with the options of M(pve.fleet.replication).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  backup_jobs:
    description:
      - Backup jobs, each with the options of M(pve.fleet.backup_job).
      - If it is not set or empty, nothing is changed unless O(exact) names the section.
    type: list
    elements: dict
  exact:
    description:
      - Sections whose resources are removed if the file does not declare them. A section in this
        list must be declared. If the section is an empty list, all its resources are removed.
      - Built-in resources are kept, such as the realms V(pam) and V(pve), the roles of Proxmox VE,
        user V(root@pam), storage V(local), endpoint V(mail-to-root) and matcher V(default-matcher).
      - A resource in use is not removed, and the whole task is refused.
    type: list
    elements: str
    choices:
      - realms
      - realm_sync_jobs
      - roles
      - groups
      - users
      - tokens
      - acme_plugins
      - storages
      - mappings
      - cpu_models
      - pools
      - metric_servers
      - notification_endpoints
      - notification_matchers
      - ha_groups
      - ha_resources
      - ha_rules
      - replications
      - backup_jobs
extends_documentation_fragment:
  - pve.fleet.plan_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.cluster_export_info
  - module: pve.fleet.vms
  - module: pve.fleet.tenant
"""

EXAMPLES = r"""
- name: Declare a storage, a role and a right with this role
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

- name: Show differences to a file
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
  description: Each declared and each removed resource, in the order in which they are written.
  returned: success
  type: list
  elements: dict
  contains:
    section: {description: Its section., type: str, sample: storages}
    name: {description: 'Its keys, joined by slashes.', type: str, sample: media}
    changed: {description: Whether it differs., type: bool, sample: true}
    plan: {description: Its steps., type: list, elements: str, sample: [Create storage 'media']}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: [+ storage media, 'Plan: 1 to create, 3 unchanged']
plan:
  description: The required steps, in words. Empty if nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create storage 'media']
done:
  description: The executed steps. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create storage 'media']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ValidationFailed, reason: declared twice, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster import (
    cluster_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file.desired import (
    secrets_in,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.cluster_file.run import run

ENTRY = ModuleEntry(run, cluster_spec(), secrets=secrets_in, plans=True, name="cluster")
main = ENTRY.main

if __name__ == "__main__":
    main()
