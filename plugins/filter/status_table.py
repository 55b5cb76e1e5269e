# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.status_table`: a report as a table for a terminal."""

from __future__ import annotations

DOCUMENTATION = r"""
name: status_table
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Show the guests of a report as a table
description:
  - Returns the lines of a table with name, tenant, kind, node, state, address, age of the newest
    backup and drift of each guest, and the number of guests. With guests of several sites, the
    first column is the site.
  - A column has C(-) if the value is not known. The drift of a guest that is not in the estate is
    C(not listed).
options:
  _input:
    description: The value RV(pve.fleet.report_info#module:report).
    type: dict
    required: true
  only:
    description:
      - "Values by column, such as C({tenant: [acme], state: [running]}); a text has them
        with commas. Other guests are left out. A column without values does not restrict the
        guests."
    type: dict
    default: {}
  sort:
    description: Columns by which the guests are sorted, then by tenant and name.
    type: list
    elements: str
    choices: [site, name, tenant, kind, node, state, address, backup, drift]
    default: []
  reverse:
    description: Whether the last guest comes first.
    type: bool
    default: false
seealso:
  - module: pve.fleet.report_info
"""

EXAMPLES = r"""
- name: Gather the report
  pve.fleet.report_info:
  register: gathered

- name: Show the running guests of a tenant by node
  ansible.builtin.debug:
    msg: "{{ gathered.report | pve.fleet.status_table(only=wanted, sort=['node']) }}"
  vars:
    wanted: {tenant: [acme], state: [running]}
"""

RETURN = r"""
_value:
  description: The lines of the table.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._operation.report.document import VERSION
from ..module_utils._operation.report.status import (
    COLUMNS,
    select_rows,
    status_rows,
    table_of,
    unknown_names,
    unread_sites,
)


def status_table(
    report: Any,
    only: Mapping[str, Any] | None = None,
    sort: Sequence[str] | str = (),
    reverse: bool = False,
) -> list[str]:
    """Return the lines of the table, marked so that Ansible reads nothing in it as a template."""
    if not isinstance(report, Mapping) or report.get("version") != VERSION:
        raise AnsibleFilterError(
            "pve.fleet.status_table needs a report of pve.fleet.report_info of version"
            f" {VERSION}, such as gathered.report."
        )
    columns = ("site", *COLUMNS)
    unknown = [name for name in [*(only or {}), *_texts(sort)] if name not in columns]
    if unknown:
        raise AnsibleFilterError(
            f"pve.fleet.status_table has no column {', '.join(unknown)}. Columns are"
            f" {', '.join(columns)}."
        )
    wanted = {name: _texts(values) for name, values in (only or {}).items()}
    every_row = status_rows(report)
    mistakes = unknown_names(report, every_row, wanted)
    if mistakes:
        raise AnsibleFilterError(f"The guests cannot be selected: {', '.join(mistakes)}.")
    rows = select_rows(every_row, wanted)
    table = [*table_of(rows, _texts(sort), reverse=reverse), *unread_sites(report)]
    lines: list[str] = wrap_var(table)
    return lines


def _texts(values: Any) -> list[str]:
    """Return a list of texts; a text is a list with commas, as C(-e) has it."""
    parts = values.split(",") if isinstance(values, str) else values
    texts = (str(part).strip() for part in parts)
    return [text for text in texts if text]


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"status_table": status_table}
