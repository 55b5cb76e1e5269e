#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from report_info.yml: do not edit.

DOCUMENTATION = r"""
module: report_info
short_description: Gather a report on sites, tenants, nodes and guests
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns what needs attention, the nodes of each site with their load and the room that the rules
    of placement leave, the VMs of each tenant beside its quota, backups, snapshots and changes that
    wait for a reboot, what differs from an estate, what has grown since the last report, and costs.
    Nothing is written. The role C(pve.fleet.report) makes a page of it.
  - What cannot be read is reported as unknown, with the reason, and never as zero or as fine.
  - This takes two requests for each VM, two for each storage on a node, three for each node, and
    seven more for each site. With O(estate), the requests of M(pve.fleet.drift_info) about VMs are
    the same ones.
  - The caller needs C(VM.Audit) on C(/vms), C(Sys.Audit) on C(/) and C(Datastore.Audit) on
    C(/storage). Proxmox VE lists backups for who also has C(Datastore.AllocateSpace) on the storage
    and C(VM.Backup) on the VM; without them, backups are unknown.
options:
  of_sites:
    description:
      - Names of the sites to report on, of those in O(sites) or O(sites_file). The sites of the VMs
        in O(estate) are added.
      - By default, the report is on the site of the task.
    type: list
    elements: str
    default: []
  estate:
    description:
      - The estate to compare with what is there, as the options of M(pve.fleet.drift_info), such as
        C(vms), C(defaults), C(tenant_settings) and C(ignore). Each VM is read once for both.
      - Without it, RV(report.drift) is null.
    type: dict
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(quota) and C(site), see
        O(pve.fleet.vms#module:tenant_settings). Those without a VM are reported too.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of the tags of tenants.
    type: str
    default: tenant_
  placement:
    description:
      - The rules of placement under which the room of nodes is calculated. C(cpu_overcommit),
        C(memory_overcommit), C(min_free_memory) and C(max_vms_per_node) of
        O(pve.fleet.vm#module:placement) are used.
      - By default, 4 cores for each core of a node, and the memory of a node once.
    type: dict
  memory_warn:
    description: Memory usage in percent from which a node gets a warning.
    type: int
    default: 90
  storage_warn:
    description: Usage in percent from which a storage or root file system gets a warning.
    type: int
    default: 90
  snapshot_days:
    description: Days after which a snapshot is old.
    type: int
    default: 30
  backup_days:
    description: Days after which a guest whose newest backup is older needs attention.
    type: int
    default: 7
  drills:
    description:
      - The text of the record of drills, C(drill.json) of the role P(pve.fleet.drill#role). Each
        guest then has its last proven restore, and guests without one need attention.
      - Without it, C(proven) of each guest is null.
    type: str
    default: ''
  prices:
    description: Prices for a month. With at least one of them, RV(report.costs) has the costs of
      each tenant.
    type: dict
    suboptions:
      core:
        description: Price of a core, as a decimal number such as V(4.50).
        type: str
      memory:
        description: Price of one GiB of memory.
        type: str
      storage:
        description: Price of one GiB of disks.
        type: str
      currency:
        description: What is shown beside amounts, such as V(EUR).
        type: str
  history:
    description:
      - The text of the history file that RV(history) of the last report was written to. The growth
        since then is calculated from it. Empty for the first report.
      - If the text is not a history of this version, the report says so, and RV(history) is null.
    type: json
    default: ''
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.drift_info
  - module: pve.fleet.cluster_info
  - module: pve.fleet.audit_info
  - plugin: pve.fleet.report_html
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Gather the report
  pve.fleet.report_info:
    tenants:
      acme:
        quota: {vms: 20, memory: 64G}
    placement: {cpu_overcommit: 4}
    prices: {core: "4.50", memory: "2.00", storage: "0.08", currency: EUR}
  register: gathered

- name: Show what needs attention
  ansible.builtin.debug:
    msg: "{{ gathered.lines }}"

- name: Write it as a page
  ansible.builtin.copy:
    content: "{{ gathered.report | pve.fleet.report_html }}"
    dest: "{{ playbook_dir }}/report.html"
    mode: "0600"
"""

