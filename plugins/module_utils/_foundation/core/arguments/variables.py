# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds misspelt variables of playbooks and roles, and invalid values (pure).

Ansible ignores a variable that nothing reads. A family is the variables with one prefix: the
variables of a role, or of a playbook without a role.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from ..errors import ValidationFailed
from .options import did_you_mean, nearest, parse_options

VariableRules = Mapping[str, Mapping[str, Any]]
# Similarity of a misspelt variable: for the part after the prefix, and for a whole name.
_ALIKE = 0.66
_ALIKE_AS_A_WHOLE = 0.85
# Types of values that are checked here; others can be large, or secret, or read only when needed.
_CHECKED = ("bool", "int")


@dataclass(frozen=True)
class VariableFamily:
    """The variables with one prefix.

    `others` are patterns of names with the prefix that are not ours. The prefix is `common` if
    variables of other roles are likely to have it too. `required` has the next step of someone who
    has left out a variable without which nothing is done.
    """

    prefix: str
    variables: VariableRules
    others: tuple[str, ...] = ()
    common: bool = False
    required: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PlayVariables:
    """The names of all variables of a play; `extra` are variables set with `-e`. `unchecked` are
    patterns of names that belong to the user.
    """

    names: Collection[str]
    extra: Collection[str] = ()
    unchecked: tuple[str, ...] = ()

    def excuses(self, name: str) -> bool:
        """Return whether the user excluded a variable from the check."""
        return _is_among(name, self.unchecked)


def find_unknown(families: Iterable[VariableFamily], given: PlayVariables) -> Iterator[str]:
    """Yield a text for each variable that is probably misspelt, sorted by name."""
    all_families = list(families)
    known: dict[str, Any] = {"tenants": {}}
    for family in all_families:
        known.update(family.variables)
    for name in sorted(set(given.names) - known.keys()):
        if given.excuses(name):
            continue
        if _is_unknown(name, all_families, known, name in given.extra):
            yield f"{name} is not a variable of pve.fleet{did_you_mean(name, known)}"


def _is_unknown(
    name: str, families: Iterable[VariableFamily], known: VariableRules, is_extra: bool
) -> bool:
    for family in families:
        if name.startswith(family.prefix):
            return _is_mistake(name, family, is_extra)
    # The prefix itself may be misspelt. Only variables set with -e are checked for that: variables
    # of the estate and of other roles have their own prefixes.
    return is_extra and bool(nearest(name, known, _ALIKE_AS_A_WHOLE))


def _is_mistake(name: str, family: VariableFamily, is_extra: bool) -> bool:
    """Return whether a variable that has the prefix of a family, but is not part of it, is a
    mistake.
    """
    if _is_among(name, family.others):
        return False
    if is_extra or not family.common:
        return True
    start = len(family.prefix)
    rests = [known[start:] for known in family.variables]
    return bool(nearest(name[start:], rests, _ALIKE))


def _is_among(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def find_missing(
    families: Iterable[VariableFamily], given: Collection[str], value_of: Callable[[str], Any]
) -> Iterator[str]:
    """Yield a text for each required variable that is not `given`, or empty."""
    for family in families:
        for name, next_step in family.required.items():
            if name not in given or value_of(name) in (None, ""):
                yield f"{name} is not set. {next_step}"


def find_wrong(
    families: Iterable[VariableFamily], given: Mapping[str, Any], value_of: Callable[[str], Any]
) -> Iterator[str]:
    """Yield a text for each variable whose value is not of its type or not among its choices.

    `given` has the values as they are written, and `value_of` returns the value of a variable: only
    variables with choices, booleans and integers are read.
    """
    for family in families:
        for name, rule in family.variables.items():
            if name in given and _is_checked(rule):
                yield from _wrong(name, rule, value_of(name))
            elif name in given and _has_other_type(rule, given[name]):
                noun = "dictionary" if rule["type"] == "dict" else "list"
                yield f"{name} is not a {noun}"


def _has_other_type(rule: Mapping[str, Any], written: Any) -> bool:
    """Return whether a value is certainly not a dictionary or list. A template can result in both, and
    Ansible reads a text as a list of texts.
    """
    type_ = rule["type"]
    if isinstance(written, str):
        is_text = bool(written) and "{{" not in written and "{%" not in written
        return is_text and "dict" in (type_, rule.get("elements"))
    no_mapping = isinstance(written, (list, bool, int, float))
    no_list = isinstance(written, (Mapping, bool))
    return (type_ == "dict" and no_mapping) or (type_ == "list" and no_list)


def _is_checked(rule: Mapping[str, Any]) -> bool:
    return "choices" in rule or rule["type"] in _CHECKED


def _wrong(name: str, rule: Mapping[str, Any], value: Any) -> Iterator[str]:
    if value is None and rule["type"] == "int":
        return
    if value is None:
        yield f"{name} has no value"
        return
    try:
        parse_options({name: rule}, {name: value})
    except ValidationFailed as error:
        yield error.answer
