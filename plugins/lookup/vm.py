# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.vm`: the facts of one VM inside a playbook or template."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vm
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 0.1.0
short_description: Facts of a VM of Proxmox VE by name or VMID
description:
  - Returns what the cluster's listing says about a VM, with the keys that M(pve.fleet.vm_info) returns too.
  - The listing is asked for once in a run of Ansible and kept for its other lookups. A VM that it does not hold,
    because it was created meanwhile, makes it be asked for again.
extends_documentation_fragment:
  - pve.fleet.connection.plugin
options:
  _terms:
    description: Names or VMIDs; a number is always a VMID. A name must be that of exactly one VM.
    required: true
    type: list
    elements: str
  tenant:
    description:
      - Find VMs of this tenant only.
      - Environment variable E(PROXMOX_TENANT).
    type: str
  tenant_prefix:
    description:
      - How the tag of a tenant begins. The default is V(tenant_).
      - Environment variable E(PROXMOX_TENANT_PREFIX).
    type: str
  refresh:
    description: Whether to ask Proxmox VE even when the listing is known from an earlier lookup of this run.
    type: bool
    default: false
seealso:
  - module: pve.fleet.vm_info
"""

EXAMPLES = r"""
- name: Tell where a VM is
  ansible.builtin.debug:
    msg: "web1 is on {{ lookup('pve.fleet.vm', 'web1').node }}"

- name: Use the VMIDs of two VMs of a tenant
  ansible.builtin.debug:
    msg: "{{ query('pve.fleet.vm', 'web1', 'db1', tenant='acme') | map(attribute='vmid') }}"
"""

RETURN = r"""
_raw:
  description: The facts of each VM, as M(pve.fleet.vm_info) returns them; what only its configuration knows is null.
  type: list
  elements: dict
"""

import os
import time
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._api.client import connect
from ..module_utils._cluster.tenant import PREFIX
from ..module_utils._core.errors import FleetError
from ..module_utils._entry import read_sites_file
from ..module_utils._inventory.find import find_row
from ..module_utils._inventory.options import ENVIRONMENT
from ..module_utils._spec.connection import CONNECTION_OPTIONS
from ..plugin_utils._listing import SharedListing


class LookupModule(LookupBase):
    """Facts of VMs by name or VMID."""

    def run(self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any) -> list[Any]:
        """Return the facts of each VM; raises AnsibleLookupError with one line that says what to do."""
        self.set_options(var_options=variables, direct=options)
        tenant = self._option("tenant")
        prefix = self._option("tenant_prefix") or PREFIX
        connection = {name: self.get_option(name) for name in CONNECTION_OPTIONS}
        try:
            with connect(connection, os.environ, read_file=read_sites_file) as client:
                began = time.time()
                listing = SharedListing(client)
                rows = listing.rows(began if self.get_option("refresh") else 0.0)
                found = []
                for term in terms:
                    row = find_row(rows, str(term), tenant, prefix)
                    if row is None:  # made meanwhile, perhaps
                        rows = listing.rows(began)
                        row = find_row(rows, str(term), tenant, prefix, must_exist=True)
                    found.append(wrap_var(row))
                return found
        except FleetError as error:
            raise AnsibleLookupError(f"{error.message} ({error.category})") from None

    def _option(self, name: str) -> str:
        """Return an option that the inventory has too, from where the inventory has it."""
        return str(self.get_option(name) or os.environ.get(ENVIRONMENT[name], "")).strip()
