# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the resources of a file that differ from the cluster: one listing for each section."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from ..._foundation.api.client import Client
from ..._foundation.core.marks import marked_tag
from ..._foundation.core.parallel import side_by_side
from ..._foundation.resource.decide import read_keys
from ..._foundation.resource.run import list_rows, read_values
from ..._foundation.resource.table import Values
from ..._tenants.access.role import ROLE
from .desired import DeclaredItem
from .sections import Section

Names = tuple[str, ...]


@dataclass(frozen=True)
class SectionReading:
    """The existing resources of a section, by their keys, and the tags of tenants with roles."""

    values: Mapping[Names, Values] = field(default_factory=dict)
    tags: frozenset[str] = frozenset()


def read_section(
    section: Section, items: Sequence[DeclaredItem], client: Client, whole: bool = False
) -> SectionReading:
    """Return the existing resources of the items; `whole`: all resources of the section.

    One request for each group of the section, and one for each item of which the listing lacks an
    option. Raises FleetError.
    """
    table = section.table
    if table is None:
        return SectionReading()
    single = [read_keys(table, item.params) for item in items if not _is_listed(section, item)]
    found: dict[Names, Values] = {}
    if whole or len(single) < len(items):
        for keys, values in _listed(section, items, client, whole):
            found[tuple(keys.values())] = values
    read = side_by_side(partial(read_values, table, client), single)
    for keys, one in zip(single, read, strict=True):
        found.pop(tuple(keys.values()), None)
        if one is not None:
            found[tuple(keys.values())] = one
    return SectionReading(
        found, _tags_with_roles(client) if whole and table is ROLE else frozenset()
    )


def _tags_with_roles(client: Client) -> frozenset[str]:
    """Return the tags of the tenants with a pool; one request.

    The names of a tenant's roles begin with its tag: Proxmox VE has no comments of roles.
    """
    tags = (marked_tag(row.get("comment")) for row in client.get("pools") or [])
    return frozenset(tag for tag in tags if tag is not None)


def _listed(
    section: Section, items: Sequence[DeclaredItem], client: Client, whole: bool
) -> Iterable[tuple[Mapping[str, str], Values]]:
    for group in section.groups:
        is_named = any(group.items() <= item.params.items() for item in items)
        if section.table is not None and (whole or is_named):
            yield from list_rows(section.table, client, group)


def _is_listed(section: Section, item: DeclaredItem) -> bool:
    """Return whether the listing contains every option of an item except switches of the task."""
    table = section.table
    if table is None or table.list_is_whole:
        return True
    compared = table.options - set(table.switches)
    given = {name for name in compared if item.params.get(name) is not None}
    return given <= section.listed


def undeclared(
    section: Section, items: Sequence[DeclaredItem], known: SectionReading
) -> list[DeclaredItem]:
    """Return the removals of the resources that are not in the file (pure).

    A resource with the mark of a tenant belongs to the estate, and stays.
    """
    table = section.table
    if table is None:
        return []
    declared = {tuple(read_keys(table, item.params).values()) for item in items}
    found: list[DeclaredItem] = []
    for names in sorted(known.values.keys() - declared):
        keys, values = dict(zip(section.keys, names, strict=True)), known.values[names]
        is_marked = marked_tag(values.get("comment")) is not None
        is_role = any(names[0] == tag or names[0].startswith(f"{tag}.") for tag in known.tags)
        is_kept = is_marked or is_role or section.elsewhere(values) or section.built_in(keys)
        if not is_kept:
            found.append(
                DeclaredItem(section, {**dict.fromkeys(section.spec()), **keys, "state": "absent"})
            )
    return found
