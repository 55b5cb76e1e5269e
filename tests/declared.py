# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declarations of the modules, for tests that hold for each of them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.tools.declarations import load
from tests.tools.make_modules import modules_of

_DECLARED = modules_of(load())
MODULES = tuple(_DECLARED)


def minimal_tasks() -> Mapping[str, dict[str, Any]]:
    """Return for each module the options of a task that works on the demo cluster."""
    return {name: copy.deepcopy(module["task"]) for name, (_file, module) in _DECLARED.items()}
