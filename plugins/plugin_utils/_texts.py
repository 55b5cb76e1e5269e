# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which texts Ansible reads as templates: those of the operator, never those of a tenant."""

from __future__ import annotations

from typing import Any

from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._inventory.hosts import is_harmless

try:
    from ansible.template import trust_as_template  # ansible-core 2.19 and later: other texts are never templates
except ImportError:
    trust_as_template = None


class Marker:
    """Marks values so that Ansible reads nothing in them as a template or an expression.

    A text of harmless characters needs no mark, and on ansible-core 2.19 is told to be harmless, so that an export
    of the inventory shows it as a plain text. Most texts come again and again: what was marked once is known.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __call__(self, value: Any) -> Any:
        """Return the marked value; dictionaries and lists are copied."""
        if isinstance(value, str):
            found = self._known.get(value)
            if found is None:
                found = self._known[value] = self._marked(value)
            return found
        if isinstance(value, dict):
            return {key: self(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self(one) for one in value]
        return value

    @staticmethod
    def _marked(text: str) -> Any:
        if not is_harmless(text):
            return wrap_var(text)
        return text if trust_as_template is None else trust_as_template(text)


def trusted(value: Any) -> Any:
    """Return what the environment says so that Ansible reads its texts as expressions."""
    if isinstance(value, dict):
        return {key: trusted(one) for key, one in value.items()}
    if isinstance(value, list):
        return [trusted(one) for one in value]
    return trust_as_template(value) if trust_as_template is not None and isinstance(value, str) else value


def has_template(value: Any) -> bool:
    """Return whether a text in the value could be a template."""
    if isinstance(value, dict):
        return any(has_template(one) for one in value.values())
    if isinstance(value, list):
        return any(has_template(one) for one in value)
    return isinstance(value, str) and ("{{" in value or "{%" in value)
