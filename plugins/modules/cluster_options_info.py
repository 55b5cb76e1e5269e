#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_options.yml: do not edit.

DOCUMENTATION = r"""
module: cluster_options_info
short_description: Gather information about options of a cluster
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the options of a cluster that M(pve.fleet.cluster_options) manages. One request is made.
  - The token needs C(Sys.Audit) on C(/).
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.cluster_options}]
"""

EXAMPLES = r"""
- name: Read the options
  pve.fleet.cluster_options_info:
  register: estate

- name: List the registered tags
  ansible.builtin.debug:
    msg: "{{ estate.cluster_options.registered_tags }}"
"""

RETURN = r"""
cluster_options:
  description: The options.
  returned: success
  type: dict
  contains:
    registered_tags: {description: Tags that only users with C(Sys.Modify) on C(/) may set.,
      type: list, elements: str, sample: [tenant_acme]}
    tag_style: {description: 'Colors by tag, order, case-sensitivity, and shape. Here and in the
      values below, an unset option has the default of Proxmox VE.', type: dict, sample: {color_map:
      {tenant_acme: '0044aa:ffffff'}, ordering: alphabetical, case_sensitive: false, shape: circle}}
    user_tag_access: {description: Tags that users may set., type: dict, sample: {user_allow: free,
      user_allow_list: []}}
    crs: {description: How the HA manager chooses nodes., type: dict, sample: {ha: static,
      ha_rebalance_on_start: true}}
    bwlimit: {description: 'Bandwidth limits of tasks in KiB/s, null if none is set.', type: dict,
      sample: {clone: 200000, default: null, migration: null, move: null, restore: null}}
    migration: {description: How guests are migrated., type: dict, sample: {type: secure,
      network: 10.99.0.0/24}}
    next_id: {description: The range from which Proxmox VE proposes VMIDs., type: dict, sample:
      {lower: 100, upper: 1000000}}
    mac_prefix: {description: Prefix of new MAC addresses., type: str, sample: 'BC:24:11'}
    description: {description: Notes., type: str, sample: ''}
    console: {description: The default viewer., type: str, sample: ''}
    keyboard: {description: Keyboard layout of consoles., type: str, sample: de}
    language: {description: Language of the web interface., type: str, sample: de}
    email_from: {description: Sender of mails., type: str, sample: pve@example.com}
    http_proxy: {description: Proxy for downloads., type: str, sample: ''}
    max_workers: {description: 'Maximum number of concurrent tasks, 0 for the default.', type: int,
      sample: 0}
    fencing: {description: How nodes are fenced., type: str, sample: watchdog}
    ha: {description: Options of the HA manager., type: dict, sample:
      {shutdown_policy: conditional}}
    consent_text: {description: Text before a login., type: str, sample: ''}
    notify: {description: Events that are reported., type: dict, sample: {fencing: always,
      package_updates: null, replication: null, target_fencing: null, target_package_updates: null,
      target_replication: null}}
    replication: {description: How replication jobs send data., type: dict, sample: {type: secure,
      network: null}}
    location: {description: Its place., type: dict, sample: {latitude: '48.2082',
      longitude: '16.3738', name: Vienna}}
    webauthn: {description: Logins with WebAuthn., type: dict, sample: {rp: null, origin: null,
      id: null, allow_subdomains: true}}
    u2f: {description: Logins with U2F., type: dict, sample: {appid: null, origin: null}}
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run_info
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.table import (
    CLUSTER_OPTIONS,
)

ENTRY = ModuleEntry(partial(run_info, CLUSTER_OPTIONS), {}, name="cluster_options_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
