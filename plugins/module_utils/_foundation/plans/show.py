# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as text and as Markdown, and the moves in it (pure)."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ..core.formatting import printable
from ..core.quantities import render_size
from ..core.times import iso
from .document import Change, Document
from .requests import PlannedRequest

_BETWEEN_SITES = "relocate"


@dataclass(frozen=True)
class Move:
    """A guest that changes its node; a new guest comes from no node, a removed one goes to none.
    Nodes have their site, such as C(vienna/pve1).
    """

    label: str
    source: str
    target: str


def text_of(document: Document) -> list[str]:
    """Return the lines of a plan for a terminal."""
    lines = [f"Plan {document.digest}", f"  {_times(document)}"]
    for part in document.parts:
        lines += ["", f"{part.title}, planned by {part.login}", *part.lines]
    return [printable(line) for line in lines]


def markdown_of(document: Document) -> str:
    """Return a plan as Markdown, such as a comment in a pull request."""
    lines = [f"### Plan `{document.digest[:19]}`", "", f"{_times(document)}.", ""]
    for part in document.parts:
        lines += [f"**{printable(part.title)}**, planned by `{part.login}`", ""]
        lines += ["````diff", *map(printable, part.lines), "````", ""]
        for change in part.changes:
            lines += ["<details>", f"<summary>{_escaped(label_of(change))}</summary>", ""]
            lines += ["````text", *lines_of_change(change), "````", ""]
            lines += ["</details>", ""]
    lines += [f"Digest: `{document.digest}`"]
    return "\n".join(lines) + "\n"


def moves_of(document: Document) -> list[Move]:
    """Return the guests whose node changes, and new and removed guests. A guest that leaves a site
    for another one has a change at each of them, and one move.
    """
    found: dict[tuple[str, ...], Move] = {}
    for part in document.parts:
        for change in part.changes:
            move = _move(change, part.site)
            if move is None or change.guest is None:
                continue
            own = (part.task, part.subject, *change.guest.key, part.site, str(change.guest.vmid))
            both = own[:-2]
            other = found.get(both)
            if part.task == _BETWEEN_SITES and (other is None or _completes(move, other)):
                found[both] = _joined(move, other or move)
            else:
                found.setdefault(own, move)
    return list(found.values())


def _completes(move: Move, other: Move) -> bool:
    """Return whether one of two moves is the departure of a guest, and the other its arrival."""
    return not (move.source and other.source) and not (move.target and other.target)


def _joined(move: Move, other: Move) -> Move:
    return Move(move.label, other.source or move.source, other.target or move.target)


def _move(change: Change, site: str) -> Move | None:
    if change.guest is None:
        return None
    source, target = (str(side.get("node") or "") for side in (change.before, change.after))
    if not change.before:
        target = change.guest.node
    elif not change.after:
        source = change.guest.node
    if source == target:
        return None
    places = [f"{site}/{node}" if node else "" for node in (source, target)]
    return Move(label_of(change), *places)


def label_of(change: Change) -> str:
    """Return the guest of a change, or the label or the first step of another resource."""
    if change.guest is None:
        return change.label or change.requests[0].summary
    return f"{change.guest.tenant}/{change.guest.name}".lstrip("/")


def lines_of_change(change: Change) -> list[str]:
    """Return the requests of a change, and the room that it needs."""
    return [*map(request_line, change.requests), *_room(change)]


def _room(change: Change) -> list[str]:
    """Return the line about the room that a change needs on its node, if any."""
    if change.guest is None or not change.guest.room:
        return []
    room = change.guest.room
    parts = [f"{render_size(room['memory'])} of memory"] if room["memory"] else []
    parts += [f"{render_size(size)} on {name}" for name, size in room["storages"].items()]
    return [printable(f"Needs on {change.guest.node}: {', '.join(parts)}")]


def request_line(request: PlannedRequest) -> str:
    """Return a request as one line, after its summary."""
    data = json.dumps(request.data, sort_keys=True) if request.data else ""
    return printable(f"{request.summary}: {request.method} {request.path} {data}".rstrip())


def _times(document: Document) -> str:
    text = f"Made {iso(document.created)}, valid until {iso(document.expires)}"
    return f"{text}, for version {printable(document.commit)}" if document.commit else text


def _escaped(text: str) -> str:
    return printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
