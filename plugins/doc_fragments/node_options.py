# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The options of modules node and node_settings_info.

Written by `make options` from node.yml: do not edit.
"""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
  description:
    description: Notes of the node, shown in the web interface. An empty text removes them.
    type: str
  startall_onboot_delay:
    description: Seconds from the start of the node until its guests start, from 0 to 300. Proxmox
      VE uses 0 if it is unset.
    type: int
  ballooning_target:
    description: Usage of memory in percent that ballooning aims at. Proxmox VE uses 80 if it
      is unset.
    type: int
  wakeonlan:
    description: How other nodes wake this node. A key that is not set is not changed; an empty
      text removes it.
    type: dict
    suboptions:
      mac:
        description: MAC address of the node. Required as long as another key is set.
        type: str
      bind_interface:
        description: Interface of the sender. By default, the interface of its default route.
        type: str
      broadcast_address:
        description: IPv4 address that the packet is sent to. By default, V(255.255.255.255).
        type: str
  acme:
    description: Domains of the certificate that M(pve.fleet.acme_certificate) orders, as a whole.
      An empty dictionary removes them. By default, they are not changed.
    type: dict
    suboptions:
      account:
        description: Name of the ACME account.
        type: str
        default: default
      domains:
        description: At most six domains.
        type: list
        elements: dict
        default: []
        suboptions:
          domain:
            description: DNS name of the node.
            type: str
            required: true
          plugin:
            description: Plugin that proves the domain, see M(pve.fleet.acme_plugin).
            type: str
            default: standalone
          alias:
            description: Domain whose record proves this one. By default, its own.
            type: str
  dns:
    description: DNS settings of the node. A key that is not set is not changed.
    type: dict
    suboptions:
      search:
        description: Domain that names are searched in. Proxmox VE requires one to change the
          servers.
        type: str
      servers:
        description: Addresses of at most three name servers, in their order. An empty list removes
          them.
        type: list
        elements: str
  hosts:
    description:
      - Entries of C(/etc/hosts). Addresses that are not listed, comments and empty lines are
        kept.
      - The entry with the node's own name cannot be removed.
    type: list
    elements: dict
    suboptions:
      address:
        description: IP address of the entry.
        type: str
        required: true
      names:
        description: All names of the address, the first one being its canonical name. An empty
          list removes the entry.
        type: list
        elements: str
        default: []
  timezone:
    description: Time zone of the node, such as V(Europe/Vienna).
    type: str
"""

    INFO = r"""
options:
  node:
    description: Name of the node.
    type: str
    required: true
"""
