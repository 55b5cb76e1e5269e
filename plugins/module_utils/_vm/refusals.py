# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What PVE would refuse of an update for what the VM is at that moment: told before anything is written (pure).

The rules are those of qemu-server: Qemu.pm, update_vm_api, resize_vm and move_vm_disk; QemuServer.pm, clone_disk.
"""

from __future__ import annotations

from collections.abc import Mapping

from .._cluster.tenant import parse_tags, tenants_of
from .._core.errors import Conflict, NotSupported, ValidationFailed
from .._core.propstring import parse
from .._schema.formats import format_of
from . import power
from .actual import DRIVE, drives
from .config import Change
from .hotplug import waits_for_stop
from .model import Actual, Desired

_DEFAULT_MEMORY = "512"
_OLD_TPM = "v1.2"  # of a TPM whose configuration names no version


def check_refusals(desired: Desired, actual: Actual, change: Change, after: Mapping[str, str]) -> None:
    """Raise Conflict, NotSupported or ValidationFailed for a change that PVE would refuse half way."""
    runs = actual.running and not power.stops_first(desired, actual)
    _check_protection(desired, actual, change)
    _check_tenants(desired, actual, after)
    _check_boot(actual, change, after)
    _check_balloon(actual, change)
    _check_tpm(actual, change, after, runs=runs)
    if runs:
        _check_waiting_disks(actual, change)


def taken_drives(change: Change) -> set[str]:
    """Return the drives that the change takes away, kept as unused disks or not."""
    return change.drives.removed | {key for key in change.deletes if DRIVE.match(key)}


def _check_protection(desired: Desired, actual: Actual, change: Change) -> None:
    taken = taken_drives(change)
    if actual.live.get("protection") != "1" or desired.plain.get("protection") == "0" or not taken:
        return
    raise Conflict(
        attempted=f"{', '.join(sorted(taken))} of {actual.label} was left alone",
        answer="the VM is protected, so that its drives cannot be taken away",
        next_step="Set protection=false in the same task to lift the protection",
        reason="protected",
    )


def _check_tenants(desired: Desired, actual: Actual, after: Mapping[str, str]) -> None:
    before, then = (
        tenants_of(parse_tags(config.get("tags")), desired.tenant_prefix) for config in (actual.target, after)
    )
    if len(then) > 1 and set(then) - set(before):
        raise Conflict(
            attempted=f"{actual.label} was left alone",
            answer=f"it would bear the tags of several tenants: {', '.join(then)}",
            next_step="Remove the tag of the tenant that it leaves first",
            reason="several tenants",
        )


def _check_boot(actual: Actual, change: Change, after: Mapping[str, str]) -> None:
    order = parse(change.sets.get("boot", ""), format_of("boot") or {}).get("order", "")
    missing = [device for device in order.split(";") if device and device not in after]
    if missing:
        raise ValidationFailed(
            attempted=f"The boot order of {actual.label} was left alone",
            answer=f"{', '.join(missing)} would not be there",
            next_step="Name devices that the VM has or that the task adds, or disk, network and cdrom",
            reason="boot",
        )


def _check_balloon(actual: Actual, change: Change) -> None:
    if not change.sets.keys() & {"memory", "balloon"}:
        return
    values = {**actual.target, **change.sets}
    memory = parse(values.get("memory") or _DEFAULT_MEMORY, format_of("memory") or {}).get("current") or _DEFAULT_MEMORY
    balloon = values.get("balloon") or "0"
    if int(balloon) > int(memory):
        raise ValidationFailed(
            attempted=f"The memory of {actual.label} was left alone",
            answer=f"balloon, the least it can shrink to, would be {balloon} MiB and the memory {memory} MiB",
            next_step="Give both memory and balloon, the latter not larger",
            reason="balloon",
        )


def _check_tpm(actual: Actual, change: Change, after: Mapping[str, str], *, runs: bool) -> None:
    if runs and "tpmstate0" in change.drives.moved:
        raise Conflict(
            attempted=f"tpmstate0 of {actual.label} was left where it is",
            answer="PVE does not move the state of a TPM while the VM runs",
            next_step="Stop the VM first, or move the disk in a task with state=stopped",
            reason="running",
        )
    old, new = drives(actual.target).get("tpmstate0"), drives(after).get("tpmstate0")
    if old and new and "tpmstate0" in change.sets and old.get("version", _OLD_TPM) != new.get("version", _OLD_TPM):
        raise NotSupported(
            attempted=f"tpmstate0 of {actual.label} was left alone",
            answer="the version of a TPM cannot change once it is made",
            next_step="Remove the TPM first, with all that the guest keeps in it, and add another",
            reason="TPM version",
        )


def _check_waiting_disks(actual: Actual, change: Change) -> None:
    """A disk that waits for a stop is not there yet: PVE would grow or move the one that it is going to replace."""
    live, target = drives(actual.live), drives(actual.target)
    for slot in sorted({*change.drives.grown, *change.drives.moved}):
        if live.get(slot, {}).get("file") == target.get(slot, {}).get("file"):
            continue
        raise Conflict(
            attempted=f"Disk {slot} of {actual.label} was left alone",
            answer="it was added or replaced while the VM runs, and waits for a stop",
            next_step="Stop or reboot the VM first, for example with state=restarted in a task before this one",
            reason="disk waits for a stop",
        )


def require_there(actual: Actual, grown: Mapping[str, int], sets: Mapping[str, str]) -> None:
    """Raise Conflict for a disk of a running VM that is imported, shall grow then, and waits for a stop until that."""
    for slot in sorted(grown):
        if waits_for_stop(slot, None, sets[slot], actual.live):
            raise Conflict(
                attempted=f"Disk {slot} of {actual.label} was not added",
                answer="it is larger than the image it is imported from, and waits for a stop before it can grow",
                next_step="Stop the VM first, leave size out, or use a drive that can be plugged in",
                reason="disk waits for a stop",
            )
