# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other entry to every module: the same work inside the controller's worker.

A process of its own costs each task a start of Python and its imports. Here the process that forks
the workers does both once.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from ansible import constants
from ansible.errors import AnsibleError
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.callback import CallbackBase
from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils._foundation.api.client import Client
from ..module_utils._foundation.api.settings import ConnectionSettings
from ..module_utils._foundation.core.formatting import printable
from ..module_utils._foundation.core.texts.plan_lines import PlanLine, plan_lines, without_unset
from ..module_utils._foundation.entry.module import TaskMode
from . import _arguments, _eligibility, _interrupted, _progress
from ._as_a_module import AsAModule, warn
from ._clients import CLIENTS

try:  # load heavy modules once, before the workers are forked
    import proxmoxer.core
    import requests

    from ..module_utils._foundation.api.http import transport
except ImportError:
    LIBRARIES_ARE_HERE = False  # a module reports the missing library
else:
    LIBRARIES_ARE_HERE = bool(proxmoxer.core and requests and transport)

display = Display()

# The interpreter of localhost without an inventory. Ansible itself sets this variable and
# overrides any other value.
_PLAYBOOK_PYTHON = "{{ ansible_playbook_python }}"


# The errors of a missing import, attribute, parameter or member.
_MISSING = (AttributeError, ImportError, LookupError, TypeError)


@dataclass(frozen=True)
class _Prepared:
    """A task before its work: why it needs a process of its own, or its arguments."""

    environment: dict[str, str]
    why_a_module: str
    given: dict[str, Any] = field(default_factory=dict)
    checked: _arguments.Checked = field(default_factory=lambda: _arguments.Checked({}))
    progress: _progress.ProgressMode | None = None


