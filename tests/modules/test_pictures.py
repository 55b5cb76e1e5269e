# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pictures of the guides in a real browser: texts are inside their boxes, apart from each other,
and readable on narrow and wide screens, in light and dark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.modules.browser import Browser, open_browser
from tests.tools.pictures.__main__ import SOURCES, drawn, place_of

NARROW, WIDE = 400, 1400
# A page of the site has this much space beside its text on a telephone, in pixels.
BESIDE = 32
SMALLEST_FONT = 9
# Fonts differ by reader: a text is this much wider than measured, at most.
SPARE = 4

TEXTS = "[...document.querySelectorAll('text')]"
# Texts that are not inside their box, or for those without a box not inside the picture.
OUTSIDE = f"""{TEXTS}.filter(text => {{
  const own = document.getElementById(text.dataset.box) ?? document.querySelector('.page');
  const box = own.getBBox(), at = text.getBBox(), spare = {SPARE};
  return at.x < box.x + spare || at.x + at.width > box.x + box.width - spare
    || at.y < box.y || at.y + at.height > box.y + box.height;
}}).map(text => text.textContent)"""
# Pairs of texts that share a point.
OVERLAPS = f"""{TEXTS}.flatMap((one, number, all) => all.slice(number + 1).filter(other => {{
  const a = one.getBBox(), b = other.getBBox(), line = 3;  // a line may reach into the next one
  return a.x < b.x + b.width && b.x < a.x + a.width
    && a.y + line < b.y + b.height && b.y + line < a.y + a.height;
}}).map(other => one.textContent + ' / ' + other.textContent))"""
# Texts that an arrow goes through.
ARROWS = "[...document.querySelectorAll('.way, .pass, .fail')]"
CROSSED = f"""{TEXTS}.filter(text => {ARROWS}.some(path => {{
  const at = text.getBBox(), length = path.getTotalLength();
  return Array.from({{length: Math.ceil(length)}}, (_, step) => path.getPointAtLength(step)).some(
    point => point.x > at.x && point.x < at.x + at.width
      && point.y > at.y && point.y < at.y + at.height);
}})).map(text => text.textContent)"""
# For each text its contrast with what is behind it, as WCAG has it.
CONTRAST = f"""(() => {{
  const light = color => {{
    const [r, g, b] = color.match(/[0-9.]+/g).map(one => one / 255).map(
      one => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }};
  return {TEXTS}.map(text => {{
    const back = document.getElementById(text.dataset.box) ?? document.querySelector('.page');
    const both = [text, back].map(one => light(getComputedStyle(one).fill));
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  }});
}})()"""
FONTS = f"{TEXTS}.map(text => parseFloat(getComputedStyle(text).fontSize))"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_texts_have_their_room(browser: Browser, source: Path) -> None:
    browser.open(place_of(source), width=WIDE)
    assert browser.evaluate(f"{TEXTS}.length") > 0
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(OVERLAPS) == []
    assert browser.evaluate(CROSSED) == []
    assert browser.requests() == [place_of(source).as_uri()]


def test_texts_without_room_are_found(browser: Browser, tmp_path: Path) -> None:
    long = "much longer than the box and the picture " * 3
    rows = [
        [{"name": "a", "column": 1, "title": "A"}, {"name": "b", "column": 2, "title": long}],
        [{"name": "c", "column": 1, "title": "C"}, {"name": "d", "column": 2, "kind": "plain"}],
        [{"name": "e", "column": 1, "title": "E"}],
    ]
    rows[1][1]["text"] = "wide enough to reach over the other column"
    arrows = [{"from": "a", "to": "c"}, {"from": "a", "to": "e", "lane": 170, "label": "e"}]
    source = {"title": "T", "description": "D", "columns": [1, 1], "gap": 20}
    file = tmp_path / "picture.svg"
    file.write_text(drawn({**source, "rows": rows, "arrows": arrows}), encoding="utf-8")
    browser.open(file, width=WIDE)
    assert long in browser.evaluate(OUTSIDE)
    assert browser.evaluate(OVERLAPS) == [f"A / {long}"]
    assert browser.evaluate(CROSSED) == [long, rows[1][1]["text"]]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_texts_stand_out(browser: Browser, source: Path, dark: bool) -> None:
    browser.open(place_of(source), width=WIDE, dark=dark)
    assert min(browser.evaluate(CONTRAST)) >= 4.5


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)
def test_texts_are_large_enough_on_a_page(
    browser: Browser, source: Path, width: int, tmp_path: Path
) -> None:
    address = place_of(source).as_uri()
    browser.open(place_of(source), width=WIDE)
    smallest = min(browser.evaluate(FONTS))
    own_width = browser.evaluate("document.documentElement.viewBox.baseVal.width")
    page = tmp_path / "page.html"
    style = f"margin: 0 {BESIDE // 2}px"
    page.write_text(f'<body style="{style}"><img src="{address}" style="max-width: 100%">')
    browser.open(page, width=width)
    # An image has no width until it is drawn, which on a busy machine is after the page is loaded.
    browser.wait("document.images[0].getBoundingClientRect().width > 0")
    shown = browser.evaluate("document.images[0].getBoundingClientRect().width")
    assert browser.evaluate("document.images[0].naturalWidth") > 0
    assert smallest * shown / own_width >= SMALLEST_FONT
