# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.vm`: the facts of one VM inside a playbook or template."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vm
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Gather facts of a VM by name or VMID
description:
  - Returns a VM as the cluster's listing shows it, with the keys of M(pve.fleet.vm_info).
  - Each lookup reads the listing once, for all of its terms.
  - The listing can show a VM under the name of a removed VM for some seconds, so a name is checked
    on the node of the VM. This takes one request for each node.
extends_documentation_fragment:
  - pve.fleet.connection.plugin
  - pve.fleet.connection
options:
  _terms:
    description: Names or VMIDs; a number is always a VMID. A name must be that of exactly one VM.
    required: true
    type: list
    elements: str
  tenant:
    description:
      - Find VMs of this tenant only.
      - Left out, VMs of every tenant are found, so it is an error when it is given without a value,
        also in the environment.
      - Environment variable E(PROXMOX_TENANT).
    type: str
  tenant_prefix:
    description:
      - How the tag of a tenant begins. The default is V(tenant_).
      - Environment variable E(PROXMOX_TENANT_PREFIX).
    type: str
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
  description: The facts of each VM, as M(pve.fleet.vm_info) returns them; what only its
    configuration knows is null.
  type: list
  elements: dict
"""

import os
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase
from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._foundation.api.client import connect
from ..module_utils._foundation.cluster.tenant import PREFIX, blank_owner, is_blank
from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.entry.sites_file import read_sites_file
from ..module_utils._foundation.spec.generated.connection import connection_spec
from ..module_utils._operation.inventory.find import CachedAnswers, find_vm
from ..module_utils._operation.inventory.options import ENVIRONMENT

display = Display()


class LookupModule(LookupBase):
    """Facts of VMs by name or VMID."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[Any]:
        """Return the facts of each VM.

        Raises AnsibleLookupError with one line that contains the next step.
        """
        self.set_options(var_options=variables, direct=options)
        connection = {name: self.get_option(name) for name in connection_spec()}
        try:
            tenant = self._owner("tenant", options)
            prefix = self._owner("tenant_prefix", options) or PREFIX
            with connect(connection, os.environ, read_file=read_sites_file) as client:
                for warning in client.connection.warnings:
                    display.warning(warning)
                answers = CachedAnswers(client.printable())
                found = [find_vm(answers, str(term), tenant, prefix) for term in terms]
                return [wrap_var(row) for row in found]
        except FleetError as error:
            raise AnsibleLookupError(f"{error.message} ({error.category})") from None

    def _owner(self, name: str, given: Mapping[str, Any]) -> str:
        """Return an option from the same sources as the inventory, or an empty text.

        Raises ValidationFailed if it is set to a blank value: VMs of every tenant would be found.
        """
        value = self.get_option(name)
        if value is None and name not in given:
            variable = ENVIRONMENT[name]
            value, place = os.environ.get(variable), variable
            if value is None:
                return ""
        else:
            place = name
        if is_blank(value):
            raise blank_owner(name, place)
        return str(value).strip()
