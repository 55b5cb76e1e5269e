# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of a node's maintenance, and the mark of an approved plan that has maintained it: one
HTML comment in the notes of the node (pure).

PVE stores the notes in /etc/pve on every node of the cluster: they survive a reboot of the node and
of the node that serves the API, and any controller can read them. See
docs/decisions/0028-the-record-of-a-maintenance.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..._foundation.core.errors import Conflict

PENDING, EVACUATING, EVACUATED, RETURNING = "pending", "evacuating", "evacuated", "returning"
PHASES = (PENDING, EVACUATING, EVACUATED, RETURNING)
MAINTAINED = "maintained"  # the phase of a node that the plan of a task has maintained
_COMMENT = re.compile(r"[^\S\n]*<!-- pve\.fleet (maintenance|maintained) (.*?) -->[^\S\n]*(?:\n|$)")


@dataclass(frozen=True)
class NodeRecord:
    """The state that a maintenance must restore on a node.

    `guests` has the fingerprint of each guest to return, by VMID; empty if its kind has none.
    `stopped` are the guests that were shut down. `since` is the time of the first write, in
    seconds since the epoch. `storages`, `services` and `version` are from before the maintenance.
    """

    phase: str
    since: int
    guests: Mapping[int, str] = field(default_factory=dict)
    stopped: frozenset[int] = frozenset()
    storages: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    version: str = ""
    noout: bool = False  # whether this maintenance has set the flag of Ceph
    booted: int = 0  # when the node was booted, in seconds since the epoch

    def render(self) -> str:
        """Return the comment."""
        values = {
            "phase": self.phase,
            "since": self.since,
            "guests": {str(vmid): self.guests[vmid] for vmid in sorted(self.guests)},
            "stopped": sorted(self.stopped),
            "storages": list(self.storages),
            "services": list(self.services),
            "version": self.version,
            "noout": self.noout,
            "booted": self.booted,
        }
        text = json.dumps(values, separators=(",", ":"))
        return f"<!-- pve.fleet maintenance {text} -->"


def split_record(node: str, notes: str) -> tuple[str, NodeRecord | None]:
    """Return the notes of a node without the comment, and the record.

    Raises Conflict for a record that cannot be read: guests may depend on it.
    """
    found = _COMMENT.search(notes)
    if found is None:
        return notes.strip("\n"), None
    rest = without_comment(notes)
    if found[1] == MAINTAINED:
        return rest, None
    try:
        values = json.loads(found[2])
        if values["phase"] not in PHASES:
            raise ValueError(values["phase"])
        record = NodeRecord(
            phase=str(values["phase"]),
            since=int(values["since"]),
            guests={int(vmid): str(mark) for vmid, mark in values["guests"].items()},
            stopped=frozenset(map(int, values["stopped"])),
            storages=tuple(map(str, values["storages"])),
            services=tuple(map(str, values["services"])),
            version=str(values["version"]),
            noout=values["noout"] is True,
            booted=int(values["booted"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        raise Conflict(
            f"The maintenance of node {node} could not be continued: the record in the notes of "
            "the node was edited and cannot be read",
            (
                "Return the guests of the node by hand, then remove the comment with"
                " 'pve.fleet maintenance' from its notes"
            ),
            "unreadable record",
        ) from None
    return rest, record


def join_record(notes: str, record: NodeRecord | None, plan: str = "") -> str:
    """Return notes followed by the record, or by the mark of the plan with this digest."""
    comment = f"<!-- pve.fleet {MAINTAINED} {plan} -->" if plan else ""
    if record is not None:
        comment = record.render()
    return "\n".join(filter(None, (notes.strip("\n"), comment)))


def maintained_by(notes: str) -> str:
    """Return the digest of the plan that has maintained the node, empty without a mark."""
    found = _COMMENT.search(notes)
    return found[2] if found is not None and found[1] == MAINTAINED else ""


def comment_in(notes: str) -> str:
    """Return the comment of a record exactly as in the notes, empty if there is none."""
    found = _COMMENT.search(notes)
    return found[0].strip() if found else ""


def without_comment(notes: str) -> str:
    """Return the notes without the comment of a record."""
    return _COMMENT.sub("", notes).strip("\n")
