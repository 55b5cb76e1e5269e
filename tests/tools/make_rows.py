# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Privileges of tasks and other rows about modules, from the `modules` of declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.tools.declarations import Declarations
from tests.tools.make_modules import modules_of
from tests.tools.written import LICENSE, LOADER, DeclarationError

# The tasks of preflight beside modules.
TASKS_FILE = Path(__file__).resolve().parent / "tasks.yml"
NEEDS = Path("plugins/module_utils/_tenants/access/needs/generated/tasks.py")
ADMINISTRATIVE = Path("plugins/module_utils/_foundation/entry/generated/administrative.py")
# The privileges that VM.Config.* stands for.
CONFIG_PARTS = ("CPU", "Memory", "Disk", "CDROM", "Network", "HWType", "Options", "Cloudinit")
EVERY_CONFIG = "VM.Config.*"
# The topics of the table of modules, in its order.
TOPICS = (
    "guests",
    "backups",
    "tenants",
    "access",
    "storages",
    "networks",
    "nodes",
    "cluster",
    "operation",
)
_NEED_KEYS = {"of", "all", "any", "since", "until", "instead"}


def other_tasks() -> dict[str, dict[str, Any]]:
    """Return the tasks of preflight beside modules."""
    found: dict[str, dict[str, Any]] = yaml.load(
        TASKS_FILE.read_text(encoding="utf-8"), Loader=LOADER
    )
    return found


def task_names(declarations: Declarations) -> list[str]:
    """Return the names that option `tasks` of preflight_info accepts."""
    modules = modules_of(declarations)
    named = [name for name, (_file, module) in modules.items() if module.get("tasks") != []]
    return sorted({*named, *other_tasks()})


def render_needs(declarations: Declarations) -> str:
    """Return the file with the privileges of each task."""
    needs = {name: task["privileges"] for name, task in other_tasks().items()}
    behind: dict[str, tuple[str, ...]] = {}
    modules = {name: module for name, (_file, module) in modules_of(declarations).items()}
    for name, module in modules.items():
        if "privileges" in module:
            needs[name] = module["privileges"]
        elif module["tasks"]:
            behind[name] = tuple(dict.fromkeys(_within(module["tasks"], modules)))
    text = NEEDS_HEAD
    for name in sorted(needs):
        rows = "".join(f"{_need(name, need)}, " for need in needs[name])
        text += f"    {name!r}: ({rows}),\n"
    text += "}\n\n# The tasks above that a module consists of, unless it is a task itself.\n"
    return text + f"MODULES: Mapping[str, tuple[str, ...]] = {behind!r}\n"


def _within(tasks: Sequence[str], modules: Mapping[str, Any]) -> Iterator[str]:
    """Yield tasks with privileges: these, and those that a module among them consists of."""
    for task in tasks:
        if "tasks" in modules.get(task, {}):
            yield from _within(modules[task]["tasks"], modules)
        else:
            yield task


NEEDS_HEAD = (
    LICENSE
    + '''"""Which privileges which task needs, on which kind of object. Data only.

Written by `make options` from the declarations and tasks.yml: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..need import RequiredPrivileges

TASKS: Mapping[str, tuple[RequiredPrivileges, ...]] = {
'''
)


def _need(name: str, need: Mapping[str, str]) -> str:
    unknown = sorted(set(need) - _NEED_KEYS)
    if unknown:
        raise DeclarationError(f"privileges of {name}: unknown key {unknown[0]!r}")
    if "of" not in need or ("all" in need) == ("any" in need):
        raise DeclarationError(f"privileges of {name}: give `of`, and one of `all` and `any`")
    arguments = [repr(need["of"]), repr(_privileges(need.get("all") or need["any"]))]
    if "any" in need:
        arguments.append("any_of=True")
    for bound in ("since", "until"):
        if bound in need:
            arguments.append(f"{bound}={tuple(map(int, need[bound].split('.')))!r}")
    if "instead" in need:
        arguments.append(f"instead={tuple(need['instead'].split())!r}")
    return f"RequiredPrivileges({', '.join(arguments)})"


def _privileges(words: str) -> tuple[str, ...]:
    found: list[str] = []
    for word in words.split():
        if word == EVERY_CONFIG:
            found += [f"VM.Config.{part}" for part in CONFIG_PARTS]
        else:
            found.append(word)
    return tuple(found)


def administrative(declarations: Declarations) -> dict[str, str]:
    """Return the modules that need no tenant even if the task requires one, with their subject."""
    modules = modules_of(declarations).items()
    return {
        name: module["administrative"]
        for name, (_file, module) in modules
        if "administrative" in module
    }


def render_administrative(declarations: Declarations) -> str:
    """Return the file with these modules."""
    return f"{ADMINISTRATIVE_HEAD}{administrative(declarations)!r}\n"


ADMINISTRATIVE_HEAD = (
    LICENSE
    + '''"""The administrative modules, which need no tenant, each with its subject. Data only.

Written by `make options` from the declarations: do not edit.
"""

from __future__ import annotations

from collections.abc import Mapping

ADMINISTRATIVE: Mapping[str, str] = '''
)


def purposes(declarations: Declarations) -> Iterator[tuple[str, Sequence[str], str, str]]:
    """Yield the rows of the table of modules: topic, names, guide and purpose."""
    rows: list[tuple[int, Sequence[str], str, str]] = []
    for file, declaration in declarations.items():
        if "modules" not in declaration:
            continue
        for key in ("topic", "purpose"):
            if key not in declaration:
                raise DeclarationError(f"{file}: {key} is missing")
        if declaration["topic"] not in TOPICS:
            raise DeclarationError(f"{file}: topic is one of {', '.join(TOPICS)}")
        place = TOPICS.index(declaration["topic"])
        names = sorted(declaration["modules"], key=lambda name: (name.endswith("_info"), name))
        rows.append((place, names, declaration.get("guide", ""), declaration["purpose"]))
    for place, shown, guide, purpose in sorted(rows):
        yield TOPICS[place], shown, guide, purpose
