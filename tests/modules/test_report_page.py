# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page in a real browser: readable at any width, in light and dark, and on paper."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.report.history import (
    HistoryEntry,
    ReportHistory,
)
from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
from tests.modules.browser import Browser, open_browser
from tests.modules.estate_lab import open_lab
from tests.modules.report_lab import add_backup, gathered
from tests.modules.snapshot_lab import machine, take
from tests.unit.module_utils.report.readings import report_on
from tests.unit.module_utils.report.test_page import HOSTILE

LONG = "a-name-without-a-place-to-break-it-" * 8
WIDTHS = (400, 1400)
# What sticks out of the page to the right, but for tables that can be scrolled.
OUTSIDE = """
[...document.querySelectorAll('body *')]
  .filter(one => !one.closest('.scroll, .skip, svg'))
  .filter(one => one.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
  .map(one => one.outerHTML.slice(0, 120))
"""
BROKEN = """
[...document.querySelectorAll('a')]
  .map(one => one.getAttribute('href'))
  .filter(href => !href.startsWith('#') || !document.getElementById(href.slice(1)))
"""
# The contrast of each text with what is behind it (WCAG 2, relative luminance).
CONTRAST = """
(() => {
  const parse = text => text.match(/[0-9.]+/g).map(Number)
  const channel = one => (one /= 255) <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
  const back = one => {
    for (; one; one = one.parentElement) {
      const color = parse(getComputedStyle(one).backgroundColor)
      if (color.length < 4 || color[3] === 1) return color
    }
    return [255, 255, 255]
  }
  const found = new Set()
  for (const one of document.querySelectorAll('body *')) {
    const own = [...one.childNodes].some(node => node.nodeType === 3 && node.data.trim())
    if (!own || one.closest('svg, .skip')) continue
    const pair = [light(parse(getComputedStyle(one).color)), light(back(one))]
    const ratio = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05)
    if (ratio < 4.5) found.add(one.className + ' ' + one.tagName + ' ' + ratio.toFixed(2))
  }
  return [...found]
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    """A report on VMs of the simulator, with an earlier one to compare with."""
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as lab:
        machine(lab, name="web", tags="tenant_acme", running=True, agent="1")
        first = gathered(lab)["history"]
        safe = machine(lab, name="db", tags="tenant_acme", agent="1")
        add_backup(lab, safe, 60)
        take(lab, safe, "before")
        machine(lab, name="scratch")
        report: dict[str, Any] = gathered(
            lab,
            history=json.dumps(first),
            prices={"core": "4.50", "currency": "EUR"},
            tenants={"acme": {"quota": {"vms": 1, "memory": "4G"}}},
            estate={"vms": [{"name": "web", "tenant": "acme", "cores": 2}]},
        )["report"]
    return report


@pytest.fixture(scope="module")
def pages(real: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The page of that report, and pages of texts that want to be more than texts."""
    folder = tmp_path_factory.mktemp("pages")
    reports = {
        "real": real,
        "hostile": report_on(HOSTILE),
        "long": report_on([LONG], ReportHistory([HistoryEntry("2026-01-01T00:00:00Z", {})])),
    }
    found: dict[str, Path] = {}
    for name, report in reports.items():
        found[name] = folder / f"{name}.html"
        found[name].write_text(page_of(report, name), encoding="utf-8")
    return found


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["real", "hostile", "long"])
def test_on_a_screen(
    browser: Browser, pages: dict[str, Path], name: str, width: int, dark: bool
) -> None:
    page = pages[name]
    browser.open(page, width=width, dark=dark)
    assert browser.complaints() == []
    assert browser.requests() == [page.as_uri()]
    assert browser.evaluate(BROKEN) == []
    assert browser.evaluate("document.documentElement.scrollWidth") == width
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(CONTRAST) == []
    back = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, back[4:-1].split(","))) < 200) is dark
    # nothing is so small that it cannot be read
    sizes = (
        "[...document.querySelectorAll('body *')].map(one => getComputedStyle(one).fontSize)"
        ".map(parseFloat)"
    )
    assert browser.evaluate(f"Math.min(...{sizes})") >= 11


def test_a_name_of_a_vm_stays_text(browser: Browser, pages: dict[str, Path]) -> None:
    browser.open(pages["hostile"], width=1400)
    assert browser.evaluate("document.querySelectorAll('script, img, b').length") == 0
    text = browser.evaluate("document.querySelector('#vms').textContent")
    assert HOSTILE[0] in text
    title = browser.evaluate("document.querySelector('svg title').textContent")
    assert "<" in title


def test_on_paper(browser: Browser, pages: dict[str, Path]) -> None:
    """Dark screens print on white, and what is folded up on a screen is printed."""
    browser.open(pages["real"], width=800, dark=True, media="print")
    assert browser.complaints() == []
    white = "rgb(255, 255, 255)"
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == white
    assert browser.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    assert browser.evaluate("document.documentElement.scrollWidth") == 800
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(CONTRAST) == []
    assert browser.printed().startswith(b"%PDF")


def test_what_is_folded_up_is_printed(browser: Browser, tmp_path: Path) -> None:
    report = report_on(["web"])
    risk = next(risk for risk in report["attention"] if risk["kind"] == "drift")
    risk["cases"] = [{**risk["cases"][0], "text": f"item {number}"} for number in range(40)]
    risk["count"] = 40
    page = tmp_path / "many.html"
    page.write_text(page_of(report, "many"), encoding="utf-8")
    last = "[...document.querySelectorAll('details li')].pop()"
    visible = f"{last}.checkVisibility() && {last}.getBoundingClientRect().height > 0"
    browser.open(page, width=1000)
    assert browser.evaluate("document.querySelector('summary').textContent") == "28 more"
    assert not browser.evaluate(visible)
    browser.open(page, width=1000, media="print")
    assert browser.evaluate(visible)


def test_names_for_those_who_cannot_see(browser: Browser, pages: dict[str, Path]) -> None:
    """Each picture has a role and a name, each table its heads, each section a heading."""
    browser.open(pages["real"], width=1400)
    unnamed = (
        "[...document.querySelectorAll('svg')].filter(one => one.getAttribute('role') !== 'img'"
        " || one.firstElementChild.tagName !== 'title' || !one.textContent.trim()).length"
    )
    assert browser.evaluate("document.querySelectorAll('svg').length") > 10
    assert browser.evaluate(unnamed) == 0
    heads = "[...document.querySelectorAll('th')].every(one => one.hasAttribute('scope'))"
    assert browser.evaluate(heads)
    assert browser.evaluate("document.documentElement.lang") == "en"
