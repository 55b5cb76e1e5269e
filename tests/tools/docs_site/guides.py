# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the guides in the form that docs.ansible.com shows beside the modules of a collection:
``docs/docsite/extra-docs.yml``, and a page of reStructuredText for each guide.

A release contains these files; the repository has only ``docs/docsite/links.yml``. ``python -m
tests.tools.docs_site.guides``, or ``make lint-docs``, writes them into a copy of the collection,
and antsibull-docs checks them there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pypandoc
from docutils.nodes import make_id

from tests.tools.docs_site.__main__ import HERE, in_one_line, repository, with_addresses
from tests.tools.stage import REPO, stage, tool_environment

LABEL = "ansible_collections.pve.fleet.docsite."
COPY = REPO / "build" / "docsite" / "ansible_collections" / "pve" / "fleet"
# The parts of the site's entrance whose pages are guides for users.
_NOT_FOR_USERS = {"Roles", "Reference", "The project"}
_TREE = re.compile(r"^```\{toctree\}\n:caption: (?P<title>[^\n]+)\n(?P<rest>.*?)^```", re.M | re.S)
_ENTRY = re.compile(r"^(?:.*<)?docs/(?P<name>[\w-]+)>?$", re.M)
# Pandoc's own labels of headings are not labels of the collection.
_MARKDOWN = "gfm-gfm_auto_identifiers"
# reStructuredText has no code within the text of a link.
_LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_GUIDE = re.compile(r"(?P<name>[\w-]+)\.md(?:#(?P<anchor>.*))?")
_REFERENCE = re.compile(r"\.\./reference/(?P<page>\w+)\.rst(?P<anchor>#.*)?")


def sections() -> dict[str, list[str]]:
    """Return the names of the guides by the title of their section, in the order of the site."""
    entrance = (HERE / "index.md").read_text(encoding="utf-8")
    return {
        tree["title"]: _ENTRY.findall(tree["rest"])
        for tree in _TREE.finditer(entrance)
        if tree["title"] not in _NOT_FOR_USERS
    }


def write_guides(collection: Path) -> list[Path]:
    """Write the files below `docs/docsite` of a collection; return them."""
    target = collection / "docs" / "docsite"
    guides_of = sections()
    names = [name for guides in guides_of.values() for name in guides]
    (target / "rst").mkdir(parents=True, exist_ok=True)
    written = []
    for name in names:
        page = target / "rst" / f"{name}.rst"
        page.write_text(guide(name, names), encoding="utf-8")
        written.append(page)
    contents = target / "extra-docs.yml"
    lines = ["---", "sections:"]
    for title, guides in guides_of.items():
        lines += [f"  - title: {title}", "    toctree:", *(f"      - {name}" for name in guides)]
    contents.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*written, contents]


def guide(name: str, names: list[str]) -> str:
    """Return a guide as reStructuredText; links to the guides in `names` stay relative."""
    page = f"docs/{name}.md"
    known = {f"docs/{other}.md" for other in names}
    text = in_one_line((REPO / page).read_text(encoding="utf-8"))
    text = _LINK.sub(_on_the_docsite, with_addresses(page, text, known))
    converted = pypandoc.convert_text(text, "rst", _MARKDOWN, extra_args=["--wrap=none"])
    converted = converted.replace("\r\n", "\n").replace("\n.. code:: ", "\n.. code-block:: ")
    return f".. _{LABEL}{name}:\n\n{converted}"


def _on_the_docsite(link: re.Match[str]) -> str:
    """Return a link with its address on docs.ansible.com, which has all guides in one directory."""
    target = link["target"]
    guide_page = _GUIDE.fullmatch(target)
    module_page = _REFERENCE.fullmatch(target)
    if guide_page is not None:
        anchor = guide_page["anchor"]
        target = f"{guide_page['name']}.html" + (f"#{make_id(anchor)}" if anchor else "")
    elif module_page is not None:
        target = f"../{module_page['page']}.html{module_page['anchor'] or ''}"
    elif link["picture"]:
        target = target.replace(f"{repository()}/blob", raw_files())
    text = link["text"].replace("`", "")
    return f"{link['picture']}[{text}]({target})"


def raw_files() -> str:
    """Return the address below which the files of the repository's branches are."""
    return repository().replace("https://github.com", "https://raw.githubusercontent.com")


def main() -> int:
    """Check the collection's documentation with the guides; return the status of the check."""
    write_guides(stage(copy=COPY))
    tool = Path(sys.executable).parent / "antsibull-docs"
    command = [str(tool), "lint-collection-docs", "--plugin-docs", "."]
    return subprocess.run(command, cwd=COPY, env=tool_environment(COPY), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
