#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from storage.yml: do not edit.

DOCUMENTATION = r"""
module: storage_info
short_description: Gather information about storages
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns one storage of the cluster or all of them, with the options of its definition and its
    state on each node. Two requests are made.
  - The figures are the last ones that the nodes reported, some seconds ago.
  - The token needs C(Datastore.Audit) on the storages, and C(Datastore.Allocate) to read one by
    name.
options:
  name:
    description: Name of one storage. By default, all storages are returned.
    type: str
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.storage}]
"""

EXAMPLES = r"""
- name: Read all storages
  pve.fleet.storage_info:
  register: estate

- name: List the nodes on which a storage has less than 10 % left
  ansible.builtin.debug:
    msg: "{{ item.0.name }} on {{ item.1.node }}: {{ item.1.free }} bytes"
  loop: "{{ estate.storages | subelements('states') }}"
  loop_control:
    label: "{{ item.0.name }}"
  when:
    - item.1.active
    - item.1.free < item.1.total * 0.1
"""

RETURN = r"""
storages:
  description: The storages, sorted by name. Empty if there is no storage of that name.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str, sample: media}
    type: {description: Its type., type: str, sample: dir}
    content: {description: Its content types., type: list, elements: str, sample: [iso, vztmpl]}
    nodes: {description: 'The nodes that have it, empty for all.', type: list, elements: str,
      sample: [pve1]}
    disable: {description: Whether it is disabled., type: bool, sample: false}
    path: {description: Its directory., type: str, returned: with types that have it,
      sample: /srv/media}
    prune_backups: {description: The backups that are kept., type: dict, returned: with types that
      have it, sample: {keep_last: 3}}
    encryption_key_fingerprint: {description: 'Fingerprint of the encryption key, empty for none.',
      type: str, returned: with type V(pbs), sample: ''}
    states:
      description: The state of the storage on each node that has it and has reported its state.
      type: list
      elements: dict
      contains:
        node: {description: Name of the node., type: str, sample: pve1}
        active: {description: Whether the node can use the storage., type: bool, sample: true}
        shared: {description: Whether all nodes see the same volumes., type: bool, sample: false}
        total: {description: 'Size in bytes, null if it is not active.', type: int,
          sample: 107374182400}
        used: {description: 'Used bytes, null if it is not active.', type: int, sample: 1073741824}
        free: {description: 'Free bytes, null if it is not active.', type: int,
          sample: 106300440576}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.storage import (
    storage_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.table import (
    run_storage_info,
)

ENTRY = ModuleEntry(run_storage_info, storage_info_spec(), name="storage_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
