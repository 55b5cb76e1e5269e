#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from audit_info.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: audit_info
short_description: Check the tenants of a cluster for what should not be
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Reports VMs and containers with no, several or an unknown tenant, in a wrong pool, or with
    a volume of another tenant, tokens that are old or never expire, rights of users that do not
    exist, and more rights, privileges or guests than a tenant is described to have.
  - It does not fail because of findings. The playbook C(pve.fleet.audit) does.
  - The caller needs C(Sys.Audit) and C(VM.Audit) on C(/). What it may not see, and a guest that
    cannot be read, is a finding.
extends_documentation_fragment:
  - pve.fleet.audit_info_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.info
seealso:
  - module: pve.fleet.tenant
  - module: pve.fleet.tenant_info
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
        V(firewall_off), V(unfiltered_nic), V(open_rule), V(not_backed_up), or V(unknown)
        for what could not be checked.
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


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
