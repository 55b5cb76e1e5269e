# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The other entry to every module: the same work inside the controller's worker, where that comes to the same.

A process of its own costs each task a start of Python and its imports; here they are paid once, by the process that
forks the workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

from ansible import constants
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible.utils.vars import merge_hash

from ..module_utils._api.client import Client
from ..module_utils._api.settings import Connection
from ..module_utils._entry import Entry
from . import _ahead, _arguments, _fit, _progress
from ._clients import CLIENTS

try:  # all that is heavy, once and before the workers are forked
    import proxmoxer.core
    import requests

    from ..module_utils._api import transport
except ImportError:
    LIBRARIES_ARE_HERE = False  # a module tells which one is missing
else:
    LIBRARIES_ARE_HERE = bool(proxmoxer.core and requests and transport)
_arguments.as_a_module_returns(_arguments.as_a_module_gets({}))  # loads Ansible's formats, once as well

display = Display()


class InProcess(ActionBase):
    """Runs one module; a subclass names it."""

    ENTRY: ClassVar[Entry]

    _supports_check_mode = True
    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the task, found by either way."""
        variables = task_vars or {}
        result = super().run(tmp, variables)
        environment = self._environment()
        why = self._why_a_module(variables, environment)
        if why:
            display.vvv(f"{self._task.action} runs as a module: {why}", host=variables.get("inventory_hostname"))
            return merge_hash(result, self._as_a_module(variables))
        display.vvv(f"{self._task.action} runs in this process", host=variables.get("inventory_hostname"))
        with _set(environment):
            return merge_hash(result, self._here(variables, environment))

    def _as_a_module(self, variables: dict[str, Any]) -> dict[str, Any]:
        """Run the module as if there were no action plugin."""
        in_background = self._task.async_val and not self._connection.has_native_async
        found: dict[str, Any] = self._execute_module(task_vars=variables, wrap_async=in_background)
        if not in_background:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return found

    def _here(self, variables: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
        """Run the module's work in this process."""
        entry, name = self.ENTRY, self._task.action
        given = _arguments.as_a_module_gets(self._task.args)
        checked = _arguments.check(entry, name, given, told=_tells_arguments(variables))
        if checked.error:
            return _arguments.finished({"failed": True, "msg": checked.error}, checked)
        if self._task.check_mode and not entry.supports_check_mode:
            text = f"remote module ({name}) does not support check mode"
            return _arguments.finished({"skipped": True, "msg": text}, checked)
        watched = self._is_watched(variables)

        @contextmanager
        def lend(connection: Connection) -> Iterator[Client]:
            with CLIENTS.lend(connection, environment) as client:
                who = str(variables.get("inventory_hostname") or "")
                client.progress = _progress.Watcher(client, display.display, who) if watched else None
                try:
                    with _ahead.reading(client, name, checked.params, in_a_loop="ansible_loop_var" in variables):
                        yield client
                finally:
                    client.progress = None

        outcome = entry.perform(
            checked.params,
            os.environ,
            check_mode=bool(self._task.check_mode),
            diff=bool(self._task.diff),
            verbosity=display.verbosity,
            lend=lend,
        )
        values = outcome.values
        if outcome.failed:
            values = {"failed": True, **values}
            traceback = values.get("exception")
            if traceback and not _fit.tracebacks_are_results():
                del values["exception"]
                if not self._task.no_log:
                    display.vvv(_arguments.without_secrets(traceback, checked))
        return _arguments.finished(values, checked, outcome.warnings)

    def _why_a_module(self, variables: dict[str, Any], environment: Mapping[str, str]) -> str:
        """Return why a process of its own is needed, or an empty text."""
        delegated = variables.get("ansible_delegated_vars") or {}
        place = delegated.get(self._task.delegate_to, variables) if self._task.delegate_to else variables
        interpreter = constants.config.get_config_value("INTERPRETER_PYTHON", variables=place)
        switch = self._setting(variables, "pve_fleet_in_process", "PVE_FLEET_IN_PROCESS")
        return _fit.why_a_module(
            switched_off=switch is False,
            libraries_are_here=LIBRARIES_ARE_HERE,
            connection=str(getattr(self._connection, "transport", "")),
            becomes_another=self._becomes_another(),
            in_background=bool(self._task.async_val),
            interpreter=str(self._templar.template(interpreter) or ""),
            environment=environment,
        )

    def _becomes_another(self) -> bool:
        """Return whether Ansible would run a command of this task as another user, by its own rule."""
        if not getattr(self._connection, "become", None):
            return False
        here, there = self._get_remote_user(), self.get_become_option("become_user")
        return bool(constants.BECOME_ALLOW_SAME_USER or here != there or not (here or there))

    def _environment(self) -> dict[str, str]:
        """Return what the keyword `environment` of play, block and task sets, templated."""
        found: dict[str, Any] = {}
        self._compute_environment_string(found)
        return {str(name): str(value) for name, value in found.items()}

    def _is_watched(self, variables: Mapping[str, Any]) -> bool:
        if self._task.check_mode or self._task.no_log:
            return False
        return _progress.is_wanted(self._setting(variables, "pve_fleet_progress", "PVE_FLEET_PROGRESS"), os.environ)

    def _setting(self, variables: Mapping[str, Any], name: str, in_environment: str) -> bool | None:
        """Return a switch: the variable, else the environment, else None."""
        value = self._templar.template(variables[name]) if name in variables else None
        if value is None or value == "":
            value = os.environ.get(in_environment, "")
        return None if value == "" else bool(boolean(value, strict=False))


def _tells_arguments(variables: Mapping[str, Any]) -> bool:
    """Return whether results repeat the arguments of their task; a matter of choice since ansible-core 2.21."""
    setting = "INJECT_INVOCATION"
    if setting not in constants.config.get_configuration_definitions():
        return True
    return bool(constants.config.get_config_value(setting, variables=variables))


@contextmanager
def _set(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables of the environment for a while, as a process of the task's own would have them."""
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
