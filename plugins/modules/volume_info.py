#!/usr/bin/python
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# Written by `make options` from volume.yml: do not edit.

DOCUMENTATION = r"""
module: volume_info
short_description: Gather information about volumes of a storage
version_added: 1.0.0
author: [pve.fleet authors (@pve-fleet)]
description:
  - Returns the volumes of a storage as a node lists them, optionally only the volumes of a content
    type or a guest. Two requests are made.
  - The token needs C(Datastore.Audit) on the storage. Proxmox VE leaves out volumes of guests on
    which the token has no privileges.
options:
  storage:
    description: Storage whose volumes are returned.
    type: str
    required: true
  node:
    description: Node that lists the volumes. By default, the default node of the connection, or
      else the first online node with the storage.
    type: str
  content:
    description: Content type of the volumes. By default, volumes of all content types are returned.
    type: str
    choices: [backup, images, import, iso, rootdir, snippets, vztmpl]
  vmid:
    description: Guest whose volumes are returned. By default, the volumes of all guests are
      returned.
    type: int
extends_documentation_fragment: [pve.fleet.connection, pve.fleet.attributes,
  pve.fleet.attributes.info]
seealso: [{module: pve.fleet.volume}, {module: pve.fleet.storage_info}]
"""

EXAMPLES = r"""
- name: List the ISOs of a storage
  pve.fleet.volume_info:
    storage: local
    content: iso
  register: isos

- name: Show their names
  ansible.builtin.debug:
    msg: "{{ isos.volumes | map(attribute='volid') }}"
"""

RETURN = r"""
volumes:
  description: The volumes, sorted by volume ID.
  returned: success
  type: list
  elements: dict
  contains:
    volid: {description: Its volume ID., type: str, sample: 'local:iso/debian.iso'}
    storage: {description: Its storage., type: str, sample: local}
    node: {description: The node that answered., type: str, sample: pve1}
    content: {description: Its content type., type: str, sample: iso}
    format: {description: Its format., type: str, sample: iso}
    size: {description: Its size in bytes., type: int, sample: 702545920}
    ctime: {description: Time of its creation in seconds since 1970., type: int, sample: 1795213002}
    vmid: {description: 'The guest it belongs to, null for none.', type: int, sample: null}
    notes: {description: Its notes., type: str, sample: ''}
    protected: {description: Whether it is protected., type: bool, sample: false}
"""

from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import ModuleEntry
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.volume import (
    volume_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.storage.volume.run import (
    run_volume_info,
)

ENTRY = ModuleEntry(run_volume_info, volume_info_spec(), name="volume_info")
main = ENTRY.main

if __name__ == "__main__":
    main()
