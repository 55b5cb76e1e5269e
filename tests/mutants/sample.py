# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A random sample of the mutants that cosmic-ray makes, the same for the same seed and tree."""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

# Names without arguments; an operator with arguments needs values that fit a file.
OPERATORS = {
    name: plugins.get_operator(name)()
    for name in sorted(plugins.operator_names())
    if not plugins.get_operator(name).arguments()
}


@dataclass(frozen=True)
class Mutant:
    """A file with one small fault."""

    file: str
    line: int
    name: str
    original: str
    code: str


def sample(root: Path, sources: str, size: int, seed: int) -> list[Mutant]:
    """Return different mutants; a long file has more of them than a short one."""
    files = sorted((root / sources).rglob("*.py"))
    texts = {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}
    weights = [text.count("\n") for text in texts.values()]
    chance = random.Random(seed)
    found: dict[tuple[str, str], Mutant] = {}
    while len(found) < size:
        (file,) = chance.choices(list(texts), weights)
        mutant = draw(file, texts[file], chance)
        if mutant is not None:
            found[file, mutant.code] = mutant
    return list(found.values())


def draw(file: str, text: str, chance: random.Random) -> Mutant | None:
    """Return a random mutation of a random place, or None if it does not change the program, or if
    the result is invalid: cosmic-ray also replaces the asterisk of an unpacking.
    """
    by_place = places(text)
    if not by_place:
        return None
    place = chance.choice(sorted(by_place))
    name, occurrence = chance.choice(by_place[place])
    code = mutate_code(text, OPERATORS[name], occurrence)
    try:
        if code is None or program(code) == program(text):
            return None
    except SyntaxError:
        return None
    return Mutant(file, place[0], name.partition("/")[2], text, code)


def places(text: str) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Return the mutations at each place: names of operators, and how many come before."""
    nodes = list(ast_nodes(get_ast(text)))
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for name, operator in OPERATORS.items():
        positions = (start for node in nodes for start, _end in operator.mutation_positions(node))
        for occurrence, start in enumerate(positions):
            found.setdefault(start, []).append((name, occurrence))
    return found


class _Unannotated(ast.NodeTransformer):
    """Removes types: a fault in them is one of the documentation."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def program(code: str) -> str:
    """Return the program of a file without its types."""
    return ast.dump(_Unannotated().visit(ast.parse(code)))
