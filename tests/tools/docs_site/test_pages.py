# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site in a real browser. `make docs` builds the site and runs this; it is
skipped where there is no Chromium.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.modules.browser import Browser, open_browser
from tests.tools.docs_site.__main__ import HTML, SITE

# Pages that people write; those of the reference are alike, so that some of them are enough.
GUIDES = sorted(
    page.relative_to(HTML).as_posix()
    for page in HTML.rglob("*.html")
    if page.relative_to(HTML).parts[0] not in ("reference", "_static")
)
REFERENCE = ("reference/index.html", "reference/vm_module.html", "reference/proxmox_inventory.html")
NARROW, WIDE = 400, 1400

LINKS = "[...document.querySelectorAll('a[href], img[src]')].map(one => one.href || one.src)"
# What Sphinx, the theme or docutils write into a page where something is wrong with it.
MARKED = "article .system-message, article .problematic"
ERRORS = f"""[...document.querySelectorAll('{MARKED}')]
  .concat([...document.querySelectorAll('article p')].filter(one => /^ERROR/.test(one.textContent)))
  .map(one => one.textContent)"""
HIDDEN_WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SEARCHES = {
    "tenant": "docs/tenants.html",
    "quota": "docs/placement.html",
    "rollback": "docs/snapshots.html",
    "ssh_keys": "docs/cloud-init.html",
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert GUIDES, "there is no site; `make docs` builds it"
    with open_browser() as found:
        yield found


@pytest.fixture(scope="module")
def anchors() -> dict[Path, str]:
    """The text of each page that was looked into, by its place."""
    return {}


def broken(addresses: list[str], texts: dict[Path, str]) -> list[str]:
    """Return the addresses within the site that lead to no page or to no place on it."""
    wrong: list[str] = []
    for address in dict.fromkeys(addresses):
        if not address.startswith("file://"):
            continue
        plain, anchor = urldefrag(address)
        file = Path(unquote(plain.removeprefix("file://").partition("?")[0]))
        if not file.is_file() or SITE not in file.parents:
            wrong.append(address)
            continue
        if not anchor or file.suffix != ".html":
            continue
        text = texts.setdefault(file, file.read_text(encoding="utf-8"))
        if f'id="{unquote(anchor)}"' not in text:
            wrong.append(address)
    return wrong


@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE])
def test_a_page_opens_on_narrow_and_wide_screens(
    browser: Browser, anchors: dict[Path, str], page: str
) -> None:
    for width in (NARROW, WIDE):
        browser.open(HTML / page, width=width, dark=width == NARROW)
        assert browser.evaluate(HIDDEN_WIDTH) <= 0, f"wider than a screen of {width} pixels"
        assert browser.complaints() == []
    assert browser.evaluate(ERRORS) == []
    assert broken(browser.evaluate(LINKS), anchors) == []
    outside = [url for url in browser.requests() if not url.startswith(("file://", "data:"))]
    assert outside == []


@pytest.mark.parametrize("word", SEARCHES)
def test_the_search_finds_the_page(browser: Browser, word: str) -> None:
    browser.open(HTML / "search.html", width=WIDE)
    browser.evaluate(f"(Search.performSearch('{word}'), 1)")
    found = "[...document.querySelectorAll('ul.search a')].map(one => one.href)"
    # The results come one after the other; the time limit of every test ends a search in vain.
    while not any(SEARCHES[word] in address for address in browser.evaluate(found)):
        time.sleep(0.1)
