# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names the variables of a role or playbook in the message of a module, which names its options."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection
from typing import Any

from ..module_utils._foundation.spec.generated.variables import FAMILIES

_ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
# An option whose name is a word of English counts only after one of these words, or before "=".
_WORDS = ("with", "set", "Set", "out", "orrect", "Check", "names in")
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


def in_result(result: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return a failed result whose message names variables. Since ansible-core 2.19, C(exception) has
    the message again.
    """
    text = with_variables(str(result.get("msg", "")), prefix)
    named = {**result, "msg": text}
    event = getattr(result.get("exception"), "event", None)
    if event is not None:
        event = dataclasses.replace(event, msg=text)
        named["exception"] = dataclasses.replace(result["exception"], event=event)
    return named


def with_variables(text: str, prefix: str) -> str:
    """Return a message that names the variable with this prefix in the place of each option."""
    known = {name[len(prefix) :] for name in FAMILIES[prefix[:-1]].variables}
    known.discard("state")  # of a guest or a disk in most messages
    return _pattern(known).sub(lambda found: prefix + found[0], text)


def _pattern(options: Collection[str]) -> re.Pattern[str]:
    plain = "|".join(name for name in options if "_" not in name) or "(?!)"
    clear = [name for name in options if "_" in name]
    forms = (*clear, f"(?:{_AFTER})(?:{plain})", f"(?:{plain})(?==)")
    return re.compile(_WHOLE.format("|".join(forms)))
