"""The simulator's rooms lie on floors: what a file imports lies in its own room or below."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import tests.simulator

SIMULATOR = Path(tests.simulator.__file__).parent

# From the lowest floor to the highest. A file that lies in no room counts as a room of its own.
FLOORS = (
    "errors",
    "schema",
    "core",
    "volumes",
    "config",
    "running",
    "ha",
    "cluster",
    "access",
    "identity",
    "network",
    "sdn",
    "storage",
    "guests",
    "containers",
    "remote",
    "upkeep",
    "options",
    "initial",
    "web",
    "__main__",
    "forks",
    "starter",
    "process",
    "skipping",
    "threaded",
    "pytest_plugin",
    "bench",
    "fidelity",
)


def module_names() -> list[str]:
    """Every module below the package, e.g. `core.api`."""
    paths = (path.relative_to(SIMULATOR).with_suffix("") for path in SIMULATOR.rglob("*.py"))
    return sorted(".".join(path.parts) for path in paths if path.name != "__init__")


def room_of(module: str) -> str:
    return module.partition(".")[0]


def only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports_below(node: ast.AST, local: bool) -> Iterator[tuple[ast.ImportFrom, bool]]:
    """The imports that run, and whether each waits inside a function."""
    for child in ast.iter_child_nodes(node):
        if only_for_types(child):
            continue
        if isinstance(child, ast.ImportFrom):
            yield child, local
        inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
        yield from imports_below(child, local or inside)


@functools.cache
def imports_of(module: str) -> list[tuple[str, bool]]:
    """The simulator's own modules that a module imports, and whether the import waits inside a
    function.
    """
    package = module.split(".")[:-1]
    tree = ast.parse((SIMULATOR / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8"))
    found = []
    for node, local in imports_below(tree, False):
        if not node.level:
            continue
        base = package[: len(package) + 1 - node.level]
        names = [node.module] if node.module else [alias.name for alias in node.names]
        found += [(".".join([*base, name]), local) for name in names]
    return found


def test_every_room_has_its_floor() -> None:
    assert {room_of(module) for module in module_names()} == set(FLOORS)


def test_no_import_goes_upwards() -> None:
    climbs = []
    for module in module_names():
        for target, _local in imports_of(module):
            if FLOORS.index(room_of(target)) > FLOORS.index(room_of(module)):
                climbs.append(f"{module} -> {target}")
    assert climbs == []


def test_modules_of_a_room_do_not_import_each_other_in_a_circle() -> None:
    imported = {
        module: {target for target, _local in imports_of(module)} for module in module_names()
    }
    while True:
        free = [module for module, targets in imported.items() if not targets & imported.keys()]
        if not free:
            break
        for module in free:
            del imported[module]
    assert sorted(imported) == []


def test_no_import_waits_inside_a_function() -> None:
    waiting = [
        f"{module} -> {target}"
        for module in module_names()
        for target, local in imports_of(module)
        if local
    ]
    assert waiting == []


def test_internal_imports_are_relative() -> None:
    """Else the package could not be installed under another name."""
    absolute = []
    for module in module_names():
        text = (SIMULATOR / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tests"):
                absolute.append(f"{module}: {node.module}")
    assert absolute == []
