# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The borders of the rooms in module_utils."""

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
# The wings: folders of rooms.
WINGS = ("_foundation", "_guests", "_infrastructure", "_operation", "_protection", "_tenants")
GUEST = "_guests/guest"
# The layers of a kind of guests from the lowest to the highest. A file imports from its own layer
# and from lower ones.
LAYERS = (("desired",), ("plan",), ("live",), ("gather",), ("export",), ("run",), ("replace",))
# The files beside the layers that belong to the highest one.
RUN_FILES = ("run", "run_info", "exporter")
KINDS_OF_GUESTS = ("vm", "container")
# The files of the room of guests that know both kinds.
OF_BOTH_KINDS = {"registry.py"}
# Imports of one kind by rooms that work on guests of any kind.
OF_ONE_KIND = {
    "_protection/restore": {
        "_guests/guest/container/plan/decide.py",  # the refusal of a privileged container
        "_guests/guest/vm/live.py",  # only VMs have an agent
    },
    "_infrastructure/datacenter": {  # PVE's names of HA resources follow from the type
        "_guests/kinds/container/kind.py",
        "_guests/kinds/vm/kind.py",
    },
}
# The rooms that import no room of another wing.
FOUNDATION = ("core", "spec", "schema", "api", "resource", "cluster")
# Libraries that only some tasks need, and a private part of ansible-core that older ones lack.
OPTIONAL = ("yaml", "cryptography", "prometheus_client", "_eligibility: ansible")
MOST_FILES = 14
# Ansible puts all of these in one folder.
CROWDED = {"plugins/action", "plugins/modules"}
# Files with a `reason` of another kind: that of a failed connection.
READS_REASONS = ("module_utils/_foundation/api/http/transport.py",)


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
    """Return the room of a file: the folder below its wing."""
    return "/".join(file.parts[:2])


def kind_of(file: Path) -> str | None:
    """Return the kind of guests that a file of the rooms of guests knows, or None."""
    inside = file.parts[:2] in (("_guests", "guest"), ("_guests", "kinds"))
    return file.parts[2] if inside and file.parts[2] in KINDS_OF_GUESTS else None


def layer_of(file: Path) -> int:
    """Return the layer of a file of `_guests/guest/vm` or `_guests/guest/container`."""
    name = file.parts[3].removesuffix(".py")
    layer = "run" if name in RUN_FILES else name
    return next(rank for rank, names in enumerate(LAYERS) if layer in names)


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


def test_every_file_is_in_a_room_of_a_wing() -> None:
    assert [str(file) for file in FILES if file.parts[0] not in WINGS or len(file.parts) < 3] == []


def test_rooms_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {room_of(file): set() for file in FILES}
    for file in FILES:
        graph[room_of(file)] |= {room_of(other) for other in imports(file)} - {room_of(file)}
    assert cycle_in(graph) == []


@pytest.mark.parametrize("file", [file for file in FILES if file.parts[1] in FOUNDATION], ids=str)
def test_the_foundation_imports_nothing_above_it(file: Path) -> None:
    allowed = {f"_foundation/{room}" for room in FOUNDATION}
    assert {room_of(other) for other in imports(file)} <= allowed


@pytest.mark.parametrize("file", [file for file in FILES if file.parts[0] == "_guests"], ids=str)
def test_the_common_part_of_guests_imports_no_kind_of_them(file: Path) -> None:
    if kind_of(file) is None and room_of(file) == GUEST and file.parts[2] not in OF_BOTH_KINDS:
        assert [str(other) for other in imports(file) if kind_of(other) is not None] == []


@pytest.mark.parametrize(
    "file", [file for file in FILES if kind_of(file) and room_of(file) == GUEST], ids=str
)
def test_a_kind_of_guests_imports_lower_layers_and_not_the_other_kind(file: Path) -> None:
    own = [other for other in imports(file) if kind_of(other) is not None]
    assert {kind_of(other) for other in own} <= {kind_of(file)}
    above = [
        str(other) for other in own if room_of(other) == GUEST and layer_of(other) > layer_of(file)
    ]
    assert above == []


@pytest.mark.parametrize("room", sorted({room_of(file) for file in FILES} - {GUEST}))
def test_a_room_for_any_kind_of_guests_reaches_them_through_their_lists(room: str) -> None:
    if room == "_guests/kinds":
        return  # the kinds themselves
    others = {other for file in FILES if room_of(file) == room for other in imports(file)}
    found = {str(other) for other in others if kind_of(other) is not None}
    assert found == OF_ONE_KIND.get(room, set())


@pytest.mark.parametrize("room", sorted({room_of(file) for file in FILES}))
def test_files_of_a_room_do_not_import_each_other_in_a_circle(room: str) -> None:
    inside = [file for file in FILES if room_of(file) == room]
    graph = {
        str(file): {str(other) for other in imports(file) if room_of(other) == room}
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


@pytest.mark.parametrize(
    "file",
    [
        file
        for file in FILES
        if file.parts[:2] == ("_guests", "kinds")
        and "config" in file.parts
        or kind_of(file) == "vm"
        and len(file.parts) > 4
        and file.parts[3] in ("desired", "plan")
    ],
    ids=str,
)
def test_a_file_that_decides_imports_no_client(file: Path) -> None:
    others = {str(other) for other in imports(file) if room_of(other) == "_foundation/api"}
    assert others <= {
        "_foundation/api/settings.py",
        "_foundation/api/root.py",
    }  # the connection as data, pure


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
        if name in READS_REASONS or name.startswith("module_utils/_foundation/core/"):
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
        if file != Path("_foundation/cluster/tenant.py"):
            lines = compared_owners(ast.parse((ROOT / file).read_text(encoding="utf-8")))
            found += [f"{file}:{line}" for line in lines]
    assert found == []


def test_a_pattern_ends_at_the_end_of_a_text() -> None:
    """A dollar sign also matches before a line break at the end, as in YAML's block texts."""
    ends = re.compile(r're\.(?:compile|match|search)\(\s*r?f?"[^"\n]*\$(?:"|\|)')
    found = [str(file) for file in FILES if ends.search((ROOT / file).read_text("utf-8"))]
    assert found == []
