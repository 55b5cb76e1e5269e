# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired guest of a restore, from the options of module vm or container (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ..._foundation.core.arguments.options import hidden_values, parse_options
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.spec.container import container_spec
from ..._foundation.spec.fleet import with_defaults
from ..._foundation.spec.vm import vm_spec
from ..._guests.guest.plan.archive import dropped_in
from ..._guests.guest.registry import list_of
from ..._guests.kinds.hardware import Disk
from ..._guests.kinds.kind import Kind
from ..._guests.kinds.model import GuestSource
from .choose import ChosenArchive
from .desired import DesiredRestore


def read_guest(desired: DesiredRestore, chosen: ChosenArchive, name: str) -> Any:
    """Return the options of the guest, which gets this name. Raises ValidationFailed."""
    of = list_of(chosen.kind.type)
    what = f"options of {chosen.kind.noun} '{name}' were refused"
    spec = of.specs.whole
    given = parse_options(spec, desired.options, what)
    owner = {"tenant_prefix": desired.owner.prefix, "tenant": desired.owner.tenant, "name": name}
    params = with_defaults(spec, {**dict.fromkeys(spec), **given, **owner})
    options = of.read({**params, "task_timeout": desired.timeout})
    disks = with_storages(desired, of.kind, chosen.config, options.desired.hardware.disks)
    volume = chosen.archive.volume
    source = GuestSource(volume=volume, live=desired.live, in_place=desired.completes)
    guest = options.desired.with_guest(source=source).without_defaults()
    return replace(options, desired=guest.with_hardware(disks=tuple(disks)))


def with_storages(
    desired: DesiredRestore, kind: Kind, config: Mapping[str, str], given: Iterable[Disk]
) -> list[Disk]:
    """Return the disks of the task, and the other restored disks with their storages.

    PVE restores a container to one storage, so each of its volumes gets a storage here. Raises
    ValidationFailed if the map has a storage that the archive does not use.
    """
    disks = {disk.slot: disk for disk in given}
    storages, dropped = storages_by_disk(kind, config), dropped_in(kind, config)
    for slot, storage in storages.items():
        if slot in dropped:
            continue
        target = desired.storage_map.get(storage) or desired.storage
        target = target or (storage if kind.has_rootfs else None)
        disk = disks.get(slot, Disk(slot))
        if target and disk.storage is None and disk.state == "present":
            disks[slot] = replace(disk, storage=target)
    unused = sorted(desired.storage_map.keys() - set(storages.values()))
    if unused:
        listed = ", ".join(sorted(storages.values()))
        raise ValidationFailed(
            f"storage_map.{unused[0]} was refused: no disk in the archive is on it; they are on "
            f"{listed}",
            "Correct the name, or leave it out",
            "storage_map",
        )
    return list(disks.values())


def storages_by_disk(kind: Kind, config: Mapping[str, str]) -> dict[str, str]:
    """Return the storage of each disk in an archived configuration, by slot."""
    found: dict[str, str] = {}
    for slot, drive in kind.disks_in(config).items():
        storage, colon, _volume = drive.get("file", "").partition(":")
        if colon and not slot.startswith("unused"):
            found[slot] = storage
    return found


def restore_secrets(arguments: Mapping[str, Any]) -> set[str]:
    """Return the secrets in O(options), before any check."""
    given = arguments.get("options")
    return hidden_values(vm_spec(), given) | hidden_values(container_spec(), given)
