# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules notification_matcher and notification_matcher_info.

Written by `make options` from notify_matcher.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the matcher.
    type: str
    required: true
  state:
    description: V(present) creates the matcher or changes what differs, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  target:
    description: Endpoints that get the messages. The list replaces that of the matcher. By default,
      it is not changed.
    type: list
    elements: str
  mode:
    description: Whether all rules must match or any of them, V(all) unless set. By default, it is
      not changed.
    type: str
    choices: [all, any]
  invert_match:
    description: Whether messages match that otherwise would not. By default, it is not changed.
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
    description: Whether the matcher has no effect. By default, it is not changed.
    type: bool
  comment:
    description: Comment on the matcher. An empty text removes it. By default, it is not changed.
    type: str
"""

    INFO = r"""
options:
  name:
    description: Name of one matcher. By default, all are returned.
    type: str
"""
