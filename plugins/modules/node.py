#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from node.yml: do not edit.

DOCUMENTATION = r"""
module: node
short_description: Manage the settings of a node
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Manages the notes, DNS, hosts file, time zone, wake-on-LAN, start delay, place and domains of
    ACME of a node.
  - Only the parts that a task sets are read and changed, with one request each.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on the node, and on C(/) for the notes,
    wake-on-LAN, delay, ballooning, place and ACME. To read the hosts, it needs C(Sys.Audit) on
    C(/).
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
    description: Target memory usage for ballooning in percent. Proxmox VE uses 80 if it is unset.
    type: int
  wakeonlan:
    description: How other nodes wake this node. A key that is not set is not changed; an empty text
      removes it.
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
    description: Domains of the certificate that M(pve.fleet.acme_certificate) orders. The value
      replaces all of them, and an empty dictionary removes them. By default, they are not changed.
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
            description: Plugin that validates the domain, see M(pve.fleet.acme_plugin).
            type: str
            default: standalone
          alias:
            description: Domain whose DNS record validates this domain. By default, the domain
              itself.
            type: str
  location:
    description: Place of the node on a map. Both coordinates are required together. A key that is
      not set is not changed. Needs Proxmox VE 9.2.
    type: dict
    suboptions:
      latitude:
        description: Degrees from V(-90) to V(90). An empty text removes it.
        type: str
      longitude:
        description: Degrees from V(-180) to V(180). An empty text removes it.
        type: str
      name:
        description: Name of the place, of at most 128 characters. An empty text removes it.
        type: str
  dns:
    description: DNS settings of the node. A key that is not set is not changed.
    type: dict
    suboptions:
      search:
        description: Search domain. Proxmox VE requires it to change the servers.
        type: str
      servers:
        description: Addresses of at most three name servers, in their order. An empty list removes
          them.
        type: list
        elements: str
  hosts:
    description:
      - Entries of C(/etc/hosts). Addresses that are not listed, comments and empty lines are kept.
      - The entry with the node's own name cannot be removed.
    type: list
    elements: dict
    suboptions:
      address:
        description: IP address of the entry.
        type: str
        required: true
      names:
        description: All names of the address. The first one is the canonical name. An empty list
          removes the entry.
        type: list
        elements: str
        default: []
  timezone:
    description: Time zone of the node, such as V(Europe/Vienna).
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso:
  - module: pve.fleet.node_settings_info
  - module: pve.fleet.node_network
  - module: pve.fleet.node_info
"""

EXAMPLES = r"""
- name: Set time zone and name servers of a node
  pve.fleet.node:
    node: pve1
    timezone: Europe/Vienna
    dns:
      search: lab.example.com
      servers: [10.99.0.53, 10.99.0.54]

- name: Wait for the storage network before the first guest starts
  pve.fleet.node:
    node: pve1
    startall_onboot_delay: 60
    description: |
      Rack 4, power supply B
    wakeonlan:
      mac: BC:24:11:00:00:01

- name: Show the node on the map of the datacenter
  pve.fleet.node:
    node: pve1
    location: {latitude: "48.2082", longitude: "16.3738", name: Vienna}

- name: Set the domain of its certificate
  pve.fleet.node:
    node: pve1
    acme:
      domains:
        - {domain: pve1.lab.example.com}

- name: Add the address of a backup server, and remove an old one
  pve.fleet.node:
    node: pve1
    hosts:
      - address: 10.99.0.60
        names: [backup.lab.example.com, backup]
      - address: 10.99.0.61
        names: []
"""

RETURN = r"""
node:
  description: The settings of the node. A part that the task does not set is null. In check mode,
    the settings as they would be.
  returned: success
  type: dict
  contains:
    name: {description: Name of the node., type: str, sample: pve1}
    description: {description: Its notes., type: str, sample: Rack 4}
    startall_onboot_delay: {description: Seconds until its guests start., type: int, sample: 60}
    ballooning_target: {description: Target memory usage for ballooning in percent., type: int,
      sample: 80}
    wakeonlan: {description: 'C(mac), C(bind_interface) and C(broadcast_address), if they are set.',
      type: dict, sample: {mac: 'BC:24:11:00:00:01'}}
    acme: {description: 'C(account) and C(domains), null without domains.', type: dict}
    location: {description: 'C(latitude), C(longitude) and C(name), null without a place.',
      type: dict}
    dns: {description: C(search) and C(servers)., type: dict, sample: {search: lab.example.com,
      servers: [10.99.0.53]}}
    hosts: {description: 'Entries of the hosts file, each with C(address) and C(names).',
      type: list, elements: dict, sample: [{address: 127.0.0.1, names: [localhost]}]}
    timezone: {description: Its time zone., type: str, sample: Europe/Vienna}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Change the time zone of node pve1 to Europe/Vienna]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample: {category: ConfigurationError, reason: own name, status: null, path: null, upid: null,
    retryable: false, tries: null}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.node import (
    node_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.settings.run import run

ENTRY = ModuleEntry(run, node_spec(), name="node")
main = ENTRY.main

if __name__ == "__main__":
    main()
