# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables by which declared options become options of Proxmox VE. Data only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class OptionTables:
    """The generated tables of a kind of guests, by place; place "" is the guest itself."""

    scalars: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    property_strings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    words: Mapping[str, Mapping[str, Mapping[Any, str]]] = field(default_factory=dict)
    empty_removes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ranges: Mapping[str, Mapping[str, tuple[int, int]]] = field(default_factory=dict)
    # the checks, by the names that declarations use
    functions: Mapping[str, Callable[[Any, str], Any]] = field(default_factory=dict)
