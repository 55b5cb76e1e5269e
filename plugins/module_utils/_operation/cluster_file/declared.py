# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Resources of a cluster in the form in which a cluster file declares them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.resource.table import Table, Values
from .sections import Keys, Section

# The estate declares the pools of guests.
_ELSEWHERE = {"pools": ("vms",)}


@dataclass(frozen=True)
class ExportedSection:
    """The items of a section, the secrets that Proxmox VE does not return, and sentences about
    objects that are not exported yet.
    """

    items: list[dict[str, Any]]
    secrets: list[str]
    notes: tuple[str, ...] = ()


def exported_rows(
    section: Section, table: Table, found: Iterable[tuple[Keys, Values]]
) -> ExportedSection:
    """Return the resources of a table that a cluster file can declare."""
    items: list[dict[str, Any]] = []
    secrets: list[str] = []
    for keys, values in found:
        if section.elsewhere(values) or (section.fixed and section.built_in(keys)):
            continue
        items.append(declared(section, table, keys, values))
        variant = table.variant_of(keys, values)
        name = "/".join(keys.values())
        if section.secret:
            secrets.append(f"{name}: {section.secret}")
        for secret in table.secrets:
            if secret.exists_in(variant):
                secrets.append(f"{name}: {secret.option}")
    return ExportedSection(items, secrets)


def declared(section: Section, table: Table, keys: Keys, values: Values) -> dict[str, Any]:
    """Return a resource as options: its keys, its variant, and values that are not defaults."""
    formatted = table.show(keys, values)
    default = {one.option: one.show(one.read(None)) for one in table.fields}
    omitted = _ELSEWHERE.get(section.name, ())
    found: dict[str, Any] = dict(keys)
    for option, value in formatted.items():
        if option not in table.options or option in keys or option in omitted:
            continue
        if option == table.variant:
            found[option] = value
            continue
        rest = without_default(value, default.get(option))
        if rest is not None:
            found[option] = rest
    return found


def without_default(value: Any, default: Any) -> Any:
    """Return a value without empty and default parts, None if nothing is left."""
    if value == default:
        return None
    if isinstance(value, Mapping):
        known = default if isinstance(default, Mapping) else {}
        rest = {name: without_default(one, known.get(name)) for name, one in value.items()}
        return _filled({name: one for name, one in rest.items() if one is not None})
    if isinstance(value, (list, tuple)):
        return _filled([_item(one) for one in value])
    return _filled(value)


def _item(value: Any) -> Any:
    """Return an item of a list without empty options."""
    if not isinstance(value, Mapping):
        return value
    return {name: one for name, one in value.items() if _filled(one) is not None}


def _filled(value: Any) -> Any:
    """Return the value, None if it is empty."""
    return None if value in ("", None, [], {}) else value
