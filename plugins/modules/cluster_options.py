#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_options.yml: do not edit.

from __future__ import annotations

DOCUMENTATION = r"""
---
module: cluster_options
short_description: Manage options of a cluster, such as registered tags
version_added: 0.1.0
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Sets options that hold for a whole cluster. Those that are not given are not changed, nor are
    keys of an option that this module does not know.
  - Tags and colors are added to those that are there, so that several tenants share the lists.
  - Proxmox VE replaces an option as a whole and has no lock for that. This module reads it right
    before it writes, and again one second later; what another run has undone by then is written
    again.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/).
extends_documentation_fragment:
  - pve.fleet.cluster_options_options
  - pve.fleet.connection
  - pve.fleet.attributes
  - pve.fleet.attributes.full
seealso:
  - module: pve.fleet.cluster_options_info
  - module: pve.fleet.cluster_info
"""

EXAMPLES = r"""
- name: Reserve the tag of a tenant for administrators, and give it a color
  pve.fleet.cluster_options:
    registered_tags: [tenant_globex]
    tag_style:
      color_map:
        tenant_globex: "0044aa:ffffff"

- name: Limit clones, and choose nodes by the memory that VMs have
  pve.fleet.cluster_options:
    bwlimit:
      clone: "200000"
    crs:
      ha: static

- name: Take the tag out again
  pve.fleet.cluster_options:
    state: absent
    registered_tags: [tenant_globex]
    tag_style:
      color_map:
        tenant_globex: ""
"""

RETURN = r"""
cluster_options:
  description: The options as they are afterwards, or in check mode as they
    would be.
  returned: success
  type: dict
  contains:
    registered_tags: {description: Tags that only users with C(Sys.Modify) on
        C(/) may set., type: list, elements: str, sample: [tenant_acme]}
    tag_style:
      description: Colors by tag, order, whether upper case counts, and shape.
        Where nothing is set, the default of Proxmox VE; so it is in the values
        below.
      type: dict
      sample:
        color_map:
          tenant_acme: 0044aa:ffffff
        ordering: alphabetical
        case_sensitive: false
        shape: circle
    user_tag_access: {description: Which tags users may set., type: dict, sample: {
        user_allow: free, user_allow_list: []}}
    crs: {description: How the HA manager chooses nodes., type: dict, sample: {
        ha: static, ha_rebalance_on_start: true}}
    bwlimit: {description: 'Limits of the bandwidth of tasks in KiB/s, null
        where none is set.', type: dict, sample: {clone: 200000, default: null,
        migration: null, move: null, restore: null}}
    migration: {description: How guests are migrated., type: dict, sample: {
        type: secure, network: 10.99.0.0/24}}
    next_id: {description: The range in which Proxmox VE proposes numbers.,
      type: dict, sample: {lower: 100, upper: 1000000}}
    mac_prefix: {description: Beginning of new MAC addresses., type: str, sample: 'BC:24:11'}
    description: {description: Notes., type: str, sample: ''}
    console: {description: The default viewer., type: str, sample: ''}
    keyboard: {description: Keyboard layout of consoles., type: str, sample: de}
    language: {description: Language of the web interface., type: str, sample: de}
    email_from: {description: Sender of mails., type: str, sample: pve@example.com}
    http_proxy: {description: Proxy for downloads., type: str, sample: ''}
    max_workers: {description: 'Most tasks at once, 0 for the default.', type: int,
      sample: 0}
    fencing: {description: How nodes are fenced., type: str, sample: watchdog}
    ha:
      description: Options of the HA manager.
      type: dict
      sample: {shutdown_policy: conditional}
    consent_text: {description: Text before a login., type: str, sample: ''}
    notify: {description: Which events are reported., type: dict, sample: {
        fencing: always, package_updates: null, replication: null, target_fencing: null,
        target_package_updates: null, target_replication: null}}
    replication: {description: How replication jobs send data., type: dict,
      sample: {type: secure, network: null}}
    location: {description: Its place., type: dict, sample: {latitude: '48.2082',
        longitude: '16.3738', name: Vienna}}
    webauthn: {description: Logins with WebAuthn., type: dict, sample: {rp: null,
        origin: null, id: null, allow_subdomains: true}}
    u2f: {description: Logins with U2F., type: dict, sample: {appid: null, origin: null}}
plan:
  description: The steps that were needed, in words. Empty when nothing differs.
  returned: success
  type: list
  elements: str
  sample: [Set registered_tags of the cluster options]
error:
  description: Why the task failed, for programs. The text for people is in RV(ignore:msg).
  returned: failure
  type: dict
  sample:
    category: PermissionDenied
    reason: not all options
    status: null
    path: null
    upid: null
    retryable: false
    tries: null
done:
  description: The steps that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
  sample: [Set registered_tags of the cluster options]
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._datacenter.table import CLUSTER_OPTIONS
from ansible_collections.pve.fleet.plugins.module_utils._entry.module import Entry
from ansible_collections.pve.fleet.plugins.module_utils._resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._spec.generated.cluster_options import (
    cluster_options_spec,
)

ENTRY = Entry(partial(run, CLUSTER_OPTIONS), cluster_options_spec(), name="cluster_options")


def main() -> None:
    ENTRY.main()


if __name__ == "__main__":
    main()
