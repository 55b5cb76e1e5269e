# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules acme_plugin and acme_plugin_info.

Written by `make options` from acme_plugin.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  name:
    description: Name of the plugin.
    type: str
    required: true
  state:
    description: V(present) creates the plugin or changes what differs, V(absent) deletes it.
    type: str
    choices: [present, absent]
    default: present
  type:
    description: V(dns) proves a domain by a DNS record, V(standalone) by a web server on port 80
      of the node. Required for a new plugin. It cannot be changed.
    type: str
    choices: [dns, standalone]
  api:
    description: Name of the DNS provider as Proxmox VE has it, such as V(cf). Required for a new
      plugin of type V(dns). By default, it is not changed.
    type: str
  data:
    description: Variables of the provider with its credentials, by their names. They are never
      returned. A new plugin has none by default.
    type: dict
  update_secrets:
    description: When O(data) is written to a plugin that exists. V(on_create) never writes it,
      V(always) writes it in each run.
    type: str
    choices: [on_create, always]
    default: on_create
  validation_delay:
    description: Seconds between the record and its check, V(30) unless set. By default, it is not
      changed.
    type: int
  nodes:
    description: Nodes that use the plugin. An empty list means all nodes. By default, it is not
      changed.
    type: list
    elements: str
  disable:
    description: Whether the plugin is disabled. By default, it is not changed.
    type: bool
"""

    INFO = r"""
options:
  name:
    description: Name of one plugin. By default, all plugins are returned.
    type: str
"""
