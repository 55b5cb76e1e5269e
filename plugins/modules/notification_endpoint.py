#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_endpoint.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: notification_endpoint
short_description: Manage targets of notifications
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and deletes an endpoint that Proxmox VE sends notifications to.
  - M(pve.fleet.notification_matcher) chooses which notifications it gets.
  - Secrets of webhooks are not managed.
  - The token needs C(Mapping.Modify) on C(/mapping/notifications), and C(Sys.AccessNetwork), or
    C(Sys.Audit) and C(Sys.Modify), on C(/).
extends_documentation_fragment:
  - pve.fleet.notify_endpoint_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.notification_endpoint_info
  - module: pve.fleet.notification_matcher
"""

EXAMPLES = r"""
- name: Send mails through a mail server, and try it
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
  description: The endpoint as it is afterwards, or in check mode as it would be. It is null when
    it is deleted.
  returned: success
  type: dict
  contains:
    type: {description: Its type., type: str, sample: smtp}
    name: {description: Its name., type: str, sample: company-mail}
    comment: {description: Its comment., type: str, sample: ''}
    disable: {description: Whether no messages are sent to it., type: bool, sample: false}
    mailto: {description: Mail addresses., type: list, elements: str, sample: [ops@example.com],
      returned: of type sendmail and smtp}
    server: {description: Its server., type: str, sample: mail.example.com, returned: of type smtp
        and gotify}
    webhook_url: {description: Its URL., type: str, returned: of type webhook}
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
  sample:
    category: Conflict
    reason: in use
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
  sample: [Create notification endpoint 'company-mail']
"""

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._notification.endpoint import run_endpoint
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.notify_endpoint import (
    notification_endpoint_spec,
)

ENTRY = Entry(run_endpoint, notification_endpoint_spec(), name="notification_endpoint")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
