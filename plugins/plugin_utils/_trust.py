# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which texts Ansible reads as templates: the operator's texts, never a tenant's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._operation.inventory.hosts import is_harmless

try:
    # In ansible-core 2.19 and later, only texts with this mark are templates.
    from ansible.template import trust_as_template
except ImportError:
    trust_as_template = None

_TEMPLATE_STARTS = ("{{", "{%")


class TrustMarker:
    """A function that marks values so that Ansible reads no text in them as a template.

    A text of harmless characters needs no mark. On ansible-core 2.19 it is trusted, so that an
    export of the inventory shows it as a plain text. Each text is marked once and cached.
    """

    def __init__(self) -> None:
        self._known: dict[str, Any] = {}

    def __call__(self, value: Any) -> Any:
        """Return the marked value; dictionaries and lists are copied."""
        if isinstance(value, str):
            found = self._known.get(value)
            if found is None:
                found = self._marked(value)
                self._known[value] = found
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
        return _trusted_text(text)


def trusted(value: Any) -> Any:
    """Return an operator's value with marks, so that Ansible reads its texts as expressions."""
    return _with_texts(value, _trusted_text)


def has_template(value: Any) -> bool:
    """Return whether a text in the value could be a template."""
    found: list[str] = []
    _with_texts(value, found.append)
    text = "\n".join(found)
    return any(start in text for start in _TEMPLATE_STARTS)


def _trusted_text(text: str) -> Any:
    if trust_as_template is None:
        return text
    return trust_as_template(text)


def _with_texts(value: Any, change: Callable[[str], Any]) -> Any:
    """Return a copy of nested data in which `change` has replaced each text."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {key: _with_texts(one, change) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_texts(one, change) for one in value]
    return value
