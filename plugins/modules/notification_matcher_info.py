#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from notify_matcher.yml: do not edit.

DOCUMENTATION = r"""
module: notification_matcher_info
short_description: Gather information about rules that select the targets of notifications
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one matcher or all of them. One request is made.
  - The token needs C(Mapping.Audit) on C(/mapping/notifications).
options:
  name:
    description: Name of one matcher. By default, all are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.notification_matcher}]
"""

EXAMPLES = r"""
- name: Read all matchers
  pve.fleet.notification_matcher_info:
  register: known
"""

RETURN = r"""
notification_matchers:
  description: The matchers, sorted by name. Empty if there is no matcher of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: backups}
    target: {description: Its endpoints., type: list, elements: str, sample: [mail-to-root]}
    mode: {description: Whether all rules must match., type: str, sample: all}
    invert_match: {description: Whether the match is inverted., type: bool, sample: false}
    match_severity: {description: Severities., type: list, elements: str, sample: [error]}
    match_field: {description: Fields., type: list, elements: str, sample: ['exact:type=vzdump']}
    match_calendar: {description: Times., type: list, elements: str, sample: []}
    disable: {description: Whether it is disabled., type: bool, sample: false}
    comment: {description: Its comment., type: str, sample: ''}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.notify_matcher import (
    notification_matcher_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.notification import (
    MATCHER,
)

ENTRY = ModuleEntry(
    partial(run_info, MATCHER), notification_matcher_info_spec(), name="notification_matcher_info"
)
main = ENTRY.main

if __name__ == "__main__":
    main()
