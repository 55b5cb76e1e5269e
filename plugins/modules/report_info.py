#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from report_info.yml: do not edit.

DOCUMENTATION = r"""
module: report_info
short_description: Gather a report on sites, tenants, nodes and guests
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns items that need attention, the nodes of each site with their load and the free capacity
    under the placement rules, the VMs of each tenant beside its quota, backups, snapshots and
    changes that need a reboot, differences to an estate, the growth since the last report, and
    costs. Nothing is written. The role C(pve.fleet.report) creates a page from it.
  - Values that cannot be read are reported as unknown, with the reason, and never as zero or as
    healthy.
  - This takes two requests for each VM, two for each storage on a node, three for each node, and
    seven more for each site. With O(estate), M(pve.fleet.drift_info) does not make further requests
    for VMs.
  - The caller needs C(VM.Audit) on C(/vms), C(Sys.Audit) on C(/) and C(Datastore.Audit) on
    C(/storage). Proxmox VE only lists backups for a caller who also has C(Datastore.AllocateSpace)
    on the storage and C(VM.Backup) on the VM. Without these privileges, backups are unknown.
options:
  of_sites:
    description:
      - Names of the sites to report on, from O(sites) or O(sites_file). The sites of the VMs in
        O(estate) are added.
      - By default, the report covers all sites, or the site of the task if it names one. With
        O(estate), it covers the sites of its VMs.
    type: list
    elements: str
    default: []
  estate:
    description:
      - The estate to compare with the cluster, as the options of M(pve.fleet.drift_info), such as
        C(vms), C(defaults), C(tenant_settings) and C(ignore). Each VM is only read once for the
        report and the comparison.
      - Without it, RV(report.drift) is null.
    type: dict
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(quota) and C(site), see
        O(pve.fleet.vms#module:tenant_settings). Tenants without a VM are also reported.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  placement:
    description:
      - The placement rules for the calculation of the free capacity of nodes. C(cpu_overcommit),
        C(memory_overcommit), C(min_free_memory) and C(max_vms_per_node) of
        O(pve.fleet.vm#module:placement) are used.
      - By default, 4 cores can be allocated for each core of a node, and its memory once.
    type: dict
  addresses:
    description: Whether the report contains the address of each guest, which takes one more request
      for each guest that runs. Otherwise, C(address) of each guest is null.
    type: bool
    default: false
  memory_warn:
    description: Memory usage in percent from which a node gets a warning.
    type: int
    default: 90
  storage_warn:
    description: Usage in percent from which a storage or root file system gets a warning.
    type: int
    default: 90
  snapshot_days:
    description: Age in days from which a snapshot is reported as old.
    type: int
    default: 30
  backup_days:
    description: Age in days of the newest backup from which a guest needs attention.
    type: int
    default: 7
  drills:
    description:
      - The text of the record of drills, C(drill.json) of the role P(pve.fleet.drill#role). The
        report then contains the last proven restore of each guest, and guests without one need
        attention.
      - Without it, C(proven) of each guest is null.
    type: str
    default: ''
  prices:
    description: Prices per month. If at least one is set, RV(report.costs) contains the costs of
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
        description: Currency that is shown beside amounts, such as V(EUR).
        type: str
  history:
    description:
      - The text of the history file to which RV(history) of the last report was written. The growth
        since then is calculated from it. It is empty for the first report.
      - If the text is not a history of this version, the report states this, and RV(history) is
        null.
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

- name: Show the items that need attention
  ansible.builtin.debug:
    msg: "{{ gathered.lines }}"

- name: Write the report as a page
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
    version: {description: Version of the report format., type: int, sample: 1}
    checked: {description: 'Time of the query in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    complete: {description: Whether everything could be read., type: bool, sample: true}
    snapshot_days: {description: The option O(snapshot_days)., type: int, sample: 30}
    backup_days: {description: The option O(backup_days)., type: int, sample: 7}
    attention:
      description: Items that need attention, the most severe first.
      type: list
      elements: dict
      contains:
        kind: {description: 'Kind of the item, such as V(no_backup).', type: str, sample: no_backup}
        severity: {description: 'V(critical), V(warning) or V(notice).', type: str, sample: warning}
        title: {description: A heading., type: str, sample: Guests without a backup}
        count: {description: Number of cases., type: int, sample: 1}
        cases: {description: 'Each with C(text), and with the affected C(site), C(node), C(tenant)
          and C(vmid), or null.', type: list, elements: dict, sample: [{site: '', node: null,
          tenant: null, vmid: 15046, text: acme/web1}]}
    sites:
      description:
        - Each with C(site), the cluster as M(pve.fleet.cluster_info) returns it, C(nodes) as
          M(pve.fleet.node_info) returns them, C(room), the total free capacity under the placement
          rules, C(networks), the zones with their VNets and the guests on them, C(reach), the
          connections between VNets of tenants that the firewalls accept, C(missing), the parts that
          could not be read, and C(privileges) that the login lacks.
        - C(reason) is null unless the site could not be read. Everything else is then null or
          empty.
      type: list
      elements: dict
      sample: [{site: '', reason: null, name: demo, quorate: true, vms: 6, templates: 2}]
    tenants:
      description:
        - Resources of each tenant at each site, with C(quotas). The entry with an empty name
          contains guests without a tenant or with several tenants. Memory and disk are in bytes.
        - C(reason) is null unless guests of the tenant could not be read. The tenant then has more
          resources than shown, and values that depend on the figures are null.
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
    totals:
      description:
        - Each tenant over sites as one, with C(sites), its resources at all of them, and the
          C(quotas) over all sites. RV(report.tenants) has its resources at each site.
        - C(reason) is null unless a site could not be read or is not in this report. C(exceeded) is
          then true or null.
      type: list
      elements: dict
      sample: []
    vms:
      description: The VMs, without templates.
      type: list
      elements: dict
      contains:
        site: {description: 'Site of the VM, empty for the site of the task.', type: str,
          sample: ''}
        kind: {description: V(vm) or V(container)., type: str, sample: vm}
        vmid: {description: VMID., type: int, sample: 15046}
        name: {description: 'Name, empty without one.', type: str, sample: web1}
        tenant: {description: 'Tenant, empty unless there is exactly one.', type: str, sample: acme}
        owners: {description: All tenants in its tags., type: list, elements: str, sample: [acme]}
        node: {description: Node., type: str, sample: pve1}
        status: {description: Power state., type: str, sample: running}
        address: {description: 'The address that the module for its kind shows, null without
          O(addresses).', type: str, sample: 10.20.0.11}
        cores: {description: Number of cores., type: int, sample: 2}
        memory: {description: Memory in bytes., type: int, sample: 4294967296}
        disk: {description: Size of all disks in bytes., type: int, sample: 21474836480}
        agent: {description: 'Whether the guest agent is enabled, null if unknown.', type: bool,
          sample: true}
        pending: {description: 'Options that apply after the next stop or reboot, null if unknown.',
          type: list, elements: str, sample: [memory]}
        move: {description: 'Its move to another cluster, as C(proxmox_move) of the inventory, null
          without one.', type: dict, sample: null}
        jobs: {description: 'Enabled backup jobs that back it up, null if unknown.', type: list,
          elements: str, sample: [nightly]}
        left_out: {description: 'Disks that its backups leave out, null if unknown.', type: list,
          elements: str, sample: []}
        snapshots: {description: 'The C(count), the time of the C(oldest), and the names of C(old)
          snapshots. Null if unknown.', type: dict, sample: {count: 1,
          oldest: '2026-11-19T08:30:00Z', old: []}}
        backup: {description: 'C(state) is V(ok), V(old), V(none) or V(unknown); C(time) of the
          newest backup found; C(count), or null if there may be more; C(reason) if the state or the
          count is unknown.', type: dict, sample: {state: ok, time: '2026-11-20T01:00:00Z',
          count: 7, reason: null}}
        reason: {description: 'Why the VM could not be read, else null.', type: str, sample: null}
    containers: {description: 'The containers, without templates, with the keys of C(vms). C(agent)
      is null.', type: list, elements: dict, sample: []}
    drift: {description: 'What M(pve.fleet.drift_info) returns as
      RV(pve.fleet.drift_info#module:drift). Null without O(estate).', type: dict, sample: null}
    growth:
      description: Growth C(since) the last report, as C(total) and as C(tenants) by site. Null if
        it is unknown. C(reason) explains why the history was not used.
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
      each report in which they were known.', type: list, elements: dict, sample:
      [{checked: '2026-11-19T20:15:33Z', vms: 5, cores: 8, memory: 17179869184,
      disk: 150323855360}]}
    costs: {description: Costs of the C(month) with the current use. Null without O(prices).,
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
  description: Text for the history file. Null if O(history) is not a history of this version, so
    the file is kept.
  returned: success
  type: dict
  sample: {version: 1, reports: []}
costs_csv:
  description: The costs as CSV, without formulas in cells. Null without O(prices).
  returned: success
  type: str
  sample: null
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.report_info import (
    report_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.run_info import (
    estate_secrets,
    run,
    run_at_sites,
    sites_of,
)

ENTRY = ModuleEntry(
    run,
    report_info_spec(),
    secrets=estate_secrets,
    sites=SiteSupport(names=sites_of, run=run_at_sites),
    name="report_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
