# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Options of module cluster -> the declared resources, section by section (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.core.arguments.options import hidden_values, parse_options
from ..._foundation.core.errors import ValidationFailed
from .generated.sections import SECTIONS
from .sections import Section


@dataclass(frozen=True)
class DeclaredItem:
    """A resource of the file, or an undeclared resource that is removed."""

    section: Section
    params: Mapping[str, Any] = field(repr=False)
    part: str = ""

    @property
    def name(self) -> str:
        """The name of the resource in results: its keys and its part, empty if it has neither."""
        keys = [self.params.get(key) for key in self.section.keys]
        return "/".join(str(one) for one in (*keys, self.part or None) if one is not None)

    @property
    def is_removed(self) -> bool:
        """Whether the resource must not exist."""
        return self.section.can_be_exact and self.params.get("state") == "absent"


def read_items(params: Mapping[str, Any]) -> list[DeclaredItem]:
    """Return the declared resources in the order of the sections.

    Raises ValidationFailed for options that are unknown to the module of a section, and for a
    resource that is declared twice.
    """
    found: list[DeclaredItem] = []
    for section in SECTIONS:
        items: list[DeclaredItem] = []
        for place, given in _given(section, params.get(section.name)):
            spec = section.spec()
            checked = parse_options(spec, given, f"{place} was refused")
            items.append(DeclaredItem(section, {**dict.fromkeys(spec), **checked}))
        known: set[str] = set()
        for item in items:
            if item.name in known:
                raise ValidationFailed(
                    f"{item.section.name} was refused: {item.name or item.section.name} is "
                    "declared twice",
                    "Declare it once",
                    "declared twice",
                )
            known.add(item.name)
        arranged = section.arranged(item.params for item in items)
        found += [DeclaredItem(section, options, part) for part, options in arranged]
    return found


def _given(section: Section, value: Any) -> Iterable[tuple[str, Any]]:
    """Return the items of a section, each with its place for messages."""
    if value is None:
        return []
    if not section.keys:
        return [(section.name, value)]
    return [(f"{section.name}[{index}]", item) for index, item in enumerate(value)]


def read_exact(params: Mapping[str, Any]) -> list[Section]:
    """Return the sections whose undeclared resources are removed.

    Raises ValidationFailed for a section that is missing in the file.
    """
    names = set(params.get("exact") or ())
    for name in sorted(names):
        if params.get(name) is None:
            raise ValidationFailed(
                f"exact was refused for {name}: the section {name} is not declared, and "
                "everything of it would be removed",
                f"Declare {name}; [] removes all of them",
                "exact",
            )
    return [section for section in SECTIONS if section.name in names]


def secrets_in(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets of all items, before anything is checked."""
    found: set[str] = set()
    for section in SECTIONS:
        given = arguments.get(section.name)
        items = given if isinstance(given, list) else [given]
        for item in filter(None, items):
            found |= hidden_values(section.spec(), item)
    return found
