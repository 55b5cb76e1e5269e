"""Write the files about each option from its one declaration in `options/*.yml`, see the README
there.

A declaration becomes the argument specification (`_foundation/spec/generated/<name>.py`), the documentation
of its modules (with a fragment, `plugins/doc_fragments/<name>_options.py`, for options that several
plugins have), the tables by which an option becomes one of Proxmox VE
(`_foundation/spec/generated/vm_rules.py`) and the variables of roles that pass the option on.

Run it with `make options`; a test fails while a file is stale.
"""

from __future__ import annotations

import pprint
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.tools.declarations import (
    DECLARATIONS,
    IN_ROLE,
    IN_SPECIFICATION,
    Declarations,
    Options,
    documentation,
    load,
)
from tests.tools.make_modules import RUNTIME, embedded, fragment_of, module_files, render_runtime
from tests.tools.make_rows import (
    ADMINISTRATIVE,
    NEEDS,
    render_administrative,
    render_needs,
    task_names,
)
from tests.tools.make_sections import list_texts, render_sections
from tests.tools.written import (
    BEGIN,
    BLOCK,
    END,
    LICENSE,
    LOADER,
    DeclarationError,
    Source,
    dumped,
    formatted,
    in_braces,
    in_one_line,
    with_words,
)

REPO = Path(__file__).resolve().parents[2]
GENERATED = Path("plugins/module_utils/_foundation/spec/generated")
RULES = GENERATED / "vm_rules.py"
# The declarations of guests, by the words for them.
GUESTS = {"vm": "a VM", "container": "a container"}
# Characters of an option's rule from which on it is written once, if several options have it.
LONG_RULE = 90
VARIABLES = Path("plugins/module_utils/_foundation/spec/generated/variables.py")
# The variables of playbooks, and the families of variables.
FAMILIES = Path(__file__).resolve().parent / "variables.yml"

# Stands in the head of each Python file that is written.
MARK = "Written by `make options`"
LINES_OF_HEAD = 10
_ENTRY_POINT = re.compile(r"^  (?P<name>\w+):$", re.MULTILINE)


def specification(options: Options) -> dict[str, Any]:
    """Return the argument specification of options."""
    found: dict[str, Any] = {}
    for name, option in options.items():
        rule: Any = {key: option[key] for key in IN_SPECIFICATION if key in option}
        if "environment" in option:
            rule = _limit(name, rule, option["environment"])
        if "suboptions" in option and not option.get("unchecked"):
            rule["options"] = specification(option["suboptions"])
        found[name] = rule
    return found


def _limit(name: str, rule: Mapping[str, Any], variable: str) -> Source:
    """Return the rule of an option that the environment can set: a number with a default."""
    if rule.keys() != {"type", "default"} or rule["type"] != "int":
        raise DeclarationError(f"{name}: only a whole number with a default has `environment`")
    return Source(f"limit({rule['default']!r}, {variable!r})")


def render_specification(name: str, declarations: Declarations) -> str:
    """Return the file with the argument specification of each section that has one of its own.

    Returns an empty text if none has.
    """
    declaration = declarations[name]
    functions = []
    for section, content in declaration["sections"].items():
        spec = specification(content["options"])
        if "specification" in content:
            _require_same(spec, f"{name}.{section}", declarations[content["specification"]])
            continue
        functions.append(_function(section, content.get("summary", ""), spec))
        for option, items in _unchecked(content["options"]).items():
            summary = (
                f"Return the options of one item of O({option}), which the module's work checks."
            )
            functions.append(_function(f"{option}_item", summary, specification(items)))
    if not functions:
        return ""
    whole = "\n\n".join(functions)
    imports = "from ..form import Spec\n\n\n"
    if " limit(" in whole:
        imports = f"from ..environment import limit\n{imports}"
    return f"{_head_of(name, declaration)}{imports}{whole}"


def _head_of(name: str, declaration: Mapping[str, Any]) -> str:
    """Return the first lines of a written file."""
    return f'{LICENSE}# {MARK} from {name}.yml: do not edit.\n"""{declaration["summary"]}"""\n\n'


