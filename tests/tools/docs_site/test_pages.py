# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The documentation site in a real browser. `make docs` builds the site and runs this; it is
skipped without Chromium.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from tests.modules.browser import Browser, open_browser
from tests.tools.docs_site.__main__ import HTML, SITE
from tests.tools.docs_site.conf import html_baseurl
from tests.tools.stage import REPO

# Pages written by people; pages of the reference are alike, so that some of them are enough.
GUIDES = sorted(
    page.relative_to(HTML).as_posix()
    for page in HTML.rglob("*.html")
    if page.relative_to(HTML).parts[0] not in ("reference", "_static")
)
REFERENCE = ("reference/index.html", "reference/vm_module.html", "reference/proxmox_inventory.html")
# Pages without a source of their own.
UNEDITED = ("genindex.html", "search.html", "reference/index.html")
NARROW, WIDE = 400, 1400

LINKS = "[...document.querySelectorAll('a[href], img[src]')].map(one => one.href || one.src)"
# Marks of Sphinx, the theme or docutils for an error in a page.
MARKED = "article .system-message, article .problematic"
ERRORS = f"""[...document.querySelectorAll('{MARKED}')]
  .concat([...document.querySelectorAll('article p')].filter(one => /^ERROR/.test(one.textContent)))
  .map(one => one.textContent)"""
HIDDEN_WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# A guide that each word finds; pages for developers, such as decisions, come after the guides.
SEARCHES = {
    "tenant": "docs/tenants.html",
    "quota": "docs/placement.html",
    "rollback": "docs/snapshots.html",
    "snapshot": "docs/snapshots.html",
    "vm": "docs/vm.html",
    "ssh_keys": "docs/cloud-init.html",
}
DEVELOPERS = ("docs/decisions/", "docs/architecture.html", "CONTRIBUTING.html")


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
def test_the_search_ranks_guides_before_pages_for_developers(browser: Browser, word: str) -> None:
    browser.open(HTML / "search.html", width=WIDE)
    browser.evaluate(f"(Search.performSearch('{word}'), 1)")
    # Results arrive one after another, and Sphinx writes the status line after the last one.
    # `Search._pulse_status` is not a sign of the end: its pending timer counts on.
    while not browser.evaluate("Search.status.innerText"):
        time.sleep(0.1)
    addresses = browser.evaluate(
        "[...document.querySelectorAll('ul.search a')].map(one => one.href)"
    )
    first = [url.removeprefix(HTML.as_uri()) for url in addresses[:10]]
    assert any(SEARCHES[word] in url for url in first), first
    assert not [url for url in first if any(page in url for page in DEVELOPERS)], first


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_words: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of the site on a server."""
    handler = partial(_Quiet, directory=str(HTML))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.parametrize(
    ("page", "word", "expected"),
    [
        ("index.html", "quot", "docs/placement.html"),
        ("docs/vm.html", "rollback", "docs/snapshots.html"),
        ("docs/vm.html", "password", "docs/cloud-init.html"),
    ],
)
def test_the_search_answers_while_a_word_is_typed(
    browser: Browser, address: str, page: str, word: str, expected: str
) -> None:
    browser.open(f"{address}/{page}", width=WIDE)
    field = "document.querySelector('#live-search input')"
    browser.wait(f"{field} !== null")
    browser.evaluate(f"({field}.value = '{word}', {field}.dispatchEvent(new Event('input')), 1)")
    results = "[...document.querySelectorAll('#live-search a')].map(one => one.href)"
    browser.wait(f"{results}.length > 0")
    found = browser.evaluate(results)[:10]
    assert any(expected in one for one in found), found
    assert not [one for one in found if any(page in one for page in DEVELOPERS)], found


def test_a_phone_opens_the_search_with_one_touch(browser: Browser, address: str) -> None:
    browser.open(f"{address}/docs/vm.html", width=NARROW)
    field = "document.querySelector('#live-search input')"
    browser.wait(f"{field} !== null")
    browser.evaluate("(document.querySelector('.header-search').click(), 1)")
    browser.wait(f"document.activeElement === {field}")
    browser.wait(f"{field}.getBoundingClientRect().left >= 0")


VISIBLE = "[...document.querySelectorAll('{}')].filter(one => one.offsetWidth > 0).length"


def test_the_first_screen_has_three_ways_to_start(browser: Browser) -> None:
    browser.open(HTML / "index.html", width=WIDE)
    bottom = "one => one.getBoundingClientRect().bottom"
    first = "document.querySelector('.sd-container-fluid')"
    found = browser.evaluate(f"[...{first}.querySelectorAll('.sd-card')].map({bottom})")
    assert len(found) == 3
    assert max(found) < 500


@pytest.mark.parametrize(("width", "shown"), [(NARROW, "for-phones"), (WIDE, "for-screens")])
def test_a_phone_has_a_narrow_picture_of_the_terminal(
    browser: Browser, width: int, shown: str
) -> None:
    browser.open(HTML / "index.html", width=width)
    assert browser.evaluate(VISIBLE.format(f"img.{shown}")) == 1
    assert browser.evaluate(VISIBLE.format("img.for-phones, img.for-screens")) == 1


def test_copy_buttons_are_visible_without_a_mouse(browser: Browser) -> None:
    browser.open(HTML / "docs/vm.html", width=NARROW)
    opacity = "getComputedStyle(document.querySelector('button.copybtn')).opacity"
    assert float(browser.evaluate(opacity)) > 0.5


def test_a_wide_table_shows_that_it_continues(browser: Browser) -> None:
    """Some phones show no scroll bar, so that the shadow is the sign."""
    browser.open(HTML / "docs/benchmarks.html", width=NARROW)
    tables = "[...document.querySelectorAll('.table-wrapper')]"
    wide = f"{tables}.filter(one => one.scrollWidth > one.clientWidth)"
    assert browser.evaluate(f"{wide}.length") > 0
    images = browser.evaluate(f"{wide}.map(one => getComputedStyle(one).backgroundImage)")
    assert all("radial-gradient" in image for image in images)


@pytest.mark.parametrize("page", [*GUIDES, *REFERENCE])
def test_a_page_names_its_source_and_its_picture_for_other_sites(page: str) -> None:
    text = (HTML / page).read_text(encoding="utf-8")
    for source in re.findall(r'href="[^"]*/edit/main/([^"]+)"', text):
        assert (REPO / source).is_file()
    assert ("/edit/main/" in text) == (page not in UNEDITED)
    if page not in ("genindex.html", "search.html"):
        assert f'property="og:url" content="{html_baseurl}{page}"' in text
        assert (HTML / "_images/report.png").is_file()
