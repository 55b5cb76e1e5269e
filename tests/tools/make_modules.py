# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules, their action plugins and the action group, from the `modules` of declarations."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.tools.declarations import Declarations, Options, documentation
from tests.tools.written import (
    LICENSE,
    LOADER,
    DeclarationError,
    compact,
    dumped_by_key,
    fits_in_braces,
    in_braces,
    in_one_line,
)

# Returned values that several modules have.
RETURNED = Path(__file__).resolve().parent / "returned.yml"
RUNTIME = Path("meta/runtime.yml")
UTILS = "ansible_collections.pve.fleet.plugins.module_utils"
AUTHOR = "pve.fleet authors (@pve-fleet)"
# The returned values of every module of a table; its declaration does not repeat them.
OF_A_TABLE = ("plan", "done", "error")
# Functions and values that a module hands to its entry by these keys.
HANDED = ("secrets", "conditions", "on_failure")
KNOWN = {
    "short_description",
    "version_added",
    "description",
    "requirements",
    "attributes",
    "fragments",
    "seealso",
    "examples",
    "returns",
    "run",
    "spec",
    "checks",
    "sites",
    "returned_secrets",
    "libraries",
    *HANDED,
    "privileges",
    "tasks",
    "administrative",
    "task",
    "plans",
}
NEEDED = ("short_description", "version_added", "description", "examples", "task")
# A value of the collection: room, file and name, as in _tenants.access.pool.POOL.
_REFERENCE = re.compile(r"^(?P<file>_\w+(?:\.\w+)*\.\w+)\.(?P<name>\w+)$")

Module = Mapping[str, Any]


def modules_of(declarations: Declarations) -> dict[str, tuple[str, Module]]:
    """Return each declared module with the name of its file, sorted. Raises DeclarationError."""
    found: dict[str, tuple[str, Module]] = {}
    for file, declaration in declarations.items():
        for name, module in declaration.get("modules", {}).items():
            _check(name, module)
            found[name] = (file, module)
    return dict(sorted(found.items()))


def _check(name: str, module: Module) -> None:
    unknown = sorted(set(module) - KNOWN)
    if unknown:
        raise DeclarationError(f"module {name}: unknown key {unknown[0]!r}")
    for key in NEEDED:
        if key not in module:
            raise DeclarationError(f"module {name}: {key} is missing")
    if ("privileges" in module) == ("tasks" in module):
        raise DeclarationError(f"module {name}: give either privileges or tasks")


def module_files(declarations: Declarations) -> dict[Path, str]:
    """Return modules and action plugins, not yet formatted, by their path."""
    returned = yaml.load(RETURNED.read_text(encoding="utf-8"), Loader=LOADER)
    found: dict[Path, str] = {}
    for name, (file, _module) in modules_of(declarations).items():
        text = render_module(name, file, declarations, returned)
        found[Path(f"plugins/modules/{name}.py")] = text
        found[Path(f"plugins/action/{name}.py")] = ACTION.format(license=LICENSE, name=name)
    return found


ACTION = '''\
{license}"""Runs this module in the controller's process. Written by `make options`: do not edit."""

from ansible_collections.pve.fleet.plugins.modules.{name} import ENTRY as entry
from ansible_collections.pve.fleet.plugins.plugin_utils._in_process import InProcess


class ActionModule(InProcess):
    ENTRY = entry
'''


def render_module(
    name: str, file: str, declarations: Declarations, returned: Mapping[str, Any]
) -> str:
    """Return a module: its documentation and its entry."""
    declaration = declarations[file]
    module: Module = declaration["modules"][name]
    values = returned_values(module, declaration, returned, is_info=_is_info(name))
    values = _without_repeated_fields(name, values, declaration["modules"])
    entry = Code()
    call = entry.call(name, file, declarations)
    return MODULE.format(
        license=LICENSE.rstrip(),
        file=file,
        documentation=dumped_by_key(_documentation(name, file, declarations)),
        examples=module["examples"].strip("\n"),
        returned=dumped_by_key(values),
        imports=entry.imports(),
        call=call,
    )