def _require_same(spec: Options, where: str, other: Mapping[str, Any]) -> None:
    """Raise DeclarationError unless the section of that name in another declaration has a
    specification.
    """
    section = other["sections"][where.partition(".")[2]]
    if specification(section["options"]) != spec:
        raise DeclarationError(f"{where}: its specification is not the one that it names")


def _function(name: str, summary: str, options: Options) -> str:
    spec = with_words(options)
    shared = _repeated_rules(spec)
    text = f"def {name}_spec() -> Spec:\n"
    if summary:
        text += f'    """{summary}"""\n'
    for rule, label in shared.items():
        text += f"    {label} = {rule}\n"
    return f"{text}    return {_printed(_with_labels(spec, shared))}\n"


def _printed(value: Any) -> str:
    return pprint.pformat(value, width=90, sort_dicts=False)


def _repeated_rules(spec: Options) -> dict[str, str]:
    """Return the long rules that several options have, each with a name after the first option."""
    first: dict[str, str] = {}
    shared: dict[str, str] = {}
    for name, rule in _rules(spec):
        source = _printed(rule)
        if source in first and len(source) > LONG_RULE:
            shared[source] = f"like_{first[source]}"
        first.setdefault(source, name)
    return shared


def _rules(spec: Options) -> Iterator[tuple[str, Any]]:
    for name, rule in spec.items():
        yield name, rule
        if isinstance(rule, dict):
            yield from _rules(rule.get("options", {}))


def _with_labels(spec: Options, shared: Mapping[str, str]) -> dict[str, Any]:
    """Return a specification with the names of shared rules in the place of these."""
    found: dict[str, Any] = {}
    for name, rule in spec.items():
        label = shared.get(_printed(rule))
        if label:
            found[name] = Source(label)
        elif isinstance(rule, dict) and "options" in rule:
            found[name] = {**rule, "options": _with_labels(rule["options"], shared)}
        else:
            found[name] = rule
    return found


def _unchecked(options: Options) -> dict[str, Options]:
    """Return the suboptions that the specification leaves out: Ansible's own error does not name
    the item.
    """
    return {
        name: option["suboptions"] for name, option in options.items() if option.get("unchecked")
    }


def render_fragment(name: str, declaration: Mapping[str, Any], own: Collection[str]) -> str:
    """Return the documentation fragment: one text for each attribute that sections name, without
    the fragments that are part of the documentation of their module (`own`).

    A plugin that has options for ansible.cfg or variables names the fragment of modules as well,
    and Ansible merges both. Returns an empty text if none is left.
    """
    texts: dict[str, Options] = {}
    for section in declaration["sections"].values():
        if fragment_of(section, name, declaration) in own:
            continue
        options = documentation(section["options"])
        texts.setdefault(section["fragment"].upper(), {}).update(options)
        if "ini_section" in section:
            texts["PLUGIN"] = _places_in_ini(options, section["ini_section"])
            texts["VARIABLES"] = _places_in_variables(options, section["variable_prefix"])
    if not texts:
        return ""
    shared = {key: declaration[key] for key in ("requirements", "notes") if key in declaration}
    text = f"{_head_of(name, declaration)}\nclass ModuleDocFragment:\n"
    parts = []
    for attribute, options in texts.items():
        whole = {"options": options}
        if attribute not in ("PLUGIN", "VARIABLES"):
            whole |= shared
        parts.append(f'    {attribute} = r"""\n{dumped(whole)}"""\n')
    return text + "\n".join(parts)


def _places_in_ini(options: Options, section: str) -> Options:
    """Return where a plugin reads its options in ansible.cfg.

    A list of dictionaries cannot be written there.
    """
    return {
        name: in_braces({"ini": [{"section": section, "key": name}]})
        for name, option in options.items()
        if "suboptions" not in option
    }


def _places_in_variables(options: Options, prefix: str) -> Options:
    """Return the variables from which a connection plugin reads its options."""
    return {name: in_braces({"vars": [{"name": f"{prefix}{name}"}]}) for name in options}


