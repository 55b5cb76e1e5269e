# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a task loads: little in a process of its own, everything before workers are forked."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.modules.estate_lab import Lab

MODULE_UTILS = Path(__file__).parents[2] / "plugins" / "module_utils"
PREFIX = "ansible_collections.pve.fleet.plugins.module_utils."
# What a process prints: all that it has loaded, the files of module_utils by their names below it.
NAMES = f"""
print(json.dumps([name.removeprefix({PREFIX!r}) for name in sys.modules]))
"""
RUN = f"""
import json, sys
import tests.conftest
from tests.modules.module_runner import run_module
result = run_module(sys.argv[1], json.loads(sys.argv[2]))
assert not result.get("failed") and not result["changed"], result
{NAMES}"""
LOAD = f"""
import importlib, json, sys
import tests.conftest
importlib.import_module("ansible_collections.pve.fleet.plugins.action." + sys.argv[1])
{NAMES}"""


def loaded(program: str, *arguments: str) -> set[str]:
    """Return what a process with this program loads; a file of module_utils by its name below
    it.
    """
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=MODULE_UTILS.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


def files_in(names: set[str]) -> set[str]:
    return {name for name in names if path_of(name).exists()}


def path_of(name: str) -> Path:
    return MODULE_UTILS.joinpath(*name.split(".")).with_suffix(".py")


def late_imports(name: str) -> set[str]:
    """Return what the functions of a file import: files of module_utils and libraries."""
    found: set[str] = set()
    tree = ast.parse(path_of(name).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    for node in (node for function in functions for node in ast.walk(function)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(str(node.module))
        elif isinstance(node, ast.ImportFrom):
            folder = name.split(".")[: -node.level]
            module = [*folder, *(node.module or "").split(".")]
            names = [".".join(part for part in module if part)]
            if not node.module or not path_of(names[0]).exists():
                names = [f"{names[0]}.{alias.name}".strip(".") for alias in node.names]
            found.update(names)
    return found


def test_a_task_that_changes_nothing_loads_no_more_than_it_needs(lab: Lab, name: str) -> None:
    options: dict[str, Any] = {"name": name, "cores": 2, "state": "stopped"}
    lab.vm(node="pve1", **options)
    options.update(lab.connection)
    files = files_in(loaded(RUN, "vm", json.dumps(options)))
    lines = sum(len(path_of(name).read_text(encoding="utf-8").splitlines()) for name in files)
    unneeded = {"_core.classify", "_vm.live.steps", "_vm.live.ha", "_vm.live.moving"}
    unneeded |= {"_vm.apply", "_resource.engine", "_resource.execute"}
    unneeded |= {"_vm.create.draft", "_vm.create.make", "_vm.create.placement_race"}
    unneeded |= {"_vm.plan.create", "_api.limiting", "_api.caching"}
    unneeded |= {
        "_vm.create.source",
        "_vm.create.cloning",
        "_vm.create.copies",
        "_vm.create.quota_race",
    }
    assert files & unneeded == set()
    # A process compiles or loads each of them: raise the limits for what every task needs only.
    assert len(files) <= 101
    assert lines <= 18700


@pytest.mark.parametrize("action", ["vm", "vms", "clone", "pool"])
def test_an_action_plugin_loads_all_before_workers_are_forked(action: str) -> None:
    names = loaded(LOAD, action)
    late = {name for file in files_in(names) for name in late_imports(file)}
    assert late - names == set()
