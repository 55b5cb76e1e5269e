# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of a cluster file: the key `section` of declarations, see `options/README.md`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.tools.written import DeclarationError

Declarations = dict[str, dict[str, Any]]
Section = Mapping[str, Any]

# The keys with a function of the collection.
REFERENCES = ("elsewhere", "arranged", "edits")
KNOWN = {
    *("name", "module", "after", "items", "whole", "note", "description", "because", "no_log"),
    *("table", "keys", "run", "exact", "exported", "built_in", "fixed", "types", "listed"),
    *("secret", "faults", *REFERENCES),
}
NEEDED = ("name", "items")


def sections_of(declarations: Declarations) -> list[dict[str, Any]]:
    """Return the declared sections in the order of a cluster file, each with its file and module.

    A section comes behind the one that `after` names; of several, the first by name. Raises
    DeclarationError.
    """
    behind: dict[str | None, list[dict[str, Any]]] = {None: []}
    for file, declaration in declarations.items():
        if "section" in declaration:
            section = {"module": file, **declaration["section"], "file": file}
            _check(section, declaration)
            behind.setdefault(section.get("after"), []).append(section)
    names = {section["name"] for sections in behind.values() for section in sections}
    unknown = behind.keys() - names - {None}
    if unknown:
        raise DeclarationError(f"after: {min(map(str, unknown))}: no such section")
    return list(_followers(None, behind))


def _check(section: Section, declaration: Mapping[str, Any]) -> None:
    where = f"section of {section['file']}"
    unknown = sorted(set(section) - KNOWN - {"file"})
    if unknown:
        raise DeclarationError(f"{where}: unknown key {unknown[0]!r}")
    for key in NEEDED:
        if key not in section:
            raise DeclarationError(f"{where}: {key} is missing")
    if section["module"] not in declaration["modules"]:
        raise DeclarationError(f"{where}: there is no module {section['module']}")
    if not has_table(section, declaration) and "keys" not in section:
        raise DeclarationError(f"{where}: give keys, or the declaration a table")


def has_table(section: Section, declaration: Mapping[str, Any]) -> bool:
    """Return whether the resources of a section are listed by the table of its declaration."""
    return "table" in declaration and bool(section.get("table", True))


def _followers(
    name: str | None, behind: Mapping[str | None, list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    for section in sorted(behind.get(name, ()), key=lambda one: str(one["name"])):
        yield section
        yield from _followers(section["name"], behind)


def add_options(declarations: Declarations) -> None:
    """Add the sections to the options of module cluster, and to its tasks of preflight."""
    if "cluster" not in declarations:
        return
    sections = sections_of(declarations)
    cluster = declarations["cluster"]["sections"]["cluster"]
    exact = [one["name"] for one in sections if _can_be_exact(one, declarations)]
    exported = [one["name"] for one in sections if one.get("exported", True)]
    module = declarations["cluster"]["modules"]["cluster"]
    module["tasks"] = [section["module"] for section in sections]
    choices = {"exact": exact, "sections": exported}
    own = {one["name"]: _option(one, is_exact=one["name"] in exact) for one in sections}
    cluster["options"] = {**own, **cluster["options"]}
    for content in declarations["cluster"]["sections"].values():
        for option in content["options"].values():
            if option.get("choices_from") in choices:
                option["choices"] = choices[option["choices_from"]]


def _can_be_exact(section: Section, declarations: Declarations) -> bool:
    is_listed = has_table(section, declarations[section["file"]])
    return is_listed and bool(section.get("exact", True))


def _option(section: Section, *, is_exact: bool) -> dict[str, Any]:
    """Return the option of a section: a list of items, or one dictionary for a `whole` section."""
    is_whole = section.get("whole", False)
    each = "as" if is_whole else "each with"
    text = f"{section['items']}, {each} the options of M(pve.fleet.{section['module']})."
    default = "By default, nothing is changed."
    if is_exact:
        default = "If it is not set or empty, nothing is changed unless O(exact) names the section."
    option: dict[str, Any] = {
        "description": [
            f"{text} {section['note']}" if "note" in section else text,
            *section.get("description", ()),
            default,
        ],
        "type": "dict" if is_whole else "list",
    }
    if not is_whole:
        option["elements"] = "dict"
    if "no_log" in section:
        option["no_log"] = section["no_log"]
    shown = f"See O(pve.fleet.cluster#module:{section['name']})."
    return {**option, "roles": {"cluster": {"main": {"description": shown}}}}
