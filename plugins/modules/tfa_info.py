#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from tfa_info.yml: do not edit.

DOCUMENTATION = r"""
module: tfa_info
short_description: Gather information about second factors of users
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the second factors of each user, without secrets, and the users without a second factor.
    Three requests are made.
  - Only users that the token may see are returned. The token needs C(Sys.Audit) or C(User.Modify)
    on C(/access/groups), or on a group for the users of this group.
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso:
  - module: pve.fleet.user_info
  - module: pve.fleet.realm_info
  - module: pve.fleet.audit_info
"""

EXAMPLES = r"""
- name: Read the second factors of all users
  pve.fleet.tfa_info:
  register: factors

- name: Show the enabled users without a second factor
  ansible.builtin.debug:
    msg: "{{ factors.without_factor | join(' ') }}"

- name: Show the users that are locked after wrong codes
  ansible.builtin.debug:
    msg: "{{ factors.users | selectattr('totp_locked') | map(attribute='name') }}"
"""

RETURN = r"""
users:
  description: The users, sorted by name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name with the realm., type: str, sample: alice@pve}
    enabled: {description: Whether the user is enabled., type: bool, sample: true}
    realm_factor: {description: 'Kind of second factor that the realm requires, V(oath) or
      V(yubico). Null if it requires none.', type: str}
    has_factor: {description: Whether the user has an enabled second factor., type: bool,
      sample: true}
    factors: {description: 'Its second factors, each with C(id), C(type), C(description), C(enabled)
      and C(created).', type: list, elements: dict, sample: [{id: 'totp:5f0b', type: totp,
      description: Phone, enabled: true, created: '2026-01-01T00:00:00Z'}]}
    totp_locked: {description: Whether one-time passwords are locked after wrong codes., type: bool,
      sample: false}
    locked_until: {description: Time until which all second factors are locked. Null if they are not
      locked., type: str}
without_factor:
  description: Names of the enabled users without an enabled second factor.
  returned: success
  type: list
  elements: str
  sample: [ops@pve]
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tfa_info import (
    tfa_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.second_factors import (
    run,
)

ENTRY = ModuleEntry(run, tfa_info_spec(), name="tfa_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
