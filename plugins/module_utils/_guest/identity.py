# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What tells a guest from another one that has its VMID by now (pure)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import Conflict

_UUID = re.compile(r"(?:^|,)uuid=([0-9a-fA-F-]+)")


@dataclass(frozen=True)
class Identity:
    """A guest as its configuration identifies it; `volumes` are those of its disks, by slot.

    PVE gives each VM a uuid (in C(smbios1)), a clone too, and notes version and time of its
    creation in C(meta), which a clone has from its source (qemu-server: API2/Qemu.pm, create_vm and
    clone_vm; QemuServer/MetaInfo.pm).
    """

    name: str
    uuid: str
    creation: str
    volumes: Mapping[str, str] = field(default_factory=dict)


def identity_in(config: Mapping[str, Any], *, name: str, volumes: Mapping[str, str]) -> Identity:
    """Return the identity in a configuration as PVE shows it."""
    uuid = ""
    smbios = str(config.get("smbios1", ""))
    found = _UUID.search(smbios)
    if found:
        uuid = found[1].lower()
    creation = str(config.get("meta", ""))
    return Identity(name, uuid, creation, volumes)


def require_same_creation(
    label: str, known: Identity, seen: Identity, written: Collection[str] = ()
) -> None:
    """Raise Conflict where the guest of that number was made at another time.

    `written` are the options that the run itself changes.
    """
    answer = f"the VM of that number is now another one, '{seen.name}'"
    if known.creation != seen.creation:
        raise replaced(label, answer)
    if "smbios1" in written:
        return
    if known.uuid != seen.uuid:
        raise replaced(label, answer)


def require_name(label: str, seen: Identity, names: Collection[str | None]) -> None:
    """Raise Conflict where the guest has none of these names."""
    if seen.name not in names:
        raise replaced(label, f"it is named '{seen.name}' by now")


def require_same_disks(
    label: str, known: Identity, seen: Identity, written: Collection[str] = ()
) -> None:
    """Raise Conflict where the guest has other disks, those at slots that the run writes apart."""
    added = _slots_beyond(known.volumes, seen.volumes)
    gone = _slots_beyond(seen.volumes, known.volumes)
    differing = (added | gone).difference(written)
    if differing:
        slots = ", ".join(sorted(differing))
        raise replaced(label, f"its disks have changed: {slots}")


def _slots_beyond(known: Mapping[str, str], volumes: Mapping[str, str]) -> set[str]:
    """Return the slots of the volumes that are not among the known ones."""
    slots: set[str] = set()
    for slot, volume in volumes.items():
        if volume not in known.values():
            slots.add(slot)
    return slots


def replaced(label: str, answer: str) -> Conflict:
    """Return the error of a guest that is not what the plan was made for."""
    return Conflict(
        attempted=f"{label} was not changed",
        answer=answer,
        next_step="Someone changed it since then: check which VM you mean and run again",
        reason="replaced",
    )
