# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page is well-formed, asks for nothing, and shows every text of others as text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.quota import (
    QuotaFigures,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.formatting import printable
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.document import (
    document_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.history import (
    HistoryEntry,
    ReportHistory,
)
from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
from tests.unit.module_utils.report.readings import NOW, report_on, wanted

VOID = {"meta", "link", "br", "rect", "polygon", "polyline"}
TAGS = VOID | set(
    "html head title style body header nav main section article footer div p span strong a h1 h2"
    " h3 h4 ul li dl dt dd table caption thead tbody tfoot tr th td details summary time code"
    " svg text pre".split()
)
ATTRIBUTES = set(
    "lang charset name content http-equiv rel href class id datetime aria-label aria-labelledby"
    " role viewbox preserveaspectratio width height x y rx points scope colspan data-label title".split()
)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "{{ 1 + 1 }}{% raw %}",
    "]]>--><svg/onload=alert(1)>&lt;b&gt;\x00\ud800\u202e",
)


class Reader(HTMLParser):
    """What a page consists of."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(page: str) -> Reader:
    """Return what a page consists of, which must be what the template has."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    anchors = {value for _tag, name, value in reader.attributes if name == "id"}
    assert len(anchors) == sum(name == "id" for _tag, name, _value in reader.attributes)
    for tag, name, value in reader.attributes:
        assert name in ATTRIBUTES, (tag, name)
        if name == "href":
            assert value == "data:," or value[1:] in anchors, value
    return reader


@given(st.lists(st.text(min_size=1), min_size=1, max_size=4))
@settings(max_examples=40)
def test_texts_of_others_stay_texts(texts: list[str]) -> None:
    page = page_of(report_on(texts), title=texts[0])
    reader = read(page)
    shown = "".join(reader.texts)
    for text in texts:
        # the parser reads a carriage return as a line feed, and strips nothing
        assert printable(text).replace("\r", "") in shown.replace("\r", "")


def test_hostile_texts() -> None:
    page = page_of(report_on(HOSTILE), title=HOSTILE[0])
    reader = read(page)
    shown = "".join(reader.texts)
    assert "<script>alert(1)</script>" in shown
    assert "<script" not in page
    assert "{{ 1 + 1 }}" in shown
    assert re.search("[\x00\ud800]", page) is None
    page.encode("utf-8")
    # attributes and pictures as well
    titles = [value for _tag, name, value in reader.attributes if name in ("title", "aria-label")]
    assert any(HOSTILE[3].rstrip("\u202e")[:10] in title for title in titles)


def test_pictures_have_a_text() -> None:
    """Each picture has a role and a title of its own as its first element."""
    history = ReportHistory([entry(days) for days in (3, 2, 1)])
    page = page_of(report_on(["web"], history), title="Fleet report")
    pictures = re.findall("<svg[^>]*>.*?</svg>", page, re.DOTALL)
    assert len(pictures) >= 10
    for name in ("spark", "reach"):
        assert any(f'class="{name}"' in picture for picture in pictures)
    for picture in pictures:
        ElementTree.fromstring(picture)
        assert re.match('<svg [^>]*role="img"><title>[^<]{5,}</title>', picture), picture


def entry(days: int) -> HistoryEntry:
    """Return an earlier report of the history in which both sites could be read."""
    figures = {"acme": QuotaFigures(days, days, days, days)}
    return HistoryEntry(f"2026-09-{20 - days:02}T00:00:00Z", {"alive": figures, "dead": figures})


def test_nothing_at_all() -> None:
    page = page_of(
        document_of([], wanted(tenants=[], prices=None), ReportHistory(), NOW), "Nothing"
    )
    read(page)
    assert "Nothing needs attention" in page


@pytest.mark.parametrize("word", ["http:", "https:", "url(", "@import", "src=", "javascript:"])
def test_nothing_comes_from_elsewhere(word: str) -> None:
    assert word not in page_of(report_on(["web"]), "Fleet report")


def test_what_is_unknown_has_no_number() -> None:
    page = page_of(report_on(["web"]), "Fleet report")
    dead = page.partition('<article class="card" id="site-1">')[2].partition("</article>")[0]
    assert "unknown" in dead
    assert re.search(r"\b0\b", dead) is None


def test_room_has_its_overcommit_factor() -> None:
    """The node has 4 cores and 4 VMs with 1: without the factor, 12 more would be a riddle."""
    page = page_of(report_on(["web"]), "Fleet report").replace("\u00a0", " ")
    assert "12 cores" in page
    assert "of 4 × 4" in page
    assert "(cpu_overcommit 4, memory_overcommit 1)" in page


def test_one_of_a_thing_is_singular() -> None:
    page = page_of(report_on(["web"]), "Fleet report").replace("\u00a0", " ")
    assert "1 container," in page
    assert re.search(r"\b1 (?:VMs|templates|containers|nodes|days|cores)\b", page) is None


def test_the_metered_use_of_a_month_is_a_table() -> None:
    """A missing part is named first; every text of others is escaped."""
    hours = dict.fromkeys(("cores", "memory", "disk", "backup"), "0.000")
    row: dict[str, Any] = {"site": "berlin", "tenant": HOSTILE[0], "class": "small"}
    row |= {"hours": {**hours, "cores": "744.000"}, "uncertain": {**hours, "cores": "0.083"}}
    lack: dict[str, Any] = {"site": "berlin", "part": "site", "subject": "", "reason": HOSTILE[1]}
    lack |= {"from": "2026-10-10T00:00:00Z", "to": "2026-10-11T00:00:00Z", "days": ["2026-10-10"]}
    usage: dict[str, Any] = {
        "month": "2026-10",
        "closed": True,
        "missing": [lack],
        "tenants": [row],
    }
    usage["total"] = {"hours": {**hours, "cores": "744.000"}}
    report = report_on(["web"])
    text = page_of(report, "Fleet", usage)
    page = read(text)
    assert ("a", "href", "#usage") in page.attributes
    shown = " ".join(" ".join(page.texts).split())
    assert "Metered use in 2026-10" in shown
    assert "from 2026-10-10T00:00:00Z to 2026-10-11T00:00:00Z" in shown
    assert "744.000" in shown
    assert "+ 0.083" in shown
    assert "<script>alert" not in text
    assert "Metered use" not in page_of(report, "Fleet")
