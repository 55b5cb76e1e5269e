# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declarations in `options/*.yml`, checked and complete: see the README there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.tools.sections import Declarations, add_options
from tests.tools.written import LOADER, DeclarationError, in_one_line

DECLARATIONS = Path(__file__).resolve().parent / "options"

# The facts of an option in a declaration, by their reader.
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
# Choices of a role's variables are in tests/tools/variables.yml.
IN_ROLE = ("type", "elements", "required", "default", "version_added")
OF_THE_MAKER = (
    "after",
    "as",
    "check",
    "choices_from",
    "description",
    "environment",
    "group",
    "names",
    "refuses",
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
PARSED = ("scalar", "property_string", "rule")
# Keys that an option with `as` does not take over.
OWN = ("roles", "pve", "parsed", "words", "empty_removes", "check", "range", "names", "refuses")

Options = dict[str, dict[str, Any]]


def load(folder: Path = DECLARATIONS) -> Declarations:
    """Return the declarations by the names of their files, each option complete.

    Raises DeclarationError.
    """
    declarations: Declarations = {}
    for file in sorted(folder.glob("*.yml")):
        declarations[file.stem] = yaml.load(file.read_text(encoding="utf-8"), Loader=LOADER)
    add_options(declarations)
    for name, declaration in declarations.items():
        for section in declaration["sections"].values():
            section["options"] = _completed(section["options"], name, declarations)
    return declarations


def documentation(options: Options) -> Options:
    """Return options as the documentation of a plugin has them."""
    found: Options = {}
    for name, option in options.items():
        entry: dict[str, Any] = {"description": _description(option)}
        entry.update({key: in_one_line(option[key]) for key in IN_DOCUMENTATION if key in option})
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


def about(noun: str, content: Any) -> Any:
    """Return options with another word for a VM in their descriptions."""
    if isinstance(content, Mapping):
        return {key: about(noun, value) for key, value in content.items()}
    if isinstance(content, list):
        return [about(noun, value) for value in content]
    if not isinstance(content, str):
        return content
    return re.sub(r"\bVM(s?)\b(?!\.\w)", rf"{noun}\1", content)


def _completed(options: Options, file: str, declarations: Declarations) -> Options:
    """Return options with the facts that they take over from the option named in `as`, checked."""
    complete: Options = {}
    for name, option in options.items():
        where = f"{file}.{name}"
        whole = dict(option)
        if "as" in option:
            named = _named(option["as"], declarations)
            noun = declarations[file.partition(".")[0]].get("noun")
            whole = {**(about(noun, named) if noun else named), **option}
            del whole["as"]
        _check(whole, where)
        if "suboptions" in whole:
            whole["suboptions"] = _completed(whole["suboptions"], where, declarations)
        complete[name] = whole
    return complete


def _named(reference: str, declarations: Declarations) -> dict[str, Any]:
    """Return the facts that another option can take over: all except its own ways to Proxmox VE and
    to roles.
    """
    file, _dot, name = reference.partition(".")
    for section in declarations.get(file, {"sections": {}})["sections"].values():
        if name in section["options"]:
            return {key: value for key, value in section["options"][name].items() if key not in OWN}
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
