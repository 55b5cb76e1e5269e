# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of module realm.

Written by `make options` from realm_config.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the realm, the part of a user behind the C(@).
    type: str
    required: true
  state:
    description: V(present) creates the realm or changes what differs, V(absent) deletes it.
      The realms C(pam) and C(pve), and the realm of the task's own login, are never deleted.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: Type of the realm. Required for a new one. It cannot be changed.
    type: str
    choices: [ad, ldap, openid, pam, pve]
  comment:
    description: Comment on the realm. An empty text removes it. By default, it is not changed.
    type: str
  default:
    description: Whether the login form proposes this realm. Another realm then is no longer
      proposed. By default, it is not changed.
    type: bool
  tfa:
    description: Second factor that the realm requires, such as V(type=oath,digits=6). An empty
      text removes it. By default, it is not changed.
    type: str
  server1:
    description: Address of the directory. Required for a new LDAP or AD realm. By default,
      it is not changed.
    type: str
  server2:
    description: Address of a second server of the directory. An empty text removes it. By default,
      it is not changed.
    type: str
  server_port:
    description: Port of the directory. V(0) restores the default of the protocol. By default,
      it is not changed.
    type: int
  mode:
    description: Protocol of the directory, V(ldap) unless set. By default, it is not changed.
    type: str
    choices: [ldap, ldaps, ldap+starttls]
  verify:
    description: Whether the certificate of the directory is verified. By default, it is not
      changed.
    type: bool
  capath:
    description: Path of the CA certificates on the nodes, V(/etc/ssl/certs) unless set. An
      empty text restores the default of Proxmox VE. By default, it is not changed.
    type: str
  cert:
    description: Path of the client certificate on the nodes. An empty text removes it. By default,
      it is not changed.
    type: str
  certkey:
    description: Path of the key of the client certificate on the nodes. An empty text removes
      it. By default, it is not changed.
    type: str
  sslversion:
    description: Version of TLS, such as V(tlsv1_3). An empty text removes it. By default, it
      is not changed.
    type: str
  domain:
    description: Domain of AD. Required for a new AD realm. By default, it is not changed.
    type: str
  case_sensitive:
    description: Whether upper case counts in the names of users of an AD realm, V(true) unless
      set. By default, it is not changed.
    type: bool
  base_dn:
    description: DN below which the users are. Required for a new LDAP realm. By default, it
      is not changed.
    type: str
  user_attr:
    description: Attribute with the name of a user. Required for a new LDAP realm. By default,
      it is not changed.
    type: str
  bind_dn:
    description: DN of the user that reads the directory. An empty text removes it. By default,
      it is not changed.
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
    description: DN below which the groups are. An empty text removes it. By default, it is
      not changed.
    type: str
  group_filter:
    description: Filter for groups. An empty text removes it. By default, it is not changed.
    type: str
  group_name_attr:
    description: Attribute with the name of a group. An empty text removes it. By default, it
      is not changed.
    type: str
  group_classes:
    description: Object classes of groups. An empty text removes it. By default, it is not changed.
    type: str
  sync_attributes:
    description: Attributes that a synchronization takes over, such as V(email=mail). An empty
      text removes it. By default, it is not changed.
    type: str
  sync_defaults_options:
    description: Defaults of a synchronization, such as V(scope=both,remove-vanished=entry).
      An empty text removes it. By default, it is not changed.
    type: str
  issuer_url:
    description: URL of the OpenID provider. Required for a new OpenID realm. By default, it
      is not changed.
    type: str
  client_id:
    description: ID of Proxmox VE at the provider. Required for a new OpenID realm. By default,
      it is not changed.
    type: str
  client_secret:
    description: Secret of Proxmox VE at the provider. It is never returned.
    type: str
  username_claim:
    description: Claim with the name of a user. It cannot be changed.
    type: str
  scopes:
    description: Scopes that are requested, V(email profile) unless set. An empty text restores
      the default of Proxmox VE. By default, it is not changed.
    type: str
  prompt:
    description: Whether the provider asks the user to log in again, such as V(login). An empty
      text removes it. By default, it is not changed.
    type: str
  acr_values:
    description: Authentication context classes that are requested. An empty text removes it.
      By default, it is not changed.
    type: str
  groups_claim:
    description: Claim with the groups of a user. An empty text removes it. By default, it is
      not changed.
    type: str
  autocreate:
    description: Whether a user is created at the first login. By default, it is not changed.
    type: bool
  groups_autocreate:
    description: Whether groups of the claim are created. By default, it is not changed.
    type: bool
  groups_overwrite:
    description: Whether a user leaves the groups that the claim does not have. By default,
      it is not changed.
    type: bool
  query_userinfo:
    description: Whether the provider is asked for more claims, V(true) unless set. By default,
      it is not changed.
    type: bool
  update_secrets:
    description: When secrets are written to an existing resource. Proxmox VE never returns
      them, so they cannot be compared. V(on_create) writes them to a new one only, V(always)
      in each run.
    type: str
    choices: [on_create, always]
    default: on_create
"""
