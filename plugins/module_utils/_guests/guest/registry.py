# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The registry of the kinds of guests: parser of options, flow, context and exporter of each.

Each kind has a list in module vms (see `ListKind`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.spec.fleet import CONTAINER_SPECS, VM_SPECS, GuestSpecs
from ..kinds.container.kind import CONTAINER
from ..kinds.container.model import DesiredContainer
from ..kinds.kind import Kind
from ..kinds.vm.kind import VM
from ..kinds.vm.model import DesiredVm
from .container.desired import values as container_values
from .container.exporter import CONTAINER_EXPORTER
from .container.run import CONTAINER_FLOW, read_container_options
from .export.exporter import Exporter
from .flow.flow import GuestFlow
from .vm.desired import values as vm_values
from .vm.exporter import VM_EXPORTER
from .vm.gather.facts import release_for_names
from .vm.plan.refusals.options import require_names
from .vm.run import VM_FLOW, read_vm_options

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


@dataclass(frozen=True)
class ListKind:
    """One list of module vms.

    `option` is the option with the list, `specs` are the options of its items. `read` returns the
    parsed options of an item. `without_defaults` returns the desired guest without the defaults of
    a new guest, because its values come from its source. `require_names` raises FleetError for
    options that the server's version of PVE does not have.
    """

    option: str
    kind: Kind
    flow: GuestFlow[Any]
    exporter: Exporter
    specs: GuestSpecs
    read: Callable[[Mapping[str, Any]], Any]
    without_empty_texts: Callable[[Mapping[str, Any]], dict[str, Any]]
    without_defaults: Callable[[Any], Any]
    require_names: Callable[[Client, Any], object]

    def label(self, index: int) -> str:
        """Return the name of an item in messages."""
        return f"{self.option}[{index}]"


def _require_vm_names(client: Client, desired: Any) -> object:
    return require_names(desired, release_for_names(client, desired))


def _vm_without_defaults(desired: DesiredVm) -> DesiredVm:
    # if the option is not set, a copy keeps the agent setting of its source
    return desired.with_hardware(default_agent=False)


def _container_without_defaults(desired: DesiredContainer) -> DesiredContainer:
    return desired


def _accept_names(_client: Client, _desired: Any) -> object:
    return None  # a container's names are checked with its plan


VMS = ListKind(
    option="vms",
    kind=VM,
    flow=VM_FLOW,
    exporter=VM_EXPORTER,
    specs=VM_SPECS,
    read=read_vm_options,
    without_empty_texts=vm_values.without_empty_texts,
    without_defaults=_vm_without_defaults,
    require_names=_require_vm_names,
)
CONTAINERS = ListKind(
    option="containers",
    kind=CONTAINER,
    flow=CONTAINER_FLOW,
    exporter=CONTAINER_EXPORTER,
    specs=CONTAINER_SPECS,
    read=read_container_options,
    without_empty_texts=container_values.without_empty_texts,
    without_defaults=_container_without_defaults,
    require_names=_accept_names,
)
LISTS = (VMS, CONTAINERS)
"""All lists, in the order of their guests in results."""


def list_of(kind: str) -> ListKind:
    """Return the list of a kind of guests, by PVE's word for it."""
    return next(one for one in LISTS if one.kind.type == kind)


def list_of_key(key: str) -> ListKind:
    """Return the list of a kind of guests, by its word in results."""
    return next(one for one in LISTS if one.flow.key == key)
