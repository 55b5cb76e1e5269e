# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a move to another cluster, in the marker of the guest's notes (pure).

It is written into the notes of the source before the move, and the migration copies it to the
target. See docs/decisions/0036-a-guest-moves-between-clusters.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..._foundation.core.quantities import whole_number
from ..._foundation.core.times import iso
from .marker import join_notes, split_notes

ONLINE, OFFLINE, RESTART, ARCHIVE = "online", "offline", "restart", "archive"
MODES = (ONLINE, OFFLINE, RESTART, ARCHIVE)
VOID, PROVEN, RETURNED, COMPLETE = "void", "proven", "returned", "complete"
MOVING = "moving"
_FIELDS = range(10, 13)  # the last two are empty if they are missing
_LATEST = 10**10  # seconds since the epoch; notes can have any number
_FOREIGN = re.compile(r"[^A-Za-z0-9_.+-]")


@dataclass(frozen=True)
class MoveRecord:
    """The record of one move. `source` and `target` are the VMIDs, `ran` is whether the guest was to
    run. `origin` and `site` are the words of the source and of the target. Times are in seconds
    since the epoch.

    `state` is empty until it is VOID (the copy at the target is incomplete and is removed), PROVEN,
    RETURNED (the guest runs at the source again) or COMPLETE (the source was removed), since the
    time `since`. `belongings` is the text of the objects that named the guest at the source.
    `clusters` are the identities of both clusters: a clone or a restored archive can have the record
    of another guest, or of another cluster.
    """

    id: str
    source: int
    site: str
    target: int
    mode: str
    ran: bool
    began: int
    state: str = ""
    since: int = 0
    origin: str = ""
    belongings: str = ""
    clusters: str = ""

    def with_state(self, state: str, now: float) -> MoveRecord:
        """Return the record with another state."""
        return replace(self, state=state, since=int(now))

    def is_same_move(self, other: MoveRecord) -> bool:
        """Return whether another record describes the same move: all but its ID and its times."""
        return replace(self, id=other.id, began=other.began, since=other.since) == other

    def render(self) -> str:
        """Return the value in the marker."""
        ran = int(self.ran)
        values = (self.id, self.source, site_word(self.site), self.target, self.mode, ran)
        last = (self.began, self.state, self.since, self.origin, self.belongings, self.clusters)
        return ":".join(map(str, (*values, *last)))

    def describe(self) -> dict[str, Any]:
        """Return the variables of a host for this record; times in ISO 8601."""
        return {
            "from_site": self.origin,
            "from_vmid": self.source,
            "to_site": self.site,
            "to_vmid": self.target,
            "mode": self.mode,
            "state": self.state or MOVING,
            "began": iso(self.began),
            "since": iso(self.since),
        }


def site_word(name: str) -> str:
    """Return the name of a site as a record has it."""
    return _FOREIGN.sub("_", name)


def parse_record(text: str) -> MoveRecord | None:
    """Return the record in a marker, or None."""
    parts = text.split(":")
    if len(parts) not in _FIELDS or parts[4] not in MODES:
        return None
    numbers = [whole_number(parts[index]) for index in (1, 3, 5, 6, 8)]
    source, target, ran, began, since = (number or 0 for number in numbers)
    if max(began, since) > _LATEST:
        return None
    texts = parts[9:]
    return MoveRecord(
        parts[0], source, parts[2], target, parts[4], bool(ran), began, parts[7], since, *texts
    )


def last_record_of(config: Mapping[str, Any]) -> MoveRecord | None:
    """Return the record in the notes of a guest with this configuration, or None."""
    return parse_record(split_notes(config.get("description"))[1].move)


def describe_move(config: Mapping[str, Any], vmid: int | None = None) -> dict[str, Any] | None:
    """Return the move of a guest with this configuration, None without one. A clone or a restored
    copy has the record of another VMID.
    """
    record = last_record_of(config)
    if record is None or vmid not in (None, record.source, record.target):
        return None
    return record.describe()


def move_text(move: Mapping[str, Any] | None) -> str:
    """Return the result of `describe_move` as a text, empty without a move or after its end."""
    if move is None or move["state"] == COMPLETE:
        return ""
    places = "{from_site} {from_vmid} to {to_site} {to_vmid}".format(**move)
    return f"{move['state']}, {places}"


def record_of(config: Mapping[str, Any], vmid: int, cluster: str) -> MoveRecord | None:
    """Return the record of a move that is not complete, or None. A record with another VMID, or
    without the identity of the guest's cluster, is a copy.
    """
    record = last_record_of(config)
    if record is None or record.state == COMPLETE:
        return None
    is_own = vmid in (record.source, record.target) and cluster in record.clusters.split(".")
    return record if is_own else None


def notes_with(config: Mapping[str, Any], record: MoveRecord | None) -> str:
    """Return the notes of a guest with this record in place of any other."""
    notes, marker = split_notes(config.get("description"))
    move = "" if record is None else record.render()
    return join_notes(notes, replace(marker, move=move))
