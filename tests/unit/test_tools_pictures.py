# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of the guides are those of their sources, say in words what they show, and stand in a
guide. tests/modules/test_pictures.py looks at them in a browser.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.tools.pictures.__main__ import DOCS, SOURCES, drawn, load, place_of
from tests.tools.pictures.layout import Arrow, Box, Picture, Point, laid_out

SVG = "{http://www.w3.org/2000/svg}"
Segment = tuple[Point, Point]
# Two boxes above each other on the left, and two beside them.
SMALL: Mapping[str, Any] = {
    "title": "Four boxes",
    "description": "Two boxes above each other, and two beside them.",
    "columns": [1, 1],
    "gap": 20,
    "rows": [
        [{"name": "a", "column": 1, "title": "A"}, {"name": "b", "column": 2, "text": "b <`c`>"}],
        [{"name": "c", "column": 1, "title": "C"}, {"name": "d", "column": 2, "title": "D"}],
    ],
}


def small(*arrows: Mapping[str, Any]) -> Picture:
    return laid_out({**SMALL, "arrows": list(arrows)})


def segments(arrow: Arrow) -> Iterator[Segment]:
    yield from zip(arrow.points, arrow.points[1:], strict=False)


def touch(one: Segment, other: Segment) -> bool:
    """Return whether two segments, each level or upright, have a point in common."""
    return overlap(one, other, 0) and overlap(one, other, 1)


def overlap(one: Segment, other: Segment, axis: int) -> bool:
    first, last = sorted(point[axis] for point in one)
    other_first, other_last = sorted(point[axis] for point in other)
    return first <= other_last and other_first <= last


def faults(picture: Picture) -> list[str]:
    """Return the arrows that cross each other, or a box that is not theirs."""
    found: list[str] = []
    for one, other in combinations(picture.arrows, 2):
        if any(touch(a, b) for a in segments(one) for b in segments(other)):
            found.append(f"{one.start}-{one.end} meets {other.start}-{other.end}")
    for arrow in picture.arrows:
        for box in picture.boxes:
            is_own = box.name in (arrow.start, arrow.end)
            if not is_own and box.kind != "open" and any(map(area(box), segments(arrow))):
                found.append(f"{arrow.start}-{arrow.end} meets {box.name}")
    return found


def area(box: Box) -> Any:
    corners = ((box.left, box.top), (box.right, box.bottom))
    return lambda segment: touch(segment, corners)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_picture_is_that_of_its_source(source: Path) -> None:
    """Where this fails: python -m tests.tools.pictures."""
    assert place_of(source).read_text(encoding="utf-8") == drawn(load(source))


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_no_arrow_crosses_another_one_or_a_box(source: Path) -> None:
    assert faults(laid_out(load(source))) == []


def test_crossing_arrows_are_found() -> None:
    assert faults(small({"from": "a", "to": "b"}, {"from": "c", "to": "d"})) == []
    bent = small({"from": "a", "to": "d"}, {"from": "b", "to": "d"})
    assert faults(bent) == ["a-d meets b-d", "a-d meets b"]
    assert faults(small({"from": "a", "to": "c", "lane": -8})) == []
    assert faults(small({"from": "a", "to": "c", "lane": 40})) == ["a-c meets b", "a-c meets d"]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_picture_says_in_words_what_it_shows(source: Path) -> None:
    root = ElementTree.parse(place_of(source)).getroot()
    assert root is not None
    labels = str(root.get("aria-labelledby")).split()
    named = {one.get("id"): one for one in root.iter() if one.tag in (f"{SVG}title", f"{SVG}desc")}
    assert [len("".join(named[label].itertext())) > 20 for label in labels] == [True, True]
    assert root.get("role") == "img"


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_a_guide_has_the_picture(source: Path) -> None:
    guides = [page.read_text(encoding="utf-8") for page in DOCS.glob("*.md")]
    assert any(f"]({source.stem}.svg)" in guide for guide in guides)


def test_texts_are_escaped_and_code_is_marked() -> None:
    assert '>b &lt;<tspan class="code">c</tspan>&gt;</text>' in drawn(SMALL)


def test_an_arrow_to_an_unknown_box_is_refused() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        small({"from": "a", "to": "nowhere"})
