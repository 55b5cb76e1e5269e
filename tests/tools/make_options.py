"""Write what is known of each option from its one declaration in `options/*.yml`, see the README
there.

A declaration becomes the argument specification (`plugins/module_utils/_spec/<name>_options.py`),
the documentation fragment (`plugins/doc_fragments/<name>_options.py`), the tables by which an
option becomes one of Proxmox VE (`_spec/vm_rules.py`) and the variables of roles that pass the
option on. Run it with `make options`; a test fails while a file is stale.
"""

from __future__ import annotations

import pprint
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

REPO = Path(__file__).resolve().parents[2]
DECLARATIONS = Path(__file__).resolve().parent / "options"
RULES = Path("plugins/module_utils/_spec/vm_rules.py")

# What a declaration says of an option, by who reads it.
IN_SPECIFICATION = ("type", "elements", "required", "aliases", "choices", "default", "no_log")
IN_DOCUMENTATION = (
    "type",
    "elements",
    "required",
    "aliases",
    "choices",
    "default",
    "version_added",
)
IN_ROLE = ("type", "elements", "required", "choices", "default", "version_added")
OF_THE_MAKER = (
    "as",
    "check",
    "description",
    "environment",
    "pve",
    "parsed",
    "words",
    "empty_removes",
    "range",
    "roles",
    "suboptions",
    "unchecked",
)
KNOWN = {*IN_SPECIFICATION, *IN_DOCUMENTATION, *OF_THE_MAKER}
# Columns of a written line; a fragment is indented by what embeds it.
MAX_LINE = 100
PARSED = ("scalar", "property_string", "rule")

BEGIN, END = "# Written by `make options`: begin", "# Written by `make options`: end"
_BLOCK = re.compile(
    rf"(?P<indent> *){re.escape(BEGIN)}\n.*?(?P=indent){re.escape(END)}\n", re.DOTALL
)
_ENTRY_POINT = re.compile(r"^  (?P<name>\w+):$", re.MULTILINE)

