# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The places of the boxes, texts and arrows of a picture (pure). README.md describes a source.

Lengths use the picture's own coordinates: pixels if it is shown in its size.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

WIDTH = 480
MARGIN = 16
LINE = 18
PADDING = 13
# Between the tip of an arrow and a text without a box.
PLAIN_INDENT = 8
# The offset of a line of text below its middle, so that it looks centred.
BASELINE = 5
# A gate lets an arrow pass or stops it.
GATES = ("open", "shut")
GATE_WIDTH, GATE_HEIGHT = 16, 34
Point = tuple[float, float]
_CODE = re.compile(r"`([^`]*)`")


@dataclass(frozen=True)
class Box:
    """A rectangle in the grid of a picture with its lines of text."""

    name: str
    kind: str
    align: str
    title: str
    lines: tuple[str, ...]
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def middle(self) -> Point:
        return self.left + self.width / 2, self.top + self.height / 2

    @property
    def is_gate(self) -> bool:
        return self.kind in GATES


@dataclass(frozen=True)
class Text:
    """A line of text: `parts` are pairs of a text and whether it is code."""

    x: float
    y: float
    anchor: str
    style: str
    parts: tuple[tuple[str, bool], ...]
    owner: str = ""


@dataclass(frozen=True)
class Arrow:
    """A way through points, from one box to another."""

    start: str
    end: str
    kind: str
    points: tuple[Point, ...]
    has_tip: bool


@dataclass(frozen=True)
class Picture:
    """A picture whose parts have their places."""

    title: str
    description: str
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    texts: tuple[Text, ...]


def laid_out(source: Mapping[str, Any]) -> Picture:
    """Return the picture that a source describes. Raises KeyError for an unknown box."""
    boxes, height = _boxes(source)
    arrows = tuple(_arrow(one, boxes) for one in source.get("arrows", ()))
    texts = [text for box in boxes.values() for text in _texts(box)]
    for arrow, given in zip(arrows, source.get("arrows", ()), strict=True):
        if "label" in given:
            texts.append(_label(arrow, given["label"], given.get("side", "right")))
    return Picture(
        title=source["title"],
        description=" ".join(source["description"].split()),
        height=height,
        boxes=tuple(boxes.values()),
        arrows=arrows,
        texts=tuple(texts),
    )


def _boxes(source: Mapping[str, Any]) -> tuple[dict[str, Box], float]:
    """Return the boxes by name, and the height of the picture."""
    lefts, widths = _columns(source)
    rows: list[list[dict[str, Any]]] = source["rows"]
    heights = [_row_height(row) for row in rows]
    gap = source["gap"]
    tops = [MARGIN + sum(heights[:number]) + gap * number for number in range(len(rows))]
    boxes: dict[str, Box] = {}
    for number, row in enumerate(rows):
        for cell in row:
            first, last = cell["column"] - 1, cell["column"] + cell.get("span", 1) - 2
            bottom_row = number + cell.get("rows", 1) - 1
            box = Box(
                name=cell["name"],
                kind=cell.get("kind", "box"),
                align=cell.get("align", "center"),
                title=cell.get("title", ""),
                lines=tuple(cell.get("text", "").splitlines()),
                left=lefts[first],
                top=tops[number],
                width=lefts[last] + widths[last] - lefts[first],
                height=tops[bottom_row] + heights[bottom_row] - tops[number],
            )
            boxes[box.name] = _as_gate(box)
    return boxes, tops[-1] + heights[-1] + MARGIN


