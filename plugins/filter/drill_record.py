# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.drill_record`: the results of a drill in the record of drills."""

from __future__ import annotations

DOCUMENTATION = r"""
name: drill_record
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Add a drill to the record of drills
description:
  - Returns the record of drills with another one, as C(docs/drill.schema.json) describes it. Each
    guest keeps its last proven restore.
options:
  _input:
    description: The guests of M(pve.fleet.drill) and RV(pve.fleet.drill_info#module:refused).
    type: list
    elements: dict
    required: true
  run:
    description: ID of the drill.
    type: str
    required: true
  began:
    description: When it began in seconds since the epoch.
    type: int
    required: true
  ended:
    description: When it ended in seconds since the epoch.
    type: int
    required: true
  previous:
    description: The text of the record so far. An empty text begins a new one.
    type: str
    default: ""
  checks:
    description: The message of the check that failed by VMID as a text, an empty text if all checks
      of a guest have passed. Guests without checks are left out.
    type: dict
    default: {}
seealso:
  - module: pve.fleet.drill
  - plugin: pve.fleet.drill_html
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Plan a drill
  pve.fleet.drill_info:
    tenant: acme
  register: plan

- name: Show the record of a drill that has restored nothing
  ansible.builtin.debug:
    msg: "{{ plan.refused
      | pve.fleet.drill_record(run=plan.run, began=plan.began, ended=plan.began) }}"
"""

RETURN = r"""
_value:
  description: The record.
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._protection.restore.drill.record import extended, read_record, with_checks


def drill_record(
    results: Any,
    run: str,
    began: int,
    ended: int,
    previous: str = "",
    checks: Mapping[str, str] | None = None,
) -> Any:
    """Return the record, marked so that Ansible reads nothing in it as a template."""
    if not isinstance(results, list) or not all(isinstance(row, Mapping) for row in results):
        raise AnsibleFilterError("pve.fleet.drill_record needs a list of guests of a drill.")
    texts = {str(vmid): str(message) for vmid, message in (checks or {}).items()}
    try:
        record = read_record(str(previous))
    except FleetError as error:
        raise AnsibleFilterError(f"pve.fleet.drill_record: {error.message}") from None
    rows = with_checks(results, texts)
    document = extended(record, rows, run=str(run), began=int(began), ended=int(ended))
    return wrap_var(document)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"drill_record": drill_record}
