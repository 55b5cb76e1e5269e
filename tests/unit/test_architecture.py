# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The borders of the rooms in module_utils, and the page that lists their files."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]
ROOT = REPO / "plugins" / "module_utils"
FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py") if path.name != "__init__.py")
# The rooms of a VM from the lowest to the highest. A file imports from its own room and from lower
# ones.
VM_ROOMS = (
    ("model",),
    ("desired", "config"),
    ("context", "plan"),
    ("live",),
    ("create",),
    ("run",),
)
# The files beside the rooms of a VM that belong to the highest one.
RUN_FILES = ("run", "apply", "run_clone", "run_info", "report", "describe")
# Files with a `reason` of another kind: that of a failed connection.
READS_REASONS = ("module_utils/_api/transport.py",)


def imports(file: Path) -> Iterator[Path]:
    """Yield the files that a file imports, also those that it imports for its annotations only."""
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = file.parents[node.level - 1]
        module = folder.joinpath(*node.module.split(".")) if node.module else folder
        if node.module and module.with_suffix(".py") in FILES:
            yield module.with_suffix(".py")
            continue
        yield from (module / f"{alias.name}.py" for alias in node.names)


def room_of(file: Path) -> str:
    """Return the room of a file: its folder, or its own name where it stands beside the rooms."""
    if file.parts[0] == "_vm":
        return f"_vm/{vm_room_of(file)}"
    return file.parts[0].removesuffix(".py")


def vm_room_of(file: Path) -> str:
    name = file.parts[1].removesuffix(".py")
    return "run" if name in RUN_FILES else name


def rank_of(file: Path) -> int:
    return next(rank for rank, rooms in enumerate(VM_ROOMS) if vm_room_of(file) in rooms)


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    """Return the rooms that are left when every room without an import from another one is
    removed.
    """
    rest = {room: set(others) for room, others in graph.items()}
    while True:
        leaves = {room for room, others in rest.items() if not others & rest.keys()}
        if not leaves:
            return sorted(rest)
        rest = {room: others for room, others in rest.items() if room not in leaves}


def test_every_import_is_a_file() -> None:
    unknown = {str(other) for file in FILES for other in imports(file)} - {
        str(file) for file in FILES
    }
    assert unknown == set()


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {room_of(file): set() for file in FILES}
    for file in FILES:
        graph[room_of(file)] |= {room_of(other) for other in imports(file)} - {room_of(file)}
    assert cycle_in(graph) == []


def test_a_circle_is_found() -> None:
    assert cycle_in({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == ["a", "b", "c"]


@pytest.mark.parametrize("file", [file for file in FILES if file.parts[0] == "_vm"], ids=str)
def test_a_room_of_a_vm_imports_from_lower_rooms_only(file: Path) -> None:
    others = [other for other in imports(file) if other.parts[0] == "_vm"]
    beside = [other for other in others if rank_of(other) == rank_of(file)]
    assert [str(other) for other in others if rank_of(other) > rank_of(file)] == []
    if vm_room_of(file) in ("desired", "config"):
        assert {vm_room_of(other) for other in beside} <= {vm_room_of(file)}


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in FILES
        if file.parts[:2] in (("_vm", "desired"), ("_vm", "config"), ("_vm", "plan"))
    ],
    ids=str,
)
def test_what_decides_imports_no_client(file: Path) -> None:
    assert [str(other) for other in imports(file) if other.parts[0] == "_api"] == []


def compared_reasons(tree: ast.AST) -> list[int]:
    """Return the lines on which the reason of an error decides something."""
    lines: list[int] = []
    for node in ast.walk(tree):
        operands: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            operands = [node.func.value]  # such as error.reason.startswith("waiting")
        elif isinstance(node, ast.Match):
            operands = [node.subject]
        lines += [
            one.lineno
            for one in operands
            if isinstance(one, ast.Attribute) and one.attr == "reason"
        ]
    return lines


@pytest.mark.parametrize(
    "text",
    [
        "if error.reason == 'exists': pass",
        "if 'full' in error.reason: pass",
        "found = error.reason.startswith('waiting for')",
        "known = error.reason in NAMES and not error.details",
    ],
)
def test_a_compared_reason_is_found(text: str) -> None:
    assert compared_reasons(ast.parse(text)) == [1]


def test_only_the_core_compares_the_reasons_of_errors() -> None:
    found: list[str] = []
    for path in sorted((REPO / "plugins").rglob("*.py")):
        name = str(path.relative_to(REPO / "plugins"))
        if name in READS_REASONS or name.startswith("module_utils/_core/"):
            continue
        lines = compared_reasons(ast.parse(path.read_text(encoding="utf-8")))
        found += [f"{name}:{line}" for line in lines]
    assert found == []


def compared_owners(tree: ast.AST) -> list[int]:
    """Return the lines on which the tenants of a guest are compared with something."""
    lines: list[int] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        if "tenants_of" in names:
            lines.append(node.lineno)
    return lines


def test_whose_a_guest_is_stands_in_one_place() -> None:
    assert compared_owners(ast.parse("tuple(tenants_of(tags, prefix)) == (tag,)")) == [1]
    found: list[str] = []
    for file in FILES:
        if file != Path("_cluster/tenant.py"):
            lines = compared_owners(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            found += [f"{file}:{line}" for line in lines]
    assert found == []


def test_every_file_has_one_line_in_the_architecture_page() -> None:
    text = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = Counter(re.findall(r"^\| `((?!plugin_utils)[\w/]+\.py)` \| \S", text, re.MULTILINE))
    files = Counter(str(file) for file in FILES)
    assert listed - files == Counter()
    assert files - listed == Counter()
