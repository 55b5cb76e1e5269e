# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Chooses the archive of a restore, and refuses an unusable one (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..._foundation.cluster.state import VmRow
from ..._foundation.cluster.tenant import owns, parse_tags
from ..._foundation.core.errors import Conflict, NotFound, NotSupported
from ..._foundation.core.times import iso
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.words import CONTAINER, VM
from ..backup.archive import Archive, newest_first
from .desired import DesiredRestore

KINDS: Mapping[str, Kind] = {VM.type: VM, CONTAINER.type: CONTAINER}
# A restore in place keeps the former state in an archive whose notes end with this text.
SAFETY_BACKUP_NOTES = "state before a restore by pve.fleet"
_SERVER = "pbs"
_DAMAGED = "failed"


@dataclass(frozen=True)
class ChosenArchive:
    """The archive of a restore with the configuration in it; `row` is its guest, if it exists."""

    archive: Archive
    config: Mapping[str, str]
    row: VmRow | None = None

    @property
    def kind(self) -> Kind:
        return KINDS[self.archive.type]

    @property
    def name(self) -> str:
        """The name of the guest in the archive."""
        return self.kind.name_in(self.config)

    @property
    def unsaved(self) -> list[str]:
        """The disks whose data is not in the archive; a replica without a storage has all."""
        return self.kind.unsaved_in(self.config) if self.archive.storage else []


def choose(desired: DesiredRestore, archives: Iterable[Archive]) -> Archive:
    """Return the newest archive, or the newest one up to the time that the task sets.

    Archives of the state before a restore are left out: a second run would restore the state that
    the first run replaced. Raises NotFound if there is no archive.
    """
    own = sorted(filter(is_ordinary, archives), key=newest_first)
    if not own:
        raise NotFound(
            f"No archive of {desired.label} was restored: there is none, or it is not visible",
            (
                "Look with module backup_info; the token needs Datastore.AllocateSpace on the"
                " storage and VM.Backup on the guest"
            ),
            "no archive",
        )
    for one in own:
        if desired.before is None or one.time <= desired.before:
            return one
    raise NotFound(
        f"No archive of {desired.label} was restored: none is from {iso(desired.before or 0)} or "
        f"before; the first is from {iso(own[-1].time)}",
        "Choose a later time",
        "no archive before that time",
    )


def is_ordinary(one: Archive) -> bool:
    """Return whether an archive is of a VM or container, and not the state before a restore."""
    return one.type in KINDS and not is_state_before(one)


def is_state_before(one: Archive) -> bool:
    """Return whether an archive is the state before a restore."""
    return one.notes.strip().endswith(SAFETY_BACKUP_NOTES)


def choose_by_name(
    desired: DesiredRestore, archives: Sequence[tuple[Archive, Mapping[str, str]]]
) -> tuple[Archive, Mapping[str, str]]:
    """Return the archive of a guest that no longer exists, by the name in its configuration.

    Raises NotFound, and Conflict if several guests had the name.
    """
    owner = desired.owner
    found: list[tuple[Archive, Mapping[str, str]]] = []
    for one, config in archives:
        is_named_so = KINDS[one.type].name_in(config) == desired.name
        if is_named_so and owns(owner.tag, parse_tags(config.get("tags")), owner.prefix):
            found.append((one, config))
    if len(found) > 1:
        vmids = ", ".join(str(one.vmid) for one, _config in found)
        raise Conflict(
            f"No archive of {desired.label} was restored: several removed guests had that name: "
            f"{vmids}",
            "Name the guest by its VMID",
            "ambiguous name",
        )
    if not found:
        choose(desired, ())
    return found[0]


def require_usable(desired: DesiredRestore, archive: Archive) -> None:
    """Raise Conflict for an archive that its server found damaged, and NotSupported for a live
    restore that PVE cannot do (qemu-server: API2/Qemu.pm, create_vm).
    """
    if archive.verification == _DAMAGED:
        raise Conflict(
            f"{archive.volume} was not restored: its backup server has verified it, and found it "
            "damaged",
            "Choose another archive with archive or before",
            "archive damaged",
        )
    if not desired.live or (archive.storage_kind == _SERVER and archive.type == VM.type):
        return
    raise NotSupported(
        f"{archive.volume} was not restored: a live restore needs the backup of a VM on a backup "
        "server",
        "Leave live out",
        "live restore",
    )