def render_rules(kind: str, declaration: Mapping[str, Any]) -> str:
    """Return the file with the tables that turn the options of a guest into options of Proxmox
    VE.
    """
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
    text = RULES_HEAD.format(guest=GUESTS[kind], name=kind)
    text += f"SCALARS: Mapping[str, Mapping[str, str]] = {tables['scalar']!r}\n"
    text += f"PROPERTY_STRINGS: Mapping[str, Mapping[str, str]] = {tables['property_string']!r}\n"
    text += "# Words of our own for values of Proxmox VE.\n"
    text += f"WORDS: Mapping[str, Mapping[str, Mapping[Any, str]]] = {words!r}\n"
    text += "# Options that an empty text removes; if the key is empty, its own rule does so.\n"
    text += f"EMPTY_REMOVES: Mapping[str, Mapping[str, str]] = {removable!r}\n"
    text += f"# The checks of options (_guests/guest/{kind}/desired/parse.py), and the ranges of numbers.\n"
    text += f"CHECKS: Mapping[str, Mapping[str, str]] = {checks!r}\n"
    text += f"# The options of {GUESTS[kind]} in the order in which a person reads them.\n"
    text += f"ORDER: tuple[str, ...] = tuple({with_words(list(order_of(declaration)))!r})\n"
    text += f"RANGES: Mapping[str, Mapping[str, tuple[int, int]]] = {ranges!r}\n"
    return text


