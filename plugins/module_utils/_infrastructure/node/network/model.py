# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The network of a node, as PVE has it and as a task declares it (data)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Settings = Mapping[str, Any]
"""The settings of one interface by PVE's key, in canonical form; unset keys are absent."""

Interfaces = Mapping[str, Settings]
"""The settings of interfaces, by name."""


@dataclass(frozen=True)
class NodeInterfaces:
    """The interfaces that a node will have after the next reload.

    `rows` are PVE's own rows. `pending` is the difference to the configuration in force, as PVE
    prints it; it is empty if the node has no pending change.
    """

    interfaces: Interfaces
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pending: str = ""


@dataclass(frozen=True)
class DeclaredInterface:
    """An interface of a task. `changes` has a value for each set option, None to remove it."""

    name: str
    is_wanted: bool
    type: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class NetworkOptions:
    """The options of a task."""

    node: str
    declared: tuple[DeclaredInterface, ...]
    exact: bool = False
    pending: str = "refuse"
    allow_own_path: bool = False
    answer_timeout: int = 60
    task_timeout: int = 300
