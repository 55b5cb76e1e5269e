#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from cluster_options.yml: do not edit.

DOCUMENTATION = r"""
module: cluster_options
short_description: Manage options of a cluster, such as registered tags
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Sets options for a whole cluster. Options that are not set are not changed, and neither are keys
    of an option that this module does not know.
  - Tags and colors are added to the existing ones, so several tenants can share the lists.
  - Proxmox VE replaces an option as a whole and has no lock for that. This module reads the option
    right before the write, and again one second later. If another run has undone a change in the
    meantime, the change is written again.
  - The token needs C(Sys.Audit) and C(Sys.Modify) on C(/).
options:
  state:
    description:
      - V(present) sets the given options. Tags and colors that are not listed are kept.
      - V(absent) removes the tags that are listed in O(registered_tags), O(tag_style.color_map) and
        O(user_tag_access.user_allow_list). It cannot be combined with other options.
    type: str
    choices: [present, absent]
    default: present
  registered_tags:
    description: Tags that only users with C(Sys.Modify) on C(/) may add to a VM or remove from it.
    type: list
    elements: str
  exact:
    description: Whether tags and colors that are not listed are removed, for each of
      O(registered_tags), O(tag_style.color_map) and O(user_tag_access.user_allow_list) that is set.
      It cannot be combined with O(state=absent).
    type: bool
    default: false
  tag_style:
    description: How the web interface shows tags, and how Proxmox VE stores the tags of a VM.
    type: dict
    suboptions:
      color_map:
        description: Colors by tag, such as V(ff0000), or V(ff0000:ffffff) with the color of the
          text. An empty text removes the colors of a tag.
        type: dict
      ordering:
        description: Whether tags keep their order (V(config)) or are sorted (V(alphabetical)). An
          empty text removes it.
        type: str
        choices: ['', config, alphabetical]
      case_sensitive:
        description: Whether tags are case-sensitive.
        type: bool
      shape:
        description: Shape of the tags. An empty text removes it.
        type: str
        choices: ['', full, circle, dense, none]
  user_tag_access:
    description: Which tags users may set on their VMs without C(Sys.Modify) on C(/).
    type: dict
    suboptions:
      user_allow:
        description: V(none) allows no tags, V(list) the tags in O(user_tag_access.user_allow_list),
          V(existing) also tags that are in use, and V(free) any tags. Tags in O(registered_tags)
          are never allowed. An empty text removes it.
        type: str
        choices: ['', none, list, existing, free]
      user_allow_list:
        description: The tags for V(list) and V(existing).
        type: list
        elements: str
  crs:
    description: How the HA manager chooses nodes (cluster resource scheduling).
    type: dict
    suboptions:
      ha:
        description: V(basic) counts services, V(static) considers their configured CPU and memory,
          and V(dynamic) their current usage (Proxmox VE 9.2). An empty text removes it.
        type: str
        choices: ['', basic, static, dynamic]
      ha_rebalance_on_start:
        description: Whether a node is chosen when a service starts.
        type: bool
      ha_auto_rebalance:
        description: Whether services are moved when the load of the nodes differs (Proxmox VE 9.2).
          It has no effect unless C(ha) is V(static) or V(dynamic).
        type: bool
      ha_auto_rebalance_threshold:
        description: Difference between the nodes, in percent, above which services are moved. An
          empty text removes it.
        type: str
      ha_auto_rebalance_method:
        description: How moves are rated, V(bruteforce) or V(topsis). An empty text removes it.
        type: str
        choices: ['', bruteforce, topsis]
      ha_auto_rebalance_hold_duration:
        description: Rounds of the HA manager for which the threshold must be exceeded. An empty
          text removes it.
        type: str
      ha_auto_rebalance_margin:
        description: Minimum improvement by a move, in percent. An empty text removes it.
        type: str
  mac_prefix:
    description: Prefix of the MAC addresses that Proxmox VE generates, such as V(BC:24:11:0). An
      empty text removes it.
    type: str
  bwlimit:
    description: Bandwidth limits of tasks, in KiB/s. V(0) means no limit. An empty text removes a
      limit.
    type: dict
    suboptions:
      clone:
        description: Limit for cloning disks.
        type: str
      default:
        description: Limit for all other tasks.
        type: str
      migration:
        description: Limit for migrating guests.
        type: str
      move:
        description: Limit for moving disks.
        type: str
      restore:
        description: Limit for restoring guests from backups.
        type: str
  migration:
    description: How guests are migrated between nodes.
    type: dict
    suboptions:
      type:
        description: V(secure) through an SSH tunnel, or V(insecure). An empty text removes it.
        type: str
        choices: ['', secure, insecure]
      network:
        description: Network that is used for migration, such as V(10.99.0.0/24). An empty text
          removes it.
        type: str
  next_id:
    description: The range from which Proxmox VE proposes VMIDs for new guests. This collection
      chooses the VMIDs of its VMs itself.
    type: dict
    suboptions:
      lower:
        description: First VMID. An empty text removes it.
        type: str
      upper:
        description: VMID after the last one. An empty text removes it.
        type: str
  description:
    description: Notes about the cluster. An empty text removes them.
    type: str
  console:
    description: The default viewer of consoles, V(html5) (noVNC), V(vv) (SPICE) or V(xtermjs). An
      empty text removes it.
    type: str
    choices: ['', html5, vv, xtermjs]
  keyboard:
    description: Default keyboard layout of VNC consoles. An empty text removes it.
    type: str
    choices:
      - ''
      - de
      - de-ch
      - da
      - en-gb
      - en-us
      - es
      - fi
      - fr
      - fr-be
      - fr-ca
      - fr-ch
      - hu
      - is
      - it
      - ja
      - lt
      - mk
      - nl
      - 'no'
      - pl
      - pt
      - pt-br
      - sv
      - sl
      - tr
  language:
    description: Default language of the web interface. An empty text removes it.
    type: str
    choices:
      - ''
      - ar
      - ca
      - da
      - de
      - en
      - es
      - eu
      - fa
      - fr
      - hr
      - he
      - it
      - ja
      - ka
      - kr
      - nb
      - nl
      - nn
      - pl
      - pt_BR
      - ru
      - sl
      - sv
      - tr
      - ukr
      - zh_CN
      - zh_TW
  email_from:
    description: Sender of mails of Proxmox VE. An empty text restores the default, which is C(root)
      at the host name.
    type: str
  http_proxy:
    description: Proxy for downloads of the nodes, such as V(http://10.0.0.1:3128). An empty text
      removes it. Everyone with C(Sys.Audit) can read a password in it.
    type: str
  max_workers:
    description: Maximum number of concurrent tasks on each node when guests are started or stopped
      together. V(0) restores the default of Proxmox VE.
    type: int
  fencing:
    description: How the HA manager fences nodes. Proxmox VE calls V(hardware) and V(both)
      experimental. An empty text restores the default, which is V(watchdog).
    type: str
    choices: ['', watchdog, hardware, both]
  ha:
    description: Options of the HA manager.
    type: dict
    suboptions:
      shutdown_policy:
        description: What happens to guests of a node that shuts down. An empty text restores the
          default, which is V(conditional).
        type: str
        choices: ['', freeze, failover, conditional, migrate]
  consent_text:
    description: Text to which users must agree before they log in to the web interface. An empty
      text removes it.
    type: str
  notify:
    description: Events about which the cluster sends notifications. Matchers take precedence, see
      M(pve.fleet.notification_matcher).
    type: dict
    suboptions:
      fencing:
        description: Whether fenced nodes are reported. An empty text removes it.
        type: str
        choices: ['', always, never]
      package_updates:
        description: Whether new packages are reported. V(auto), the default, only reports them with
          a subscription. An empty text removes it.
        type: str
        choices: ['', auto, always, never]
      replication:
        description: Whether failures of replication jobs are reported. An empty text removes it.
        type: str
        choices: ['', always, never]
      target_fencing:
        description: Target of these notifications, from Proxmox VE before matchers. An empty text
          removes it.
        type: str
      target_package_updates:
        description: Target of these notifications, from Proxmox VE before matchers. An empty text
          removes it.
        type: str
      target_replication:
        description: Target of these notifications, from Proxmox VE before matchers. An empty text
          removes it.
        type: str
  replication:
    description: How replication jobs send their data. Proxmox VE 8.4 does not support this option.
    type: dict
    suboptions:
      type:
        description: V(secure) through an SSH tunnel, or V(insecure). An empty text removes it.
        type: str
        choices: ['', secure, insecure]
      network:
        description: Network that is used for replication, such as V(10.99.0.0/24). An empty text
          removes it.
        type: str
  location:
    description: Place of the cluster on a map. Both coordinates are required together. Needs
      Proxmox VE 9.2.
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
  webauthn:
    description: Logins with WebAuthn. A change can make existing devices unusable. A change of
      O(webauthn.id) always does.
    type: dict
    suboptions:
      rp:
        description: Name of the relying party. An empty text removes it.
        type: str
      origin:
        description: Address of the web interface, such as V(https://pve.example.com). An empty text
          removes it.
        type: str
      id:
        description: Domain of the relying party. An empty text removes it.
        type: str
      allow_subdomains:
        description: Whether subdomains of the origin are allowed.
        type: bool
  u2f:
    description: Logins with U2F.
    type: dict
    suboptions:
      appid:
        description: URL of the application. An empty text removes it.
        type: str
      origin:
        description: Address of the web interface. An empty text removes it.
        type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.full]
seealso: [{module: pve.fleet.cluster_options_info}, {module: pve.fleet.cluster_info}]
"""

