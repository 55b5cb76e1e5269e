# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.hosts`: the hosts of a play, which must match hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: hosts
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Patterns of hosts that match at least one host
description:
  - Ansible skips a play whose C(hosts) match no host, and ends without an error. The playbooks of
    this collection use this lookup to fail instead.
  - Returns the patterns unchanged. Fails if no host of the inventory matches them, also if none is
    left by C(--limit), and names similar groups and hosts.
options:
  _terms:
    description: Patterns as in C(hosts) of a play.
    required: true
    type: list
    elements: str
"""

EXAMPLES = r"""
- name: Maintain the nodes of a cluster
  hosts: "{{ query('pve.fleet.hosts', maintenance_hosts | default('kind_node')) }}"
  tasks: []
"""

RETURN = r"""
_raw:
  description: The patterns.
  type: list
  elements: str
"""

from collections.abc import Iterator, Mapping
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.inventory.manager import InventoryManager
from ansible.plugins.lookup import LookupBase

from ..module_utils._foundation.core.arguments.options import did_you_mean


class LookupModule(LookupBase):
    """Patterns of hosts that match at least one host."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[str]:
        """Return the patterns. Raises AnsibleError if no host matches them."""
        self.set_options(var_options=variables, direct=options)
        patterns = list(_flat(terms))
        arguments = context.CLIARGS
        if arguments.get("syntax"):  # has no inventory
            return patterns
        groups = (variables or {}).get("groups") or {}
        inventory = InventoryManager(self._loader, parse=False)
        for group, members in groups.items():
            inventory.add_group(group)
            for host in members:
                inventory.add_host(host, group=group)
        named = f"'{','.join(patterns)}'"
        if not inventory.get_hosts(patterns):
            known = [*groups, *groups.get("all", ())]
            similar = "".join(did_you_mean(pattern, known) for pattern in patterns)
            raise AnsibleError(
                f"Nothing was done: no host of the inventory matches {named}{similar}."
                " Correct the name, or name the inventory with -i"
            )
        limit = arguments.get("subset")
        inventory.subset(limit)
        if not inventory.get_hosts(patterns):
            raise AnsibleError(
                f"Nothing was done: no host that matches {named} is left by --limit {limit}."
                " Leave out --limit, or correct it"
            )
        return patterns


def _flat(terms: list[Any]) -> Iterator[str]:
    for term in terms:
        if isinstance(term, list):
            yield from _flat(term)
        else:
            yield str(term)
