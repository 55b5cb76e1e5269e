#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from vms.yml: do not edit.

DOCUMENTATION = r"""
module: vms
short_description: Manage many virtual machines in one task
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Takes a list of VMs with the options of M(pve.fleet.vm). Options next to O(vms) apply to every
    VM. Each VM is managed as by M(pve.fleet.vm).
  - 'First two VMs: C(pve.fleet.vms: {tenant: acme, source: debian-13, memory: 4G, vms:
    [{name: web1}, {name: web2, memory: 8G}]}). Only O(vms) or O(containers) is required.'
  - B(For the list:) O(vms), O(defaults), O(tenants), O(tenant_settings), O(remove), O(prune),
    O(reboot_batch), O(parallel) and the options next to it. B(For a VM:) all others, by purpose in
    the guide C(docs/vm.md) of this collection. O(containers) lists containers with the options of
    M(pve.fleet.container). The guide C(docs/fleet.md) shows this module by example.
  - The cluster is read once, and all VMs are planned together. Nodes, VMIDs and quotas are
    determined for the whole list, so limits, affinity and anti-affinity also apply among the new
    VMs.
  - VMs are processed in parallel. O(parallel) and the options next to it limit concurrent tasks of
    Proxmox VE. The limit is lowered for a while if Proxmox VE does not answer or a lock stays held
    for too long.
  - If the list contains an invalid value, the whole list is rejected before the first change. After
    that, a VM that fails does not stop the others. The task fails at the end, and a second run
    completes the remaining VMs.
  - If several runs create a VM with the same name and tenant at the same time, one VM is kept and
    all runs continue with it.
options:
  vms:
    description:
      - The VMs, each with a name or a VMID. All are validated before the first change.
      - Options of a VM override the options of its class, which override the options for every VM;
        for lists and dictionaries, see C(docs/fleet.md).
    type: list
    elements: dict
  containers:
    description:
      - The containers, each with a name or a VMID, with the options of M(pve.fleet.container), and
        C(class), C(classes) and C(site). They are planned together with O(vms); both share the
        VMIDs, and the names and the quota of a tenant.
      - Options next to O(vms), in classes and in O(defaults) also apply to containers if containers
        have them, except C(source) and C(full).
    type: list
    elements: dict
  defaults:
    description:
      - Options for every VM and container as one dictionary, such as a variable of an estate. It
        can contain every option except name and VMID, and overrides the same options next to
        O(vms).
      - An option that only VMs or only containers have applies only to them.
    type: dict
    default: {}
  tenants:
    description:
      - Limits the run to the VMs of these tenants, compared exactly; an empty list means all VMs.
        VMs of other tenants are also validated.
      - With O(prune) it must contain exactly one tenant, and only its VMs are removed.
    type: list
    elements: str
  tenant_settings:
    description:
      - Settings for the VMs of each tenant, which override the options for every VM, but not those
        of a VM and of its class. A VM of a tenant without settings is refused.
      - Keys are C(site), C(sites), C(site_quotas), C(vmid_ranges), C(defaults), and options that
        concern a tenant, such as C(pool), C(quota), C(allowed), C(networks), C(classes) and
        C(site_placement); C(comment) and C(access) are for M(pve.fleet.tenant).
    type: dict
    default: {}
  usage_file:
    description:
      - A file that keeps the use and the guests of each tenant with C(sites). A site that does not
        answer counts with its use in this file, else with its quota in C(site_quotas).
      - Without its guests in this file, new guests of the tenant are refused; without its use,
        guests that grow.
    type: path
  tenants_required:
    description: Whether each tenant in O(tenants) must have a VM in the list.
    type: bool
    default: true
  remove:
    description:
      - Whether to remove the VMs of the list, regardless of O(vms[].state) and O(prune). Only
        options that identify a VM, stop it or lift its protection are used.
      - No VM is removed if an entry has the VMID of a VM with another name, or if an entry without
        a tenant refers to a VM with a tenant's tag.
    type: bool
    default: false
  prune:
    description:
      - Whether to remove VMs, with their disks, that are not in the list and have exactly the tag
        of O(tenant), are in O(pool), or both if both are set.
      - Templates are never removed, and a protected VM is an error. No VM is removed if the list is
        empty or a VM of the list fails.
    type: bool
    default: false
  backup_jobs:
    description:
      - Whether the jobs of O(backup) are created and changed. V(false) leaves them to a run with
        another login, so a login without C(Sys.Modify) on C(/) can manage the guests.
    type: bool
    default: true
  reboot_batch:
    description:
      - Maximum number of running VMs that are down at the same time for a reboot, restart, reset or
        a change that needs a stop; V(0) means unlimited.
      - The next batch starts when all VMs of the previous batch run again. If one of them does not,
        the remaining VMs fail.
      - Environment variable E(PROXMOX_REBOOT_BATCH).
    type: int
    default: 5
  plan_subject:
    description:
      - The name of a plan, if O(plan_file) has another plan of this module for the same site. A
        task with this option can apply the plan guest by guest; without it, a task that lacks a
        guest of the plan is refused.
      - The playbook C(replace_images) sets it to C(images).
    type: str
    default: ''
  details:
    description: Whether RV(vms) includes the properties, plan and conditions of each VM in addition
      to its outcome.
    type: bool
    default: true
  parallel:
    description:
      - Maximum number of concurrent tasks of Proxmox VE. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL).
    type: int
    default: 32
  parallel_per_node:
    description:
      - Maximum number of concurrent tasks on one node. 0 means unlimited. A clone runs on the node
        of its source.
      - Environment variable E(PROXMOX_PARALLEL_PER_NODE).
    type: int
    default: 4
  parallel_per_storage:
    description:
      - Maximum number of VMs whose disks are created on one storage at the same time. 0 means
        unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_STORAGE).
    type: int
    default: 0
  parallel_per_template:
    description:
      - Maximum number of concurrent clones of one template or VM. 0 means unlimited.
      - Environment variable E(PROXMOX_PARALLEL_PER_TEMPLATE).
    type: int
    default: 4
  site_placement:
    description:
      - How the site of a new guest with C(site=auto) is chosen among the C(sites) of its tenant
        that are C(active) and can have it. An existing guest stays at its site.
      - The result and the error show why each site was selected or refused, see
        C(docs/several-clusters.md).
    type: dict
    suboptions:
      sites:
        description: Preferred sites. Other sites are used only if none of these fits.
        type: list
        elements: str
      exclude:
        description: Sites that are never used for a new guest.
        type: list
        elements: str
      labels:
        description: 'Labels that the site must have, such as V({region: eu}).'
        type: dict
      strategy:
        description:
          - 'Selection of a suitable site: V(least_used) the one with the smallest share of its
            memory allocated to VMs, V(round_robin) with the fewest VMs, V(first) the first of
            O(site_placement.sites) or of the C(sites) of the tenant, V(cheapest) the one with the
            lowest number in its label C(price).'
          - The default is V(least_used), which also decides between sites of one price.
        type: str
        choices: [least_used, round_robin, first, cheapest]
      affinity:
        description: Other VMs to place at the same site as this one, in the form of
          O(placement.affinity).
        type: list
        elements: str
      anti_affinity:
        description: Other VMs to place at sites other than the site of this VM, in the form of
          O(placement.affinity).
        type: list
        elements: str
      affinity_policy:
        description: Whether affinity and anti-affinity are required, which is the default, or only
          preferences among suitable sites.
        type: str
        choices: [required, preferred]
  backup:
    description:
      - The backup job of a guest, here for all guests, with at least O(backup.schedule) and
        O(backup.storage). Guests with equal options share a job.
      - By default, the jobs of a guest are not changed; C(docs/backup.md) describes the rules and
        the privileges.
    type: dict
    suboptions:
      schedule:
        description: Calendar event of Proxmox VE, such as V(02:30) or V(mon..fri 22:00). An empty
          text removes the guest from the jobs of estates.
        type: str
      storage:
        description: Storage for the archives.
        type: str
      keep:
        description:
          - Number of backups of each guest that are kept. After a backup, Proxmox VE removes the
            other backups of the guest on the storage that are not protected.
          - By default, the rule of the storage applies.
        type: dict
        suboptions:
          keep_all:
            description: Whether all backups are kept. It cannot be combined with other keys.
            type: bool
          keep_last:
            description: Number of the newest backups to keep.
            type: int
          keep_hourly:
            description: Number of hours for which the newest backup is kept.
            type: int
          keep_daily:
            description: Number of days for which the newest backup is kept.
            type: int
          keep_weekly:
            description: Number of weeks for which the newest backup is kept.
            type: int
          keep_monthly:
            description: Number of months for which the newest backup is kept.
            type: int
          keep_yearly:
            description: Number of years for which the newest backup is kept.
            type: int
      mode:
        description: Whether a running guest continues (V(snapshot)), is suspended or is stopped. By
          default, the setting of the node applies, which is V(snapshot).
        type: str
        choices: ['', snapshot, suspend, stop]
      compress:
        description: Compression of the archives. V(0) means no compression. By default, the setting
          of the node applies, which is V(0).
        type: str
        choices: ['', '0', gzip, lzo, zstd]
      notes_template:
        description: Template for the notes of the archives, see
          O(pve.fleet.backup_job#module:notes_template).
        type: str
      bwlimit:
        description: Bandwidth limit in KiB/s. By default, there is none.
        type: int
      repeat_missed:
        description: Whether the job runs as soon as possible if it missed its time. By default, it
          does not.
        type: bool
extends_documentation_fragment:
  - pve.fleet.fleet_item
  - pve.fleet.vm_options
  - pve.fleet.vm_options.guest
  - pve.fleet.vm_options.life
  - pve.fleet.plan_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.vm
  - module: pve.fleet.container
  - module: pve.fleet.vm_info
"""