RETURN = r"""
report:
  description: The report. C(docs/report.schema.json) has its JSON Schema.
  returned: success
  type: dict
  contains:
    version: {description: Version of this form of the report., type: int, sample: 1}
    checked: {description: 'Time of the query in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    complete: {description: Whether everything could be read., type: bool, sample: true}
    snapshot_days: {description: The option O(snapshot_days)., type: int, sample: 30}
    backup_days: {description: The option O(backup_days)., type: int, sample: 7}
    attention:
      description: What needs attention, the gravest first.
      type: list
      elements: dict
      contains:
        kind: {description: 'A word for it, such as V(no_backup).', type: str, sample: no_backup}
        severity: {description: 'V(critical), V(warning) or V(notice).', type: str, sample: warning}
        title: {description: A heading., type: str, sample: Guests without a backup}
        count: {description: Number of cases., type: int, sample: 1}
        cases: {description: 'Each with C(text), and with C(site), C(node), C(tenant) and C(vmid) of
          what it is about, or null.', type: list, elements: dict, sample: [{site: '', node: null,
          tenant: null, vmid: 15046, text: acme/web1}]}
    sites:
      description:
        - Each with C(site), the cluster as M(pve.fleet.cluster_info) returns it, C(nodes) as
          M(pve.fleet.node_info) returns them, C(room), the sum of what the rules of placement
          leave, C(networks), the zones with their VNets and the guests on them, C(missing), the
          parts that could not be read, and C(privileges) that the login lacks.
        - C(reason) is null unless the site could not be read. Everything else is null or empty
          then.
      type: list
      elements: dict
      sample: [{site: '', reason: null, name: demo, quorate: true, vms: 6, templates: 2}]
    tenants:
      description:
        - What each tenant has at each site, with C(quotas). The one with an empty name has the
          guests without a tenant and with several. Memory and disk are in bytes.
        - C(reason) is null unless guests of the tenant could not be read. It has more then, and
          what rests on the figures is null.
      type: list
      elements: dict
      sample:
        - site: ''
          tenant: acme
          vms: 3
          running: 3
          cores: 5
          memory: 9663676416
          disk: 128849018880
          quotas:
            - kind: vms
              used: 3
              limit: 20
              exceeded: false
          reason: null
    vms:
      description: The VMs, without templates.
      type: list
      elements: dict
      contains:
        site: {description: 'Site of the VM, empty for that of the task.', type: str, sample: ''}
        kind: {description: V(vm) or V(container)., type: str, sample: vm}
        vmid: {description: VMID., type: int, sample: 15046}
        name: {description: 'Name, empty without one.', type: str, sample: web1}
        tenant: {description: 'Tenant, empty unless there is exactly one.', type: str, sample: acme}
        owners: {description: All tenants in its tags., type: list, elements: str, sample: [acme]}
        node: {description: Node., type: str, sample: pve1}
        status: {description: Power state., type: str, sample: running}
        cores: {description: Number of cores., type: int, sample: 2}
        memory: {description: Memory in bytes., type: int, sample: 4294967296}
        disk: {description: Size of all disks in bytes., type: int, sample: 21474836480}
        agent: {description: 'Whether the guest agent is switched on, null if unknown.', type: bool,
          sample: true}
        pending: {description: 'Options that apply after the next stop or reboot, null if unknown.',
          type: list, elements: str, sample: [memory]}
        snapshots: {description: 'The C(count), the time of the C(oldest), and the names of those
          that are C(old). Null if unknown.', type: dict, sample: {count: 1,
          oldest: '2026-11-19T08:30:00Z', old: []}}
        backup: {description: 'C(state) is V(ok), V(old), V(none) or V(unknown); C(time) of the
          newest backup that was found; C(count), or null if there may be more; C(reason) if the
          state or the count is unknown.', type: dict, sample: {state: ok,
          time: '2026-11-20T01:00:00Z', count: 7, reason: null}}
        reason: {description: 'Why the VM could not be read, else null.', type: str, sample: null}
    containers: {description: 'The containers, without templates, with the keys of C(vms). C(agent)
      is null.', type: list, elements: dict, sample: []}
    drift: {description: 'What M(pve.fleet.drift_info) returns as
      RV(pve.fleet.drift_info#module:drift). Null without O(estate).', type: dict, sample: null}
    growth:
      description: What has grown C(since) the last report, as C(total) and as C(tenants) by site.
        Null where it is not known, C(reason) says why the history was not used.
      type: dict
      sample:
        since: '2026-11-19T20:15:33Z'
        reason: null
        total:
          vms: 1
          cores: 2
          memory: 4294967296
          disk: 21474836480
        tenants:
          ? ''
          : acme:
              vms: 1
              cores: 2
              memory: 4294967296
              disk: 21474836480
    trend: {description: 'C(vms), C(cores), C(memory) and C(disk) of all sites at C(checked), from
      each report that knew them.', type: list, elements: dict, sample:
      [{checked: '2026-11-19T20:15:33Z', vms: 5, cores: 8, memory: 17179869184,
      disk: 150323855360}]}
    costs: {description: Costs of the C(month) at the use of now. Null without O(prices).,
      type: dict, sample: {month: 2026-11, currency: EUR, prices: {core: '4.50', memory: '2.00',
      storage: '0.08'}, tenants: [{site: '', tenant: acme, cores: '22.50', memory: '18.00',
      disk: '9.60', total: '50.10', reason: null}], total: '50.10'}}
lines:
  description: A summary to print.
  returned: success
  type: list
  elements: str
  sample: ['6 VMs at 1 site:', 'warning: Guests without a backup: 1']
history:
  description: What to write to the history file. Null if O(history) is not a history of this
    version, so that the file is kept.
  returned: success
  type: dict
  sample: {version: 1, reports: []}
costs_csv:
  description: The costs as CSV, null without O(prices). No cell is a formula.
  returned: success
  type: str
  sample: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry, Sites
from ansible_collections.pve.fleet.plugins.module_utils._report.run_info import (
    estate_secrets,
    run,
    run_at_sites,
    sites_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.report_info import (
    report_info_spec,
)

ENTRY = Entry(
    run,
    report_info_spec(),
    secrets=estate_secrets,
    sites=Sites(names=sites_of, run=run_at_sites),
    name="report_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