LICENSE = """\
# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""

# The same in C, where PyYAML was built with it, is ten times as fast.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Options = dict[str, dict[str, Any]]
Declarations = dict[str, dict[str, Any]]


class DeclarationError(ValueError):
    """A declaration that nothing can be written from."""


def load(folder: Path = DECLARATIONS) -> Declarations:
    """Return the declarations by the names of their files, each option complete.

    Raises DeclarationError.
    """
    declarations: Declarations = {}
    for file in sorted(folder.glob("*.yml")):
        declarations[file.stem] = yaml.load(file.read_text(encoding="utf-8"), Loader=_LOADER)
    for name, declaration in declarations.items():
        for section in declaration["sections"].values():
            section["options"] = _completed(section["options"], name, declarations)
    return declarations


def _completed(options: Options, file: str, declarations: Declarations) -> Options:
    """Return options with what they take over from the one that `as` names, checked."""
    complete: Options = {}
    for name, option in options.items():
        where = f"{file}.{name}"
        whole = dict(option)
        if "as" in option:
            whole = {**_named(option["as"], declarations), **option}
            del whole["as"]
        _check(whole, where)
        if "suboptions" in whole:
            whole["suboptions"] = _completed(whole["suboptions"], where, declarations)
        complete[name] = whole
    return complete


def _named(reference: str, declarations: Declarations) -> dict[str, Any]:
    """Return what another option can pass on: all but what is its own way to Proxmox VE and to
    roles.
    """
    file, _dot, name = reference.partition(".")
    for section in declarations.get(file, {"sections": {}})["sections"].values():
        if name in section["options"]:
            own = ("roles", "pve", "parsed", "words", "empty_removes", "check", "range")
            return {key: value for key, value in section["options"][name].items() if key not in own}
    raise DeclarationError(f"as: {reference}: no such option")


def _check(option: Mapping[str, Any], where: str) -> None:
    unknown = sorted(set(option) - KNOWN)
    if unknown:
        raise DeclarationError(f"{where}: unknown key {unknown[0]!r}")
    for key in ("description", "type"):
        if key not in option:
            raise DeclarationError(f"{where}: {key} is missing")
    if option.get("parsed", "rule") not in PARSED:
        raise DeclarationError(f"{where}: parsed is one of {', '.join(PARSED)}")
    if "range" in option and not _is_pair(option["range"]):
        raise DeclarationError(f"{where}: range is the smallest and the largest number")
    if "parsed" in option and "pve" not in option:
        raise DeclarationError(f"{where}: parsed needs pve, the key of Proxmox VE")


def _is_pair(given: Any) -> bool:
    if not isinstance(given, list) or len(given) != 2:
        return False
    return all(isinstance(bound, int) for bound in given)


def specification(options: Options) -> Options:
    """Return the argument specification of options."""
    found: Options = {}
    for name, option in options.items():
        rule = {key: option[key] for key in IN_SPECIFICATION if key in option}
        if "environment" in option:
            rule["fallback"] = _Source(f"from_environment({option['environment']!r})")
        if "suboptions" in option and not option.get("unchecked"):
            rule["options"] = specification(option["suboptions"])
        found[name] = rule
    return found


def documentation(options: Options) -> Options:
    """Return options as the documentation of a plugin has them."""
    found: Options = {}
    for name, option in options.items():
        entry: dict[str, Any] = {"description": _description(option)}
        entry.update({key: _in_one_line(option[key]) for key in IN_DOCUMENTATION if key in option})
        if "suboptions" in option:
            entry["suboptions"] = documentation(option["suboptions"])
        found[name] = entry
    return found


def _description(option: Mapping[str, Any]) -> str | list[str]:
    text: str | list[str] = option["description"]
    if "environment" not in option:
        return text
    paragraphs = [text] if isinstance(text, str) else list(text)
    return [*paragraphs, f"Environment variable E({option['environment']})."]


def render_specification(name: str, declaration: Mapping[str, Any]) -> str:
    """Return the file with the argument specification of each section."""
    functions = []
    uses_environment = False
    for section, content in declaration["sections"].items():
        spec = specification(content["options"])
        uses_environment = uses_environment or "from_environment(" in repr(spec)
        functions.append(_function(section, content["summary"], spec))
        for option, items in _unchecked(content["options"]).items():
            summary = (
                f"Return the options of one item of O({option}), which the module's work checks."
            )
            functions.append(_function(f"{option}_item", summary, specification(items)))
    text = (
        f'{LICENSE}"""{declaration["summary"]}\n\nWritten by `make options` from {name}.yml: do not'
        ' edit.\n"""\n\n'
    )
    text += "from __future__ import annotations\n\nfrom typing import Any\n\n"
    if uses_environment:
        text += "from .environment import from_environment\n\n"
    text += "Spec = dict[str, dict[str, Any]]\n\n\n" + "\n\n".join(functions)
    return text


def _function(name: str, summary: str, spec: Options) -> str:
    source = pprint.pformat(spec, width=90, sort_dicts=False)
    return f'def {name}_spec() -> Spec:\n    """{summary}"""\n    return {source}\n'


def _unchecked(options: Options) -> dict[str, Options]:
    """Return the suboptions that the specification leaves out: Ansible's own error does not name
    the item.
    """
    return {
        name: option["suboptions"] for name, option in options.items() if option.get("unchecked")
    }


def render_fragment(name: str, declaration: Mapping[str, Any]) -> str:
    """Return the documentation fragment: one text for each attribute that sections name."""
    texts: dict[str, Options] = {}
    for section in declaration["sections"].values():
        options = documentation(section["options"])
        texts.setdefault(section["fragment"].upper(), {}).update(options)
        if "ini_section" in section:
            texts["PLUGIN"] = _with_ini(options, section["ini_section"])
    shared = {key: declaration[key] for key in ("requirements", "notes") if key in declaration}
    text = (
        f'{LICENSE}"""{declaration["summary"]}\n\nWritten by `make options` from {name}.yml: do not'
        ' edit.\n"""\n\n'
    )
    text += "from __future__ import annotations\n\n\nclass ModuleDocFragment:\n"
    parts = [
        f'    {attribute} = r"""\n{dumped({"options": options, **shared})}"""\n'
        for attribute, options in texts.items()
    ]
    return text + "\n".join(parts)


