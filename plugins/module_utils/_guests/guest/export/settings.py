# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of a guest in an export: options of module vms, and the differences of the kinds of
guests (pure).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...._foundation.cluster.quota import QuotaFigures
from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.errors import FleetError, ValidationFailed
from ...._foundation.core.propstring import canonical
from ...._foundation.core.quantities import whole_number
from ...._foundation.resource.plan import Step
from ...._foundation.schema.formats import (
    QEMU,
    Schema,
    format_of,
    parse_option,
    rule_of,
    sub_keys_of,
)
from ...kinds.model import Actual

_DECIMAL = re.compile(r"\d+\.\d+")


_BOOLEANS: Mapping[str, Any] = {"0": False, "1": True}


Config = Mapping[str, str]


"""A configuration as PVE has it."""


Options = Mapping[str, Any]


"""Options of a VM as an item of module vms has them."""


@dataclass(frozen=True)
class InexpressibleSetting:
    """A setting that options cannot express: its name in PVE, its value, the reason if known."""

    option: str
    value: str
    reason: str = ""


@dataclass(frozen=True)
class SettingAlternative:
    """One way to express settings of a VM, and the settings that it leaves out."""

    options: Options
    lost: tuple[InexpressibleSetting, ...] = ()


@dataclass(frozen=True)
class SettingGroup:
    """Settings of a VM that are expressed together, with the ways to do so, the best way first.

    `lost` are the settings that are left out if a run would change the VM with any of the ways.
    """

    ways: tuple[SettingAlternative, ...]
    lost: tuple[InexpressibleSetting, ...] = ()


def piece(key: str, text: str, *ways: Mapping[str, Any], reason: str = "") -> SettingGroup:
    """Return a key of PVE with the ways to express it; no way if it cannot be expressed."""
    omitted = InexpressibleSetting(key, text, reason)
    return SettingGroup(tuple(map(SettingAlternative, ways)), (omitted,))


def parsed(key: str, text: str, schema: Schema = QEMU) -> dict[str, str]:
    """Return the sub-keys of an option, none if PVE could not read it either."""
    try:
        return parse_option(key, text, schema)
    except ValidationFailed:
        return {}


def raw(key: str, text: str, schema: Schema = QEMU) -> dict[str, Any]:
    """Return an option under PVE's own name."""
    value: Any = text
    if format_of(key, schema=schema) is None:
        value = typed(text, rule_of(key, schema=schema) or {})
    return {"options": {key: value}}


def typed(text: str, rule: Mapping[str, Any]) -> Any:
    """Return a value with its type in the schema, as a person would write it in YAML."""
    text = canonical(text, rule)
    kind = rule.get("type")
    if kind == "boolean":
        return _BOOLEANS.get(text, text)
    if kind not in ("integer", "number"):
        return text
    number = whole_number(text)
    if number is not None:
        return number
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text


def item_of(
    names: Mapping[str, str], key: str, settings: Mapping[str, str], schema: Schema = QEMU
) -> dict[str, Any]:
    """Return sub-keys of a device as options; sub-keys without an option are under C(options)."""
    rules = sub_keys_of(key, schema)
    options = {sub_key: option for option, sub_key in names.items()}
    item: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, text in settings.items():
        value = typed(text, rules.get(name, {}))
        if name in options:
            item[options[name]] = value
        else:
            others[name] = value
    if others:
        item["options"] = others
    return item


def is_valid(check: Callable[[str], Any], value: str) -> bool:
    """Return whether a check of `_foundation/core/validate.py` accepts a value."""
    try:
        check(value)
    except FleetError:
        return False
    return True


@dataclass(frozen=True)
class ClusterContext:
    """The data of the cluster that the plan of a guest depends on: `bases` are the storages on
    which the disks of a template become base volumes.
    """

    cluster: ClusterState
    bases: Collection[str] = ()


class Exporter(Protocol):
    """How guests of one kind become items of module vms.

    `spec` has all options of such an item with their defaults.
    """

    spec: Mapping[str, Any]

    def settings(self, config: Config) -> Iterator[SettingGroup]:
        """Yield the settings of a configuration that only this kind of guests has."""

    def secrets(self, config: Config) -> tuple[str, ...]:
        """Return the options whose values PVE does not return."""

    def figures(self, actual: Actual) -> QuotaFigures:
        """Return the figures of a guest for a quota, from its configuration."""

    def steps(
        self, given: Mapping[str, Any], actual: Actual, around: ClusterContext
    ) -> tuple[Step, ...] | str:
        """Return the steps of a run with these options, or why it is refused. Raises FleetError."""
