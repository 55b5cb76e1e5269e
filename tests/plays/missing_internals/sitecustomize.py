# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shows the code that runs tasks in the controller's process an Ansible that lacks one part.

Python imports this file at its start if its directory is in PYTHONPATH. What that code uses of
Ansible is appended to the file PVE_FLEET_USED: the path of each import, attribute and result, such
as `ansible.module_utils.common.json.get_module_encoder()`. PVE_FLEET_MISSING is the path that is
missing. Ansible itself sees all parts.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

ROOM = "ansible_collections.pve.fleet.plugins.plugin_utils."
# The way that remains; it stands on the interface of action plugins.
ORDINARY = "_as_a_module"
INTERFACE = {"ansible.utils.display.Display", "ansible.release.__version__"}
MISSING = os.environ.get("PVE_FLEET_MISSING", "")
USED = os.environ.get("PVE_FLEET_USED", "")

load = builtins.__import__


def used(path: str) -> None:
    """Write down a path that is used. Raises AttributeError if it is missing."""
    if path == MISSING:
        raise AttributeError(f"{path} is missing")
    if USED:
        with open(USED, "a", encoding="utf-8") as file:
            file.write(f"{path}\n")


def shown(path: str, value: Any) -> Any:
    """Return a part of Ansible as that code sees it; plain data stay as they are."""
    plain = value is None or isinstance(value, (str, bytes, int, float, set, Mapping, Sequence))
    if plain or path in INTERFACE:
        return value
    return Shown(path, value)


class Shown:
    """A part of Ansible that watches the use of its own parts."""

    def __init__(self, path: str, value: Any) -> None:
        self.__dict__.update(path_=path, value_=value)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            return getattr(self.value_, name)
        path, value = f"{self.path_}.{name}", getattr(self.value_, name)
        if not isinstance(value, ModuleType) and path not in INTERFACE:
            used(path)
        return shown(path, value)

    def __getitem__(self, key: Any) -> Any:
        return self.value_[key]

    def __call__(self, *given: Any, **named: Any) -> Any:
        plain = [original(one) for one in given]
        value = self.value_(*plain, **{key: original(one) for key, one in named.items()})
        return shown(f"{self.path_}()", value)


def original(value: Any) -> Any:
    return value.value_ if isinstance(value, Shown) else value


def watched_import(
    name: str,
    globals: Mapping[str, object] | None = None,
    locals: Mapping[str, object] | None = None,
    fromlist: Sequence[str] | None = (),
    level: int = 0,
) -> Any:
    found = load(name, globals, locals, fromlist, level)
    importer = str((globals or {}).get("__name__", ""))
    watched = importer.startswith(ROOM) and importer != ROOM + ORDINARY
    if watched and level == 0 and name.partition(".")[0] == "ansible" and fromlist:
        return Shown(name, found)
    return found


if MISSING or USED:
    builtins.__import__ = watched_import
