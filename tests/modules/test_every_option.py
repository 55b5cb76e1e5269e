# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option of every module that writes: check mode and server refuse the same values.

Each test takes a task that works, and sets each option of a module in turn to texts or numbers. If
check mode accepts a value, the run may not be refused by the server's check of its parameters. The
simulator checks requests with the API schema and the formats of Proxmox VE.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases
from tests.declared import MODULES, minimal_tasks
from tests.modules.estate_lab import Lab
from tests.modules.table_lab import writes_of
from tests.modules.test_values_foreseen import BASES
from tests.tools.declarations import Options, load
from tests.tools.make_modules import declared_options

DECLARATIONS = load()
TEXTS = ("no such value!", "-", "a,b", "Größe", "x" * 3000, "0")
NUMBERS = (-5, 0, 10**9)
UNFORESEEN = ("ApiError", "ValidationFailed", "InternalError")
WRITING = [name for name in MODULES if not name.endswith("_info")]
# The options of the task itself.
OF_TASK = frozenset(("tenant", "tenant_prefix", "wait", "timeout", "task_timeout"))
# Tasks of modules that have other options with another type.
MORE_TASKS: dict[str, list[dict[str, Any]]] = {
    "vm": [
        {
            "name": "both",
            "node": "pve1",
            "memory": 1024,
            "disks": [{"name": "scsi0", "size": 1, "storage": "local-lvm"}],
            "nics": [{"bridge": "vmbr0"}],
        }
    ],
    "container": [
        {
            "name": "both-container",
            "node": "pve1",
            "source": "debian-13-standard",
            "rootfs": {"storage": "local-lvm", "size": 4},
            "nics": [{"bridge": "vmbr0"}],
            "mounts": [{"size": 1, "path": "/data", "storage": "local-lvm"}],
        }
    ],
    "backup": [{"vmid": 9000, "storage": "local", "fleecing": {"enabled": True}}],
}


def tasks_of(module: str) -> list[dict[str, Any]]:
    """Return tasks of a module that work."""
    known = [task for name, task in BASES.values() if name == module]
    return [*known, *MORE_TASKS.get(module, [])] or [minimal_tasks()[module]]


def leaves(options: Options, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield each option without choices that is a text, a number or a list of these, and whether it
    is a number.
    """
    for name, option in options.items():
        place = (*path, name)
        kinds = (option["type"], option.get("elements"))
        if option.get("suboptions"):
            yield from leaves(option["suboptions"], place)
        elif place[0] in OF_TASK or "choices" in option:
            continue
        elif kinds[0] not in ("bool", "dict"):
            yield place, bool({"int", "float"} & set(kinds))


def with_value(options: Options, task: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    """Set an option of a task, in the first item of a list."""
    first, *rest = path
    option = options[first]
    if not rest:
        task[first] = [value] if option["type"] == "list" else value
    elif option["type"] == "list":
        task[first] = task.get(first) or [{}]
        with_value(option["suboptions"], task[first][0], tuple(rest), value)
    else:
        task[first] = task.get(first) if isinstance(task.get(first), dict) else {}
        with_value(option["suboptions"], task[first], tuple(rest), value)


def faults_of(lab: Lab, module: str, task: dict[str, Any]) -> str:
    """Return the difference between check mode and the run, or an empty text."""
    lab.simulator.reset()
    foreseen = lab.run(module, check=True, **copy.deepcopy(task))
    if writes_of(lab) != []:
        return "check mode writes"
    if foreseen.get("failed"):
        is_bug = "exception" in foreseen or foreseen["error"]["category"] == "InternalError"
        return f"a bug: {foreseen['msg']}" if is_bug else ""
    lab.simulator.reset_log()
    done = lab.run(module, **task)
    refused = [entry for entry in lab.simulator.writes() if entry["status"] == 400]
    is_unforeseen = done.get("failed") and done["error"]["category"] in UNFORESEEN
    if is_unforeseen or refused:
        return f"check mode accepts it, and the run says: {done['msg']}"
    return ""


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("module", WRITING)
def test_check_mode_refuses_what_the_run_refuses(
    unused: Lab, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = declared_options(module, DECLARATIONS)
    found: list[str] = []
    tasks = tasks_of(module)
    for number, (path, is_number) in enumerate(leaves(options)):
        values: tuple[Any, ...] = NUMBERS if is_number else TEXTS
        place = number % len(values)
        with_option = [task for task in tasks if path[0] in task] or tasks
        one = [with_option[number % len(with_option)]]
        for value in cases(full=values, short=values[place : place + 1]):
            for task in cases(full=tasks, short=one):
                changed = copy.deepcopy(task)
                with_value(options, changed, path, value)
                fault = faults_of(unused, module, changed)
                found += [f"{'.'.join(path)}={str(value)[:20]!r}: {fault}"] if fault else []
    assert found == []


def test_most_modules_have_options_of_their_own() -> None:
    """The other modules have choices and switches only."""
    numbers = {name: len(list(leaves(declared_options(name, DECLARATIONS)))) for name in WRITING}
    assert sum(numbers.values()) > 900
    assert len([name for name, number in numbers.items() if number]) > 55
