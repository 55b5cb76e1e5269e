# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules user and user_info.

Written by `make options` from user.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the user with its realm, such as V(alice@pve). The realm must exist
      when the user is created.
    type: str
    required: true
  state:
    description:
      - V(present) creates the user if it does not exist, and changes what differs.
      - V(absent) deletes it with its tokens and all its rights.
    type: str
    choices: [present, absent]
    default: present
  enabled:
    description: Whether the user and its tokens can log in. A new user can unless this is
      V(false). By default, it is not changed.
    type: bool
  expire:
    description:
      - When the user and its tokens can no longer log in, as a date or a time such as V(2027-01-31)
        or V(2027-01-31T18:00:00+01:00). Without an offset it is in UTC. V(never) removes
        the date. By default, it is not changed.
      - A date in the past is refused where it would be set; O(enabled=false) ends access
        at once.
    type: str
  firstname:
    description: First name. An empty text removes it. By default, it is not changed.
    type: str
  lastname:
    description: Last name. An empty text removes it. By default, it is not changed.
    type: str
  email:
    description: E-mail address. An empty text removes it. By default, it is not changed.
    type: str
  comment:
    description: Comment on the user. An empty text removes it. By default, it is not changed.
    type: str
  groups:
    description: Groups that the user is in. They must exist. By default, they are not changed.
    type: list
    elements: str
  append:
    description: Whether the user also stays in groups that O(groups) does not list. Without
      it, the user leaves them.
    type: bool
    default: false
  user_password:
    description:
      - Password of the user, for realms whose passwords Proxmox VE keeps. It has 8 to 64
        characters.
      - It is set when the user is created. It is never compared; see O(update_password).
    type: str
  update_password:
    description:
      - Whether O(user_password) is also set for a user that exists.
      - V(always) sets it in every run, which then reports a change. Proxmox VE does not accept
        this from a token; log in with user and password.
    type: str
    choices: [on_create, always]
    default: on_create
  allow_self:
    description: Whether the user that the task logs in as may be deleted, disabled, taken
      out of groups, or given an earlier expiry date or another password. Without it, this
      is refused before the first write, and the message names the loss. The user V(root@pam)
      is never deleted, disabled or given an expiry date.
    type: bool
    default: false
"""

    INFO = r"""
options:
  name:
    description: Name of one user with its realm. By default, all users are returned.
    type: str
"""