class Here(AsAModule):
    """Runs one module; a subclass names it."""

    def run(
        self, tmp: str | None = None, task_vars: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the result of the task, from this process or from a module."""
        variables = task_vars or {}
        self._take_plan_options(variables)
        try:
            task = self._prepared(variables)
        except _MISSING as problem:  # nothing was done yet
            warn(problem)
            task = _Prepared({}, "this ansible-core lacks a part")
        host = variables.get("inventory_hostname")
        if task.why_a_module:
            display.vvv(f"{self._task.action} runs as a module: {task.why_a_module}", host=host)
            found = self._as_a_module(variables)
        else:
            display.vvv(f"{self._task.action} runs in this process", host=host)
            with _set(task.environment):
                found = self._here(variables, task)
        result = self._reported(found)
        if result.get("diff"):
            result["diff"] = without_unset(result["diff"])
        self._show_report(result, variables)
        self._show_differences(result)
        return self._with_artifacts(result, variables)

    def _show_report(self, result: dict[str, Any], variables: Mapping[str, Any]) -> None:
        """Print the lines of a result, unless a callback prints results for programs. A task can
        have its own template for them, or for the C(plan) whose lines are its report: lists of
        action, label and reason.
        """
        lines = result.get("report")
        if "_pve_fleet_lines" in variables and (lines or not result.get("failed")):
            lines = self._from_result(variables["_pve_fleet_lines"], result, variables)
            lines = lines.splitlines() if isinstance(lines, str) else lines
        if isinstance(lines, Mapping) and "plan" in lines:
            rows = [PlanLine(*row) for row in lines["plan"]]
            lines = result["report"] = plan_lines(rows, check_mode=lines["check_mode"])
        is_hidden = self._task.no_log or result.get("_ansible_no_log")
        if is_hidden or not isinstance(lines, list) or _prints_for_programs():
            return
        text = "\n".join(printable(str(line)) for line in lines)
        display.display(f"\n{text}" if _banner_follows() else text)

    def _with_artifacts(
        self, result: dict[str, Any], variables: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the result with the artifacts of a role, which are a template of the result.

        Ansible adds artifacts of a result to those of the play, as C(set_stats) does.
        """
        template = variables.get("_pve_fleet_artifacts")
        if not template or "report" not in result:
            return result
        data = self._from_result(template, result, variables)
        stats = {"data": data, "aggregate": True, "per_host": False}
        return {**result, "ansible_stats": stats}

    def _from_result(
        self, template: Any, result: Mapping[str, Any], variables: Mapping[str, Any]
    ) -> Any:
        """Return the value of a template that reads the result of this task."""
        known = {**variables, "_pve_fleet_result": wrap_var(dict(result))}
        try:
            return self._templar.copy_with_new_env(available_variables=known).template(template)
        except AnsibleError as error:
            # The message of a filter, which Ansible begins with the name of the filter.
            raise AnsibleError(str(error.__cause__ or error)) from None

    def _show_differences(self, result: Mapping[str, Any]) -> None:
        """Print the differences of a failed task, because Ansible does not.

        With `failed_when: false`, Ansible prints them itself.
        """
        hidden = not self._task.diff or self._task.no_log or self._task.failed_when == [False]
        diff = result.get("failed") and result.get("diff")
        text = "" if hidden or not diff else _differences(diff)
        if text:
            display.display(text)

    def _prepared(self, variables: dict[str, Any]) -> _Prepared:
        """Return the arguments and settings of the work.

        A missing part of Ansible makes this fail, before the first request.
        """
        environment = self._environment()
        why = self._why_a_module(variables, environment)
        if why:
            return _Prepared(environment, why)
        rehearse()
        given = _arguments.as_a_module_gets(self._task.args)
        with _set(environment):
            repeated = _repeats_arguments(variables)
            checked = _arguments.check(self.ENTRY, self._task.action, given, repeated)
        return _Prepared(environment, "", given, checked, self._progress_mode(variables))

    def _here(self, variables: Mapping[str, Any], task: _Prepared) -> dict[str, Any]:
        """Run the module's work in this process."""
        entry, given, checked = self.ENTRY, task.given, task.checked
        if checked.error:
            values = {"failed": True, **entry.refused(checked.error, given)}
            return _arguments.finished(values, checked)
        if self._task.check_mode and not entry.supports_check_mode:
            text = f"remote module ({self._task.action}) does not support check mode"
            return _arguments.finished({"skipped": True, "msg": text}, checked)

        notes = _interrupted.TaskNotes()

        @contextmanager
        def lend(connection: ConnectionSettings) -> Iterator[Client]:
            with CLIENTS.lend(connection, task.environment) as client:
                if task.progress is None:
                    yield client.noted(notes)
                    return
                host = _host(variables)
                who = "" if host == "localhost" else host
                watcher = _progress.Watcher(client, display.display, who, task.progress)
                try:
                    yield client.watched(watcher, watcher.show_upload).noted(notes)
                finally:
                    watcher.close()

        with self._interruptible(notes, variables):
            outcome = entry.perform(
                checked.params,
                os.environ,
                TaskMode(bool(self._task.check_mode), bool(self._task.diff), display.verbosity),
                lend=lend,
                given=given,
            )
        values = outcome.values
        if outcome.failed:
            values = self._failed(values, checked)
        return _arguments.finished(values, checked, outcome.warnings)

    def _interruptible(
        self, notes: _interrupted.TaskNotes, variables: Mapping[str, Any]
    ) -> AbstractContextManager[None]:
        """Report an interruption, unless the output of the task is hidden."""
        if self._task.no_log:
            return nullcontext()
        module = str(self._task.action)
        step = _interrupted.next_step(module, self._task.args)
        return _interrupted.reported(notes, f"{module} for {_host(variables)}", step)

    def _failed(self, values: dict[str, Any], checked: _arguments.Checked) -> dict[str, Any]:
        """Return the values of a failed task.

        A traceback is printed if a module would not return it.
        """
        failed = {"failed": True, **values}
        traceback = failed.get("exception")
        if not traceback or _arguments.tracebacks_are_results():
            return failed
        del failed["exception"]
        if not self._task.no_log:
            display.vvv(_arguments.without_secrets(traceback, checked))
        return failed

    def _why_a_module(self, variables: dict[str, Any], environment: Mapping[str, str]) -> str:
        """Return why the task needs a process of its own, or an empty text."""
        delegated = variables.get("ansible_delegated_vars") or {}
        place = variables
        if self._task.delegate_to:
            place = delegated.get(self._task.delegate_to, variables)
        switch = self._setting(variables, "pve_fleet_in_process", "PVE_FLEET_IN_PROCESS")
        circumstances = _eligibility.Circumstances(
            switched_off=switch is False,
            libraries_are_here=LIBRARIES_ARE_HERE and not self.ENTRY.missing_library(),
            connection=str(getattr(self._connection, "transport", "")),
            becomes_another=self._becomes_another(),
            in_background=bool(self._task.async_val),
            interpreter=self._interpreter(variables, place),
            environment=environment,
        )
        return _eligibility.why_a_module(circumstances)

    def _interpreter(self, variables: Mapping[str, Any], place: Mapping[str, Any]) -> str:
        """Return the interpreter that is set for the host of the task, or an empty text."""
        setting = constants.config.get_config_value("INTERPRETER_PYTHON", variables=place)
        if setting == _PLAYBOOK_PYTHON:  # the usual case; a template would take half a millisecond
            return str(variables.get("ansible_playbook_python", sys.executable))
        return str(self._templar.template(setting) or "")

    def _becomes_another(self) -> bool:
        """Return whether Ansible's own rule runs a command of this task as another user."""
        if not getattr(self._connection, "become", None):
            return False
        if constants.BECOME_ALLOW_SAME_USER:
            return True
        login_user = self._get_remote_user()
        become_user = self.get_become_option("become_user")
        return login_user != become_user or not login_user

    def _environment(self) -> dict[str, str]:
        """Return the templated variables of the keyword `environment` of play, block and task."""
        found: dict[str, Any] = {}
        self._compute_environment_string(found)
        return {str(name): str(value) for name, value in found.items()}

    def _progress_mode(self, variables: Mapping[str, Any]) -> _progress.ProgressMode | None:
        if self._task.check_mode or self._task.no_log or _prints_for_programs():
            return None
        setting = self._setting(variables, "pve_fleet_progress", "PVE_FLEET_PROGRESS")
        return _progress.mode_of(setting, os.environ)

    def _setting(self, variables: Mapping[str, Any], name: str, in_environment: str) -> bool | None:
        """Return the value of a switch: from the variable, else from the environment, else None."""
        value = self._templar.template(variables[name]) if name in variables else None
        if value in (None, ""):
            value = os.environ.get(in_environment, "")
        if value == "":
            return None
        return bool(boolean(value, strict=False))


def rehearse() -> None:
    """Use the parts of Ansible that follow the work of a task, so that none is missing then."""
    _arguments.finished({}, _arguments.Checked({}))
    _arguments.tracebacks_are_results()
    _differences({"before": "a\n", "after": "b\n"})


def _prints_for_programs() -> bool:
    """Return whether the callback prints JSON, between which no line may stand."""
    return "json" in constants.DEFAULT_STDOUT_CALLBACK


def _banner_follows() -> bool:
    """Return whether Ansible prints the banner of a task with its result, after our lines."""
    settings = ("display_skipped_hosts", "display_ok_hosts")
    try:
        values = [
            constants.config.get_config_value(name, plugin_type="callback", plugin_name="default")
            for name in settings
        ]
    except AnsibleError:  # an older or newer callback has other settings
        return False
    return not all(values)


def _differences(diff: Any) -> str:
    """Return differences in the form in which Ansible prints them."""
    text: str = CallbackBase()._get_diff(copy.deepcopy(diff))
    return text.rstrip("\n")


def _host(variables: Mapping[str, Any]) -> str:
    """Return the host of the task."""
    return str(variables.get("inventory_hostname", ""))


def _repeats_arguments(variables: Mapping[str, Any]) -> bool:
    """Return whether results repeat the arguments of their task.

    Since ansible-core 2.21, this is a setting.
    """
    setting = "INJECT_INVOCATION"
    if setting not in constants.config.get_configuration_definitions():
        return True
    return bool(constants.config.get_config_value(setting, variables=variables))


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables while the task runs, as in a process of its own."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
