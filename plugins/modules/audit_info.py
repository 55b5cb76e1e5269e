#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from audit_info.yml: do not edit.

DOCUMENTATION = r"""
module: audit_info
short_description: Audit the tenants of a cluster for stray guests, tokens and rights
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Reports VMs and containers with no, several or an unknown tenant, in a wrong pool, or with a
    volume of another tenant. Also reports tokens that are old or never expire, rights of users that
    do not exist, and more rights, privileges or guests than the description of a tenant allows.
  - Without O(site) and O(host), all sites of O(sites) or O(sites_file) are read, and a site that
    cannot be read is a finding. A tenant with C(sites) is checked at each of them, and its quota
    over all of them.
  - The module does not fail because of findings, but the playbook C(pve.fleet.audit) does.
  - The caller needs C(Sys.Audit) and C(VM.Audit) on C(/). Objects that the caller may not see, and
    guests that cannot be read, are findings.
options:
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(pool), C(quota),
        C(allow_privileged) and C(access), see O(pve.fleet.vms#module:tenant_settings).
      - Without it, quotas, pools and rights of tenants are not checked, and no tenant is reported
        as unknown.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of a tenant's tag.
    type: str
    default: tenant_
  max_token_age:
    description: Maximum age in days of a token that M(pve.fleet.tenant) created. For other tokens,
      Proxmox VE does not store the time of creation.
    type: int
    default: 90
  expiry_warning:
    description: Number of days before its expiry from which a token is a finding.
    type: int
    default: 14
  lasting_tokens:
    description:
      - Tokens that may have any age and no expiry, as V(USER@REALM!NAME), such as the token of an
        administrator's job.
      - This always includes the token of a tenant whose C(access) sets C(expire) to V(never).
    type: list
    elements: str
    default: []
  volumes:
    description: Whether to look for volumes of other tenants' guests, and for volumes with the VMID
      of a guest that does not refer to them. This takes one request for each guest and each storage
      of a node.
    type: bool
    default: true
  networks:
    description: Whether to look for guests on VNets of other tenants, disabled firewalls, NICs
      without filters, and rules that open a guest to another tenant. This takes about five requests
      for each guest of a tenant, if any tenant has its own networks.
    type: bool
    default: true
  backups:
    description:
      - Whether a guest of a tenant without an enabled backup job is a finding. Templates are never
        one. This takes one request.
      - A cluster that is backed up without jobs, such as with M(pve.fleet.backup), has a finding
        for each guest.
    type: bool
    default: false
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.tenant}, {module: pve.fleet.tenant_info}]
"""

EXAMPLES = r"""
- name: Check the tenants
  pve.fleet.audit_info:
    max_token_age: 180
    tenants:
      acme:
        quota: {vms: 20}
        access: {operations: [read]}
  register: audit

- name: Show the findings
  ansible.builtin.debug:
    msg: "{{ audit.report }}"
"""

RETURN = r"""
passed:
  description: Whether there are no findings, and everything could be checked.
  returned: success
  type: bool
  sample: false
vms:
  description: Number of VMs that were checked.
  returned: success
  type: int
  sample: 12
containers:
  description: Number of containers that were checked.
  returned: success
  type: int
  sample: 3
findings:
  description: The findings.
  returned: success
  type: list
  elements: dict
  contains:
    kind:
      description: V(no_tenant), V(several_tenants), V(unknown_tenant), V(outside_pool),
        V(foreign_pool), V(foreign_volume), V(unreferenced_volume), V(foreign_token), V(old_token),
        V(no_expiry), V(expires_soon), V(expired_token), V(unknown_user), V(wide_rights),
        V(wide_role), V(over_quota), V(privileged_container), V(shared_rule), V(foreign_vnet),
        V(firewall_off), V(unfiltered_nic), V(open_rule), V(not_backed_up), V(shared_job), or
        V(unknown) for an object that could not be checked.
      type: str
      sample: no_tenant
    tenant: {description: 'The affected tenant, null for none.', type: str, sample: acme}
    subject: {description: 'VMID, token, path, role, HA rule or kind of quota.', type: str,
      sample: '100'}
    message: {description: Description of the finding., type: str, sample: VM web1 (100) has no
      tenant}
    site: {description: 'Site of the finding, empty for a finding about all sites or a single one
      without a name.', type: str, sample: berlin}
tenants:
  description: The tenants with C(site) or C(sites).
  returned: success
  type: list
  elements: dict
  contains:
    tenant: {description: Name of the tenant., type: str, sample: acme}
    vms: {description: Number of its guests at all sites that were read., type: int, sample: 5}
    cores: {description: Sum of their cores., type: int, sample: 10}
    memory: {description: Sum of their memory in bytes., type: int, sample: 21474836480}
    disk: {description: Sum of their disks in bytes., type: int, sample: 107374182400}
    quota: {description: Its quota over all sites., type: dict, sample: {vms: 10}}
    sites: {description: 'C(site), C(vms), C(cores), C(memory) and C(disk) at each site, null if it
      was not read.', type: list, elements: dict, sample: [{site: berlin, vms: 5, cores: 10,
      memory: 21474836480, disk: 107374182400}]}
report:
  description: Lines to print.
  returned: success
  type: list
  elements: str
  sample: ['Findings: 1', 'no_tenant: VM web1 (100) has no tenant']
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    SiteSupport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.audit_info import (
    audit_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.run_audit import (
    run_at_sites,
    run_audit,
)

ENTRY = ModuleEntry(
    run_audit, audit_info_spec(), sites=SiteSupport(run=run_at_sites, every=True), name="audit_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
