# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A plan as text and as Markdown, and the moves in it (pure)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

from ..core.formatting import printable
from ..core.quantities import render_size
from ..core.times import iso
from .document import Change, Document
from .requests import PlannedRequest


@dataclass(frozen=True)
class Move:
    """A guest that changes its node; a new guest comes from no node, a removed one goes to none."""

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
            lines += ["````text", *map(request_line, change.requests), *_room(change), "````", ""]
            lines += ["</details>", ""]
    lines += [f"Digest: `{document.digest}`"]
    return "\n".join(lines) + "\n"


def moves_of(document: Document) -> list[Move]:
    """Return the guests whose node changes, and new and removed guests."""
    return [move for part in document.parts for move in _moves(part.changes)]


def _moves(changes: tuple[Change, ...]) -> Iterator[Move]:
    for change in changes:
        if change.guest is None:
            continue
        source, target = (str(side.get("node") or "") for side in (change.before, change.after))
        if not change.before:
            target = change.guest.node
        elif not change.after:
            source = change.guest.node
        if source != target:
            yield Move(label_of(change), source, target)


def label_of(change: Change) -> str:
    """Return the guest of a change, or the label or the first step of another resource."""
    if change.guest is None:
        return change.label or change.requests[0].summary
    return f"{change.guest.tenant}/{change.guest.name}".lstrip("/")


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
