#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_config.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: realm
short_description: Manage realms
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and deletes a realm. M(pve.fleet.realm_sync) takes over its users,
    M(pve.fleet.realm_info) lists the realms.
  - Options of another type of realm are refused before the first write.
  - The token needs C(Realm.Allocate) on C(/access/realm).
extends_documentation_fragment:
  - pve.fleet.realm_config_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.realm_info
  - module: pve.fleet.realm_sync
"""

EXAMPLES = r"""
- name: Let users of a directory log in
  pve.fleet.realm:
    name: company
    type: ldap
    server1: ldap.example.com
    mode: ldaps
    verify: true
    base_dn: ou=people,dc=example,dc=com
    user_attr: uid
    bind_dn: cn=reader,dc=example,dc=com
    bind_password: from a vault
    sync_defaults_options: scope=both,remove-vanished=entry

- name: Write a new password of the reader
  pve.fleet.realm:
    name: company
    bind_password: another one
    update_secrets: always

- name: Let users of an OpenID provider log in
  pve.fleet.realm:
    name: sso
    type: openid
    issuer_url: https://sso.example.com/realms/ops
    client_id: proxmox
    client_secret: from a vault
    username_claim: username
    autocreate: true

- name: Propose it in the login form
  pve.fleet.realm:
    name: sso
    default: true

- name: Delete the directory's realm
  pve.fleet.realm:
    name: company
    state: absent
"""

RETURN = r"""
realm:
  description: The result as it is afterwards, or in check mode as it would be. It is null
    when it is deleted.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: company}
    type: {description: Its type., type: str, sample: ldap}
    comment: {description: Its comment., type: str, sample: ''}
    default: {description: Whether the login form proposes it., type: bool, sample: false}
    tfa: {description: The second factor that it requires., type: str, sample: ''}
    server1: {description: Address of the directory., type: str, sample: ldap.example.com,
      returned: of type ldap and ad}
    server2: {description: Address of its second server., type: str, sample: '', returned: of
        type ldap and ad}
    server_port: {description: Its port., type: int, sample: 0, returned: of type ldap and
        ad}
    mode: {description: Its protocol., type: str, sample: ldaps, returned: of type ldap
        and ad}
    verify: {description: Whether its certificate is verified., type: bool, sample: true,
      returned: of type ldap and ad}
    base_dn: {description: DN of the users., type: str, sample: 'ou=people,dc=example,dc=com',
      returned: of type ldap}
    user_attr: {description: Attribute with the name of a user., type: str, sample: uid,
      returned: of type ldap}
    bind_dn:
      description: DN of the reader.
      type: str
      sample: cn=reader,dc=example,dc=com
      returned: of type ldap and ad
    domain: {description: Domain of AD., type: str, returned: of type ad}
    issuer_url: {description: URL of the provider., type: str, returned: of type openid}
    client_id: {description: ID at the provider., type: str, returned: of type openid}
    autocreate: {description: Whether users are created., type: bool, returned: of type
        openid}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create realm 'company']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: own login
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Create realm 'company']
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._realm.table import REALM_CONFIG
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.realm_config import (
    realm_spec,
)

ENTRY = Entry(partial(run, REALM_CONFIG), realm_spec(), name="realm")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