EXAMPLES = r"""
- name: Create a VM and two containers with the quota of their tenant
  pve.fleet.vms:
    tenant: acme
    quota: {vms: 20, memory: 64G}
    state: started
    vms:
      - {name: db1, source: debian-13, cores: 4, memory: 16G}
    containers:
      - {name: proxy1, source: debian-13-standard, memory: 1G, rootfs: {size: 8G}}
      - {name: proxy2, source: debian-13-standard, memory: 1G, rootfs: {size: 8G}}

- name: Create web servers on different nodes, if possible, and a database
  pve.fleet.vms:
    tenant: acme
    source: debian-13
    state: started
    cores: 2
    memory: 4G
    placement:
      anti_affinity: [web]
      affinity_policy: preferred
    vms:
      - {name: web1, tags: [web]}
      - {name: web2, tags: [web]}
      - {name: web3, tags: [web]}
      - {name: db1, tags: [db], cores: 8, memory: 32G}

- name: Create these VMs and remove the tenant's other VMs
  pve.fleet.vms:
    tenant: acme
    prune: true
    vms:
      - {name: web1, source: debian-13, cores: 2, memory: 4G}
      - {name: web2, source: debian-13, cores: 2, memory: 4G}
  register: fleet

- name: Create VMs with the settings of their tenants
  pve.fleet.vms:
    source: debian-13
    tenant_settings:
      acme:
        pool: acme
        tags: [prod]
        quota: {vms: 20, memory: 128G}
        networks:
          lan: {bridge: vmbr1}
      globex:
        pool: globex
        defaults: {cores: 2, memory: 4G}
    vms:
      - {name: web1, tenant: acme, nics: [{network: lan, ip: dhcp}]}
      - {name: db1, tenant: globex}

- name: Back up web servers every night and databases every six hours
  pve.fleet.vms:
    tenant: acme
    disks: [{size: 10G}]
    backup: {schedule: "02:30", storage: local, keep: {keep_daily: 7, keep_weekly: 4}}
    classes:
      db: {memory: 8G, backup: {schedule: "*/6:00"}}
    vms:
      - {name: web1}
      - {name: db1, class: db}
      - {name: scratch1, backup: {schedule: ""}}

- name: Show the removed VMs
  ansible.builtin.debug:
    msg: "{{ fleet.vms | selectattr('pruned') | map(attribute='name') }}"
"""

