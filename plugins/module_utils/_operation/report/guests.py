# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One guest as the report shows it (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures
from ..._foundation.cluster.tenant import tenant_of, tenants_of
from ..._foundation.core.errors import FleetError
from ..._foundation.core.times import iso
from ..._guests.kinds.addresses import agent_is_on
from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import describe_move
from ..._guests.kinds.words import VM, kind_name
from ..._protection.restore.drill.record import GuestKey, RestoreProof
from ..._protection.snapshot.model import Snapshot
from .model import DAY, ReportOptions, SiteReading, VmReading

OK = "ok"
OLD = "old"
NONE = "none"
UNKNOWN = "unknown"
_UNREAD = FleetError(answer="backups could not be read")


def guests_of(reading: SiteReading, wanted: ReportOptions) -> list[dict[str, Any]]:
    """Return the guests of a site by VMID, without templates. Memory and disk are in bytes."""
    return [_guest(guest, reading, wanted) for guest in reading.guests]


def _guest(guest: VmReading, reading: SiteReading, wanted: ReportOptions) -> dict[str, Any]:
    row = guest.row
    tenant, _why = tenant_of(row.tags, wanted.prefix)
    owners = tenants_of(row.tags, wanted.prefix)
    used = figures_of_guest(guest, reading.volumes)
    name = row.own_name
    status = row.status
    agent: bool | None = None  # not known, or a container
    pending: list[str] | None = None
    left_out: list[str] | None = None
    move: dict[str, Any] | None = None
    if guest.actual is not None:
        name = guest.actual.name
        status = guest.actual.status
        agent = _agent(guest.actual)
        pending = _pending(guest.actual)
        left_out = guest.actual.kind.unsaved_in(guest.actual.live)
        move = describe_move(guest.actual.target, row.vmid)
    return {
        "site": reading.site,
        "kind": kind_name(row.type),
        "vmid": row.vmid,
        "name": name,
        "tenant": tenant or "",
        "owners": [owner.removeprefix(wanted.prefix) for owner in owners],
        "node": row.node,
        "status": status,
        "cores": used.cores,
        "memory": used.memory,
        "disk": used.disk,
        "agent": agent,
        "pending": pending,
        "move": move,
        "address": guest.address,
        "snapshots": _snapshots(guest.snapshots, reading.time, wanted.snapshot_days),
        "backup": _backup(guest, reading, wanted.backup_days),
        "jobs": _jobs_of(guest, reading),
        "left_out": left_out,
        "proven": _proven((row.type, row.vmid, name), wanted.proofs),
        "reason": guest.reason or None,
    }


def _agent(actual: Actual) -> bool | None:
    """Return whether the guest agent is on, None for a container, which has none."""
    if actual.kind is not VM:
        return None
    return agent_is_on(actual.live.get("agent", ""))


def figures_of_guest(guest: VmReading, volumes: Mapping[int, int] | None) -> QuotaFigures:
    """Return the figures of a guest for quotas and costs; too small if a part is not known."""
    row = guest.row
    listed = QuotaFigures(1, row.cores, row.memory, row.disk)
    configured = QuotaFigures()
    if guest.actual is not None:
        configured = guest.actual.kind.figures_of(guest.actual.live)
    stored = (volumes or {}).get(row.vmid, 0)
    return QuotaFigures(
        vms=1,
        cores=configured.cores or listed.cores,
        memory=configured.memory or listed.memory,
        disk=max(configured.disk, listed.disk, stored),
    )


def _pending(actual: Actual) -> list[str]:
    """Return the options of a running guest that apply after its next stop or reboot."""
    if not actual.running:
        return []
    options = (actual.live.keys() | actual.target.keys()) - {*actual.kind.generated_options}
    return sorted(key for key in options if actual.live.get(key) != actual.target.get(key))


def _snapshots(
    snapshots: Sequence[Snapshot] | None, now: float, days: int
) -> dict[str, Any] | None:
    """Return the number of snapshots, the oldest time, and the names of snapshots that are older
    than `days`, oldest first.
    """
    if snapshots is None:
        return None
    limit = now - days * DAY
    old = [one.name for one in snapshots if one.time < limit]
    times = [one.time for one in snapshots]
    return {"count": len(snapshots), "oldest": iso(min(times, default=0)), "old": old}


def _backup(guest: VmReading, reading: SiteReading, days: int) -> dict[str, Any]:
    """Return the newest backup of a guest, and whether it is `ok`, `old`, `none` or `unknown`.

    If other backups may be hidden, a backup that is new enough is still `ok`. An old backup is
    `unknown`, because a hidden one may be newer.
    """
    found = reading.backups.get(guest.row.vmid, _UNREAD)
    if isinstance(found, FleetError):
        return _unknown_backup(found)
    limit = reading.time - days * DAY
    if not found.number:
        state = NONE
    elif found.newest < limit:
        state = OLD
    else:
        state = OK
    row = {"state": state, "time": iso(found.newest), "count": found.number, "reason": None}
    if found.uncertainty is None:
        return row
    if state == OLD:
        return _unknown_backup(found.uncertainty)
    return {**row, "count": None, "reason": found.uncertainty.message}


def _proven(key: GuestKey, proofs: Mapping[GuestKey, RestoreProof] | None) -> dict[str, Any] | None:
    """Return the last proven restore of a guest, all values None if there is none.

    None without a record of drills.
    """
    if proofs is None:
        return None
    found = proofs.get(key)
    return {
        "time": None if found is None else iso(found.time),
        "proof": None if found is None else found.proof or None,
        "archive_age": None if found is None else found.archive_age,
        "restore_seconds": None if found is None else found.restore_seconds,
        "boot_seconds": None if found is None else found.boot_seconds,
    }


def _jobs_of(guest: VmReading, reading: SiteReading) -> list[str] | None:
    """Return the enabled backup jobs of a guest, None if they are not known."""
    return None if reading.jobs is None else list(reading.jobs.get(guest.row.vmid, ()))


def _unknown_backup(error: FleetError) -> dict[str, Any]:
    return {"state": UNKNOWN, "time": None, "count": None, "reason": error.message}
