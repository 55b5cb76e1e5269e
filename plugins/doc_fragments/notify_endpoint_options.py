# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules notification_endpoint and notification_endpoint_info.

Written by `make options` from notify_endpoint.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  type:
    description: Kind of the endpoint. V(sendmail) uses the mail server of the node, V(smtp)
      another one.
    type: str
    required: true
    choices: [gotify, sendmail, smtp, webhook]
  name:
    description: Name of the endpoint.
    type: str
    required: true
  state:
    description: V(present) creates the endpoint or changes what differs, V(absent) deletes
      it. An endpoint that a matcher uses is not deleted.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the endpoint. An empty text removes it. By default, it is not changed.
    type: str
  disable:
    description: Whether no messages are sent to it. By default, it is not changed.
    type: bool
  mailto:
    description: Mail addresses. An empty list removes all. By default, they are not changed.
    type: list
    elements: str
  mailto_user:
    description: Users whose mail address is used, such as V(root@pam). An empty list removes
      all. By default, they are not changed.
    type: list
    elements: str
  from_address:
    description: Sender of mails. Required for a new endpoint of type V(smtp). By default, it
      is not changed.
    type: str
  author:
    description: Name of the sender. An empty text removes it. By default, it is not changed.
    type: str
  server:
    description: Server of SMTP, or URL of Gotify. Required for a new endpoint of these types.
      By default, it is not changed.
    type: str
  server_port:
    description: Port of the SMTP server. V(0) restores the default of the mode. By default,
      it is not changed.
    type: int
  mode:
    description: Encryption of SMTP, V(tls) unless set. By default, it is not changed.
    type: str
    choices: [insecure, starttls, tls]
  username:
    description: User of the SMTP server. An empty text removes it. By default, it is not changed.
    type: str
  smtp_password:
    description: Password of O(username). It is never returned. An empty text removes it.
    type: str
  token:
    description: Token of Gotify. It is never returned. Required for a new endpoint of type
      V(gotify).
    type: str
  webhook_url:
    description: URL of a webhook. Required for a new one. By default, it is not changed.
    type: str
  method:
    description: HTTP method of a webhook. Required for a new one. By default, it is not changed.
    type: str
    choices: [get, post, put]
  headers:
    description: Headers of a webhook by name, as plain texts. An empty dictionary removes all.
      By default, they are not changed.
    type: dict
  body:
    description: Body of a webhook as plain text, a template of Proxmox VE. An empty text removes
      it. By default, it is not changed.
    type: str
  test:
    description: Whether a test message is sent after a change. The task fails if Proxmox VE
      cannot send it.
    type: bool
    default: false
  update_secrets:
    description: When secrets are written to an existing endpoint. Proxmox VE never returns
      them, so they cannot be compared. V(on_create) writes them to a new one only, V(always)
      in each run.
    type: str
    choices: [on_create, always]
    default: on_create
"""

    INFO = r"""
options:
  type:
    description: Kind of the endpoints. By default, all kinds are returned.
    type: str
    choices: [gotify, sendmail, smtp, webhook]
  name:
    description: Name of one endpoint. By default, all are returned.
    type: str
"""