MODULE = '''\
#!/usr/bin/python
{license}

# Written by `make options` from {file}.yml: do not edit.

DOCUMENTATION = r"""
{documentation}"""

EXAMPLES = r"""
{examples}
"""

RETURN = r"""
{returned}"""

{imports}

ENTRY = {call}
main = ENTRY.main

if __name__ == "__main__":
    main()
'''


def _is_info(name: str) -> bool:
    return name.endswith("_info")


def _documentation(name: str, file: str, declarations: Declarations) -> dict[str, Any]:
    declaration = declarations[file]
    module = declaration["modules"][name]
    own = embedded(declarations)
    fragments = [*_fragments(name, file, declaration), "connection", "attributes"]
    if module.get("plans"):
        fragments.insert(-2, "plan_options")
    if "attributes" not in module:
        fragments.append("attributes.info" if _is_info(name) else "attributes.full")
    options: Options = {}
    for fragment in fragments:
        if fragment in own:
            options.update(documentation(options_of(fragment, declarations)))
    shown = {
        "module": name,
        "short_description": module["short_description"],
        "version_added": module["version_added"],
        "author": in_one_line([AUTHOR]),
        "description": module["description"],
        "requirements": module.get("requirements"),
        "attributes": module.get("attributes"),
        "options": options,
        "extends_documentation_fragment": in_one_line(
            [f"pve.fleet.{fragment}" for fragment in fragments if fragment not in own]
        ),
        "seealso": compact(list(map(_reference, module.get("seealso", [])))),
    }
    return {key: value for key, value in shown.items() if value}


def embedded(declarations: Declarations) -> set[str]:
    """Return the declared fragments that only one module has: its documentation contains their
    options.
    """
    declared: set[str] = set()
    for file, declaration in declarations.items():
        for section in declaration["sections"].values():
            declared.add(fragment_of(section, file, declaration))
    users: Counter[str] = Counter()
    for name, (file, _module) in modules_of(declarations).items():
        users.update(_fragments(name, file, declarations[file]))
    return {fragment for fragment in declared if users[fragment] == 1}


def options_of(fragment: str, declarations: Declarations) -> Options:
    """Return the options of a fragment such as `backup_options.info`, or none."""
    found: Options = {}
    for file, declaration in declarations.items():
        for section in declaration["sections"].values():
            if fragment_of(section, file, declaration) == fragment:
                found.update(section["options"])
    return found


def fragment_of(section: Mapping[str, Any], file: str, declaration: Mapping[str, Any]) -> str:
    """Return the name of the fragment with the options of a section."""
    whole: str = declaration.get("fragment_file", f"{file}_options")
    attribute = section["fragment"]
    return whole if attribute == "documentation" else f"{whole}.{attribute}"


def _fragments(name: str, file: str, declaration: Mapping[str, Any]) -> list[str]:
    """Return the fragments of a module: by default of the section that is called as the module."""
    section = declaration["sections"].get(name)
    by_name = [fragment_of(section, file, declaration)] if section else []
    given: list[str] = declaration["modules"][name].get("fragments", by_name)
    return given


def declared_options(module: str, declarations: Declarations) -> Options:
    """Return the options of a module, without the options of the connection."""
    file, _module = modules_of(declarations)[module]
    found: Options = {}
    for fragment in _fragments(module, file, declarations[file]):
        found.update(options_of(fragment, declarations))
    return found


def declared_names(module: str, declarations: Declarations, key: str) -> dict[str, str]:
    """Return the kinds of names by option of a module: by `names`, or by `refuses`."""
    return dict(_kinds_within("", declared_options(module, declarations), key))


