# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Secrets in the arguments of module vms, in addition to the options of the task itself (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._foundation.core.arguments.options import hidden_values
from ..._foundation.spec.fleet import CONTAINER_SPECS, VM_SPECS
from ..guest.desired.layers import class_secrets


def fleet_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in lists, O(defaults) and classes, before anything is checked."""
    defaults = arguments.get("defaults")
    layers: list[Any] = [arguments, defaults]
    for one in _dictionaries(arguments.get("tenant_settings")):
        layers += [one, one.get("defaults")]
    found: set[str] = set()
    for specs, option in ((VM_SPECS, "vms"), (CONTAINER_SPECS, "containers")):
        items = arguments.get(option)
        own = items if isinstance(items, list) else []
        for given in (*own, *layers[1:]):
            found |= hidden_values(specs.item, given)
        found |= class_secrets({"vms": [*own, *layers]}, specs)
    return found


def _dictionaries(given: Any) -> list[Mapping[str, Any]]:
    """Return the values of a dictionary that are dictionaries."""
    if not isinstance(given, Mapping):
        return []
    return [one for one in given.values() if isinstance(one, Mapping)]
