#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from realm_config.yml: do not edit.

DOCUMENTATION = r"""
module: realm
short_description: Manage realms
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a realm. M(pve.fleet.realm_sync) synchronizes its users, and
    M(pve.fleet.realm_info) lists the realms.
  - Options of another type of realm are refused before the first write.
  - The token needs C(Realm.Allocate) on C(/access/realm).
options:
  name:
    description: Name of the realm, which is the part of a user's name after the C(@).
    type: str
    required: true
  state:
    description: V(present) creates the realm or updates settings that differ, V(absent) deletes it.
      The realms C(pam) and C(pve), and the realm of the task's own login, are never deleted.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: Type of the realm. Required for a new realm. It cannot be changed.
    type: str
    choices: [ad, ldap, openid, pam, pve]
  comment:
    description: Comment on the realm. An empty text removes it. By default, it is not changed.
    type: str
  default:
    description: Whether the login form preselects this realm. Another realm is then no longer
      preselected. By default, it is not changed.
    type: bool
  tfa:
    description: Second factor that the realm requires, such as V(type=oath,digits=6). An empty text
      removes it. By default, it is not changed.
    type: str
  server1:
    description: Address of the directory. Required for a new LDAP or AD realm. By default, it is
      not changed.
    type: str
  server2:
    description: Address of a second server of the directory. An empty text removes it. By default,
      it is not changed.
    type: str
  server_port:
    description: Port of the directory. V(0) restores the default of the protocol. By default, it is
      not changed.
    type: int
  mode:
    description: Protocol of the directory. Proxmox VE uses V(ldap) if it is unset. By default, it
      is not changed.
    type: str
    choices: [ldap, ldaps, ldap+starttls]
  verify:
    description: Whether the certificate of the directory is verified. By default, it is not
      changed.
    type: bool
  capath:
    description: Path of the CA certificates on the nodes. Proxmox VE uses V(/etc/ssl/certs) if it
      is unset. An empty text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  cert:
    description: Path of the client certificate on the nodes. An empty text removes it. By default,
      it is not changed.
    type: str
  certkey:
    description: Path of the key of the client certificate on the nodes. An empty text removes it.
      By default, it is not changed.
    type: str
  sslversion:
    description: Version of TLS, such as V(tlsv1_3). An empty text removes it. By default, it is not
      changed.
    type: str
  domain:
    description: Domain of AD. Required for a new AD realm. By default, it is not changed.
    type: str
  case_sensitive:
    description: Whether the names of users of an AD realm are case-sensitive. Proxmox VE uses
      V(true) if it is unset. By default, it is not changed.
    type: bool
  base_dn:
    description: Base DN of the users. Required for a new LDAP realm. By default, it is not changed.
    type: str
  user_attr:
    description: Attribute with the name of a user. Required for a new LDAP realm. By default, it is
      not changed.
    type: str
  bind_dn:
    description: DN of the user that reads the directory. An empty text removes it. By default, it
      is not changed.
    type: str
  bind_password:
    description: Password of O(bind_dn). It is never returned.
    type: str
  filter:
    description: Filter for users. An empty text removes it. By default, it is not changed.
    type: str
  user_classes:
    description: Object classes of users. An empty text removes it. By default, it is not changed.
    type: str
  group_dn:
    description: Base DN of the groups. An empty text removes it. By default, it is not changed.
    type: str
  group_filter:
    description: Filter for groups. An empty text removes it. By default, it is not changed.
    type: str
  group_name_attr:
    description: Attribute with the name of a group. An empty text removes it. By default, it is not
      changed.
    type: str
  group_classes:
    description: Object classes of groups. An empty text removes it. By default, it is not changed.
    type: str
  sync_attributes:
    description: Attributes that a synchronization copies, such as V(email=mail). An empty text
      removes it. By default, it is not changed.
    type: str
  sync_defaults_options:
    description: Defaults of a synchronization, such as V(scope=both,remove-vanished=entry). An
      empty text removes it. By default, it is not changed.
    type: str
  issuer_url:
    description: URL of the OpenID provider. Required for a new OpenID realm. By default, it is not
      changed.
    type: str
  client_id:
    description: Client ID of Proxmox VE at the provider. Required for a new OpenID realm. By
      default, it is not changed.
    type: str
  client_secret:
    description: Client secret of Proxmox VE at the provider. It is never returned.
    type: str
  username_claim:
    description: Claim with the name of a user. It cannot be changed.
    type: str
  scopes:
    description: Scopes that are requested. Proxmox VE uses V(email profile) if it is unset. An
      empty text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  prompt:
    description: Whether the provider asks the user to log in again, such as V(login). An empty text
      removes it. By default, it is not changed.
    type: str
  acr_values:
    description: Authentication context classes that are requested. An empty text removes it. By
      default, it is not changed.
    type: str
  audiences:
    description: Audiences in the token of the provider that are accepted beside O(client_id),
      separated by commas. An empty text removes it. By default, it is not changed.
    type: str
  groups_claim:
    description: Claim with the groups of a user. An empty text removes it. By default, it is not
      changed.
    type: str
  autocreate:
    description: Whether a user is created at the first login. By default, it is not changed.
    type: bool
  groups_autocreate:
    description: Whether groups of the claim are created. By default, it is not changed.
    type: bool
  groups_overwrite:
    description: Whether a user is removed from groups that are not in the claim. By default, it is
      not changed.
    type: bool
  query_userinfo:
    description: Whether the provider is asked for more claims. Proxmox VE uses V(true) if it is
      unset. By default, it is not changed.
    type: bool
  update_secrets:
    description: When secrets are written to an existing resource. Proxmox VE never returns them, so
      they cannot be compared. V(on_create) only writes them to a new one, V(always) writes them in
      each run.
    type: str
    choices: [on_create, always]
    default: on_create
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.realm_info}, {module: pve.fleet.realm_sync}]
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

- name: Change the password of the bind user
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

- name: Preselect it in the login form
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
  description: The result as it is afterwards, or in check mode as it would be. It is null if it is
    deleted.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: company}
    type: {description: Its type., type: str, sample: ldap}
    comment: {description: Its comment., type: str, sample: ''}
    default: {description: Whether the login form proposes it., type: bool, sample: false}
    tfa: {description: The second factor that it requires., type: str, sample: ''}
    server1: {description: Address of the directory., type: str, sample: ldap.example.com, returned:
      of type ldap and ad}
    server2: {description: Address of its second server., type: str, sample: '', returned: of type
      ldap and ad}
    server_port: {description: Its port., type: int, sample: 0, returned: of type ldap and ad}
    mode: {description: Its protocol., type: str, sample: ldaps, returned: of type ldap and ad}
    verify: {description: Whether its certificate is verified., type: bool, sample: true, returned:
      of type ldap and ad}
    base_dn: {description: DN of the users., type: str, sample: 'ou=people,dc=example,dc=com',
      returned: of type ldap}
    user_attr: {description: Attribute with the name of a user., type: str, sample: uid, returned:
      of type ldap}
    bind_dn: {description: DN of the bind user., type: str, sample: 'cn=reader,dc=example,dc=com',
      returned: of type ldap and ad}
    domain: {description: Domain of AD., type: str, returned: of type ad}
    issuer_url: {description: URL of the provider., type: str, returned: of type openid}
    client_id: {description: ID at the provider., type: str, returned: of type openid}
    autocreate: {description: Whether users are created., type: bool, returned: of type openid}
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
  sample: {category: Conflict, reason: own login, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.realm_config import (
    realm_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.realms.realm import (
    REALM_CONFIG,
)

ENTRY = ModuleEntry(partial(run, REALM_CONFIG), realm_spec(), name="realm")
main = ENTRY.main

if __name__ == "__main__":
    main()
