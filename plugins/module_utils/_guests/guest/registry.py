# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of the kinds of guests: parser of options, flow, context and exporter of each.

Each kind has a list in module vms (see `ListKind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.spec.fleet import CONTAINER_SPECS, VM_SPECS, GuestSpecs
from ..kinds.container.kind import CONTAINER
from ..kinds.kind import Kind
from ..kinds.vm.kind import VM
from .container.desired import parse as container_values
from .container.exporter import CONTAINER_EXPORTER
from .container.run import CONTAINER_FLOW
from .export.settings import Exporter
from .flow.flow import GuestFlow
from .vm.desired import parse as vm_values
from .vm.exporter import VM_EXPORTER
from .vm.run import VM_FLOW


@dataclass(frozen=True)
class ListKind:
    """One list of module vms.

    `option` is the option with the list, `specs` are the options of its items. `read` returns the
    parsed options of an item.
    """

    option: str
    kind: Kind
    flow: GuestFlow[Any]
    exporter: Exporter
    specs: GuestSpecs
    read: Callable[[Mapping[str, Any]], Any]
    without_empty_texts: Callable[[Mapping[str, Any]], dict[str, Any]]

    def label(self, index: int) -> str:
        """Return the name of an item in messages."""
        return f"{self.option}[{index}]"


VMS = ListKind(
    option="vms",
    kind=VM,
    flow=VM_FLOW,
    exporter=VM_EXPORTER,
    specs=VM_SPECS,
    read=vm_values.read_options,
    without_empty_texts=vm_values.TABLES.without_empty_texts,
)
CONTAINERS = ListKind(
    option="containers",
    kind=CONTAINER,
    flow=CONTAINER_FLOW,
    exporter=CONTAINER_EXPORTER,
    specs=CONTAINER_SPECS,
    read=container_values.read_options,
    without_empty_texts=container_values.TABLES.without_empty_texts,
)
LISTS = (VMS, CONTAINERS)
"""All lists, in the order of their guests in results."""


def list_of(kind: str) -> ListKind:
    """Return the list of a kind of guests, by PVE's word for it."""
    return next(one for one in LISTS if one.kind.type == kind)


def list_of_key(key: str) -> ListKind:
    """Return the list of a kind of guests, by its word in results."""
    return next(one for one in LISTS if one.flow.key == key)
