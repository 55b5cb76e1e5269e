# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every link and picture in the pages leads to a file that exists, and to a heading in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.stage import source_files

REPO = Path(__file__).resolve().parents[2]
# Its links begin at the top of the documentation site; Sphinx checks them.
ENTRANCE = "tests/tools/docs_site/index.md"
PAGES = sorted(file for file in source_files(REPO) if file.endswith(".md") and file != ENTRANCE)
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
# The README shows addresses of the repository, which are files here.
_OWN = re.compile(
    r"https://(?:github\.com/pve-fleet/pve\.fleet/(?:blob|tree)|raw\.githubusercontent\.com/pve-fleet/pve\.fleet)/main/"
)
_CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub makes of the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(
        r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M
    ):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower().strip()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


def broken(page: Path, text: str) -> list[str]:
    """Return the links of a page that lead nowhere; addresses of the web are not asked."""
    wrong: list[str] = []
    for link in _LINK.finditer(_CODE.sub("", text)):
        target = _OWN.sub(f"{REPO}/", link["target"])
        if target.startswith(("https://", "mailto:")):
            continue
        if not leads_somewhere(page, target):
            wrong.append(target)
        elif link["picture"] and not link["text"].strip():
            wrong.append(f"{target} has no text")
    return wrong


def leads_somewhere(page: Path, target: str) -> bool:
    name, _hash, anchor = target.partition("#")
    file = (page.parent / name).resolve() if name else page
    if not file.exists() or REPO not in file.parents:
        return False
    return not anchor or anchor in anchors(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    file = REPO / page
    assert broken(file, file.read_text(encoding="utf-8")) == []


def test_the_readme_has_full_addresses_only() -> None:
    """Galaxy and Automation Hub show it outside of the repository."""
    text = _CODE.sub("", (REPO / "README.md").read_text(encoding="utf-8"))
    targets = [link["target"] for link in _LINK.finditer(text)]
    assert len(targets) > 20
    assert [target for target in targets if not target.startswith("https://")] == []


def test_broken_links_are_found() -> None:
    text = (
        "[a](missing.md) ![](benchmarks.svg) [b](tenants.md#nothing) [c](tenants.md#audit) `[d](x)` "
        "[e](https://github.com/pve-fleet/pve.fleet/blob/main/docs/nowhere.md)"
    )
    wrong = [
        "missing.md",
        "benchmarks.svg has no text",
        "tenants.md#nothing",
        f"{REPO}/docs/nowhere.md",
    ]
    assert broken(REPO / "docs" / "page.md", text) == wrong
