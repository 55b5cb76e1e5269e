# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired state of a simple resource, and its differences. Data only, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class DesiredResource:
    """The desired state of a resource, by option.

    Options that are missing in `values` and `members` are not changed.
    """

    keys: Mapping[str, str]
    present: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    members: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    exact: bool = False  # whether members that are not named are removed
    force: bool = False  # whether a resource with members may be deleted
    allow_self: bool = False  # whether the login of the task may lose rights
    recreate: bool = False  # whether it may be deleted and recreated to change a fixed field
    switches: Mapping[str, Any] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    rewrites: bool = False  # whether secrets are also written to a resource that exists


@dataclass(frozen=True)
class ResourceChange:
    """The differences between a resource and its desired state."""

    creates: bool = False
    deletes: bool = False
    sets: Mapping[str, Any] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)  # all present values
    adds: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    removes: Mapping[str, frozenset[Any]] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()  # options that differ and cannot be changed
    writes: tuple[str, ...] = ()  # secrets to write to a resource that exists

    def __bool__(self) -> bool:
        return self.visible or bool(self.writes)

    @property
    def verb(self) -> str:
        """The word for the change in messages."""
        if self.creates:
            return "created"
        return "deleted" if self.deletes else "changed"

    @property
    def visible(self) -> bool:
        """Whether a reading of the resource shows a difference; secrets are never shown."""
        is_whole = self.creates or self.deletes
        parts = (self.sets, self.adds, self.removes, self.fixed)
        return is_whole or any(parts)
