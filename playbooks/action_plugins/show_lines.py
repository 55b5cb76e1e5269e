# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Print lines as they are; only for playbooks of this collection. Module debug prints them as a list in quotes."""

from __future__ import annotations

from typing import Any

from ansible import constants
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

display = Display()


class ActionModule(ActionBase):
    """Prints the argument C(lines), unless the callback prints results for programs."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the lines."""
        super().run(tmp, task_vars)
        lines = list(map(str, self._task.args["lines"]))
        if "json" not in constants.DEFAULT_STDOUT_CALLBACK:
            display.display("\n".join(lines))
        return {"changed": False, "lines": lines}
