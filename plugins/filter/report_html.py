# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.report_html`: a report as one page of HTML."""

from __future__ import annotations

DOCUMENTATION = r"""
name: report_html
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Write a report as one page of HTML
description:
  - Returns the report of M(pve.fleet.report_info) as one page. It has no script and loads nothing
    from the network, can be printed, and follows the light or dark setting of its reader.
  - All texts of the report are escaped.
options:
  _input:
    description: The value RV(pve.fleet.report_info#module:report).
    type: dict
    required: true
  title:
    description: Title of the page.
    type: str
    default: Fleet report
  usage:
    description: The use of a month, the value RV(pve.fleet.usage#module:usage). The page then has a
      table of it.
    type: dict
seealso:
  - module: pve.fleet.report_info
"""

EXAMPLES = r"""
- name: Gather the report
  pve.fleet.report_info:
  register: gathered

- name: Write the page
  ansible.builtin.copy:
    content: "{{ gathered.report | pve.fleet.report_html(title='Berlin') }}"
    dest: "{{ playbook_dir }}/berlin.html"
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

from ..module_utils._operation.report.document import VERSION
from ..module_utils._operation.usage.month import VERSION as USAGE_VERSION
from ..plugin_utils._report.page import page_of


def report_html(report: Any, title: str = "Fleet report", usage: Any = None) -> str:
    """Return the page of a report, marked so that Ansible reads nothing in it as a template."""
    if not isinstance(report, Mapping) or report.get("version") != VERSION:
        raise AnsibleFilterError(
            f"pve.fleet.report_html needs a report of pve.fleet.report_info of version {VERSION},"
            " such as gathered.report."
        )
    if usage and (not isinstance(usage, Mapping) or usage.get("version") != USAGE_VERSION):
        raise AnsibleFilterError(
            f"pve.fleet.report_html needs the use of a month of version {USAGE_VERSION}, such as"
            " metered.usage of pve.fleet.usage."
        )
    page: str = wrap_var(page_of(report, str(title), usage or None))
    return page


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"report_html": report_html}