EXAMPLES = r"""
- name: Reserve the tag of a tenant for administrators, and give it a color
  pve.fleet.cluster_options:
    registered_tags: [tenant_globex]
    tag_style:
      color_map:
        tenant_globex: "0044aa:ffffff"

- name: Limit the bandwidth of clones, and choose nodes by the configured memory of VMs
  pve.fleet.cluster_options:
    bwlimit:
      clone: "200000"
    crs:
      ha: static

- name: Remove the tag again
  pve.fleet.cluster_options:
    state: absent
    registered_tags: [tenant_globex]
    tag_style:
      color_map:
        tenant_globex: ""
"""

RETURN = r"""
cluster_options:
  description: The options as they are afterwards, or in check mode as they would be.
    RV(pve.fleet.cluster_options_info#module:cluster_options) describes its fields.
  returned: success
  type: dict
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
  sample: {category: PermissionDenied, reason: not all options, status: null, path: null,
    upid: null, retryable: false, tries: null}
done:
  description: The steps of RV(plan) that were carried out. Empty in check mode.
  returned: success
  type: list
  elements: str
"""

from functools import partial

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.run import run
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.cluster_options import (
    cluster_options_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.table import (
    CLUSTER_OPTIONS,
)

ENTRY = ModuleEntry(partial(run, CLUSTER_OPTIONS), cluster_options_spec(), name="cluster_options")
main = ENTRY.main

if __name__ == "__main__":
    main()
