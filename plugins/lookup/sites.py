# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.sites`: the sites of a sites file."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sites
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: The sites of a sites file
description:
  - Returns the sites of a file in the form of the option C(sites). With C(sites_from), the addresses
    come from a Proxmox Datacenter Manager.
  - The sites have their secrets, so do not show them.
options:
  _terms:
    description: Paths of sites files on the controller.
    required: true
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Set up AWX for the sites of a Datacenter Manager
  ansible.builtin.import_playbook: pve.fleet.awx_setup
  vars:
    awx_sites: "{{ query('pve.fleet.sites', '/etc/fleet/sites.yml') }}"
    awx_sites_directory: /var/lib/fleet/sites
"""

RETURN = r"""
_raw:
  description: The sites, each with its name.
  type: list
  elements: dict
"""

from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.entry.sites_file import read_sites_file


class LookupModule(LookupBase):
    """The sites of sites files."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """Return the sites of all files. Raises AnsibleError."""
        self.set_options(var_options=variables, direct=options)
        return [site for path in terms for site in _sites(str(path))]


def _sites(path: str) -> list[dict[str, Any]]:
    try:
        given = read_sites_file(path)
    except FleetError as error:
        raise AnsibleError(error.message) from None
    if isinstance(given, Mapping):
        given = given.get("sites")
    if isinstance(given, Mapping):
        given = [{"name": name, **(site or {})} for name, site in given.items()]
    if not isinstance(given, list) or not all(isinstance(site, Mapping) for site in given):
        raise AnsibleError(f"{path} is not a list of sites. Write a list of dictionaries with name")
    return [{key: value for key, value in site.items() if value is not None} for site in given]
