# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replaces the code of loaded functions, so that a mutant needs no new process and no imports."""

from __future__ import annotations

import ast
import builtins
import gc
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CodeType, FunctionType

PROBE = "__probe_of_mutants__"
Pair = tuple[CodeType, CodeType]
Functions = Mapping[tuple[str, CodeType], list[FunctionType]]
"""The loaded functions of the same code, by file and code."""


def compiled(program: str | ast.Module) -> CodeType:
    """Compile a file as Ansible does."""
    return compile(program, "mutant", "exec", flags=0, dont_inherit=True)


def replaced(before: CodeType, after: CodeType) -> list[Pair] | None:
    """Return the functions that differ; None if the difference is in what an import executes."""
    pairs = [pair for pair in _pairs(before, after) if pair[0] != pair[1]]
    for old, new in pairs:
        if not old.co_flags & inspect.CO_OPTIMIZED and _own(old) != _own(new):
            return None
    return [pair for pair in pairs if pair[0].co_flags & inspect.CO_OPTIMIZED]


def _pairs(before: CodeType, after: CodeType) -> Iterator[Pair]:
    yield before, after
    inner = _inner(before), _inner(after)
    if len(inner[0]) == len(inner[1]):
        for old, new in zip(*inner, strict=True):
            yield from _pairs(old, new)


def _inner(code: CodeType) -> list[CodeType]:
    return [one for one in code.co_consts if isinstance(one, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what the code itself does, without the functions in it."""
    constants = [(type(one), one) for one in code.co_consts if not isinstance(one, CodeType)]
    return code.co_code, constants, code.co_names, code.co_varnames, len(_inner(code))


def loaded(folder: str) -> Functions:
    """Return the functions of the files below a folder of the collection."""
    found: dict[tuple[str, CodeType], list[FunctionType]] = {}
    gc.unfreeze()
    for one in gc.get_objects():
        if isinstance(one, FunctionType):
            _root, mark, rest = one.__code__.co_filename.partition(f"/{folder}/")
            if mark:
                found.setdefault((f"{folder}/{rest}", one.__code__), []).append(one)
    gc.freeze()
    return found


def put(file: str, pairs: Iterable[Pair], functions: Functions) -> None:
    """Give the loaded functions of a file their new code."""
    for old, new in pairs:
        for function in functions.get((file, old), ()):
            function.__code__ = new


def restore(functions: Functions) -> None:
    """Give all functions the code with which they were loaded."""
    for (_file, code), alike in functions.items():
        for function in alike:
            function.__code__ = code


class _Probes(ast.NodeTransformer):
    """Calls the probe with the name of the file in each function, and with the line before each
    statement that a mutant changes.
    """

    def __init__(self, file: str, lines: Iterable[int]) -> None:
        self.file = file
        self.lines = lines

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        begin = 1 if ast.get_docstring(node, clean=False) is not None else 0
        for line in self.lines:
            self._probe_line(node, line)
        node.body.insert(begin, _call(self.file, node.body[0]))
        return node

    def _probe_line(self, node: ast.AST, line: int) -> None:
        """Put a probe before the innermost statement with this line, unless it is in a function or
        class of its own.
        """
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            inner = getattr(node, name, [])
            for place, one in enumerate(inner if isinstance(inner, list) else []):
                if not _has(one, line) or isinstance(one, (ast.FunctionDef, ast.ClassDef)):
                    continue
                if isinstance(one, ast.stmt) and not _has_statement(one, line):
                    inner.insert(place, _call(f"{self.file}:{line}", one))
                else:
                    self._probe_line(one, line)
                return


def _has(node: ast.AST, line: int) -> bool:
    lines = [one.lineno for one in ast.walk(node) if hasattr(one, "lineno")]
    last = getattr(node, "end_lineno", None) or max(lines, default=0)
    return min(lines, default=0) <= line <= last


def _has_statement(node: ast.AST, line: int) -> bool:
    inner = (one for one in ast.walk(node) if isinstance(one, ast.stmt) and one is not node)
    return any(_has(one, line) for one in inner)


def _call(text: str, before: ast.AST) -> ast.Expr:
    call = ast.Call(ast.Name(PROBE, ast.Load()), [ast.Constant(text)], [])
    probe = ast.copy_location(ast.Expr(call), before)
    return ast.fix_missing_locations(probe)


def probed(file: str, text: str, lines: Iterable[int]) -> CodeType:
    """Return a file that tells which of its functions and lines are executed."""
    return compiled(_Probes(file, lines).visit(ast.parse(text)))


def listen(heard: Callable[[str], None]) -> None:
    """Call this function at each probe."""
    setattr(builtins, PROBE, heard)