def order_of(declaration: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the declared options of a VM; an option with `after` follows that option."""
    found: list[str] = []
    moved: list[tuple[str, str]] = []
    for section in declaration["sections"].values():
        for name, option in section["options"].items():
            found.append(name)
            if "after" in option:
                moved.append((name, option["after"]))
    for name, other in moved:
        if other not in found:
            raise DeclarationError(f"vm.{name}: after: {other}: no such option")
        found.remove(name)
        found.insert(found.index(other) + 1, name)
    return tuple(found)


RULES_HEAD = (
    LICENSE
    + '''"""How the options of {guest} become options and sub-keys of Proxmox VE. Data only.

Written by `make options` from {name}.yml: do not edit. Each table is by place first: an empty
text for the guest itself, else the option that holds these. Options in none of the tables have a
rule in code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

'''
)


def _places(declaration: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield each option of a guest with the place where it is: C(), C(disks),
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
    """Return the differences of a role's variable from the option, by entry point."""
    found: dict[str, dict[str, Any]] = {}
    for names, own in option.get("roles", {}).get(role, {}).items():
        for name in names.split():
            found[name] = own
    return found


def _role_variable(
    module: str, name: str, option: Mapping[str, Any], own: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a variable: the option's facts, overridden by the role's."""
    facts = {key: option[key] for key in IN_ROLE if key in option}
    if "environment" in option:  # a default of the role would hide the variable of the environment
        facts.pop("default", None)
    changed = {key: value for key, value in own.items() if key != "name"}
    variable = {"description": f"See O(pve.fleet.{module}#module:{name}).", **facts, **changed}
    return {
        key: in_one_line(value) if key != "description" else value
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

    return BLOCK.sub(block, text)


def render_variables(roles: Mapping[str, str], families: Path = FAMILIES) -> str:
    """Return the file with the variables of roles and playbooks, by family.

    `roles` are the argument specifications of roles, as text.
    """
    declared = yaml.load(families.read_text(encoding="utf-8"), Loader=LOADER)
    text = VARIABLES_HEAD
    for name, family in declared.items():
        variables: Options = {}
        if name in roles:
            entry_points = yaml.load(roles[name], Loader=LOADER)["argument_specs"]
            for entry_point in entry_points.values():
                variables.update(entry_point["options"])
        variables.update(family.pop("variables"))
        rules: Options = {}
        for variable in sorted(variables):
            given = variables[variable]
            rules[variable] = {key: given[key] for key in IN_VARIABLES if key in given}
        more = "".join(f", {key}={_family_value(family[key])!r}" for key in sorted(family))
        text += f"    {name!r}: VariableFamily({name + '_'!r}, {rules!r}{more}),\n"
    return text + "}\n"


def _family_value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


IN_VARIABLES = ("type", "elements", "choices", "no_log")
VARIABLES_HEAD = (
    LICENSE
    + '''"""The variables of roles and playbooks, by family. Data only.

Written by `make options` from the argument specifications of roles and from variables.yml: do not
edit.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.arguments.variables import VariableFamily

FAMILIES: Mapping[str, VariableFamily] = {
'''
)


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
    _choose(declarations)
    own = embedded(declarations)
    found: dict[Path, str] = {}
    for name, declaration in declarations.items():
        spec = render_specification(name, declarations)
        if spec:
            found[GENERATED / f"{name}.py"] = spec
        fragment = declaration.get("fragment_file", f"{name}_options")
        text = render_fragment(name, declaration, own)
        if text:
            found[Path(f"plugins/doc_fragments/{fragment}.py")] = text
    for name in GUESTS.keys() & declarations.keys():
        found[GENERATED / f"{name}_rules.py"] = render_rules(name, declarations[name])
    found.update(module_files(declarations))
    found.update(render_sections(declarations))
    found[NEEDS] = render_needs(declarations)
    found[ADMINISTRATIVE] = render_administrative(declarations)
    roles = role_texts(declarations, repo)
    texts: dict[str, str] = {}
    for role in sorted((REPO / "roles").glob("*/meta/argument_specs.yml")):
        path = role.relative_to(REPO)
        texts[path.parts[1]] = roles.get(path) or role.read_text(encoding="utf-8")
    found[VARIABLES] = render_variables(texts)
    runtime = render_runtime(declarations, (repo / RUNTIME).read_text(encoding="utf-8"))
    lists = list_texts(declarations, repo)
    return {**formatted(found), **roles, **lists, RUNTIME: runtime}


def _choose(declarations: Declarations) -> None:
    """Fill in the choices that follow from all declarations: the tasks of preflight."""
    for declaration in declarations.values():
        for section in declaration["sections"].values():
            for option in section["options"].values():
                if option.get("choices_from") == "tasks":
                    option["choices"] = task_names(declarations)


def role_texts(declarations: Declarations, repo: Path = REPO) -> dict[Path, str]:
    """Return the argument specifications of the roles that options name, by their path."""
    found: dict[Path, str] = {}
    for role, entry_points in roles_named(declarations).items():
        path = Path(f"roles/{role}/meta/argument_specs.yml")
        text = (repo / path).read_text(encoding="utf-8")
        marked = {_ENTRY_POINT.findall(text[: block.start()])[-1] for block in BLOCK.finditer(text)}
        if entry_points - marked:
            raise DeclarationError(
                f"{path}: entry point {min(entry_points - marked)} has no line {BEGIN!r}"
            )
        found[path] = render_role(role, text, declarations)
    return found


def stale(folder: Path = DECLARATIONS, repo: Path = REPO) -> list[str]:
    """Return the files that differ from the result of the declarations."""
    written = files(folder, repo)
    found: list[str] = []
    for path, text in written.items():
        target = repo / path
        if not target.is_file() or target.read_text(encoding="utf-8") != text:
            found.append(str(path))
    return [*found, *map(str, orphans(written, repo))]


def orphans(written: Collection[Path], repo: Path) -> Iterator[Path]:
    """Yield the files that were written from a declaration which no longer exists, by their path
    within the repository.
    """
    for folder in sorted({path.parent for path in written if path.suffix == ".py"}):
        for file in sorted((repo / folder).glob("*.py")):
            path = file.relative_to(repo)
            if path not in written and MARK in _head(file):
                yield path


def _head(file: Path) -> str:
    """Return the first lines of a file, which say if it is written."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return "\n".join(lines[:LINES_OF_HEAD])


def write(folder: Path = DECLARATIONS, repo: Path = REPO) -> None:
    """Write all files of the declarations, and delete the files of removed declarations."""
    written = files(folder, repo)
    for path, text in written.items():
        target = repo / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    for path in orphans(written, repo):
        (repo / path).unlink()


def main(arguments: list[str]) -> None:
    if "--check" not in arguments:
        write()
        return
    old = stale()
    if old:
        sys.exit(f"{', '.join(old)}: stale, run `make options`")


if __name__ == "__main__":
    main(sys.argv[1:])
