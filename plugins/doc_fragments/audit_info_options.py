# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module audit_info.

Written by `make options` from audit_info.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  tenants:
    description:
      - The tenants as an estate describes them, by name, each with C(pool), C(quota),
        C(allow_privileged) and C(access), see O(pve.fleet.vms#module:tenant_settings).
      - Without it, quotas, pools, and rights of tenants are not checked, and no tenant
        is unknown.
    type: dict
    default: {}
  tenant_prefix:
    description: Prefix of the tags of tenants.
    type: str
    default: tenant_
  max_token_age:
    description: Days after which a token that M(pve.fleet.tenant) created is too old.
      Proxmox VE does not keep when another token was created.
    type: int
    default: 90
  expiry_warning:
    description: Days before the expiry of a token from which it is a finding.
    type: int
    default: 14
  lasting_tokens:
    description:
      - Tokens that may have any age and no expiry, as V(USER@REALM!NAME), such as that
        of an administrator's job.
      - The token of a tenant whose C(access) has C(expire) V(never) is one of them.
    type: list
    elements: str
    default: []
  volumes:
    description: Whether to look for volumes of other tenants' guests, and for volumes
      that have the VMID of a guest and that the guest does not refer to. This takes one
      request for each guest and each storage of a node.
    type: bool
    default: true
  networks:
    description: Whether to look for guests on VNets of other tenants, disabled firewalls,
      NICs without filters, and rules that open a guest to another tenant. This takes
      some five requests for each guest of a tenant, if any tenant has networks of its
      own.
    type: bool
    default: true
  backups:
    description:
      - Whether a guest of a tenant that no enabled backup job has is a finding. Templates
        are not. This takes one request.
      - A cluster that is backed up without jobs, such as with M(pve.fleet.backup), has
        a finding for each guest.
    type: bool
    default: false
"""