RETURN = r"""
site:
  description: Name of the site of the task, otherwise the host of the endpoint.
  returned: success
  type: str
  sample: vienna
vms:
  description:
    - The VMs in the order of the list, then the containers, followed by those that O(prune)
      removed. Also returned if VMs failed or the list was rejected.
    - With O(details=false), only the keys up to RV(vms[].older_image), and RV(vms[].msg) and
      RV(vms[].error) of a failure.
    - With RV(refused) and details, only the VMs with mistakes if there are any. If there are none,
      the VMs have no RV(vms[].error), and only the task has an error.
    - A failed task prints ten of the failed VMs, unless Ansible runs with C(-v), or the result is
      registered or can be read in C(rescue) or C(always).
  returned: always
  type: list
  elements: dict
  contains:
    kind: {description: 'Kind of the guest, V(vm) or V(container).', type: str, sample: vm}
    name: {description: Name of the VM., type: str, sample: web1}
    tenant: {description: Tenant of the VM., type: str, sample: acme}
    vmid: {description: VMID of the VM or the VMID that it would get in check mode., type: int,
      sample: 15046}
    node: {description: Node on which the VM is., type: str, sample: pve1}
    status: {description: 'Status of the VM, V(absent) if it does not exist, null if unknown.',
      type: str, sample: running}
    action: {description: 'V(created), V(changed), V(removed), V(unchanged), V(failed), or V(kept)
      for a VM that was not pruned.', type: str, sample: created}
    changed: {description: Whether anything was or would be changed., type: bool, sample: true}
    failed: {description: Whether the VM failed., type: bool, sample: false}
    template: {description: Whether the guest is a template., type: bool, sample: false}
    pruned: {description: Whether the VM was removed because it is not in the list., type: bool,
      sample: false}
    pending: {description: Options that apply after a stop or reboot., type: list, elements: str}
    rebooted: {description: Whether the VM was or would be rebooted., type: bool, sample: false}
    older_image: {description: 'The image or template of an existing VM (C(actual)) and the image or
      template that O(vms[].source) now selects on its node (C(wanted)), if they differ. No run
      replaces the VM.', type: dict, sample: {wanted: debian-13@2026.11.20,
      actual: debian-13@2026.10.1}}
    site: {description: Site of the VM., type: str, returned: when the list or its tenants name
      sites, sample: berlin}
    site_placement: {description: 'Selected site of a new guest with C(site=auto), and the reasons;
      C(refused) has the reason for each site that was not selected.', returned: when this run
      selected a site, type: dict, sample: {site: berlin, reasons: [2 of 3 sites fit, 'cheapest: its
      price is 3'], refused: {munich: it is draining, paris: its price is 4}}}
    msg: {description: Why the VM failed., type: str, returned: when it failed}
    error: {description: 'See RV(pve.fleet.vm#module:error).', type: dict, returned: when it failed}
    vm: {description: 'See RV(pve.fleet.vm#module:vm).', type: dict, returned: for VMs}
    container: {description: 'See RV(pve.fleet.container#module:container).', type: dict, returned:
      for containers}
    plan: {description: Steps of its plan., type: list, elements: str}
    done: {description: Steps that were executed., type: list, elements: str}
    placement: {description: 'See RV(pve.fleet.vm#module:placement).', type: dict}
    conditions: {description: 'See RV(pve.fleet.vm#module:conditions).', type: list, elements: dict}
approval:
  description: The O(plan_file) that was written and its digest; with O(apply_plan), its digest, and
    all guests that the file has for the sites of the task, with their approved images.
  returned: with O(plan_file) or O(apply_plan)
  type: dict
  sample: {plan_file: /srv/estate/plan.json, digest: 'sha256:71c5d0f0'}
refused:
  description: Whether the run failed before the first VM was processed, for example because of an
    invalid value in the list.
  returned: always
  type: bool
  sample: false
summary:
  description: Number of VMs by RV(vms[].action).
  returned: always
  type: dict
  sample: {created: 20, changed: 1, removed: 0, unchanged: 3, failed: 0, kept: 0}
backup_jobs:
  description:
    - The jobs of estates that have or had a guest of this run with O(backup), by name. In check
      mode, as they would be.
    - The list is empty if no guest of the run has O(backup), and with O(backup_jobs=false).
  returned: always
  type: list
  elements: dict
  contains:
    name: {description: ID of the job., type: str, sample: fleet-3f0c94b2de}
    action: {description: 'V(created), V(changed), V(deleted) or V(unchanged).', type: str,
      sample: changed}
    added: {description: VMIDs of guests that were added to it., type: list, elements: int, sample:
      [15046]}
    removed: {description: VMIDs of guests that were removed from it., type: list, elements: int,
      sample: []}
    vms: {description: VMIDs of its guests., type: list, elements: int, sample: [15040, 15046]}
    schedule: {description: When it runs., type: str, sample: '02:30'}
    storage: {description: Storage of its archives., type: str, sample: local}
    site: {description: Site of the job., type: str, returned: when the list or its tenants name
      sites, sample: berlin}
other_backup_jobs:
  description: Enabled backup jobs outside of estates that also include guests of this run with
    O(backup). They are not changed.
  returned: always
  type: list
  elements: dict
  contains:
    name: {description: ID of the job., type: str, sample: nightly}
    vms: {description: VMIDs of the guests of this run., type: list, elements: int, sample: [15046]}
    site: {description: Site of the job., type: str, returned: when the list or its tenants name
      sites, sample: berlin}
report:
  description: 'Lines to print: one for each change, which begins with C(+) for a creation, C(~) for
    a change, C(-) for a removal or C(!) for a failure, and a last line with the counts. It begins
    with C(Plan) in check mode, otherwise with C(Done).'
  returned: success
  type: list
  elements: str
  sample: ['+ globex/db1  2 cores, 4G, 70G on pve3', '~ acme/web1   memory 2G -> 3G (reboot), tag
    web added', 'Done: 1 created, 1 changed, 12 unchanged; 1 reboot']
placement_rules:
  description: Steps for the HA rules and HA resources of C(placement.keep), the planned ones in
    C(plan), and the executed ones in C(done).
  returned: unless the list was rejected
  type: dict
  sample: {plan: [Create HA rule 'fleet-apart-2f1c6a90b3de'], done: []}
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: foreign tenant, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.fleet import fleet_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.report import refused_values
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.run import (
    run,
    run_at_sites,
    sites_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.secrets import fleet_secrets

ENTRY = ModuleEntry(
    run,
    fleet_spec(),
    {"required_one_of": [("vms", "containers")]},
    secrets=fleet_secrets,
    on_failure=refused_values,
    sites=SiteSupport(names=sites_of, run=run_at_sites),
    returns_site=True,
    plans=True,
    plan_subject="plan_subject",
    name="vms",
)
main = ENTRY.main

if __name__ == "__main__":
    main()
