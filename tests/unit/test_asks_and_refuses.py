# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read, then decide: few functions take a client and refuse as well.

A refusal that needs no client is tested with facts alone. The functions that do both are listed by
`python -m tests.unit.test_asks_and_refuses`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
MOST = 14
# Classes that send requests, and contexts that have a client.
CLIENTS = (
    *("Api", "Client", "ClusterView", "KnownBridges", "Reader", "Reads", "Sender", "Waiter"),
    *("AnyContext", "BackupContext", "ContainerContext", "RunContext"),
    *("GuestReads", "SnapshotContext"),
)

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


def takes_client(function: Function) -> bool:
    """Return whether a parameter is a client, or something that has one.

    A parameter that begins with an underscore is not used: the function is a pure hook.
    """
    arguments = function.args
    for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if one.arg.startswith("_"):
            continue
        annotation = ast.unparse(one.annotation) if one.annotation else ""
        words = annotation.replace("|", " ").replace("[", " ").split()
        if one.arg == "client" or any(word.strip("\"'") in CLIENTS for word in words):
            return True
    return False


def refuses(function: Function) -> bool:
    """Return whether the function raises an error of its own.

    An error that the server answered is none, also with other words: `raise`, `raise error` and
    `raise error.on(...)` within `except ... as error`. NotImplementedError marks abstract methods.
    """
    handlers = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
    caught = {handler.name for handler in handlers if handler.name} | {"NotImplementedError"}
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None and not _is_of(node.exc, caught):
            return True
    return False


def _is_of(error: ast.expr, caught: set[str]) -> bool:
    """Return whether an expression is a caught error, or one of its methods."""
    if isinstance(error, ast.Call) and isinstance(error.func, ast.Attribute):
        error = error.func.value
    return isinstance(error, ast.Name) and error.id in caught


def functions_in(text: str) -> Iterator[Function]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def both() -> tuple[int, list[str]]:
    """Return how many functions take a client, and those that also refuse."""
    taking = 0
    found: list[str] = []
    for path in sorted(PLUGINS.rglob("*.py")):
        for function in functions_in(path.read_text(encoding="utf-8")):
            if not takes_client(function):
                continue
            taking += 1
            if refuses(function):
                found.append(f"{path.relative_to(PLUGINS)}: {function.name}")
    return taking, found


def test_few_functions_take_a_client_and_refuse() -> None:
    _taking, found = both()
    assert len(found) <= MOST, "\n".join(found)


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("def f(client): raise NotFound()", (True, True)),
        ("def f(reads: Reads): raise NotFound()", (True, True)),
        ("def f(one: Client | None):\n if one: raise refused()", (True, True)),
        ("def f(cluster): raise NotFound()", (False, True)),
        ("def f(context: RunContext[Any]): raise NotFound()", (True, True)),
        ("def f(_client: Api): raise NotFound()", (False, True)),
        ("def f(client): raise NotImplementedError", (True, False)),
        ("def f(client): return client.get()", (True, False)),
        ("def f(client):\n try: g()\n except E as error: raise error.on(a=1)", (True, False)),
        ("def f(client):\n try: g()\n except E as error: raise", (True, False)),
        ("def f(client):\n try: g()\n except E as error: raise other(error)", (True, True)),
    ],
)
def test_what_counts(text: str, result: tuple[bool, bool]) -> None:
    (function,) = functions_in(text)
    assert (takes_client(function), refuses(function)) == result


if __name__ == "__main__":
    number, names = both()
    print(*names, f"{len(names)} of {number} functions take a client and refuse", sep="\n")
