# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The values of a VM's options, one by one (pure): the meaning of an empty text, and the check that
the declaration of an option names.

An empty text removes an option that PVE can do without; PVE's default then applies. An option that
a VM always has (a name, memory, a disk's storage) cannot be removed: an empty text there means that
the option is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....._foundation.core import validate
from ....._foundation.core.propstring import canonical
from ....._foundation.schema.formats import rule_of
from ....._foundation.spec.fleet import with_defaults
from ....._foundation.spec.generated.vm_rules import (
    CHECKS,
    EMPTY_REMOVES,
    PROPERTY_STRINGS,
    RANGES,
    SCALARS,
    WORDS,
)
from ....._foundation.spec.vm import vm_spec
from ...desired.layers import disk_slots, nic_slots
from ...desired.tables import OptionTables
from ...desired.values import COMMON, checked_at, checked_items, cleared, cleared_within

_NESTED = ("disks", "nics", "cloud_init")
_BOOT_WORDS = frozenset(("disk", "network", "cdrom"))
_CLOUD_INIT_DRIVE = re.compile(r"^(ide|sata|scsi)\d+$")
_SPEC = vm_spec()


def without_empty_texts(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with None for an empty text that cannot remove anything."""
    found = cleared(TABLES, "", options)
    for name in _NESTED:
        if name in found:
            found[name] = cleared_within(TABLES, name, found[name])
    return found


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a VM, each value in the form that its check returns.

    Options that are not given have their defaults; each disk and NIC has a name. Raises
    ValidationFailed for the first value that a check refuses.
    """
    options = checked_at(TABLES, "", with_defaults(_SPEC, dict(given)), "")
    options["disks"] = checked_items(TABLES, "disks", options["disks"], disk_slots)
    options["nics"] = checked_items(TABLES, "nics", options["nics"], nic_slots)
    cloud_init = options["cloud_init"]
    if cloud_init is not None:
        place = "cloud_init.snippets"
        snippets = cloud_init["snippets"] or {}
        options["cloud_init"] = {
            **checked_at(TABLES, "cloud_init", cloud_init, "cloud_init"),
            "snippets": checked_at(TABLES, place, snippets, place),
        }
    return options


def _agent(given: Any, _what: str) -> Any:
    """Return a dictionary of sub-keys, or PVE's own text; a boolean becomes such a dictionary."""
    if isinstance(given, Mapping):
        return given
    return canonical(given, {"type": "boolean"})


def _balloon(size: Any, what: str) -> Any:
    """Return a size, 0 for a word of YAML such as `off`: no balloon device.

    Raises ValidationFailed for a word such as `on`, which is not a size.
    """
    word = canonical(size, {"type": "boolean"})
    if word == "0":
        return "0"
    if word == "1" and str(size).strip() != "1":
        raise validate.refused(
            what,
            size,
            "is a boolean, and balloon is the least memory of the VM",
            "Write a size, such as 1G, or 0 for no balloon device",
        )
    return size


def _boot_order(items: Sequence[str], what: str) -> str:
    """Return PVE's order.

    The words disk, network and cdrom stay words until the plan knows the VM's devices.
    """
    named = list(filter(None, items))
    for item in named:
        is_device = rule_of(item) is not None
        if is_device or item in _BOOT_WORDS:
            continue
        raise validate.refused(
            what, item, "is not a device", "Use disk, network, cdrom or names such as scsi0, net0"
        )
    return ";".join(named)


def _cloud_init_drive(slot: str, what: str) -> str:
    is_on_bus = _CLOUD_INIT_DRIVE.match(slot)
    if is_on_bus and rule_of(slot):
        return slot
    raise validate.refused(what, slot, "is not a drive", "Use a name such as ide2 or scsi1")


def _discard(is_on: Any, _what: str) -> str:
    return "on" if canonical(is_on, {"type": "boolean"}) == "1" else "ignore"


def _iso(volume: str, what: str) -> str:
    if volume == "none":  # an empty CD drive
        return volume
    return validate.volume(volume, what)


FUNCTIONS: Mapping[str, Callable[[Any, str], Any]] = {
    **COMMON,
    "agent": _agent,
    "balloon": _balloon,
    "boot_order": _boot_order,
    "cloud_init_drive": _cloud_init_drive,
    "discard": _discard,
    "iso": _iso,
    "volume": validate.volume,
}
"""The checks that declarations name: each takes a value and the option's name for errors."""

TABLES = OptionTables(
    SCALARS,
    PROPERTY_STRINGS,
    WORDS,
    EMPTY_REMOVES,
    checks=CHECKS,
    ranges=RANGES,
    functions=FUNCTIONS,
)
