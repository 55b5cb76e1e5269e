# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the documentation site of the pages in this repository and of the plugins' documentation:
``python -m tests.tools.docs_site``, or ``make docs``.

The pages keep their places, so that a link works on the site as it does in the repository. A link
to a file that is not a page leads to the repository.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import yaml

from tests.tools.declarations import Declarations, load
from tests.tools.make_modules import declared_options, modules_of
from tests.tools.stage import COPY, REPO, source_files, stage, tool_environment

HERE = Path(__file__).resolve().parent
SITE = REPO / "build" / "docs"
SOURCE = SITE / "source"
HTML = SITE / "html"
REFERENCE = SOURCE / "reference"

DECISIONS = "docs/decisions/README.md"
_BELOW = """
```{toctree}
:hidden:
:glob:

0*
```
"""
# Pages of the site. The README is only for readers of the repository.
_PAGE = re.compile(r"docs/.+\.md|roles/[^/]+/README\.md|(CONTRIBUTING|CODE_OF_CONDUCT)\.md")
_PICTURE = re.compile(r"docs/.+\.(svg|png)")
_FENCE = re.compile(r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$", re.MULTILINE | re.DOTALL)
# The theme shows the contents of a page itself, and an error if the page does so too.
_CONTENTS = re.compile(r"^\.\. contents::\n(?: +.*\n)*\n?", re.MULTILINE)
# antsibull-docs marks the parts of a page. A reader looks for the examples first; its notes are the same on every page.
_NOTES = re.compile(
    r"^(?:\.\. Collection note\n\n\.\. note::\n|\.\. note::\n    This module has a corresponding)"
    r"(?:.*\n)(?:    .*\n|\n)*",
    re.MULTILINE,
)
_EXAMPLES = re.compile(r"^\.\. Examples\n.*?(?=^\.\. Facts\n)", re.MULTILINE | re.DOTALL)
_AFTER_EXAMPLES = "Synopsis\n--------\n"
_OPTIONS = re.compile(
    r"(?<=^  \* - Parameter\n    - Comments\n\n)  \* - .*?(?=^\S)", re.MULTILINE | re.DOTALL
)
_ROW = re.compile(r"^(?=  \* - )", re.MULTILINE)
_OPTION_OF_ROW = re.compile(r'id="parameter-([^"/]+)')
_GROUP = """\
  * - .. rst-class:: option-group

      {}

    -

"""
# Modules of guests have a group for each of their options; of others, only the connection has one.
_FEW_GROUPS = 8
# A page in the list of a kind of plugins needs no more than its name.
_LISTED = re.compile(r"^    (?P<page>(?P<name>\w+)_[a-z]+)$", re.MULTILINE)
_REFERENCE_TITLE = "Modules, plugins and roles"
# A link to a plugin or to the specification of a role leads to its page of the reference.
_PLUGIN = re.compile(
    r"plugins/(?P<kind>modules|inventory|callback|lookup|filter)/(?P<name>\w+)\.py"
)
_ROLE = re.compile(r"roles/(?P<name>\w+)/meta/argument_specs\.yml")
_LINK = re.compile(r"\]\((?P<target>[^)\s]+)\)")
_TEXT_OF_PICTURE = re.compile(r"!\[[^\]]*\]")


def main() -> int:
    """Make the site and the index of its search; return the exit status of Sphinx."""
    shutil.rmtree(SITE, ignore_errors=True)
    SOURCE.mkdir(parents=True)
    write_pages(source_files(REPO), SOURCE)
    write_reference(REFERENCE)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", str(HERE)]
    done = subprocess.run([*command, str(SOURCE), str(HTML)], check=False)
    if done.returncode == 0:
        index = ["--site", str(HTML), "--output-subdir", "_pagefind", "--quiet"]
        index += ["--exclude-selectors", ".headerlink"]
        subprocess.run([sys.executable, "-m", "pagefind", *index], check=True)
        print(f"The site is in {HTML.relative_to(REPO)}/index.html")
    return done.returncode


def write_pages(files: list[str], target: Path) -> None:
    """Copy the pages and pictures among these files, and the entrance of the site."""
    pages = {name for name in files if _PAGE.fullmatch(name)}
    pictures = {name for name in files if _PICTURE.fullmatch(name)}
    known = pages | pictures
    for name in sorted(pages):
        text = (REPO / name).read_text(encoding="utf-8")
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(with_addresses(name, in_one_line(text), known), encoding="utf-8")
    for name in sorted(pictures):
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPO / name, place)
    entrance = (HERE / "index.md").read_text(encoding="utf-8")
    (target / "index.md").write_text(in_one_line(entrance), encoding="utf-8")
    with (target / DECISIONS).open("a", encoding="utf-8") as page:
        page.write(_BELOW)


def in_one_line(text: str) -> str:
    """Return a page with the text of each picture in one line: MyST joins its lines without a
    space.
    """
    return _TEXT_OF_PICTURE.sub(lambda found: found[0].replace("\n", " "), text)