def _with_ini(options: Options, section: str) -> Options:
    """Return options as a plugin documents them, which reads them from ansible.cfg too.

    A list of dictionaries cannot be written there.
    """
    found: Options = {}
    for name, option in options.items():
        found[name] = dict(option)
        if "suboptions" not in option:
            found[name]["ini"] = [{"section": section, "key": name}]
    return found


def render_rules(declaration: Mapping[str, Any]) -> str:
    """Return the file with the tables by which the options of a VM become those of Proxmox VE."""
    tables: dict[str, dict[str, Any]] = {"scalar": {}, "property_string": {}}
    words: dict[str, Any] = {}
    removable: dict[str, dict[str, str]] = {}
    checks: dict[str, dict[str, str]] = {}
    ranges: dict[str, dict[str, tuple[int, int]]] = {}
    for place, name, option in _places(declaration):
        key = option.get("pve")
        table = tables.get(option.get("parsed", "rule"))
        if table is not None:
            table.setdefault(place, {})[name] = key
        if "words" in option:
            words.setdefault(place, {})[name] = option["words"]
        if option.get("empty_removes"):
            removable.setdefault(place, {})[name] = key or ""
        if "check" in option:
            checks.setdefault(place, {})[name] = option["check"]
        if "range" in option:
            minimum, maximum = option["range"]
            ranges.setdefault(place, {})[name] = (minimum, maximum)
    text = RULES_HEAD
    text += f"SCALARS: Mapping[str, Mapping[str, str]] = {tables['scalar']!r}\n"
    text += f"PROPERTY_STRINGS: Mapping[str, Mapping[str, str]] = {tables['property_string']!r}\n"
    text += "# Words of our own for values of Proxmox VE.\n"
    text += f"WORDS: Mapping[str, Mapping[str, Mapping[Any, str]]] = {words!r}\n"
    text += "# Options that an empty text removes; where the key is empty, its own rule does so.\n"
    text += f"EMPTY_REMOVES: Mapping[str, Mapping[str, str]] = {removable!r}\n"
    text += "# The checks of options (_vm/desired/values.py has each), and the ranges of numbers.\n"
    text += f"CHECKS: Mapping[str, Mapping[str, str]] = {checks!r}\n"
    text += f"RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {ranges!r}\n"
    return text


RULES_HEAD = (
    LICENSE
    + '''"""How the options of a VM become options and sub-keys of Proxmox VE. Data only.

Written by `make options` from vm.yml: do not edit. Each table is by place first: an empty text for
the VM itself, else the option that holds these. What is in none of the tables has a rule in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

'''
)


