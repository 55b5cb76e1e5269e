# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module in a process of its own, as Ansible does without an action plugin."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action.normal import ActionModule as Normal
from ansible.release import __version__
from ansible.utils.display import Display

from ..module_utils._foundation.entry.module import COUNTING, ModuleEntry
from ..module_utils._foundation.spec.generated.plan import plan_spec
from . import _failures, _variable_names

display = Display()


def warn(problem: Exception) -> None:
    """Warn that this ansible-core lacks an internal part; Ansible prints equal warnings once."""
    display.warning(
        "Tasks of pve.fleet run as modules, which takes longer, because the controller's process"
        f" cannot run them: ansible-core {__version__} lacks a part that they need ({problem})."
        " Install a release of pve.fleet that supports this ansible-core."
    )


def run_of_ansible() -> str:
    """Return a text that all tasks of one run of Ansible have: its process, and when it began."""
    parent = os.getppid()
    try:
        with open(f"/proc/{parent}/stat", encoding="utf-8") as stream:
            began = stream.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        began = ""
    return f"{parent}-{began}"


class AsAModule(Normal):
    """Runs one module; a subclass names it."""

    ENTRY: ClassVar[ModuleEntry]

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the result of the task, from a module."""
        variables = task_vars or {}
        self._take_plan_options(variables)
        return self._reported(self._as_a_module(variables))

    def _take_plan_options(self, variables: dict[str, Any]) -> None:
        """Take the options of an approved plan from the variables of a playbook of this collection.

        A relative path belongs to the directory in which Ansible was started: a playbook of a
        collection runs in the directory of the collection.
        """
        is_planned = self._templar.template(variables.get("_pve_fleet_is_planned"))
        if not boolean(is_planned or False, strict=False):
            return
        given: dict[str, Any] = {}
        for name in plan_spec():
            value = self._templar.template(variables.get(name))
            if value not in (None, ""):
                given[name] = value
        for name, option in plan_spec().items():
            if name in given and option["type"] == "path":
                path = os.path.expanduser(str(given[name]))
                given[name] = os.path.join(os.environ.get("PWD") or os.getcwd(), path)
        if "plan_file" in given:
            given.setdefault("plan_run", run_of_ansible())
        self._task.args = {**given, **self._task.args}

    def _as_a_module(self, variables: dict[str, Any]) -> dict[str, Any]:
        """Run the module as if there were no action plugin."""
        # A module on another host counts its requests too, if the controller counts them.
        given, counting = list(self._task.environment or ()), {COUNTING: "1"}
        if os.environ.get(COUNTING) and counting not in given:
            self._task.environment = [*given, counting]
        found: dict[str, Any] = super().run(None, variables)
        if found.get("failed") and "error" not in found:
            found = {**self.ENTRY.no_result(found), **found}
        return found

    def _reported(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the result as it is reported.

        A task that returns a secret is treated like a task with C(no_log), even if this is not
        set; a registered variable still contains the secret. A failed result that is only printed
        loses most of its rows. The message names variables of this collection, and aliases that are given.
        """
        if any(found.get(key) for key in self.ENTRY.returned_secrets):
            self._task.no_log = True  # up to ansible-core 2.18, the result takes no_log from here
            found["_ansible_no_log"] = True
        names = _variable_names.names_at(str(self._task.get_path() or ""), self._task.args)
        if names and found.get("failed"):
            found = _variable_names.in_result(found, names)
        if not found.get("failed") or display.verbosity or _failures.is_read(self._task):
            return found
        return _failures.shortened(found)
