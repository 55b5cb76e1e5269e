#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_endpoint.yml: do not edit.

DOCUMENTATION = r"""
module: notification_endpoint
short_description: Manage targets of notifications
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes an endpoint to which Proxmox VE sends notifications.
  - M(pve.fleet.notification_matcher) selects the notifications that it gets.
  - Secrets of webhooks are not managed.
  - The token needs C(Mapping.Modify) on C(/mapping/notifications), and C(Sys.AccessNetwork), or
    C(Sys.Audit) and C(Sys.Modify), on C(/).
options:
  type:
    description: Kind of the endpoint. V(sendmail) uses the mail server of the node, V(smtp) uses
      another mail server.
    type: str
    required: true
    choices: [gotify, sendmail, smtp, webhook]
  name:
    description: Name of the endpoint.
    type: str
    required: true
  state:
    description: V(present) creates the endpoint or updates settings that differ, V(absent) deletes
      it. An endpoint that a matcher uses is not deleted.
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the endpoint. An empty text removes it. By default, it is not changed.
    type: str
  disable:
    description: Whether the endpoint is disabled, so no messages are sent to it. By default, it is
      not changed.
    type: bool
  mailto:
    description: Mail addresses. An empty list removes all. By default, they are not changed.
    type: list
    elements: str
  mailto_user:
    description: Users whose mail address is used, such as V(root@pam). An empty list removes all.
      By default, they are not changed.
    type: list
    elements: str
  from_address:
    description: Sender of mails. Required for a new endpoint of type V(smtp). By default, it is not
      changed.
    type: str
  author:
    description: Name of the sender. An empty text removes it. By default, it is not changed.
    type: str
  server:
    description: SMTP server, or URL of Gotify. Required for a new endpoint of these types. By
      default, it is not changed.
    type: str
  server_port:
    description: Port of the SMTP server. V(0) restores the default of the mode. By default, it is
      not changed.
    type: int
  mode:
    description: Encryption of SMTP. Proxmox VE uses V(tls) if it is unset. By default, it is not
      changed.
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
    description: Headers of a webhook by name, as plain text. An empty dictionary removes all. By
      default, they are not changed.
    type: dict
  body:
    description: Body of a webhook as plain text, a template of Proxmox VE. An empty text removes
      it. By default, it is not changed.
    type: str
  test:
    description: Whether a test message is sent after a change. The task fails if Proxmox VE cannot
      send it.
    type: bool
    default: false
  update_secrets:
    description: When secrets are written to an existing endpoint. Proxmox VE never returns them, so
      they cannot be compared. V(on_create) only writes them to a new one, V(always) writes them in
      each run.
    type: str
    choices: [on_create, always]
    default: on_create
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.notification_endpoint_info
  - module: pve.fleet.notification_matcher
"""

EXAMPLES = r"""
- name: Send mails through a mail server, and test it
  pve.fleet.notification_endpoint:
    type: smtp
    name: company-mail
    server: mail.example.com
    from_address: pve@example.com
    mailto: [ops@example.com]
    username: pve
    smtp_password: from a vault
    test: true

- name: Post messages to a chat
  pve.fleet.notification_endpoint:
    type: webhook
    name: chat
    webhook_url: https://chat.example.com/hooks/ops
    method: post
    headers: {Content-Type: application/json}
    body: '{"text": "{% raw %}{{ escape title }}{% endraw %}"}'

- name: Delete the chat
  pve.fleet.notification_endpoint:
    type: webhook
    name: chat
    state: absent
"""

RETURN = r"""
notification_endpoint:
  description: The endpoint as it is afterwards, or in check mode as it would be. It is null if it
    is deleted. RV(pve.fleet.notification_endpoint_info#module:notification_endpoints) describes its
    fields.
  returned: success
  type: dict
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create notification endpoint 'company-mail']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: Conflict, reason: in use, status: null, path: null, upid: null,
    retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.notify_endpoint import (
    notification_endpoint_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.notification import (
    run_endpoint,
)

ENTRY = ModuleEntry(run_endpoint, notification_endpoint_spec(), name="notification_endpoint")
main = ENTRY.main

if __name__ == "__main__":
    main()
