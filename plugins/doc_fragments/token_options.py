# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules token and token_info.

Written by `make options` from token.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  owner:
    description: User with its realm that the token belongs to, such as V(alice@pve).
    type: str
    required: true
  name:
    description: Name of the token, without the user, such as V(deploy).
    type: str
    required: true
  state:
    description:
      - V(present) creates the token if it does not exist, and changes what differs. Only
        a token that is created has a secret in the result.
      - V(rotated) gives a token that exists another secret. The one before is no longer accepted
        from then on. The token keeps its rights. It reports a change in every run.
      - Before Proxmox VE 9.2 a secret cannot be replaced. V(rotated) then makes O(successor),
        a second token with the same settings and rights. Delete the first one when the second
        is in use.
      - V(absent) deletes the token with its rights.
    type: str
    choices: [present, absent, rotated]
    default: present
  privilege_separation:
    description: Whether the token has rights of its own, of which it can use those that its
      user has too. Without it, the token has all rights of its user. A new token has it unless
      this is V(false). By default, it is not changed.
    type: bool
  expire:
    description:
      - When the token is no longer accepted, as a date or a time such as V(2027-01-31) or
        V(2027-01-31T18:00:00+01:00). Without an offset it is in UTC. V(never) removes the
        date. By default, it is not changed.
      - A date in the past is refused where it would be set.
    type: str
  comment:
    description: Comment on the token. An empty text removes it. By default, it is not changed.
    type: str
  successor:
    description: Name of the second token that O(state=rotated) makes before Proxmox VE 9.2,
      where it is required. It must not exist. Since 9.2 it is refused.
    type: str
  allow_self:
    description: Whether the token that the task logs in with may be deleted, restricted,
      given another secret or an earlier expiry date. Without it, this is refused before the
      first write, and the message names the loss.
    type: bool
    default: false
"""

    INFO = r"""
options:
  owner:
    description: User with its realm. By default, the tokens of all users are returned.
    type: str
  name:
    description: Name of a token, without the user. By default, all tokens are returned.
    type: str
"""