def _kinds_within(place: str, options: Options, key: str) -> Iterator[tuple[str, str]]:
    for name, option in options.items():
        path = f"{place}.{name}".lstrip(".")
        kinds = option.get(key, {})
        if isinstance(kinds, str):
            yield path, kinds
        else:
            for part, kind in kinds.items():
                yield f"{path}.{part}".rstrip("."), kind
        yield from _kinds_within(path, option.get("suboptions", {}), key)


def _reference(given: Any) -> Any:
    """Return an entry of `seealso`; a text is the name of a module of the collection."""
    return {"module": f"pve.fleet.{given}"} if isinstance(given, str) else given


def returned_values(
    module: Module, declaration: Mapping[str, Any], returned: Mapping[str, Any], *, is_info: bool
) -> dict[str, Any]:
    """Return the returned values of a module, completed from the common values of several modules.

    A sample that is a dictionary is merged over the common one.
    """
    given = {name: dict(value or {}) for name, value in module.get("returns", {}).items()}
    if "table" in declaration and not is_info:
        for name in OF_A_TABLE:
            given.setdefault(name, {})
    found: dict[str, Any] = {}
    for name, own in given.items():
        common = returned.get(name, {}) if "type" not in own else {}
        whole = {**common, **own}
        if isinstance(common.get("sample"), dict):
            whole["sample"] = {**common["sample"], **own.get("sample", {})}
        found[name] = whole
    return found


def _without_repeated_fields(
    name: str, values: Mapping[str, dict[str, Any]], modules: Mapping[str, Module]
) -> dict[str, Any]:
    """Return the returned values of a module as YAML shows them. If several values of a
    declaration have the same fields, one has the table, in a module that reads, and the others
    name it.
    """
    tables = _tables_of_fields(modules)
    found: dict[str, Any] = {}
    for key, value in values.items():
        shown = dict(value)
        place = next((place for place, fields in tables if fields == value.get("contains")), None)
        if place not in (None, (name, key)):
            del shown["contains"]
            shown["description"] = _with_reference(value["description"], name, place)
        found[key] = _shown(shown)
    return found


def _tables_of_fields(modules: Mapping[str, Module]) -> list[tuple[tuple[str, str], Any]]:
    """Return the fields of each returned value of a declaration, first of modules that read."""
    found: list[tuple[tuple[str, str], Any]] = []
    for name in sorted(modules, key=lambda name: not _is_info(name)):
        for key, value in modules[name].get("returns", {}).items():
            if value and "contains" in value:
                found.append(((name, key), value["contains"]))
    return found


def _with_reference(description: str | list[str], name: str, place: tuple[str, str]) -> Any:
    """Return the description of a value whose fields another value describes."""
    module, key = place
    of_module = "" if module == name else f"pve.fleet.{module}#module:"
    sentence = f"RV({of_module}{key}) describes its fields."
    if isinstance(description, str):
        return f"{description} {sentence}"
    return [*description, sentence]


