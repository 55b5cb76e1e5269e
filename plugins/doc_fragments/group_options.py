# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules group and group_info.

Written by `make options` from group.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the group.
    type: str
    required: true
  state:
    description:
      - V(present) creates the group if it does not exist, and changes what differs.
      - V(absent) deletes it. A group that has users, or that holds roles, is only deleted with
        O(force).
    type: str
    choices: [present, absent]
    default: present
  comment:
    description: Comment on the group. An empty text removes it. By default, it is not changed.
    type: str
  force:
    description: Whether O(state=absent) also deletes a group that is in use. Its users are not
      deleted; they lose the rights that they have through it.
    type: bool
    default: false
  allow_self:
    description: Whether the deletion may take privileges away from the login of the task itself.
      Without it, this is refused before the first write, and the message names the privileges.
    type: bool
    default: false
"""

    INFO = r"""
options:
  name:
    description: Name of one group. By default, all groups are returned.
    type: str
"""
