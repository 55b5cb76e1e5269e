# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides whether a task can run in the controller's process.

Pure, except the search for an interpreter's path.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

# Variables that the interpreter or the loader of programs reads when a process starts.
_AT_THE_START = ("PYTHON", "LD_", "DYLD_", "OPENSSL_")


@dataclass(frozen=True)
class Circumstances:
    """The circumstances that decide whether a task runs in the controller's process.

    `connection` is the name of the connection plugin. `interpreter` is the Python that is set for
    the task, or an empty text. `environment` are the variables that the task sets.
    """

    switched_off: bool
    libraries_are_here: bool
    connection: str
    becomes_another: bool
    in_background: bool
    interpreter: str
    environment: Mapping[str, str]


def why_a_module(task: Circumstances) -> str:
    """Return why the task needs a process of its own, in words, or an empty text."""
    if task.switched_off:
        return "pve_fleet_in_process is false"
    if not task.libraries_are_here:
        return "the controller's Python lacks proxmoxer or another library of the module"
    if task.connection != "local":
        return f"the connection is {task.connection}"
    if task.becomes_another:
        return "it becomes another user"
    if task.in_background:
        return "it is asynchronous"
    if not is_own_python(task.interpreter):
        return f"the interpreter is {task.interpreter}"
    late = sorted(name for name in task.environment if name.startswith(_AT_THE_START))
    if late:
        return f"only a new process respects {', '.join(late)}"
    return ""


@lru_cache
def is_own_python(interpreter: str, own: str = sys.executable) -> bool:
    """Return whether the interpreter that a user set is the running one.

    An interpreter that Ansible discovers may be this one.
    """
    if not interpreter or interpreter.startswith("auto"):
        return True
    found = shutil.which(interpreter) or interpreter
    # Two names in one directory may be one program (python, python3), but not in two environments.
    found_directory = os.path.realpath(os.path.dirname(found))
    own_directory = os.path.realpath(os.path.dirname(own))
    if found_directory != own_directory:
        return False
    return os.path.realpath(found) == os.path.realpath(own)
