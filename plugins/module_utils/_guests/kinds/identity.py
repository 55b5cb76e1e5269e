# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detects that a VMID was reused by another guest (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..._foundation.core.errors import Conflict


@dataclass(frozen=True)
class Identity:
    """The fingerprint of a guest in its configuration; `volumes` are its disks' volumes, by slot.

    `uuid_option` is the option that contains the uuid. A kind without uuid or time of creation
    leaves them empty, and uses the MAC addresses of its NICs instead: PVE chooses them at random.
    """

    name: str
    uuid: str
    creation: str
    volumes: Mapping[str, str] = field(default_factory=dict)
    uuid_option: str = ""
    macs: Mapping[str, str] = field(default_factory=dict)

    def words(self, written: Collection[str] = ()) -> str:
        """Return it as words C(key=value), without the options in `written`."""
        found = {"creation": self.creation, self.uuid_option: self.uuid, **self.macs}
        kept = {key: value for key, value in found.items() if value and key not in written}
        return " ".join(f"{key}={value}" for key, value in kept.items())


def require_same_creation(
    label: str, known: Identity, current: Identity, written: Collection[str] = ()
) -> None:
    """Raise Conflict if the guest with that VMID was created at another time.

    `written` are the options that the run itself changes.
    """
    if _is_another(known, current, written):
        raise replaced(label, f"the guest of that number is now another one, '{current.name}'")


def _is_another(known: Identity, current: Identity, written: Collection[str]) -> bool:
    if known.creation != current.creation:
        return True
    if known.uuid_option not in written and known.uuid != current.uuid:
        return True
    compared = (known.macs.keys() & current.macs.keys()).difference(written)
    return any(known.macs[nic] != current.macs[nic] for nic in compared)


def require_name(label: str, current: Identity, names: Collection[str | None]) -> None:
    """Raise Conflict if the guest has none of these names."""
    if current.name not in names:
        raise replaced(label, f"it is named '{current.name}' by now")


def require_same_disks(
    label: str, known: Identity, current: Identity, written: Collection[str] = ()
) -> None:
    """Raise Conflict if the guest has other disks, except at the slots that the run writes."""
    added = _slots_beyond(known.volumes, current.volumes)
    gone = _slots_beyond(current.volumes, known.volumes)
    differing = (added | gone).difference(written)
    if differing:
        slots = ", ".join(sorted(differing))
        raise replaced(label, f"its disks have changed: {slots}")


def _slots_beyond(known: Mapping[str, str], volumes: Mapping[str, str]) -> set[str]:
    """Return the slots of the volumes that are not among the known ones."""
    return {slot for slot, volume in volumes.items() if volume not in known.values()}


def replaced(label: str, answer: str) -> Conflict:
    """Return the error for a guest that was changed or replaced after the plan was made."""
    return Conflict(
        f"{label} was not changed: {answer}",
        "Someone changed it since then: check which guest you mean and run again",
        "replaced",
    )
