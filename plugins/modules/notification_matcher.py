#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_matcher.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: notification_matcher
short_description: Manage rules that choose the targets of notifications
version_added: 0.2.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Creates, changes and deletes a matcher. Endpoints that do not exist are refused before the first
    write.
  - The token needs C(Mapping.Modify) and C(Mapping.Audit) on C(/mapping/notifications).
extends_documentation_fragment:
  - pve.fleet.notify_matcher_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.notification_matcher_info
  - module: pve.fleet.notification_endpoint
"""

EXAMPLES = r"""
- name: Send errors of backups to root, at any time
  pve.fleet.notification_matcher:
    name: backups
    match_severity: [error]
    match_field: ["exact:type=vzdump"]
    target: [mail-to-root]

- name: Switch off the matcher that sends everything
  pve.fleet.notification_matcher:
    name: default-matcher
    disable: true

- name: Delete a matcher
  pve.fleet.notification_matcher:
    name: backups
    state: absent
"""

RETURN = r"""
notification_matcher:
  description: The matcher as it is afterwards, or in check mode as it would be. It is null when it
    is deleted.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str, sample: backups}
    target: {description: Its endpoints., type: list, elements: str, sample: [mail-to-root]}
    mode: {description: Whether all rules must match., type: str, sample: all}
    invert_match: {description: Whether the match is inverted., type: bool, sample: false}
    match_severity: {description: Severities., type: list, elements: str, sample: [error]}
    match_field: {description: Fields., type: list, elements: str, sample: ['exact:type=vzdump']}
    match_calendar: {description: Times., type: list, elements: str, sample: []}
    disable: {description: Whether it has no effect., type: bool, sample: false}
    comment: {description: Its comment., type: str, sample: ''}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Create notification matcher 'backups']
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: Conflict
    reason: unknown endpoint
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
  sample: [Create notification matcher 'backups']
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._notification.matcher import MATCHER
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.notify_matcher import (
    notification_matcher_spec,
)

ENTRY = Entry(partial(run, MATCHER), notification_matcher_spec(), name="notification_matcher")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
