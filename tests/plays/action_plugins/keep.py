# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes what a play came to, for the test that plays it.

`ansible.builtin.copy` starts two processes for that, which take a second of a processor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Writes `content` to the file `dest`, which is relative to the directory of the command."""

    _supports_check_mode = True

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        arguments = self._task.args
        content = str(arguments["content"])
        Path(arguments["dest"]).write_text(content, encoding="utf-8")
        return {"changed": True}
