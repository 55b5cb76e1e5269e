# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of drills and of plans in a real browser, on a narrow and on a wide screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.pve.fleet.plugins.filter.drill_html import drill_html
from ansible_collections.pve.fleet.plugins.filter.plan_text import plan_text
from tests.modules.browser import Browser, open_browser
from tests.modules.test_report_page import OUTSIDE
from tests.unit.module_utils.drill.test_page import NODE, record
from tests.unit.module_utils.drill.test_record import FAILED, PROVEN
from tests.unit.module_utils.plans.test_show import plan_of

VOLUME = "nas-of-the-second-site:backup/vzdump-qemu-100-2026_11_20-10_00_00.vma.zst"
WHY = "No archive of VM 'db' was restored: there is none, and the next backup is in the night"
# The words of figures that are on two lines.
BROKEN_WORDS = """
[...document.querySelectorAll('.num')].flatMap(cell => {
  const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = []
  while (texts.nextNode()) {
    for (const word of texts.currentNode.data.matchAll(/\\S+/g)) {
      const range = document.createRange()
      range.setStart(texts.currentNode, word.index)
      range.setEnd(texts.currentNode, word.index + word[0].length)
      if (range.getClientRects().length > 1) found.push(word[0])
    }
  }
  return found
})
"""


ROOT = Path(__file__).resolve().parents[2]
DOCS, SOURCES = ROOT / "docs", ROOT / "tests" / "tools" / "pictures"
# The labels of arrows that run into a box. A text within a box is as wide as its box at most.
INTO_BOXES = """
(() => {
  const boxes = [...document.querySelectorAll('rect:not(.page)')].map(one => one.getBoundingClientRect())
  const common = (one, other, from, to) => Math.min(one[to], other[to]) - Math.max(one[from], other[from])
  return [...document.querySelectorAll('text')].filter(text => {
    const place = text.getBoundingClientRect()
    return boxes.some(box => common(place, box, 'left', 'right') > 2 && common(place, box, 'top', 'bottom') > 4
      && (place.left < box.left - 1 || place.right > box.right + 1))
  }).map(text => text.textContent)
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.mark.parametrize("width", [400, 1400])
def test_a_drill(browser: Browser, tmp_path: Path, width: int) -> None:
    proven = {**PROVEN, **NODE, "volume": VOLUME}
    failed = {**FAILED, "vmid": 101, "name": "a-database-of-the-second-site", "msg": WHY}
    page = tmp_path / "drill.html"
    page.write_text(drill_html(record(proven, {**failed, "volume": VOLUME})), encoding="utf-8")
    browser.open(page, width=width)
    assert "not measured" in browser.evaluate("document.body.textContent")
    assert browser.evaluate(BROKEN_WORDS) == []
    assert browser.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("width", [400, 1400])
def test_a_plan(browser: Browser, tmp_path: Path, width: int) -> None:
    page = tmp_path / "plan.html"
    page.write_text(plan_text(plan_of("web").render(), "html"), encoding="utf-8")
    browser.open(page, width=width)
    # Neither the page nor the picture is scrolled sideways to read where a guest is created.
    rows = "[...document.querySelectorAll('.moves, .moves li, .moves span')]"
    assert browser.evaluate(f"{rows}.every(one => one.scrollWidth <= one.clientWidth + 9)")
    assert browser.evaluate(f"{rows}.every(one => one.getBoundingClientRect().right <= {width})")
    assert browser.evaluate("document.querySelectorAll('.moves li').length") > 0
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate(OUTSIDE) == []


def test_labels_of_pictures_are_beside_the_boxes(browser: Browser) -> None:
    found = {}
    for source in sorted(SOURCES.glob("*.yml")):
        browser.open(DOCS / f"{source.stem}.svg", width=1400)
        found[source.stem] = browser.evaluate(INTO_BOXES)
    assert {name: labels for name, labels in found.items() if labels} == {}
