#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from audit_info.yml: do not edit.

DOCUMENTATION = r"""
module: audit_info
short_description: Check the tenants of a cluster for what should not be
version_added: 0.1.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Reports VMs and containers with no, several or an unknown tenant, in a wrong pool, or with a
    volume of another tenant, tokens that are old or never expire, rights of users that do not
    exist, and more rights, privileges or guests than a tenant is described to have.
  - It does not fail because of findings. The playbook C(pve.fleet.audit) does.
  - The caller needs C(Sys.Audit) and C(VM.Audit) on C(/). What it may not see, and a guest that
    cannot be read, is a finding.
options:
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(pool), C(quota),
        C(allow_privileged) and C(access), see O(pve.fleet.vms#module:tenant_settings).
      - Without it, quotas, pools, and rights of tenants are not checked, and no tenant is unknown.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of the tags of tenants.
    type: str
    default: tenant_
  max_token_age:
    description: Days after which a token that M(pve.fleet.tenant) created is too old. Proxmox VE
      does not keep when another token was created.
    type: int
    default: 90
  expiry_warning:
    description: Days before the expiry of a token from which it is a finding.
    type: int
    default: 14
  lasting_tokens:
    description:
      - Tokens that may have any age and no expiry, as V(USER@REALM!NAME), such as that of an
        administrator's job.
      - The token of a tenant whose C(access) has C(expire) V(never) is one of them.
    type: list
    elements: str
    default: []
  volumes:
    description: Whether to look for volumes of other tenants' guests, and for volumes that have the
      VMID of a guest and that the guest does not refer to. This takes one request for each guest
      and each storage of a node.
    type: bool
    default: true
  networks:
    description: Whether to look for guests on VNets of other tenants, disabled firewalls, NICs
      without filters, and rules that open a guest to another tenant. This takes some five requests
      for each guest of a tenant, if any tenant has networks of its own.
    type: bool
    default: true
  backups:
    description:
      - Whether a guest of a tenant that no enabled backup job has is a finding. Templates are not.
        This takes one request.
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
  description: What is wrong.
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
        V(unknown) for what could not be checked.
      type: str
      sample: no_tenant
    tenant: {description: 'The tenant that it is about, null for none.', type: str, sample: acme}
    subject: {description: 'VMID, token, path, role, HA rule or kind of quota.', type: str,
      sample: '100'}
    message: {description: A sentence., type: str, sample: VM web1 (100) has no tenant}
report:
  description: Lines to print.
  returned: success
  type: list
  elements: str
  sample: ['Findings: 1', 'no_tenant: VM web1 (100) has no tenant']
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.audit_info import (
    audit_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenant.run_audit import run_audit

ENTRY = Entry(run_audit, audit_info_spec(), name="audit_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
