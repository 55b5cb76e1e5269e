# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A simple resource is a declaration and a table: modules that are made of two files, in a copy of
the collection, manage a resource that does not exist. The simulated PVE keeps it as a job that
synchronizes a realm.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import needs
from tests.faults.scenarios import declared
from tests.modules.access_lab import with_directory
from tests.modules.estate_lab import Lab, open_lab
from tests.tools import make_options, tables
from tests.tools.declarations import DECLARATIONS, load
from tests.tools.sections import sections_of

NEW = Path(__file__).resolve().parent / "new_resource"
# The files that `make options` adds, and those that it changes.
ADDED = {
    "plugins/action/bookmark.py",
    "plugins/action/bookmark_info.py",
    "plugins/module_utils/_foundation/spec/generated/bookmark.py",
    "plugins/modules/bookmark.py",
    "plugins/modules/bookmark_info.py",
}
CHANGED = {
    "meta/runtime.yml",
    "playbooks/drift.yml",
    "plugins/modules/cluster.py",
    "plugins/modules/cluster_export_info.py",
    "plugins/modules/preflight_info.py",
    "plugins/module_utils/_foundation/entry/generated/administrative.py",
    "plugins/module_utils/_foundation/spec/generated/cluster.py",
    "plugins/module_utils/_foundation/spec/generated/preflight_info.py",
    "plugins/module_utils/_foundation/spec/generated/variables.py",
    "plugins/module_utils/_operation/cluster_file/generated/sections.py",
    "plugins/module_utils/_tenants/access/needs/generated/tasks.py",
    "roles/cluster/meta/argument_specs.yml",
    "roles/cluster/tasks/apply.yml",
    "roles/cluster/vars/main.yml",
}
PAGES = {"docs/cluster.md", "docs/index.md", "docs/security.md"}
NIGHTLY: dict[str, Any] = {
    "name": "nightly",
    "realm": "ldap",
    "schedule": "daily",
    "scope": "users",
}


