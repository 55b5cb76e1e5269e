# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The environment variables of a container (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping

_VARIABLE = re.compile(r"(\w+)=(.*)", re.DOTALL)
_SEPARATOR = "\0"


def read_environment(text: str) -> dict[str, str]:
    """Return the variables of option C(env) by name."""
    variables: dict[str, str] = {}
    for item in filter(None, text.split(_SEPARATOR)):
        # the name is a word, the value can have equals signs
        found = _VARIABLE.match(item)
        if found:
            variables[found.group(1)] = found.group(2)
    return variables


def render_environment(variables: Mapping[str, str]) -> str:
    """Return option C(env) with these variables."""
    return _SEPARATOR.join(f"{name}={value}" for name, value in variables.items())
