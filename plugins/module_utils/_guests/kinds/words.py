# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""All kinds of guests, and their words in results (pure).

Rooms that work on guests of any kind import the kinds from here, and their operations from
`registry.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..._foundation.cluster.state import VmRow
from .container.kind import CONTAINER
from .kind import Kind
from .vm.kind import VM

__all__ = (
    "CONTAINER",
    "CT",
    "GUESTS",
    "TYPES",
    "VIRTUAL_MACHINE",
    "VM",
    "contents_of",
    "kind_name",
    "kind_of_row",
    "label_of",
)

# The words of options, groups, labels and results.
VIRTUAL_MACHINE = "vm"
CT = "container"
GUESTS: Mapping[str, Kind] = {VIRTUAL_MACHINE: VM, CT: CONTAINER}
TYPES = frozenset(kind.type for kind in GUESTS.values())
"""PVE's words for the kinds."""

_WORDS = {kind.type: word for word, kind in GUESTS.items()}


def kind_name(pve_type: str) -> str:
    """Return `vm` or `container` for PVE's word of a kind, an empty text for another word."""
    return _WORDS.get(pve_type, "")


def kind_of_row(row: VmRow) -> Kind:
    """Return the kind of a guest in the listing."""
    return GUESTS[kind_name(row.type)]


def label_of(row: VmRow) -> str:
    """Return the name of a guest in messages: C(VM 100), C(container 110)."""
    return f"{kind_of_row(row).noun} {row.vmid}"


def contents_of(rows: Iterable[VmRow]) -> Collection[str]:
    """Return the content types of storages with disks of these guests, and always of VMs."""
    found = {VM.content: None}
    for row in rows:
        found[kind_of_row(row).content] = None
    return tuple(found)
