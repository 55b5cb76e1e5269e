#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from drift_info.yml: do not edit.

DOCUMENTATION = r"""
module: drift_info
short_description: Gather the differences between an estate or a cluster file and the cluster
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Compares the VMs and containers of an estate with the guests of the cluster, option by option.
    Returns the differences, the user of the last task of each VM that differs, VMs that are missing
    or not in the estate, and the use of quotas. Nothing is written.
  - The comparison is the plan of M(pve.fleet.vms), so the reported differences are the changes that
    a run of C(pve.fleet.provision) would make.
  - Parts that cannot be read are reported as unknown, with the reason, and never as in sync.
  - This takes as many requests as M(pve.fleet.vms) makes without a change, one more for each VM
    that is not found and for each node with VMs that are not in the list, and three for each node
    if something differs.
  - A cluster file is also compared, by the plan of M(pve.fleet.cluster), which takes as many
    requests as that module makes without a change. Proxmox VE records tasks for changes of
    networks, of storages on disks of nodes, of users that a realm synchronizes and of HA resources.
    Other changes are not tasks. If a resource differs and has no task, the report contains the last
    login of each user, from the log of the cluster. Tokens do not log in.
options:
  vms:
    description: The VMs of the estate, each with the options of an item of
      O(pve.fleet.vms#module:vms).
    type: list
    elements: dict
  containers:
    description:
      - The containers of the estate, each with the options of an item of
        O(pve.fleet.vms#module:containers).
      - Containers are only compared, and reported if they are not in the estate, if this list is
        set. It may be empty.
    type: list
    elements: dict
  cluster:
    description:
      - A cluster file, with the options of M(pve.fleet.cluster). It is compared with each site of
        the VMs, or with the site of the task.
      - By default, only VMs and containers are compared.
    type: dict
  defaults:
    description: Options for every VM, see O(pve.fleet.vms#module:defaults).
    type: dict
    default: {}
  classes:
    description: Named sizes, see O(pve.fleet.vm#module:classes).
    type: dict
    default: {}
  networks:
    description: Named networks, see O(pve.fleet.vm#module:networks).
    type: dict
    default: {}
  storage_classes:
    description: Named storages, see O(pve.fleet.vm#module:storage_classes).
    type: dict
    default: {}
  state:
    description: State of a VM if neither the VM nor O(defaults) sets one.
    type: str
    choices: [present, started, stopped]
    default: present
  tenants:
    description:
      - Compares only the VMs of these tenants. Names are compared exactly. An empty list means all
        VMs.
      - The whole list is validated, including the VMs of other tenants.
    type: list
    elements: str
  tenant_settings:
    description: Settings for the VMs of each tenant, see O(pve.fleet.vms#module:tenant_settings).
    type: dict
    default: {}
  tenants_required:
    description: Whether each tenant in O(tenants) must have a VM in the list.
    type: bool
    default: true
  backup_jobs:
    description: Whether the backup jobs of guests with the option C(backup) are compared, which
      needs C(Sys.Audit) on C(/). A guest whose jobs cannot be read has the status unknown.
    type: bool
    default: true
  of_sites:
    description:
      - Compares only the guests at these sites, for example with the login of one site. V('') is
        the site of the task, for guests without a site. The whole list is validated.
      - A guest with C(site=auto) is compared at the site that has it. If none of these sites has
        it, it is left out unless they are all sites of its tenant.
      - By default, the sites of all guests in the list are compared.
    type: list
    elements: str
    default: []
  unlisted:
    description:
      - Whether to report VMs that are not in the list. With O(tenants), only VMs of these tenants
        are reported.
      - Templates are not reported.
    type: bool
    default: true
  ignore:
    description:
      - Expected differences, as patterns V(VM) or V(VM:OPTION). V(*) matches any characters.
      - C(VM) is compared with the name of a VM, with C(TENANT/NAME), and with the VMID. C(OPTION)
        is compared with the name of the option in Proxmox VE, such as V(memory) or V(net0), and
        with V(status), V(node) and V(pool).
      - V(acme/web*:description) ignores the notes of some VMs, V(*:cpu*) options of all VMs, and
        V(globex/*) all differences of a tenant's VMs. RV(drift.summary) counts ignored differences.
      - A resource of O(cluster) is written as C(SECTION/NAME), such as V(storages/media:content).
    type: list
    elements: str
    default: []
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.vms
  - module: pve.fleet.cluster
  - module: pve.fleet.task_info
"""