def with_addresses(page: str, text: str, known: set[str]) -> str:
    """Return the text of a page with the address of each linked file that is not on the site.

    `page` and `known` are paths in the repository.
    """
    outside = repository()

    def address(link: re.Match[str]) -> str:
        name, mark, anchor = link["target"].partition("#")
        if not name or "://" in name or name.startswith("mailto:"):
            return link[0]
        place = os.path.normpath(os.path.join(os.path.dirname(page), name))
        if place in known:
            return link[0]
        described = reference_page(place)
        if described is not None:
            return f"]({os.path.relpath(described, os.path.dirname(page))}{mark}{anchor})"
        kind = "tree" if (REPO / place).is_dir() else "blob"
        return f"]({outside}/{kind}/main/{place}{mark}{anchor})"

    parts: list[str] = []
    end = 0
    for fence in _FENCE.finditer(text):
        parts += [_LINK.sub(address, text[end : fence.start()]), fence[0]]
        end = fence.end()
    parts.append(_LINK.sub(address, text[end:]))
    return "".join(parts)


def reference_page(place: str) -> str | None:
    """Return the page of the reference that describes a file, or None.

    `place` and the result are paths: `plugins/modules/vm.py`, `reference/vm_module.rst`.
    """
    plugin = _PLUGIN.fullmatch(place)
    if plugin is not None:
        kind = "module" if plugin["kind"] == "modules" else plugin["kind"]
        return f"reference/{plugin['name']}_{kind}.rst"
    role = _ROLE.fullmatch(place)
    if role is not None:
        return f"reference/{role['name']}_role.rst"
    return None


def repository() -> str:
    """Return the address of the repository."""
    galaxy = yaml.safe_load((REPO / "galaxy.yml").read_text(encoding="utf-8"))
    return str(galaxy["repository"])


def write_reference(target: Path) -> None:
    """Write the documentation of modules, plugins and roles."""
    stage()
    target.mkdir(parents=True)
    target.chmod(0o755)  # antsibull-docs refuses a directory that others can write
    tool = Path(sys.executable).parent / "antsibull-docs"
    command = [str(tool), "collection", "--use-current", "--squash-hierarchy", "--fail-on-error"]
    command += ["--dest-dir", str(target), "pve.fleet"]
    subprocess.run(command, cwd=COPY, env=tool_environment(), check=True)
    declarations = load()
    modules = modules_of(declarations)
    for page in target.glob("*.rst"):
        text = for_the_theme(page.read_text(encoding="utf-8"))
        module = page.stem.removesuffix("_module")
        if page.stem.endswith("_module") and module in modules:
            text = by_purpose(text, groups_of(module, declarations))
        page.write_text(text, encoding="utf-8")


def groups_of(module: str, declarations: Declarations) -> dict[str, str]:
    """Return the group of each option of a module that has one, in the order of the groups."""
    groups: dict[str, str] = {}
    group = ""
    for name, option in declared_options(module, declarations).items():
        group = option["group"] if isinstance(option.get("group"), str) else group
        groups[name] = group
    if len({*groups.values()}) < _FEW_GROUPS:
        groups = {}
    order = list(declarations["vm"]["groups"])
    places = {"which container": 0, **{group: at for at, group in enumerate(order)}}
    known = [name for name in groups if groups[name]]
    known.sort(key=lambda name: places.get(groups[name], places["disks"]))
    connection = declarations["connection"]["sections"]["connection"]["options"]
    return {name: groups[name] for name in known} | dict.fromkeys(connection, order[-1])


def by_purpose(text: str, groups: Mapping[str, str]) -> str:
    """Return a page of the reference whose options stand below the names of their groups.

    Options without a group come first. A row of a suboption follows its option.
    """
    table = _OPTIONS.search(text)
    if table is None:
        return text
    rows: dict[str, list[str]] = {group: [] for group in ("", *groups.values())}
    for row in filter(None, _ROW.split(table[0])):
        named = _OPTION_OF_ROW.search(row)
        rows[groups.get(named[1], "") if named else ""].append(row)
    parts: list[str] = []
    for group, several in rows.items():
        if group and several:
            parts.append(_GROUP.format(group[0].upper() + group[1:]))
        parts += several
    return text[: table.start()] + "".join(parts) + text[table.end() :]


def for_the_theme(text: str) -> str:
    """Return a page of the reference without its contents and notes, with the examples first and
    with short names in lists; the first page gets a plain title.
    """
    text = _NOTES.sub("", _CONTENTS.sub("", text))
    examples = _EXAMPLES.search(text)
    if examples and _AFTER_EXAMPLES in text:
        text = text.replace(examples[0], "")
        text = text.replace(_AFTER_EXAMPLES, examples[0] + _AFTER_EXAMPLES, 1)
    text = _LISTED.sub(r"    \g<name> <\g<page>>", text)
    underline = "=" * len(_REFERENCE_TITLE)
    return text.replace("Pve.Fleet\n=========\n", f"{_REFERENCE_TITLE}\n{underline}\n")


if __name__ == "__main__":
    sys.exit(main())
