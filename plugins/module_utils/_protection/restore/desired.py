# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the desired restore from the options of module restore (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.core import validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.times import seconds
from ..._guests.guest.desired.guest import sites_of_quota
from ..._guests.guest.plan.archive import is_archive

NEWEST = "newest"
KEEP_ARCHIVE, KEEP_COPY = "archive", "copy"
# Guest options that are options of module restore itself, or that a restore determines.
_OWN = frozenset("name tenant tenant_prefix source full snapshot adopt task_timeout class".split())
# Options that place a new guest; an overwritten guest keeps its place.
_PLACE = frozenset("vmid node placement rebalance vmid_range vmid_bands vmid_choice".split())
_STATES = ("present", "started", "stopped")
# Options that can be applied to a VM while its disks are still being restored.
_LIVE = frozenset("vmid node placement pool tags description state quota quotas".split()) | {
    "quota_sites",
    "site_quotas",
}


@dataclass(frozen=True)
class DesiredRestore:
    """The desired restore. `before` is in seconds since the epoch, `timeout` in seconds.

    `new_name` is the name of a new guest, `confirm` is the name of the guest to overwrite; one of
    them is empty. `completes` is true if the new guest replaces a container that a failed restore
    removed. `keep_storage` is the storage for the present state of the guest to overwrite, and
    `keep_name` is the name of its copy. `options` are options of module vm or container.
    """

    owner: OwnerScope
    name: str | None
    vmid: int | None
    volume: str | None
    before: int | None
    storages: tuple[str, ...] | None
    new_name: str
    confirm: str
    options: Mapping[str, Any]
    storage: str | None
    storage_map: Mapping[str, str]
    live: bool
    keep: str
    keep_storage: str | None
    keep_name: str | None
    stop: bool
    timeout: int
    completes: bool = False

    @property
    def label(self) -> str:
        """The label of the archived guest in messages."""
        if self.name is not None:
            return f"guest '{self.name}'"
        return f"guest {self.vmid}" if self.vmid is not None else str(self.volume)


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the site of the task, which is an empty text, and the sites of the quota (pure)."""
    return sites_of_quota(params.get("options") or {})


def read_desired(params: Mapping[str, Any]) -> DesiredRestore:
    """Return the desired restore. Raises ValidationFailed."""
    name, vmid, storage = params.get("name"), params.get("vmid"), params.get("storage")
    new_name, keep_name = params.get("new_name"), params.get("keep_name")
    storages = params.get("storages")
    desired = DesiredRestore(
        owner=owner_of(params),
        name=None if name is None else validate.dns_name(name),
        vmid=None if vmid is None else validate.vmid(vmid),
        volume=_volume(params["archive"]),
        before=_time(params.get("before")),
        storages=None if storages is None else tuple(map(validate.storage, storages)),
        new_name="" if new_name is None else validate.dns_name(new_name),
        confirm=str(params.get("confirm") or ""),
        options=dict(params.get("options") or {}),
        storage=None if storage is None else validate.storage(storage),
        storage_map=read_storage_map(params),
        live=bool(params.get("live")),
        keep=str(params["keep"]),
        keep_storage=params.get("keep_storage"),
        keep_name=None if keep_name is None else validate.dns_name(keep_name, "keep_name"),
        stop=bool(params.get("stop")),
        timeout=validate.count(params.get("task_timeout"), 10800, "task_timeout"),
    )
    _require_options(desired)
    return desired


def _volume(archive: str) -> str | None:
    """Return the volume of an archive, or None for the newest archive."""
    if archive == NEWEST:
        return None
    volume = validate.volume(archive, "archive")
    if is_archive(volume):
        return volume
    why = "is not the volume of a backup"
    raise validate.refused("archive", archive, why, "Write newest, or a volume of backup_info")


def _time(text: str | None) -> int | None:
    if text is None:
        return None
    when = seconds(str(text))
    if when is None:
        why = "is not a time"
        raise validate.refused("before", text, why, "Write a time such as 2026-11-20T12:00")
    return when


def read_storage_map(params: Mapping[str, Any]) -> dict[str, str]:
    """Return each new storage by the storage that it replaces. Raises ValidationFailed."""
    given = params.get("storage_map") or {}
    return {validate.storage(old): validate.storage(new) for old, new in given.items()}


def _require_options(desired: DesiredRestore) -> None:
    """Raise ValidationFailed for options that contradict each other."""
    if bool(desired.new_name) == bool(desired.confirm):
        raise _refused(
            "new_name and confirm",
            "exactly one of them is needed",
            "Give new_name for a new guest, or confirm with the name of the guest to overwrite",
        )
    refused = sorted(_OWN & desired.options.keys())
    if refused:
        why = "a restore decides it, or the task has an option of that name itself"
        raise _refused(f"options.{refused[0]}", why, "Remove it from options")
    moved = sorted(_PLACE & desired.options.keys())
    if desired.confirm and moved:
        why = "a guest that is overwritten keeps its VMID and its node"
        raise _refused(f"options.{moved[0]}", why, "Remove it, or restore a new guest")
    state = desired.options.get("state", "present")
    if state not in _STATES:
        raise _refused("options.state", f"{state} is not a state of a restore", "Use started")
    _require_copy(desired)
    if desired.live:
        _require_live(desired)


def _require_copy(desired: DesiredRestore) -> None:
    is_copied = bool(desired.confirm) and desired.keep == KEEP_COPY
    if is_copied and desired.keep_name is None:
        raise _refused("keep=copy", "the copy needs a name", "Set keep_name")
    if desired.keep_name is None:
        return
    if not is_copied:
        why = "it is the name of the copy that keep=copy makes with confirm"
        raise _refused("keep_name", why, "Set keep=copy, or leave it out")
    if desired.keep_name == desired.confirm:
        raise _refused("keep_name", "it is the name of the guest itself", "Choose another name")


def _require_live(desired: DesiredRestore) -> None:
    late = sorted(desired.options.keys() - _LIVE)
    if late or desired.storage_map:
        name = f"options.{late[0]}" if late else "storage_map"
        why = "it cannot change while the disks are still being restored"
        raise _refused(name, why, "Leave it out, or restore with live=false")
    if desired.options.get("state") == "stopped":
        raise _refused("options.state", "a live restore starts the VM", "Use live=false")


def _refused(name: str, why: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(f"{name} was refused: {why}", next_step, name)
