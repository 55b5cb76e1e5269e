# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.plan_text`: a plan file as text, Markdown or HTML."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan_text
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Show a plan file
description:
  - Returns the plan of O(pve.fleet.vms#module:plan_file) for people who approve it, as lines for a
    terminal, as Markdown for a comment in a pull request, or as one page of HTML with a picture of
    the guests that are created, moved and removed. The page has no script, loads nothing from the
    network, and all texts in it are escaped.
  - A file that was edited is refused.
options:
  _input:
    description: The content of the file.
    type: str
    required: true
  form:
    description: The form of the text.
    type: str
    choices: [text, markdown, html]
    default: text
seealso:
  - module: pve.fleet.vms
"""

EXAMPLES = r"""
- name: Write the plan of a virtual machine
  pve.fleet.vms:
    plan_file: "{{ playbook_dir }}/plan.json"
    tenant: acme
    source: debian-13
    vms: [{name: planned1}]
  check_mode: true

- name: Show it
  ansible.builtin.debug:
    msg: "{{ lookup('ansible.builtin.file', playbook_dir ~ '/plan.json') | pve.fleet.plan_text }}"
"""

RETURN = r"""
_value:
  description: The text.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.plans.document import read_document
from ..module_utils._foundation.plans.show import markdown_of, text_of
from ..plugin_utils._report.page import plan_page_of

_FORMS = ("text", "markdown", "html")


def plan_text(content: Any, form: str = "text") -> str:
    """Return the text of a plan, marked so that Ansible reads nothing in it as a template."""
    if form not in _FORMS:
        raise AnsibleFilterError(
            f"pve.fleet.plan_text has no form {form}. Forms are {', '.join(_FORMS)}."
        )
    try:
        document = read_document(str(content), "file")
    except FleetError as error:
        raise AnsibleFilterError(error.message) from error
    if form == "html":
        text = plan_page_of(document)
    elif form == "markdown":
        text = markdown_of(document)
    else:
        text = "\n".join(text_of(document))
    marked: str = wrap_var(text)
    return marked


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., str]]:
        """Return the filters by name."""
        return {"plan_text": plan_text}
