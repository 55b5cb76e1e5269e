# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of drills: the last proof of each guest, and the results of each drill (pure).

C(docs/drill.schema.json) describes the document.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.times import iso, seconds

VERSION = 1
PROVEN, FAILED, SKIPPED = "proven", "failed", "skipped"
CHECKS = "checks"
_MAX_DRILLS = 100
_RESULT_KEYS = (
    "vmid type name tenant outcome proof msg volume archive_time archive_age restore_seconds"
    " boot_seconds node copy_vmid"
).split()
GuestKey = tuple[str, int, str]


@dataclass(frozen=True)
class RestoreProof:
    """The last proven restore of a guest. `time` is in seconds since the epoch; the other figures
    are in seconds, or None if they were not measured.
    """

    time: int
    proof: str = ""
    archive_age: int | None = None
    restore_seconds: int | None = None
    boot_seconds: int | None = None


@dataclass(frozen=True)
class DrillRecord:
    """The record so far: its guests and drills in the form of the document."""

    guests: tuple[Mapping[str, Any], ...] = ()
    drills: tuple[Mapping[str, Any], ...] = ()

    @property
    def proofs(self) -> dict[GuestKey, RestoreProof]:
        """The last proven restore by guest. A reused VMID with another name is another guest."""
        found: dict[GuestKey, RestoreProof] = {}
        for row in self.guests:
            time = seconds(str(row.get("proven") or ""))
            if time is None:
                continue
            found[key_of(row)] = RestoreProof(
                time=time,
                proof=str(row.get("proof") or ""),
                archive_age=row.get("archive_age"),
                restore_seconds=row.get("restore_seconds"),
                boot_seconds=row.get("boot_seconds"),
            )
        return found


def key_of(row: Mapping[str, Any]) -> GuestKey:
    """Return the key of a guest: kind, VMID and name."""
    return str(row["type"]), int(row["vmid"]), str(row["name"])


def read_record(text: str) -> DrillRecord:
    """Return the record in the text of a file; an empty text is an empty record.

    Raises ValidationFailed for any other text that is not a record, so that no proof is lost.
    """
    if not text.strip():
        return DrillRecord()
    try:
        document = json.loads(text)
    except ValueError:
        raise _not_a_record("it is not JSON") from None
    if not isinstance(document, dict) or document.get("version") != VERSION:
        raise _not_a_record(f"it does not have version {VERSION}")
    guests, drills = document.get("guests"), document.get("drills")
    if not isinstance(guests, list) or not isinstance(drills, list):
        raise _not_a_record("it has no lists guests and drills")
    for row in guests:
        has_key = isinstance(row, dict) and {"type", "name"} <= row.keys()
        if not has_key or not isinstance(row.get("vmid"), int):
            raise _not_a_record("an entry of guests lacks type, vmid or name")
    return DrillRecord(tuple(guests), tuple(row for row in drills if isinstance(row, dict)))


def read_proofs(text: Any) -> Mapping[GuestKey, RestoreProof] | None:
    """Return the last proven restores in a record by guest, or None for an empty text."""
    given = str(text or "")
    return read_record(given).proofs if given.strip() else None


def _not_a_record(answer: str) -> ValidationFailed:
    return ValidationFailed(
        f"record was refused: {answer}",
        "Give the drill.json of an earlier drill, or move the file away",
        "record",
    )


def extended(
    record: DrillRecord, results: Sequence[Mapping[str, Any]], *, run: str, began: int, ended: int
) -> dict[str, Any]:
    """Return the document with another drill; times are in seconds since the epoch.

    A guest keeps its last proven restore until a newer one, even if later drills fail.
    """
    guests = {key_of(row): dict(row) for row in record.guests}
    rows = [_result(row) for row in results]
    for row in rows:
        known = guests.get(key_of(row), {})
        guests[key_of(row)] = _guest(row, known, ended)
    outcomes = [row["outcome"] for row in rows]
    proven = [row for row in rows if row["outcome"] == PROVEN]
    # from the start of a guest's restore to its proof, in seconds
    times = [(row["restore_seconds"] or 0) + (row["boot_seconds"] or 0) for row in proven]
    drill = {
        "run": run,
        "began": iso(began),
        "ended": iso(ended),
        **{name: outcomes.count(name) for name in (PROVEN, FAILED, SKIPPED)},
        "recovery_time": max(times, default=None),
        "recovery_point": max((row["archive_age"] or 0 for row in proven), default=None),
        "results": rows,
    }
    return {
        "version": VERSION,
        "checked": iso(ended),
        "guests": [guests[key] for key in sorted(guests)],
        "drills": [*record.drills, drill][-_MAX_DRILLS:],
    }


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of a guest in the form of the document."""
    result = {name: row.get(name) for name in _RESULT_KEYS}
    result["volume"] = row.get("volume") or row.get("archive")
    if result["outcome"] == PROVEN and row.get("left_out"):
        slots = ", ".join(row["left_out"])
        result["msg"] = f"The archive of {row['name']} ({row['vmid']}) has no data of {slots}"
    return result


def with_checks(
    results: Iterable[Mapping[str, Any]], checks: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the results with the outcome of the user's checks. `checks` has the message of the
    failed check by VMID, or an empty text if all checks passed.
    """
    found: list[dict[str, Any]] = []
    for row in results:
        message = checks.get(str(row["vmid"]))
        checked = dict(row)
        if row["outcome"] == PROVEN and message is not None:
            checked["proof"] = None if message else CHECKS
            checked["outcome"] = FAILED if message else PROVEN
            checked["msg"] = message or None
        found.append(checked)
    return found


def _guest(row: Mapping[str, Any], known: Mapping[str, Any], ended: int) -> dict[str, Any]:
    guest = {name: row[name] for name in ("vmid", "type", "name", "tenant")}
    guest["drilled"] = iso(ended)
    guest["outcome"] = row["outcome"]
    guest["msg"] = row["msg"]
    source: Mapping[str, Any] = known
    guest["proven"] = known.get("proven")
    if row["outcome"] == PROVEN:
        source, guest["proven"] = row, iso(ended)
    for name in ("proof", "archive_age", "restore_seconds", "boot_seconds"):
        guest[name] = source.get(name)
    return guest
