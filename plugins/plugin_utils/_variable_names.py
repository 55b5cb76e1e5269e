# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names options in the message of a module as the user wrote them: as variables of a role or
playbook, or by their aliases.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..module_utils._foundation.api.settings import ALIASES
from ..module_utils._foundation.spec.generated.variables import FAMILIES

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
# An option whose name is a word of English counts only after one of these words, or before "=".
_WORDS = ("with", "set", "Set", "option", "out", "orrect", "Check", "names in")
_AFTER = "|".join(f"(?<={word} )" for word in _WORDS)
# Not a part of another name, of a path or of a quoted value.
_WHOLE = r"(?<![\w./'-])(?:{0})(?![\w/'-])"


def prefix_at(path: str) -> str:
    """Return the prefix of the variables of the role or playbook of this collection with the task at
    this path, such as C(maintenance_); an empty text for tasks of users.
    """
    parts = os.path.relpath(os.path.realpath(path.rpartition(":")[0]), _ROOT).split(os.sep)
    name = os.path.splitext(parts[1])[0] if parts[0] in ("roles", "playbooks") else ""
    return FAMILIES[name].prefix if name in FAMILIES else ""


def names_at(path: str, given: Iterable[str]) -> dict[str, str]:
    """Return the names that a message uses for options: the variables of the role or playbook with the
    task at this path, or the aliases among the given options.
    """
    aliases = {ALIASES[name]: name for name in given if name in ALIASES}
    prefix = prefix_at(path)
    return {**aliases, **variables_of(prefix)} if prefix else aliases


def variables_of(prefix: str) -> dict[str, str]:
    """Return the variables with a prefix, by option."""
    variables = FAMILIES[prefix[:-1]].variables
    known = {name[len(prefix) :]: name for name in variables}
    known.pop("state", None)  # of a guest or a disk in most messages
    return known


def in_result(result: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a failed result whose message uses these names. Since ansible-core 2.19, C(exception) has
    the message again.
    """
    text = with_names(str(result.get("msg", "")), names)
    named = {**result, "msg": text}
    event = getattr(result.get("exception"), "event", None)
    if event is not None:
        event = dataclasses.replace(event, msg=text)
        named["exception"] = dataclasses.replace(result["exception"], event=event)
    return named


def with_names(text: str, names: Mapping[str, str]) -> str:
    """Return a message with another name in the place of each option."""
    return _pattern(names).sub(lambda found: names[found[0]], text)


def _pattern(options: Collection[str]) -> re.Pattern[str]:
    plain = "|".join(name for name in options if "_" not in name) or "(?!)"
    clear = [name for name in options if "_" in name]
    forms = (*clear, f"(?:{_AFTER})(?:{plain})", f"(?:{plain})(?==)")
    return re.compile(_WHOLE.format("|".join(forms)))