@dataclass
class Copy:
    """A copy of the collection with the new resource."""

    declarations: Path
    root: Path
    added: set[str]
    changed: set[str]

    def run(self, lab: Lab, module: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
        """Return the result of a module of the copy, as a process of its own."""
        arguments = {**lab.connection, **options, "_ansible_check_mode": check}
        found = subprocess.run(
            [sys.executable, "-m", f"ansible_collections.pve.fleet.plugins.modules.{module}"],
            input=json.dumps({"ANSIBLE_MODULE_ARGS": arguments}),
            env={**os.environ, "PYTHONPATH": str(self.root)},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.stdout, found.stderr
        result: dict[str, Any] = json.loads(found.stdout)
        return result


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, repo: Path) -> Copy:
    """A copy of the collection with the two files of the new resource, after `make options`."""
    root = tmp_path_factory.mktemp("new")
    collection = root / "ansible_collections" / "pve" / "fleet"
    shutil.copytree(repo / "plugins", collection / "plugins")
    access = collection / "plugins" / "module_utils" / "_tenants" / "access"
    shutil.copy(NEW / "table.py", access / "bookmark.py")
    declarations = Path(shutil.copytree(DECLARATIONS, root / "options"))
    shutil.copy(NEW / "bookmark.yml", declarations)
    found = Copy(declarations, root, set(), set())
    for path, text in make_options.files(declarations).items():
        there = repo / path
        if not there.is_file():
            found.added.add(str(path))
        elif there.read_text(encoding="utf-8") != text:
            found.changed.add(str(path))
        target = collection / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        with_directory(opened.client, opened.simulator)
        yield opened


@needs.tool("ruff")
def test_two_files_are_enough(copy: Copy, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert copy.added == ADDED
    assert copy.changed == CHANGED
    monkeypatch.setattr(tables, "load", lambda: load(copy.declarations))
    text = {page: (repo / page).read_text(encoding="utf-8") for page in PAGES}
    rows = {
        "docs/cluster.md": "| `cluster_bookmarks` | `bookmark` | nothing names them |",
        "docs/index.md": "| `pve.fleet.bookmark`, `pve.fleet.bookmark_info` | create,",
        "docs/security.md": "| `bookmark` | bookmarks |",
    }
    monkeypatch.setattr(tables, "privileges", lambda: "")  # it reads the collection in use
    for page, row in rows.items():
        assert row in tables.with_tables(page, text[page])


@needs.tool("ruff")
def test_the_module_manages_the_resource(copy: Copy, lab: Lab) -> None:
    lab.simulator.reset_log()
    foreseen = copy.run(lab, "bookmark", check=True, **NIGHTLY)
    assert lab.simulator.writes() == []
    made = copy.run(lab, "bookmark", **NIGHTLY, comment="first")
    assert foreseen["plan"] == made["plan"] == made["done"] == ["Create bookmark 'nightly'"]
    assert not copy.run(lab, "bookmark", **NIGHTLY, comment="first")["changed"]

    (listed,) = copy.run(lab, "bookmark_info")["bookmarks"]
    assert listed == made["bookmark"]
    assert not copy.run(lab, "bookmark", **listed)["changed"]

    changed = copy.run(lab, "bookmark", name="nightly", scope="both", comment="")
    assert changed["bookmark"]["scope"] == "both"
    assert changed["bookmark"]["comment"] == ""
    gone = copy.run(lab, "bookmark", name="nightly", state="absent")
    assert (gone["changed"], gone["bookmark"]) == (True, None)
    assert copy.run(lab, "bookmark_info")["bookmarks"] == []


@needs.tool("ruff")
def test_the_resource_is_a_section_of_a_cluster_file(copy: Copy, lab: Lab) -> None:
    """The file applies it, the export contains it, drift compares it, preflight knows it."""
    file: dict[str, Any] = {"bookmarks": [NIGHTLY]}
    foreseen = copy.run(lab, "cluster", check=True, **file)
    made = copy.run(lab, "cluster", **file)
    assert foreseen["plan"] == made["done"] == ["Create bookmark 'nightly'"]
    exported = copy.run(lab, "cluster_export_info", sections=["bookmarks"])
    assert exported["cluster"] == {"cluster_bookmarks": [NIGHTLY]}
    changed: dict[str, Any] = {"bookmarks": [{**NIGHTLY, "schedule": "hourly"}]}
    for desired, differs in ((file, False), (changed, True)):
        found = copy.run(lab, "drift_info", cluster=desired)
        (resource,) = found["drift"]["cluster"]
        assert (resource["section"], resource["name"]) == ("bookmarks", "nightly")
        assert resource["status"] == ("drifted" if differs else "in_sync")
    assert not copy.run(lab, "preflight_info", tasks=["bookmark", "cluster"]).get("failed")
    emptied = copy.run(lab, "cluster", bookmarks=[], exact=["bookmarks"])
    assert emptied["done"] == ["Delete bookmark 'nightly'"]


@needs.tool("ruff")
def test_the_resource_has_its_scenarios_of_the_fault_table(copy: Copy) -> None:
    sections = [one for one in sections_of(load(copy.declarations)) if one["name"] == "bookmarks"]
    keys = {"name": "faulty"}
    item = {**NIGHTLY, **keys}
    made = {one.key: (one.module, one.options, one.before) for one in declared(sections)}
    assert made == {
        "create a bookmark": ("bookmark", item, ()),
        "change a bookmark": ("bookmark", {**keys, "comment": "x"}, (("bookmark", item),)),
        "delete a bookmark": ("bookmark", {**keys, "state": "absent"}, (("bookmark", item),)),
    }


@needs.tool("ruff")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "new"}, "realm"),
        ({"name": "new", "realm": "ldap", "scope": "users"}, "schedule"),
        ({**NIGHTLY, "state": "gone"}, "state"),
    ],
    ids=str,
)
def test_mistakes_are_refused_before_any_write(
    copy: Copy, lab: Lab, options: dict[str, Any], message: str
) -> None:
    lab.simulator.reset_log()
    result = copy.run(lab, "bookmark", **options)
    assert result["failed"]
    assert message in result["msg"]
    assert "exception" not in result
    assert lab.simulator.writes() == []


@needs.tool("ruff")
def test_documentation_is_whole(copy: Copy) -> None:
    folder = copy.root / "ansible_collections/pve/fleet/plugins/modules"
    names: dict[str, Any] = {}
    source = (folder / "bookmark.py").read_text(encoding="utf-8")
    exec(compile(source.partition("from functools")[0], "bookmark", "exec"), names)
    returned = yaml.safe_load(names["RETURN"])
    assert list(returned) == ["bookmark", "plan", "done", "error"]
    assert returned["plan"]["sample"] == ["Create bookmark 'nightly'"]
    assert yaml.safe_load(names["DOCUMENTATION"])["extends_documentation_fragment"] == [
        "pve.fleet.connection",
        "pve.fleet.attributes",
        "pve.fleet.attributes.full",
    ]
    assert len(yaml.safe_load(names["EXAMPLES"])) == 2
