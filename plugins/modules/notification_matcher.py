#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_matcher.yml: do not edit.

DOCUMENTATION = r"""
module: notification_matcher
short_description: Manage rules that select the targets of notifications
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Creates, changes and deletes a matcher. Endpoints that do not exist are refused before the first
    write.
  - The token needs C(Mapping.Modify) and C(Mapping.Audit) on C(/mapping/notifications).
options:
  name:
    description: Name of the matcher.
    type: str
    required: true
  state:
    description: V(present) creates the matcher or updates settings that differ, V(absent) deletes
      it.
    type: str
    choices: [present, absent]
    default: present
  target:
    description: Endpoints that get the messages. The list replaces the endpoints of the matcher. By
      default, it is not changed.
    type: list
    elements: str
  mode:
    description: Whether all rules or any of them must match. Proxmox VE uses V(all) if it is unset.
      By default, it is not changed.
    type: str
    choices: [all, any]
  invert_match:
    description: Whether the result of the match is inverted. By default, it is not changed.
    type: bool
  match_severity:
    description: Severities, such as V(error,warning). An empty list removes all. By default, they
      are not changed.
    type: list
    elements: str
  match_field:
    description: Fields, such as V(exact:type=vzdump). An empty list removes all. By default, they
      are not changed.
    type: list
    elements: str
  match_calendar:
    description: Times, such as V(mon..fri 8:00-18:00). An empty list removes all. By default, they
      are not changed.
    type: list
    elements: str
  disable:
    description: Whether the matcher is disabled. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the matcher. An empty text removes it. By default, it is not changed.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
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

- name: Disable the matcher that sends everything
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
  description: The matcher as it is afterwards, or in check mode as it would be. It is null if it is
    deleted. RV(pve.fleet.notification_matcher_info#module:notification_matchers) describes its
    fields.
  returned: success
  type: dict
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
  sample: {category: Conflict, reason: unknown endpoint, status: null, path: null, upid: null,
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
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.notify_matcher import (
    notification_matcher_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.notification import (
    MATCHER,
)

ENTRY = ModuleEntry(partial(run, MATCHER), notification_matcher_spec(), name="notification_matcher")
main = ENTRY.main

if __name__ == "__main__":
    main()
