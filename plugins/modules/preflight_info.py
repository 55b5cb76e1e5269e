#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from preflight_info.yml: do not edit.

DOCUMENTATION = r"""
module: preflight_info
short_description: Check the requirements of a playbook before it runs
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Checks the endpoint, credentials, version, quorum and nodes, and the listed storages, bridges,
    templates, VMs and pool.
  - Checks that the caller has the privileges that O(tasks) need on the listed objects. The
    effective privileges are queried from Proxmox VE, including inherited ones.
  - Returns a table of passed and failed checks, with a next step for each failed check. A failed
    check does not fail the task. RV(passed) is false if a required check failed. The role
    P(pve.fleet.preflight#role) fails in that case.
  - Lists unfinished VMs of O(tenant) after interrupted runs.
options:
  tasks:
    description:
      - The tasks of the playbook.
      - V(vm_create) creates VMs that are blank or use an ISO or an image, and V(vm_clone) creates
        them from O(templates). V(container_create) creates containers from template files, and
        V(container_clone) from containers. V(vm_disks) adds, grows and moves disks. V(vm_agent)
        reads addresses from guests, as O(pve.fleet.vm#module:wait_for) does. V(vm_startup) sets
        O(pve.fleet.vm#module:startup), V(vm_mapping) attaches devices of a node by their mapping,
        V(vm_cpu_model) sets a custom CPU model, and V(tenant) creates users, roles, pools and ACLs.
        V(storage_info) reads storages, which is needed to select a storage. V(pool) creates,
        changes and deletes pools, V(pool_members) adds VMs to pools and removes them. V(group),
        V(user), V(role) and V(token) create, change and delete groups of users, users, roles and
        API tokens. V(acl) grants and revokes roles on O(pool) or any pool.
      - Tasks whose names begin with C(vm) also apply to containers, except V(vm_create),
        V(vm_clone) and V(vm_update).
      - The name of a module means all of its tasks. V(container) is V(container_create),
        V(container_update), V(vm_disks), V(vm_power) and V(vm_delete). V(vm) and V(vms) are
        V(vm_create), V(vm_update), V(vm_disks), V(vm_power) and V(vm_delete), V(clone) is
        V(vm_clone), V(vm_update), V(vm_disks) and V(vm_power), V(storage_download) is
        V(image_download), V(snapshot_info), V(drift_info) and V(estate_info) are V(vm_info), and
        V(metrics_info) and V(report_info) are V(metrics).
    type: list
    elements: str
    choices:
      - acl
      - acl_info
      - acme_account
      - acme_account_info
      - acme_certificate
      - acme_plugin
      - acme_plugin_info
      - apt_repository
      - apt_repository_info
      - audit_info
      - backup
      - backup_info
      - backup_job
      - backup_job_info
      - ceph_flag
      - ceph_info
      - ceph_mds
      - ceph_mgr
      - ceph_mon
      - ceph_osd
      - ceph_pool
      - ceph_pool_info
      - clone
      - cluster
      - cluster_export_info
      - cluster_info
      - cluster_join_info
      - cluster_options
      - cluster_options_info
      - container
      - container_clone
      - container_create
      - container_image
      - container_info
      - container_update
      - cpu_model
      - cpu_model_info
      - disk
      - disk_info
      - disk_storage
      - disk_storage_info
      - drift_info
      - drill
      - drill_info
      - estate_info
      - evacuation
      - evacuation_info
      - evacuation_node
      - failover
      - firewall
      - firewall_check
      - firewall_info
      - group
      - group_info
      - ha
      - ha_group
      - ha_group_info
      - ha_resource
      - ha_resource_info
      - ha_rule
      - ha_rule_info
      - ha_state
      - ha_state_info
      - hardware_info
      - image_download
      - image_upload
      - mapping
      - mapping_info
      - metric_server
      - metric_server_info
      - metrics
      - metrics_info
      - network
      - node
      - node_certificate
      - node_certificate_info
      - node_info
      - node_network
      - node_network_info
      - node_service
      - node_service_info
      - node_settings_info
      - node_update_info
      - notification_endpoint
      - notification_endpoint_info
      - notification_matcher
      - notification_matcher_info
      - pool
      - pool_info
      - pool_members
      - power
      - realm
      - realm_info
      - realm_sync
      - realm_sync_job
      - realm_sync_job_info
      - rebalance
      - relocate
      - replication
      - replication_info
      - report_info
      - restore
      - role
      - role_info
      - rollback
      - sdn
      - sdn_fabric_nodes
      - sdn_info
      - snapshot
      - snapshot_info
      - storage
      - storage_download
      - storage_info
      - storage_scan_info
      - subscription
      - subscription_info
      - task
      - task_info
      - tenant
      - tenant_info
      - tfa_info
      - tidy
      - token
      - token_info
      - usage
      - user
      - user_info
      - vm
      - vm_agent
      - vm_clone
      - vm_console
      - vm_cpu_model
      - vm_create
      - vm_delete
      - vm_disks
      - vm_info
      - vm_mapping
      - vm_migrate
      - vm_power
      - vm_startup
      - vm_template
      - vm_update
      - vms
      - volume
      - volume_info
    default: []
  operations:
    description:
      - Operations of a tenant, as in O(pve.fleet.tenant#module:operations). Their tasks are checked
        on the listed objects and in O(pool) only, because a tenant has no privileges on other
        objects.
    type: list
    elements: str
    choices: [read, operate, provision, snapshot, images, backup]
    default: []
  vms:
    description:
      - VMs and containers that the tasks use, by exact name or VMID. They must exist.
      - By default, the tasks must be possible on all VMs, or on the VMs in O(pool).
    type: list
    elements: str
    default: []
  templates:
    description:
      - Templates, VMs and containers to clone, by exact name or VMID. They must exist.
      - With V(container_create) in O(tasks), the list can also contain files of container
        templates, as in O(pve.fleet.container#module:source). Each of O(nodes), or else any node,
        must have them.
    type: list
    elements: str
    default: []
  nodes:
    description:
      - Nodes that the tasks use. They must be online.
      - By default, all nodes are checked, and an offline node is reported without failing the
        check.
      - A node in maintenance is reported without failing the check.
    type: list
    elements: str
    default: []
  storages:
    description: Storages that the tasks use.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Name of the storage.
        type: str
        required: true
      content:
        description: Content type that it must allow, such as V(images) for disks of VMs, V(rootdir)
          for volumes of containers, V(vztmpl) for container templates, V(iso), V(import) or
          V(snippets). V(any) is for disks of both kinds, and only checks that the storage exists.
        type: str
        default: images
      node:
        description: Node on which it must be available. By default, each of O(nodes), or else any
          node.
        type: str
  bridges:
    description: Bridges or VNets that the tasks use. They must exist on each of O(nodes), or else
      on every node.
    type: list
    elements: str
    default: []
  pool:
    description: Resource pool that the tasks use. It must exist.
    type: str
  min_version:
    description: Minimum version of Proxmox VE.
    type: str
    default: '8.0'
  tenant:
    description:
      - Tenant whose unfinished VMs of interrupted runs are listed, as by M(pve.fleet.tidy) in check
        mode. They have no effect on RV(ignore:passed).
      - This takes one request for each VM with the tenant's tag or without a tenant's tag.
    type: str
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  estate:
    description:
      - The estate that is checked, as the options of M(pve.fleet.vms), such as C(vms),
        C(containers), C(defaults), C(classes) and C(tenant_settings).
      - The templates, storages, bridges, pools, nodes and mapped devices that its guests name must
        exist, and the caller must have the privileges to create the guests with them. O(tasks) and
        the options beside it add to them.
      - Each storage in O(pve.fleet.vms#module:backup) of a guest, class or tenant must have content
        V(backup). The caller must have the privileges to write these jobs. A missing privilege is
        reported with the guests that need it.
      - If it contains C(backup_jobs=false), its backup jobs are not checked.
    type: dict
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cluster_info}, {module: pve.fleet.tidy}]
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

- name: List unfinished VMs of a tenant after interrupted runs
  pve.fleet.preflight_info:
    tenant: acme
  register: left

- name: Show the next step for each
  ansible.builtin.debug:
    msg: "{{ item.name }} ({{ item.vmid }}): {{ item.detail }}. {{ item.next_step }}"
  loop: "{{ left.unfinished }}"

- name: Check that the backup jobs of an estate can be written
  pve.fleet.preflight_info:
    estate:
      tenant: acme
      classes:
        db: {backup: {schedule: "02:30", storage: local, keep: {keep_daily: 7}}}
      vms:
        - {name: db1, class: db}
  register: jobs

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
    subject: {description: Object of the check., type: str, sample: VM.Clone on /vms/9000}
    status:
      description:
        - V(pass), V(fail), V(unknown) if the caller lacks permission or a node did not answer, or
          V(skipped) after the failure of a check on which all others depend.
      type: str
      sample: fail
    required: {description: Whether it counts for RV(passed)., type: bool, sample: true}
    detail: {description: Result of the check., type: str, sample: 'ops@pve!auto lacks VM.Clone on
      /vms/9000, for vm_clone'}
    next_step: {description: 'Next action, empty for a passed check.', type: str, sample: Give
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
role_command:
  description: The command that creates a role with the privileges that were checked, empty if none
    were checked. It is also the last line of RV(table).
  returned: success
  type: str
  sample: pveum role add FleetEstate --privs "VM.Audit VM.Clone"
unfinished:
  description: Unfinished VMs of O(tenant) after interrupted runs, in the form of
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

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.preflight_info import (
    preflight_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.preflight.estate import (
    estate_secrets,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.preflight.info import run

ENTRY = ModuleEntry(run, preflight_info_spec(), secrets=estate_secrets, name="preflight_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
