# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules acl and acl_info.

Written by `make options` from acl.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  path:
    description: Path of what the rights are about, such as V(/pool/globex), V(/vms/100),
      V(/storage/ceph) or V(/).
    type: str
    required: true
  state:
    description: Whether the grants are given, V(present), or taken away, V(absent).
    type: str
    choices: [present, absent]
    default: present
  grants:
    description: Who has which role on O(path). Each item names one of O(grants[].user),
      O(grants[].group) and O(grants[].token).
    type: list
    elements: dict
    required: true
    suboptions:
      user:
        description: User with its realm, such as V(alice@pve).
        type: str
      group:
        description: Group of users.
        type: str
      token:
        description: Whole name of a token, such as V(alice@pve!deploy). A token with privilege
          separation has no more rights than its user, whatever it is given.
        type: str
      role:
        description: Name of the role.
        type: str
        required: true
      propagate:
        description: Whether the role also holds on the paths below. With O(state=absent)
          the role is taken away in both cases.
        type: bool
        default: true
  exact:
    description: Whether all other roles on O(path) are taken away. It cannot be set with
      O(state=absent).
    type: bool
    default: false
  allow_self:
    description: Whether the change may take privileges away from the login of the task
      itself. Without it, this is refused before the first write, and the message names
      the privileges.
    type: bool
    default: false
"""

    INFO = r"""
options:
  path:
    description: One path. By default, all paths are returned on which a role is given.
    type: str
"""