EXAMPLES = r"""
- name: Compare VMs with the cluster
  pve.fleet.drift_info:
    defaults:
      tenant: acme
      cores: 2
      memory: 4G
    vms:
      - name: web1
      - name: db1
        cores: 8
    tenants: [acme]
    ignore:
      - "*:description"
  register: compared

- name: Find who changed the storages
  pve.fleet.drift_info:
    cluster:
      storages:
        - {name: media, type: dir, path: /srv/media, content: [iso]}

- name: Show the differences
  ansible.builtin.debug:
    msg: "{{ compared.report }}"
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint. Empty if the estate
    has several sites, which RV(drift) names.
  returned: success
  type: str
  sample: vienna
drift:
  description: The report. C(docs/drift.schema.json) has its JSON Schema.
  returned: success
  type: dict
  contains:
    version: {description: Version of the report format., type: int, sample: 1}
    checked: {description: 'Time of the query in ISO 8601 format, UTC.', type: str,
      sample: '2026-11-20T20:15:33Z'}
    drift: {description: 'Whether any difference is known. Outdated VMs do not count, because no run
      replaces them.', type: bool, sample: true}
    complete: {description: Whether everything could be read., type: bool, sample: true}
    summary: {description: 'Number of VMs by status, of VMs that are not in the estate, of resources
      that differ from the cluster file, and of ignored differences.', type: dict, sample:
      {drifted: 1, pending: 0, missing: 0, unwanted: 0, outdated: 0, unknown: 0, in_sync: 3,
      unlisted: 0, cluster: 0, ignored: 0}}
    sites: {description: 'The sites, each with C(site), empty for the site of the task, and
      C(reason), which is null unless the site could not be read.', type: list, elements: dict,
      sample: [{site: '', reason: null}]}
    nodes: {description: 'Nodes that could not be read, each with C(site), C(node) and C(reason).',
      type: list, elements: dict, sample: []}
    vms:
      description: The VMs of the estate in its order, then its containers.
      type: list
      elements: dict
      contains:
        kind: {description: V(vm) or V(container)., type: str, sample: vm}
        name: {description: Name of the VM., type: str, sample: web1}
        tenant: {description: 'Tenant of the VM, empty without one.', type: str, sample: acme}
        site: {description: 'Site of the VM, empty for the site of the task.', type: str,
          sample: ''}
        vmid: {description: 'VMID of the VM, null if the VM is missing and the estate does not set a
          VMID.', type: int, sample: 15046}
        node: {description: 'Node of the VM, null if it is missing.', type: str, sample: pve1}
        status:
          description:
            - V(in_sync); V(drifted) if options differ; V(pending) if they apply after the next stop
              or reboot; V(missing); V(unwanted) if it exists and the estate has it with
              C(state=absent); V(outdated) if only the template from which it was cloned differs;
              V(unknown) if it could not be compared.
          type: str
          sample: drifted
        reason: {description: 'Why the VM could not be compared, why it cannot be created, or why a
          run would refuse to change it, such as a disk that would shrink; else null.', type: str,
          sample: null}
        options:
          description:
            - Each with C(option), the name that Proxmox VE uses, C(wanted), C(actual), and
              C(pending), null or a dictionary whose C(value) applies after the next stop or reboot.
              Null means that the option is not set, and the default of Proxmox VE applies.
            - C(source) has the VMID of the template that the source now selects, and of the
              template from which the VM was cloned. A run does not change it.
          type: list
          elements: dict
          sample: [{option: cores, wanted: 2, actual: 4, pending: null}]
        steps: {description: Steps of a run., type: list, elements: str, sample: [Update VM 'web1'
          (15046)]}
        last_task:
          description:
            - The last task of the VM, with C(type), C(user), C(token), C(status), C(started) and
              C(upid), without consoles and backups. Null for a VM in sync, or if no task is known.
              Proxmox VE changes some options without a task.
          type: dict
          sample: {type: qmconfig, user: ops@pve, token: null, status: ok,
            started: '2026-11-20T20:15:33Z',
            upid: 'UPID:pve1:0003F4A2:0A1B2C3D:6741A0B1:qmconfig:15046:ops@pve:'}
    unlisted: {description: 'VMs that are not in the estate, each with C(name), C(tenant), C(site),
      C(vmid), C(node), C(power) and C(last_task).', type: list, elements: dict, sample: []}
    quotas:
      description: Use of each quota of the estate, with C(tenant), C(site), C(kind), C(used),
        C(limit) and C(exceeded). Memory and disk are in bytes. C(sites) are the sites of a quota
        over sites. If the use at one of them is unknown, such a quota is only returned if the
        others exceed it.
      type: list
      elements: dict
      sample: [{tenant: acme, site: '', kind: vms, used: 4, limit: 20, exceeded: false, sites: []}]
    cluster:
      description: The resources of the cluster file, in the order in which they are written.
      type: list
      elements: dict
      contains:
        site: {description: 'Site, empty for the site of the task.', type: str, sample: ''}
        section: {description: Its section., type: str, sample: storages}
        name: {description: 'Its keys, joined by slashes.', type: str, sample: media}
        status: {description: V(in_sync); V(drifted); V(missing); V(unwanted) if it exists and is to
          be removed; V(unknown) if it cannot be read., type: str, sample: drifted}
        reason: {description: 'Why it could not be read, or why a run would refuse to change it,
          else null.', type: str, sample: null}
        options: {description: 'Each with C(option), C(wanted) and C(actual); C(pending) is null.',
          type: list, elements: dict, sample: [{option: content, wanted: [iso], actual: [backup,
          iso], pending: null}]}
        steps: {description: Steps of a run., type: list, elements: str, sample: [Update storage
          'media']}
        last_task: {description: 'The last task that may have changed it, in the same form as for a
          VM. Null if none is known.', type: dict, sample: null}
    logins: {description: 'The last login of each user in the log of the cluster, with C(site),
      C(user) and C(last), if a resource of the cluster file differs and no task is known. To read
      the log, C(Sys.Syslog) on C(/) is needed.', type: list, elements: dict, sample: [{site: '',
      user: alice@pve, last: '2026-11-20T20:15:33Z'}]}
report:
  description: The report as readable lines. VMs in sync are only counted.
  returned: success
  type: list
  elements: str
  sample: ['Drift: drifted 1, in_sync 3', '~ acme/web1 (101, pve1)  cores 4 -> 2']
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.drift_info import (
    drift_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.run import sites_of
from ansible_collections.pve.fleet.plugins.module_utils._operation.drift.run_info import (
    run,
    run_at_sites,
    secrets_in,
)

ENTRY = ModuleEntry(
    run,
    drift_info_spec(),
    {"required_one_of": [("vms", "containers", "cluster")]},
    secrets=secrets_in,
    sites=SiteSupport(names=sites_of, run=run_at_sites),
    returns_site=True,
    name="drift_info",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