def _shown(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a returned value as YAML shows it: short parts in one line each."""
    shown = dict(value)
    if "sample" in shown:
        shown["sample"] = compact(shown["sample"], lines=2)
    if "contains" in shown:
        shown["contains"] = {name: _leaf(one) for name, one in shown["contains"].items()}
    return shown


def _leaf(value: Mapping[str, Any]) -> dict[str, Any]:
    if "contains" in value or not isinstance(value["description"], str):
        return _shown(value)
    return in_braces(value) if fits_in_braces(value) else _shown(value)


class Code:
    """The code of a module's entry, with the names that it imports."""

    def __init__(self) -> None:
        self._imported: dict[str, set[str]] = {f"{UTILS}._foundation.entry.module": {"ModuleEntry"}}

    def named(self, reference: str) -> str:
        """Return the name of a value of the collection, which is imported."""
        found = _REFERENCE.match(reference)
        if found is None:
            raise DeclarationError(
                f"{reference}: write room, file and name: _tenants.access.pool.POOL"
            )
        self._imported.setdefault(f"{UTILS}.{found['file']}", set()).add(found["name"])
        return found["name"]

    def imports(self) -> str:
        """Return the lines with the imports, in the order that linters want."""
        lines = [
            f"from {module} import {', '.join(sorted(names, key=import_order))}"
            for module, names in sorted(self._imported.items(), key=_module_order)
        ]
        return "\n".join(lines).replace("import partial\n", "import partial\n\n")

    def call(self, name: str, file: str, declarations: Declarations) -> str:
        """Return the expression that makes the entry of a module."""
        declaration = declarations[file]
        module: Module = declaration["modules"][name]
        arguments = [self._run(name, declaration), self._specification(name, file, declaration)]
        arguments += self._checks(module)
        arguments += [f"{key}={self.named(module[key])}" for key in HANDED if key in module]
        arguments += self._sites(module)
        if "returned_secrets" in module:
            arguments.append(f"returned_secrets={tuple(module['returned_secrets'])!r}")
        if "site" in module.get("returns", {}):
            arguments.append("returns_site=True")
        if module.get("plans"):
            arguments.append("plans=True")
            if module["plans"] is not True:
                arguments.append(f"plan_subject={module['plans']!r}")
        if "libraries" in module:
            names = "".join(f"{self.named(library)}, " for library in module["libraries"])
            arguments.append(f"libraries=({names})")
        kinds = declared_names(name, declarations, "names")
        if kinds:
            arguments.append(f"names={kinds!r}")
        return f"ModuleEntry({', '.join(arguments)}, name={name!r})"

    def _run(self, name: str, declaration: Mapping[str, Any]) -> str:
        module: Module = declaration["modules"][name]
        if "run" in module:
            return self.named(module["run"])
        if "table" not in declaration:
            raise DeclarationError(f"module {name}: give run, or the declaration a table")
        self._imported.setdefault("functools", set()).add("partial")
        run = self.named(f"_foundation.resource.run.{'run_info' if _is_info(name) else 'run'}")
        return f"partial({run}, {self.named(declaration['table'])})"

    def _specification(self, name: str, file: str, declaration: Mapping[str, Any]) -> str:
        module: Module = declaration["modules"][name]
        if "spec" in module:
            return f"{self.named(module['spec'])}()"
        if name not in declaration["sections"]:
            return "{}"
        return f"{self.named(f'_foundation.spec.generated.{file}.{name}_spec')}()"

    def _checks(self, module: Module) -> Iterator[str]:
        checks: dict[str, Any] = {}
        for key, rules in module.get("checks", {}).items():
            # Ansible wants a tuple for each rule; `required_by` is a dictionary.
            checks[key] = rules if isinstance(rules, dict) else list(map(tuple, rules))
        if checks:
            yield repr(checks)

    def _sites(self, module: Module) -> Iterator[str]:
        if "sites" not in module:
            return
        self._imported[f"{UTILS}._foundation.entry.module"].add("SiteSupport")
        arguments: list[str] = []
        for key, value in module["sites"].items():
            arguments.append(f"{key}={self.named(value) if isinstance(value, str) else value}")
        yield f"sites=SiteSupport({', '.join(arguments)})"


def _module_order(imported: tuple[str, set[str]]) -> tuple[bool, str]:
    """Return the place of an import: the standard library first."""
    module, _names = imported
    return module.startswith("ansible_collections"), module


def import_order(name: str) -> tuple[int, str]:
    """Return the place of an imported name: constants, classes, functions."""
    if name.isupper():
        return 0, name
    return (1 if name[0].isupper() else 2), name


def render_runtime(declarations: Declarations, text: str) -> str:
    """Return meta/runtime.yml with the names of the modules in its action group."""
    head, mark, _old = text.partition("  all:\n")
    if not mark:
        raise DeclarationError(f"{RUNTIME} has no action group 'all'")
    names = "".join(f"    - {name}\n" for name in modules_of(declarations))
    return f"{head}{mark}{names}"
