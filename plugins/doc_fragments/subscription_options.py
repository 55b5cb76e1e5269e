# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules subscription and subscription_info.

Written by `make options` from subscription.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
  state:
    description: V(present) sets the key of a node that has none, V(absent) removes the key.
    type: str
    choices: [present, absent]
    default: present
  key:
    description: The key of the subscription, for at least as many sockets as the node has. Required
      if the node has none. It is never returned.
    type: str
  update_secrets:
    description: When O(key) is written to a node that has a subscription. V(on_create) does not
      replace the key, V(always) writes it in each run.
    type: str
    choices: [on_create, always]
    default: on_create
"""

    INFO = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
"""
