# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.drill_html`: a record of drills as one page of HTML."""

from __future__ import annotations

DOCUMENTATION = r"""
name: drill_html
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Write a record of drills as one page of HTML
description:
  - Returns the record of P(pve.fleet.drill_record#filter) as one page. It has no script and loads
    nothing from the network, can be printed, and follows the light or dark setting of its reader.
  - All texts of the record are escaped.
options:
  _input:
    description: The record.
    type: dict
    required: true
  title:
    description: Title of the page.
    type: str
    default: Restore drills
seealso:
  - plugin: pve.fleet.drill_record
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Plan a drill
  pve.fleet.drill_info:
    tenant: acme
  register: plan

- name: Write the page of a drill that has restored nothing
  ansible.builtin.copy:
    content: "{{ plan.refused
      | pve.fleet.drill_record(run=plan.run, began=plan.began, ended=plan.began)
      | pve.fleet.drill_html }}"
    dest: "{{ playbook_dir }}/drill.html"
    mode: "0600"
"""

RETURN = r"""
_value:
  description: The page.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._protection.restore.drill.record import VERSION
from ..plugin_utils._report.page import drill_page_of


def drill_html(record: Any, title: str = "Restore drills") -> str:
    """Return the page of a record, marked so that Ansible reads nothing in it as a template."""
    if not isinstance(record, Mapping) or record.get("version") != VERSION:
        raise AnsibleFilterError(
            f"pve.fleet.drill_html needs a record of pve.fleet.drill_record of version {VERSION}."
        )
    page: str = wrap_var(drill_page_of(record, str(title)))
    return page


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"drill_html": drill_html}