def _columns(source: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return the left sides and the widths of the columns, which fill the width together."""
    shares: list[float] = source["columns"]
    gap = source.get("column_gap", 24)
    left = MARGIN + source.get("left", 0)
    room = WIDTH - MARGIN - source.get("right", 0) - left - gap * (len(shares) - 1)
    widths = [room * share / sum(shares) for share in shares]
    lefts = [left + sum(widths[:number]) + gap * number for number in range(len(widths))]
    return lefts, widths


def _row_height(row: list[dict[str, Any]]) -> float:
    """Return the height of the highest cell that is in this row only."""
    return max(_cell_height(cell) for cell in row if cell.get("rows", 1) == 1)


def _cell_height(cell: Mapping[str, Any]) -> float:
    lines = len(cell.get("text", "").splitlines()) + bool(cell.get("title"))
    padding = PADDING
    if cell.get("kind") == "plain":
        padding = 4
    return max(lines * LINE + 2 * padding - 4, cell.get("height", 0))


def _as_gate(box: Box) -> Box:
    """Return a gate in the middle of its cell; other boxes fill theirs."""
    if not box.is_gate:
        return box
    x, y = box.middle
    left, top = x - GATE_WIDTH / 2, y - GATE_HEIGHT / 2
    return replace(box, title="", left=left, top=top, width=GATE_WIDTH, height=GATE_HEIGHT)


def _texts(box: Box) -> Iterator[Text]:
    """Yield the lines of a box."""
    if box.is_gate:
        for line in box.lines:
            yield Text(box.right + 6, box.middle[1] + 4, "start", "label", parts(line))
        return
    lines = [(line, "") for line in box.lines]
    if box.title:
        lines.insert(0, (box.title, "title"))
    x, anchor = box.middle[0], "middle"
    if box.align == "left":
        x, anchor = box.left + PLAIN_INDENT, "start"
        if box.kind != "plain":
            x = box.left + PADDING
    y = box.middle[1] - (len(lines) - 1) * LINE / 2 + BASELINE
    for number, (line, style) in enumerate(lines):
        yield Text(x, y + number * LINE, anchor, style, parts(line), box.name)


def parts(line: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of a line, each with whether it is code."""
    pieces = _CODE.split(line)
    return tuple((piece, bool(number % 2)) for number, piece in enumerate(pieces) if piece)


def _arrow(given: Mapping[str, Any], boxes: Mapping[str, Box]) -> Arrow:
    start, end = boxes[given["from"]], boxes[given["to"]]
    return Arrow(
        start=start.name,
        end=end.name,
        kind=given.get("kind", "way"),
        points=_way(given, start, end),
        has_tip=end.kind != "shut",
    )


def _way(given: Mapping[str, Any], start: Box, end: Box) -> tuple[Point, ...]:
    """Return the points of an arrow: straight if the boxes face each other, else with a bend, or
    around other boxes if a lane is given.
    """
    lane = given.get("lane")
    if lane is not None:
        return _around(lane, start, end)
    shared = _shared(start.top, start.bottom, end.top, end.bottom)
    if shared is not None:
        if start.right <= end.left:
            return (start.right, shared), (end.left, shared)
        return (start.left, shared), (end.right, shared)
    shared = _shared(start.left, start.right, end.left, end.right)
    if shared is not None:
        if start.bottom <= end.top:
            return (shared, start.bottom), (shared, end.top)
        return (shared, start.top), (shared, end.bottom)
    return _bent(start, end)


def _shared(first: float, last: float, other_first: float, other_last: float) -> float | None:
    """Return the middle of the overlap of two ranges, or None."""
    low, high = max(first, other_first), min(last, other_last)
    if low >= high:
        return None
    return (low + high) / 2


def _around(lane: float, start: Box, end: Box) -> tuple[Point, ...]:
    """Return a way beside the boxes: on their right, or for a negative lane on their left."""
    y, other_y = start.middle[1], end.middle[1]
    if lane < 0:
        x = min(start.left, end.left) + lane
        return (start.left, y), (x, y), (x, other_y), (end.left, other_y)
    x = max(start.right, end.right) + lane
    return (start.right, y), (x, y), (x, other_y), (end.right, other_y)


def _bent(start: Box, end: Box) -> tuple[Point, ...]:
    """Return a way that leaves to the side and arrives from above or below."""
    y, x = start.middle[1], end.middle[0]
    side = start.right
    if x < start.left:
        side = start.left
    arrival = end.top
    if end.top < start.top:
        arrival = end.bottom
    return (side, y), (x, y), (x, arrival)


def _label(arrow: Arrow, text: str, side: str) -> Text:
    """Return the label of an arrow: beside a vertical part, above a horizontal one."""
    (x, y), (other_x, other_y) = arrow.points[-2:]
    middle_y = (y + other_y) / 2
    if x != other_x:
        return Text((x + other_x) / 2, y - 6, "middle", "label", parts(text))
    if side == "left":
        return Text(x - 8, middle_y + 4, "end", "label", parts(text))
    return Text(x + 8, middle_y + 4, "start", "label", parts(text))
