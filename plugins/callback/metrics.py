# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes metrics of a run for Prometheus."""

from __future__ import annotations

DOCUMENTATION = r"""
name: metrics
type: aggregate
short_description: Write metrics of a run for Prometheus
version_added: "1.0.0"
author:
  - pve.fleet authors (@pve-fleet)
description:
  - Counts the tasks of this collection at the end of a run, with their duration by action, their
    requests by method, endpoint and status, and their errors by category, in a text file for the
    textfile collector of node_exporter.
  - Counters continue from run to run. One file can have the runs of all playbooks, each with the
    label C(playbook), and the metrics of clusters.
  - While it is enabled, the results of tasks have their number of requests as C(request_counts).
    Requests of the inventory and of lookups are not counted, nor are those of tasks with C(no_log).
  - Nothing is written with C(--check), or for a run without a task of this collection. A file that
    cannot be written is a warning and does not fail the run.
requirements:
  - enabled in the configuration, C(callbacks_enabled=pve.fleet.metrics)
  - prometheus_client on the controller
options:
  path:
    description:
      - Absolute path of the file, which must end in C(.prom). Without it, nothing is written.
      - It can be the file of M(pve.fleet.metrics). Each keeps the metrics of the other.
    type: path
    ini: [{section: callback_pve_fleet_metrics, key: path}]
    env: [{name: PVE_FLEET_METRICS_FILE}]
seealso:
  - module: pve.fleet.metrics
"""

EXAMPLES = r"""
ansible.cfg: |
  [defaults]
  callbacks_enabled = pve.fleet.metrics

  [callback_pve_fleet_metrics]
  path = /var/lib/prometheus/node-exporter/ansible.prom
"""

import os
import time
from importlib.util import find_spec
from typing import Any

from ansible import context
from ansible.errors import AnsibleError
from ansible.plugins.callback import CallbackBase

from ..module_utils._foundation.core.errors import FleetError
from ..module_utils._foundation.entry.module import COUNTING
from ..module_utils._operation.report.metrics.exposition import LIBRARY
from ..module_utils._operation.report.metrics.recorder import COLLECTION, TaskRecorder
from ..module_utils._operation.report.metrics.text_file import require_path, write_samples


class CallbackModule(CallbackBase):
    """Records the tasks of a run, and writes the file at its end."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "pve.fleet.metrics"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._recorder = TaskRecorder()
        self._playbook = ""
        self._path = ""

    def v2_playbook_on_start(self, playbook: Any) -> None:
        """Check the file, and let tasks count their requests, before any worker is forked."""
        name = os.path.basename(str(playbook._file_name))
        self._playbook = os.path.splitext(name)[0]
        if context.CLIARGS.get("check"):
            return
        try:
            self._path = self._usable_path()
        except (AnsibleError, FleetError) as error:
            self._warn(error)
            return
        os.environ[COUNTING] = "1"

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if _action_of(task):
            self._recorder.begin(host.get_name(), task._uuid, time.monotonic())

    def v2_runner_on_ok(self, result: Any) -> None:
        """Note the end of a task, and its error if C(failed_when) lets it pass."""
        self._ended(result)
        if result._result.get("error"):
            self._failed(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._ended(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._ended(result)
        self._failed(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._ended(result)
        self._failed(result)

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self._count(result)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self._count(result)
        self._failed(result)

    def v2_runner_retry(self, result: Any) -> None:
        self._count(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Write the file. Its metrics of other playbooks and of clusters are kept."""
        if not self._path or self._recorder.is_empty:
            return
        success = not stats.failures and not stats.dark
        samples = self._recorder.samples(self._playbook, time.time(), success)
        try:
            write_samples(self._path, samples, lambda _key: True, check_mode=False)
        except FleetError as error:
            self._warn(error)

    def _usable_path(self) -> str:
        """Return the path of the file. Raises AnsibleError and FleetError."""
        path = self.get_option("path")
        if not path:
            raise AnsibleError("no path is set, for example in PVE_FLEET_METRICS_FILE")
        if find_spec(LIBRARY) is None:
            raise AnsibleError(f"the Python library {LIBRARY} is missing on the controller")
        return require_path(str(path))

    def _ended(self, result: Any) -> None:
        """Record the end of a task on a host, with its counts."""
        action = _action_of(result._task)
        if action:
            host = result._host.get_name()
            self._recorder.end(host, result._task._uuid, action, time.monotonic())
            self._count(result)

    def _count(self, result: Any) -> None:
        if _action_of(result._task):
            self._recorder.take(result._result)

    def _failed(self, result: Any) -> None:
        if _action_of(result._task):
            self._recorder.fail(result._result)

    def _warn(self, error: Exception) -> None:
        self._display.warning(f"No metrics of this run are written: {error}")


def _action_of(task: Any) -> str:
    """Return the full name of the action of a task of this collection, else an empty text."""
    action = str(getattr(task, "resolved_action", None) or task.action)
    if action.startswith(COLLECTION):
        return action
    return ""