def _places(declaration: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each option of a VM with the place where it is: C(), C(disks),
    C(cloud_init.snippets).
    """
    for section in declaration["sections"].values():
        yield from _within("", section["options"])


def _within(place: str, options: Options) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for name, option in options.items():
        yield place, name, option
        yield from _within(f"{place}.{name}".lstrip("."), option.get("suboptions", {}))


def role_variables(role: str, entry_point: str, declarations: Declarations) -> Options:
    """Return the variables of a role's entry point that pass an option of a module on."""
    found: Options = {}
    for module, declaration in declarations.items():
        for section in declaration["sections"].values():
            for name, option in section["options"].items():
                own = _entry_points(option, role).get(entry_point)
                if own is not None:
                    variable = f"{role}_{own.get('name', name)}"
                    found[variable] = _role_variable(module, name, option, own)
    return found


def _entry_points(option: Mapping[str, Any], role: str) -> dict[str, dict[str, Any]]:
    """Return what a role's variable has otherwise than the option, by the entry points that have
    it.
    """
    found: dict[str, dict[str, Any]] = {}
    for names, own in option.get("roles", {}).get(role, {}).items():
        for name in names.split():
            found[name] = own
    return found


def _role_variable(
    module: str, name: str, option: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a variable: the option's facts, and what the role says otherwise."""
    facts = {key: option[key] for key in IN_ROLE if key in option}
    if "environment" in option:  # a default of the role would hide the variable of the environment
        facts.pop("default", None)
    changed = {key: value for key, value in own.items() if key != "name"}
    variable = {"description": f"See O(pve.fleet.{module}#module:{name}).", **facts, **changed}
    return {
        key: _in_one_line(value) if key != "description" else value
        for key, value in variable.items()
    }


def render_role(role: str, text: str, declarations: Declarations) -> str:
    """Return a role's argument specification with new variables between the marks."""

    def block(found: re.Match[str]) -> str:
        above = _ENTRY_POINT.findall(text[: found.start()])
        variables = role_variables(role, above[-1], declarations)
        indent = found["indent"]
        lines = dumped(variables).splitlines() if variables else []
        inner = "".join(f"{indent}{line}\n" for line in lines)
        return f"{indent}{BEGIN}\n{inner}{indent}{END}\n"

    return _BLOCK.sub(block, text)


def roles_named(declarations: Declarations) -> dict[str, set[str]]:
    """Return the roles that options name, with their entry points."""
    found: dict[str, set[str]] = {}
    for declaration in declarations.values():
        for section in declaration["sections"].values():
            for option in section["options"].values():
                for role in option.get("roles", {}):
                    found.setdefault(role, set()).update(_entry_points(option, role))
    return found


def files(folder: Path = DECLARATIONS, repo: Path = REPO) -> dict[Path, str]:
    """Return the text of every file that is written, by its path within the repository."""
    declarations = load(folder)
    found: dict[Path, str] = {}
    for name, declaration in declarations.items():
        found[Path(f"plugins/module_utils/_spec/{name}_options.py")] = render_specification(
            name, declaration
        )
        fragment = declaration.get("fragment_file", f"{name}_options")
        found[Path(f"plugins/doc_fragments/{fragment}.py")] = render_fragment(name, declaration)
    found[RULES] = render_rules(declarations["vm"])
    found = formatted(found)
    for role, entry_points in roles_named(declarations).items():
        path = Path(f"roles/{role}/meta/argument_specs.yml")
        text = (repo / path).read_text(encoding="utf-8")
        marked = {
            _ENTRY_POINT.findall(text[: block.start()])[-1] for block in _BLOCK.finditer(text)
        }
        if entry_points - marked:
            raise DeclarationError(
                f"{path}: entry point {min(entry_points - marked)} has no line {BEGIN!r}"
            )
        found[path] = render_role(role, text, declarations)
    return found


def stale(folder: Path = DECLARATIONS, repo: Path = REPO) -> list[str]:
    """Return the files that differ from what the declarations give."""
    found: list[str] = []
    for path, text in files(folder, repo).items():
        target = repo / path
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            found.append(str(path))
    return found


def formatted(sources: Mapping[Path, str]) -> dict[Path, str]:
    """Return Python files in the form that `make lint` wants, by one call of ruff."""
    settings = ["--quiet", "--no-cache", "--isolated", "--line-length", "100"]
    with TemporaryDirectory() as folder:
        for path, text in sources.items():
            target = Path(folder, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "ruff", "format", *settings, folder]
        subprocess.run(command, capture_output=True, check=True)
        return {path: Path(folder, path).read_text(encoding="utf-8") for path in sources}


class _Source(str):
    """Text that pprint writes without quotes."""

    def __repr__(self) -> str:
        return str(self)


class _InOneLine(list[Any]):
    """A list that YAML shows in brackets."""


def _in_one_line(value: Any) -> Any:
    """Return a list that is short enough as one that YAML shows in brackets."""
    if not isinstance(value, list) or len(", ".join(map(str, value))) > 70:
        return value
    return _InOneLine(value)


class _Dumper(yaml.SafeDumper):
    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent(dumper: yaml.SafeDumper, data: _InOneLine) -> yaml.Node:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=True)


_Dumper.add_representer(_InOneLine, _represent)


def dumped(data: Any) -> str:
    """Return YAML as the linters want it.

    PyYAML breaks a line behind the word that passes `width`, so lines are longer than that by one
    word.
    """
    width, text = MAX_LINE, ""
    while width > 60:
        text = yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=width, allow_unicode=True)
        if max(map(len, text.splitlines()), default=0) <= MAX_LINE:
            break
        width -= 2
    return text


def main(arguments: list[str]) -> None:
    if "--check" in arguments:
        old = stale()
        if old:
            sys.exit(f"{', '.join(old)}: stale, run `make options`")
        return
    for path, text in files().items():
        (REPO / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
