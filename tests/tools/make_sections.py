# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of a cluster file, from the key `section` of declarations.

A section is an option of module cluster, a variable of role cluster, a name in the playbook for
drift, a row in docs/cluster.md, a row of `SECTIONS`, and a few scenarios of the fault table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.tools.declarations import Declarations
from tests.tools.make_modules import UTILS, Code, import_order
from tests.tools.sections import REFERENCES, Section, has_table, sections_of
from tests.tools.written import BEGIN, BLOCK, END, LICENSE, DeclarationError

_ROOM = "_operation.cluster_file"
_HERE = f"{_ROOM}.sections"
SECTIONS = Path("plugins/module_utils/_operation/cluster_file/generated/sections.py")
# The files that repeat the names, each with the line for a section.
LISTS = {
    Path("roles/cluster/tasks/apply.yml"): '{0}: "{{{{ cluster_{0} | default(omit) }}}}"',
    Path("roles/cluster/vars/main.yml"): "- {0}",
    Path("playbooks/drift.yml"): "- {0}",
}


def list_texts(declarations: Declarations, repo: Path) -> dict[Path, str]:
    """Return the files that repeat the names of the sections, by their path."""
    names = [section["name"] for section in sections_of(declarations)]
    if not names:
        return {}
    found: dict[Path, str] = {}
    for path, line in LISTS.items():
        lines = [line.format(name) for name in names]

        def block(match: re.Match[str], lines: list[str] = lines) -> str:
            return "".join(f"{match['indent']}{text}\n" for text in (BEGIN, *lines, END))

        text, count = BLOCK.subn(block, (repo / path).read_text(encoding="utf-8"))
        if count != 1:
            raise DeclarationError(f"{path} has no line {BEGIN!r}")
        found[path] = text
    return found


class _Rows(Code):
    """The code of `SECTIONS`, a file of its room: its imports are relative."""

    def __init__(self) -> None:
        super().__init__()
        self._imported = {f"{UTILS}.{_HERE}": {"Section"}}

    def imports(self) -> str:
        """Return the lines with the imports, the nearest file last."""
        lines: dict[bool, list[str]] = {False: [], True: []}
        for module, names in sorted(self._imported.items()):
            file = module.removeprefix(f"{UTILS}.")
            is_near = file.startswith(f"{_ROOM}.")
            place = f"..{file.removeprefix(f'{_ROOM}.')}" if is_near else f"....{file}"
            lines[is_near].append(
                f"from {place} import {', '.join(sorted(names, key=import_order))}"
            )
        return "\n".join([*lines[False], *lines[True]])

    def of(self, section: Section, declarations: Declarations) -> str:
        """Return the row of a section."""
        declaration = declarations[section["file"]]
        module = declaration["modules"][section["module"]]
        arguments = [repr(section["name"]), self._spec(section, module)]
        arguments.append(self._work(section, module, declaration))
        if has_table(section, declaration):
            maker = "of_table"
            arguments.append(self.named(declaration["table"]))
        else:
            maker = "Section"
            arguments.append(repr(tuple(section["keys"])))
        if isinstance(section.get("built_in"), str):
            arguments.append(f"built_in={self.named(section['built_in'])}")
        elif "built_in" in section:
            names = ", ".join(map(repr, section["built_in"]))
            arguments.append(f"built_in={self.named(f'{_HERE}.named')}({names})")
        if "types" in section:
            arguments.append(f"groups={tuple({'type': one} for one in section['types'])!r}")
        if "listed" in section:
            arguments.append(f"listed=frozenset({tuple(section['listed'])!r})")
        for key in ("fixed", "secret"):
            if key in section:
                arguments.append(f"{key}={section[key]!r}")
        arguments += [f"{key}={self.named(section[key])}" for key in REFERENCES if key in section]
        return f"{self.named(f'{_HERE}.{maker}')}({', '.join(arguments)})"

    def _spec(self, section: Section, module: Section) -> str:
        generated = f"_foundation.spec.generated.{section['file']}.{section['module']}_spec"
        return self.named(module.get("spec", generated))

    def _work(self, section: Section, module: Section, declaration: Mapping[str, Any]) -> str:
        reference = section.get("run", module.get("run"))
        if reference is None:
            run = self.named("_foundation.resource.run.run")
            return f"partial({run}, {self.named(declaration['table'])})"
        if not str(reference).endswith(".run"):
            return self.named(reference)
        file = str(reference).removesuffix(".run")
        return self._aliased(file, "run", f"run_{section['module']}")

    def _aliased(self, file: str, name: str, alias: str) -> str:
        self.named(f"{file}.{name}")
        self._imported[f"{UTILS}.{file}"].discard(name)
        self._imported[f"{UTILS}.{file}"].add(f"{name} as {alias}")
        return alias


def render_sections(declarations: Declarations) -> dict[Path, str]:
    """Return the file with `SECTIONS` by its path, or nothing if no section is declared."""
    sections = sections_of(declarations)
    if not sections:
        return {}
    code = _Rows()
    rows = "".join(f"    {code.of(section, declarations)},\n" for section in sections)
    body = f"{HEAD}{code.imports()}\n\nSECTIONS: tuple[Section, ...] = (\n{rows})\n"
    return {SECTIONS: body}


HEAD = (
    LICENSE
    + '''"""The sections of a cluster file, in the order in which they are applied. Data only.

Written by `make options` from the key `section` of the declarations: do not edit.
"""

from __future__ import annotations

from functools import partial

'''
)


def guides(declarations: Declarations) -> Iterator[str]:
    """Yield the rows of the table of sections in docs/cluster.md."""
    for section in sections_of(declarations):
        guide = declarations[section["file"]].get("guide", "")
        module = f"`{section['module']}`"
        shown = f"[{module}]({guide})" if guide else module
        yield f"| `cluster_{section['name']}` | {shown} | {section.get('because', '')} |"
