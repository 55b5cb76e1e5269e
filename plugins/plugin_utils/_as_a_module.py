# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module in a process of its own, as Ansible does without an action plugin."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from ansible.plugins.action.normal import ActionModule as Normal
from ansible.release import __version__
from ansible.utils.display import Display

from ..module_utils._foundation.entry.module import COUNTING, ModuleEntry
from . import _failures

display = Display()


def warn(problem: Exception) -> None:
    """Warn that this ansible-core lacks an internal part; Ansible prints equal warnings once."""
    display.warning(
        "Tasks of pve.fleet run as modules, which takes longer, because the controller's process"
        f" cannot run them: ansible-core {__version__} lacks a part that they need ({problem})."
        " Install a release of pve.fleet that supports this ansible-core."
    )


class AsAModule(Normal):
    """Runs one module; a subclass names it."""

    ENTRY: ClassVar[ModuleEntry]

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the result of the task, from a module."""
        return self._reported(self._as_a_module(task_vars or {}))

    def _as_a_module(self, variables: dict[str, Any]) -> dict[str, Any]:
        """Run the module as if there were no action plugin."""
        self._pass_on_counting()
        found: dict[str, Any] = super().run(None, variables)
        if found.get("failed") and "error" not in found:
            found = {**self.ENTRY.no_result(found), **found}
        return found

    def _pass_on_counting(self) -> None:
        """Make a module on another host count its requests too, if the controller counts them."""
        if not os.environ.get(COUNTING):
            return
        given = list(self._task.environment or ())
        if {COUNTING: "1"} not in given:
            self._task.environment = [*given, {COUNTING: "1"}]

    def _reported(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the result as it is reported.

        A task that returns a secret is treated like a task with C(no_log), even if this is not
        set; a registered variable still contains the secret. A failed result that is only printed
        loses most of its rows.
        """
        if any(found.get(key) for key in self.ENTRY.returned_secrets):
            self._task.no_log = True  # up to ansible-core 2.18, the result takes no_log from here
            found["_ansible_no_log"] = True
        if not found.get("failed") or display.verbosity or _failures.is_read(self._task):
            return found
        return _failures.shortened(found)
