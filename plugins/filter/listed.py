# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter plugin `pve.fleet.listed`: a list, or a text as a list."""

from __future__ import annotations

DOCUMENTATION = r"""
name: listed
author:
  - The pve.fleet authors (@pve-fleet)
version_added: 1.0.0
short_description: Read a text as a list
description:
  - Returns the items of a list as texts. A text with commas is several items, as Ansible reads an
    option of a module that is a list. Roles use it for variables that C(-e) sets to a text.
  - Blanks around items are removed, and so are empty items.
options:
  _input:
    description: A list, a list of lists, or a text.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show three storages
  ansible.builtin.debug:
    msg: "{{ ['local', 'ceph, nfs'] | pve.fleet.listed }}"
"""

RETURN = r"""
_value:
  description: The items.
  type: list
  elements: str
"""

from collections.abc import Callable, Iterator
from typing import Any


def listed(value: Any) -> list[str]:
    """Return the items of a list or of a text."""
    return list(_items(value))


def _items(value: Any) -> Iterator[str]:
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _items(one)
    elif value is not None:
        yield from filter(None, map(str.strip, str(value).split(",")))


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., list[str]]]:
        """Return the filters by name."""
        return {"listed": listed}
