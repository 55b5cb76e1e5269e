# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the documentation site: their links, and that none is left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.cases import repeated
from tests.tools.declarations import load
from tests.tools.docs_site.__main__ import (
    HERE,
    by_purpose,
    for_the_theme,
    groups_of,
    in_one_line,
    repository,
    with_addresses,
    write_pages,
)
from tests.tools.stage import source_files, stage


def test_a_link_to_a_file_that_is_not_a_page_leads_to_the_repository() -> None:
    known = {"docs/vm.md", "docs/tenants.md", "docs/tenants.svg"}
    text = """\
[a](vm.md#disks) ![b](tenants.svg) [c](examples/estate.yml) [d](https://example.com/x) [e](#here)
[f](../playbooks) [g](../README.md#tenants) [i](../plugins/modules/vm.py)
[j](../roles/provision/meta/argument_specs.yml)

```markdown
[h](examples/estate.yml)
```
"""
    found = re.findall(r"\]\((.*?)\)", with_addresses("docs/tenants.md", text, known))
    assert found == [
        "vm.md#disks",
        "tenants.svg",
        f"{repository()}/blob/main/docs/examples/estate.yml",
        "https://example.com/x",
        "#here",
        f"{repository()}/tree/main/playbooks",
        f"{repository()}/blob/main/README.md#tenants",
        "../reference/vm_module.rst",
        "../reference/provision_role.rst",
        "examples/estate.yml",
    ]


def test_the_text_of_a_picture_keeps_the_space_between_its_lines() -> None:
    text = "Two\nlines\n\n![A run changes\nnothing](run.svg)\n"
    assert in_one_line(text) == "Two\nlines\n\n![A run changes nothing](run.svg)\n"


def test_a_page_of_the_reference_has_no_contents_of_its_own() -> None:
    text = """\
Pve.Fleet
=========

.. contents::
   :local:
   :depth: 1

Description
-----------

The contents of a page.
"""
    assert (
        for_the_theme(text)
        == """\
Modules, plugins and roles
==========================

Description
-----------

The contents of a page.
"""
    )


def test_a_page_of_the_reference_has_its_examples_first_and_no_notes() -> None:
    note = (
        ".. Collection note\n\n.. note::\n    This module is part of it.\n\n    To install it.\n\n"
    )
    action = (
        ".. note::\n    This module has a corresponding :ref:`action plugin <action_plugins>`.\n\n"
    )
    synopsis = "Synopsis\n--------\n\nIt manages.\n\n"
    examples, rest = ".. Examples\n\nshow\n\n", ".. Facts\n\n.. note::\n    Of an option.\n"
    text = note + synopsis + action + ".. Options\n\n" + examples + rest
    assert for_the_theme(text) == examples + synopsis + ".. Options\n\n" + rest


def test_options_of_the_reference_are_grouped_by_purpose() -> None:
    declarations = load()
    groups = groups_of("vm", declarations)
    assert list(groups)[:2] == ["name", "vmid"]
    assert (groups["disks"], groups["token_id"]) == ("disks", "the connection")
    of_container = groups_of("container", declarations)
    assert list(dict.fromkeys(of_container.values()))[:2] == ["which container", "its source"]
    assert {*groups_of("pool", declarations).values()} == {"the connection"}
    head = "  * - Parameter\n    - Comments\n\n"
    names = ["ca_path", "disks", "disks/name", "name", "tenant"]
    rows = {one: f'  * - .. raw:: html\n\n        <div id="parameter-{one}">\n\n' for one in names}
    found = by_purpose(f"{head}{''.join(rows.values())}\n.. Attributes\n", groups)
    assert re.findall(r"parameter-([a-z_/]+)|^      (\w.*)$", found, re.MULTILINE) == [
        ("tenant", ""),
        ("", "Which VM"),
        ("name", ""),
        ("", "Disks"),
        ("disks", ""),
        ("disks/name", ""),
        ("", "The connection"),
        ("ca_path", ""),
    ]
    assert found.startswith(head)
    assert found.endswith("\n.. Attributes\n")


def test_lists_of_the_reference_have_short_names() -> None:
    text = ".. toctree::\n    :hidden:\n\n    vm_info_module\n    vm_lookup\n"
    short = "\n    vm_info <vm_info_module>\n    vm <vm_lookup>\n"
    assert for_the_theme(text).endswith(short)


def test_every_guide_and_role_is_on_the_site(repo: Path, tmp_path: Path) -> None:
    write_pages(source_files(repo), tmp_path)
    written = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*.md")}
    entrance = (HERE / "index.md").read_text(encoding="utf-8")
    entry = r"^(?:[^`\n]+ <)?((?:docs/|(?=[A-Z_]+$))[^\s>]+)>?$"
    listed = set(re.findall(entry, entrance, re.MULTILINE))
    guides = {page for page in written if not page.startswith(("roles/", "docs/decisions/0"))}
    assert guides - {"index.md"} == {f"{name}.md" for name in listed}
    roles = {path.parent.name for path in (repo / "roles").glob("*/README.md")}
    assert {page.split("/")[1] for page in written if page.startswith("roles/")} == roles


def test_every_module_and_role_is_on_the_page_of_all(repo: Path) -> None:
    text = (repo / "docs" / "index.md").read_text(encoding="utf-8")
    modules = {file.stem for file in (repo / "plugins" / "modules").glob("*.py")}
    roles = {path.parent.name for path in (repo / "roles").glob("*/README.md")}
    assert modules | roles <= set(re.findall(r"`pve\.fleet\.(\w+)`", text))


def test_the_estate_on_the_first_page_has_variables_of_the_role(repo: Path) -> None:
    terminal = pytest.importorskip("tests.tools.docs_site.terminal", reason="rich is not here")
    estate = yaml.safe_load(terminal.estate())
    specs = yaml.safe_load((repo / "roles/provision/meta/argument_specs.yml").read_text("utf-8"))
    assert set(estate) <= set(specs["argument_specs"]["main"]["options"])


def test_each_terminal_is_on_a_page(repo: Path) -> None:
    terminal = pytest.importorskip("tests.tools.docs_site.terminal", reason="rich is not here")
    pages = [HERE / "index.md", *(repo / "docs").glob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    for name in terminal.PICTURES:
        assert f"{name}.svg)" in text, name


@pytest.mark.parametrize(
    "name", repeated(["terminal", "drift", "export", "metrics", "terminal-narrow"], first=0, more=1)
)
def test_a_terminal_shows_what_a_run_prints(name: str) -> None:
    """Drift and metrics have times and addresses of the run in them: their texts differ."""
    terminal = pytest.importorskip("tests.tools.docs_site.terminal", reason="rich is not here")
    stage()
    found = terminal.drawn(name, terminal.recorded(name))
    drawn = terminal.place_of(name).read_text(encoding="utf-8")
    assert without_figures(found) == without_figures(drawn)


def without_figures(picture: str) -> str:
    """Return the texts of a picture without digits and names of files."""
    texts = "\n".join(re.findall(r"<text[^>]*>([^<]*)</text>", picture))
    return re.sub(r"[0-9A-F]+|/\S+", "", texts)
