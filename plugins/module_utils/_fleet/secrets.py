# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which arguments of module vms must not be shown, beside the options of the task itself (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._core.arguments.options import hidden_values
from .._spec.fleet import item_spec
from .._vm.desired.presets import class_secrets


def fleet_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in O(vms), O(defaults) and all classes, before anything is checked."""
    found = class_secrets(arguments)
    spec = item_spec()
    vms = arguments.get("vms")
    defaults = arguments.get("defaults")
    found |= hidden_values(spec, defaults)
    if isinstance(vms, list):
        for given in vms:
            found |= hidden_values(spec, given)
    for one in _dictionaries(arguments.get("tenant_settings")):
        found |= hidden_values(spec, one.get("defaults"))
        found |= class_secrets({"vms": [one, one.get("defaults")]})
    return found | class_secrets({"vms": [defaults]})


def _dictionaries(given: Any) -> list[Mapping[str, Any]]:
    """Return the values of a dictionary that are dictionaries."""
    if not isinstance(given, Mapping):
        return []
    found: list[Mapping[str, Any]] = []
    for one in given.values():
        if isinstance(one, Mapping):
            found.append(one)
    return found
