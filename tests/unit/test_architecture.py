# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The borders of the rooms in module_utils, and the page that lists their files."""

from __future__ import annotations

import ast
import functools
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
    ("config",),
    ("kind",),
    ("desired",),
    ("context", "plan"),
    ("live",),
    ("gather",),
    ("export",),
    ("run",),
)
# The files beside the rooms of a VM that belong to the highest one.
RUN_FILES = ("run", "run_info", "exporter")
# The rooms of a container below those of its run, and what its kind imports.
CONTAINERS_BELOW = ("config", "kind.py", "model.py")
# The words of PVE for the kinds of guests, and the rooms that leave them to the kinds.
WORDS_OF_KINDS = ("qemu", "lxc")
KINDS = (Path("_container/kind.py"), Path("_vm/kind.py"))
WITHOUT_WORDS = ("_container", "_guest", "_vm")
# Rooms that work on guests of any kind through `_kinds`, and their imports of one kind.
OF_ANY_KIND = {
    "_restore": {"_container/plan/decide.py"},  # the refusal of a privileged container
    "_drill": {"_vm/live/guest.py"},  # only VMs have an agent
}
# What the code that guests share may import.
BELOW_GUESTS = ("_core", "_schema", "_spec", "_api", "_cluster", "_resource")
# Libraries that only some tasks need, and a private part of ansible-core that older ones lack.
OPTIONAL = ("yaml", "cryptography", "prometheus_client", "_eligibility: ansible")
MOST_FILES = 14
# Ansible puts all of these in one folder.
CROWDED = {"plugins/action", "plugins/modules"}
# Files with a `reason` of another kind: that of a failed connection.
READS_REASONS = ("module_utils/_api/http/transport.py",)


@functools.cache
def imports(file: Path) -> frozenset[Path]:
    """Return the files that a file imports, also those that it imports for its annotations only."""
    found: set[Path] = set()
    for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not node.level:
            continue
        folder = file.parents[node.level - 1]
        module = folder.joinpath(*node.module.split(".")) if node.module else folder
        if node.module and (ROOT / module.with_suffix(".py")).is_file():
            found.add(module.with_suffix(".py"))
        else:
            found.update(module / f"{alias.name}.py" for alias in node.names)
    return frozenset(found)


def room_of(file: Path) -> str:
    """Return the room of a file: its folder, or its own name where it stands beside the rooms."""
    if file.parts[0] == "_vm":
        return f"_vm/{vm_room_of(file)}"
    if file.parts[0] == "_container" and file.parts[1] in CONTAINERS_BELOW:
        return "_container/kind"
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


@pytest.mark.parametrize("file", [file for file in FILES if file.parts[0] == "_guest"], ids=str)
def test_what_guests_share_imports_no_kind_of_them(file: Path) -> None:
    assert {other.parts[0] for other in imports(file)} <= {*BELOW_GUESTS, "_guest"}


@pytest.mark.parametrize("room", sorted(OF_ANY_KIND))
def test_a_room_for_any_kind_of_guests_reaches_them_through_their_kinds(room: str) -> None:
    others = {other for file in FILES if file.parts[0] == room for other in imports(file)}
    of_one_kind = {str(other) for other in others if other.parts[0] in ("_vm", "_container")}
    assert of_one_kind == OF_ANY_KIND[room]


def words_of_kinds(tree: ast.AST) -> list[int]:
    """Return the lines with a text that is PVE's word for a kind of guests."""
    found: list[int] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in WORDS_OF_KINDS:
            found.append(node.lineno)
    return found


def test_a_word_of_a_kind_is_found() -> None:
    assert words_of_kinds(ast.parse("client.get('nodes', node, 'qemu', 100)")) == [1]


def test_only_a_kind_knows_the_word_of_pve_for_it() -> None:
    found: list[str] = []
    for file in FILES:
        if file.parts[0] in WITHOUT_WORDS and file not in KINDS:
            lines = words_of_kinds(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            found += [f"{file}:{line}" for line in lines]
    assert found == []


@pytest.mark.parametrize("room", sorted({file.parts[0] for file in FILES}))
def test_files_of_a_room_do_not_import_each_other_in_a_circle(room: str) -> None:
    inside = [file for file in FILES if file.parts[0] == room]
    graph = {
        str(file): {str(other) for other in imports(file) if other.parts[0] == room}
        for file in inside
    }
    assert cycle_in(graph) == []


def test_imports_stand_at_the_top_of_a_file() -> None:
    late: set[str] = set()
    for path in (REPO / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                late |= {f"{path.stem}: {name}" for name in imported_in(node)}
    assert {name for name in late if not name.endswith(OPTIONAL)} == set()


def imported_in(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the modules that a function imports by itself, without their parts."""
    for node in ast.walk(function):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "").partition(".")[0]


def test_a_folder_has_at_most_14_files() -> None:
    found = Counter(path.parent for top in ("plugins", "tests") for path in sources(REPO / top))
    crowded = {
        str(folder.relative_to(REPO)) for folder, files in found.items() if files > MOST_FILES
    }
    assert crowded == CROWDED


def sources(top: Path) -> Iterator[Path]:
    """Yield the Python files below a folder that are neither generated nor tests."""
    for path in top.rglob("*.py"):
        is_support = path.name not in ("__init__.py", "conftest.py")
        is_written = path.parent.name != "generated"
        if is_support and is_written and not path.name.startswith("test_"):
            yield path


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
    others = {str(other) for other in imports(file) if other.parts[0] == "_api"}
    assert others <= {"_api/settings.py", "_api/root.py"}  # the connection as data, pure


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


def line_of(file: Path) -> str:
    """Return the name of a file on the architecture page: generated files share one line."""
    return f"{file.parent}/" if file.parent.name == "generated" else str(file)


def test_every_file_has_one_line_in_the_architecture_page() -> None:
    text = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    line = r"^\| `((?!plugin_utils)[\w/]+(?:\.py|/generated/))` \| \S"
    listed = Counter(re.findall(line, text, re.MULTILINE))
    files = Counter({line_of(file): 1 for file in FILES})
    assert listed - files == Counter()
    assert files - listed == Counter()
