# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup plugin `pve.fleet.replaced`: which options -e replace a variable of the estate."""

from __future__ import annotations

DOCUMENTATION = r"""
name: replaced
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 0.1.0
short_description: Which -e options of the run replace a variable that belongs to others
description:
  - Ansible replaces a variable as a whole. A dictionary that is given with C(-e) for a single run
    silently removes every key of the one that the estate has, such as quotas.
  - Returns one text for each C(-e) that does so. Nothing is asked of Proxmox VE.
  - A variable that several C(-e) define is replaced by the last of them. One that is written on
    the command line itself, and not in a file, counts as a replacement unless the same C(-e) has
    one of O(beside).
options:
  _terms:
    description: Names of variables.
    required: true
    type: list
    elements: str
  beside:
    description:
      - Variables that the one looked for belongs to. A C(-e) that has one of them replaces nothing.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Check that the defaults of the estate are those of its file
  ansible.builtin.assert:
    that: query('pve.fleet.replaced', 'provision_defaults', beside=['provision_vms']) | length == 0
"""

RETURN = r"""
_raw:
  description: The options C(-e) that replace a variable, by their file or the variables they
    define.
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import Any

from ansible import context
from ansible.parsing.splitter import parse_kv
from ansible.plugins.lookup import LookupBase


class LookupModule(LookupBase):
    """Options -e that replace variables."""

    def run(
        self, terms: list[Any], variables: Mapping[str, Any] | None = None, **options: Any
    ) -> list[str]:
        """Return a text for each option -e that replaces one of the variables."""
        self.set_options(var_options=variables, direct=options)
        beside = set(self.get_option("beside"))
        texts = [str(text) for text in context.CLIARGS.get("extra_vars") or ()]
        given = [(text, self._names(text)) for text in texts]
        found: list[str] = []
        for term in terms:
            having = [(text, names) for text, names in given if term in names]
            for text, names in having:
                is_alone = not text.startswith("@") and not names & beside
                if len(having) > 1 or is_alone:
                    found.append(_formatted(text, names))
        return list(dict.fromkeys(found))

    def _names(self, text: str) -> set[str]:
        """Return the variables that one -e defines, as ansible.utils.vars.load_extra_vars does."""
        if text.startswith("@"):
            data = self._loader.load_from_file(text[1:])
        elif text[:1] in ("[", "{"):
            data = self._loader.load(text)
        else:
            data = parse_kv(text)
        return {str(name) for name in data} if isinstance(data, Mapping) else set()


def _formatted(text: str, names: set[str]) -> str:
    """Return an option -e for messages.

    Only a file is shown in full, because other values may be secret.
    """
    return f"-e {text}" if text.startswith("@") else f"-e with {', '.join(sorted(names))}"
