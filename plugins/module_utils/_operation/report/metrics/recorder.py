# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metrics of a run of a playbook (pure; the times are arguments)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .samples import Samples

COLLECTION = "pve.fleet."
COUNTS = "request_counts"
# The category of an error that the result does not contain, for example because of no_log.
_UNKNOWN = "unknown"


class TaskRecorder:
    """Records tasks of this collection. Times are in seconds by one clock."""

    def __init__(self) -> None:
        self._began: dict[tuple[str, str], float] = {}
        self._durations: list[tuple[str, float]] = []
        self._requests: list[Mapping[str, Any]] = []
        self._errors: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Whether no task of this collection has ended."""
        return not self._durations

    def begin(self, host: str, task: str, now: float) -> None:
        """Note that the task with this ID began on a host."""
        self._began[host, task] = now

    def end(self, host: str, task: str, action: str, now: float) -> None:
        """Note that the task ended."""
        began = self._began.pop((host, task), None)
        if began is not None:
            self._durations.append((action, now - began))

    def take(self, result: Mapping[str, Any]) -> None:
        """Count the requests of a result: of a task, of an item of a loop, or of an attempt."""
        counts = result.get(COUNTS)
        if isinstance(counts, list):
            self._requests += counts

    def fail(self, result: Mapping[str, Any]) -> None:
        """Count the error of a failed task or item; a loop has no error of its own."""
        if "results" in result:
            return
        error = result.get("error")
        category = _UNKNOWN
        if isinstance(error, Mapping):
            category = str(error.get("category") or _UNKNOWN)
        self._errors.append(category)

    def samples(self, playbook: str, when: float, success: bool) -> Samples:
        """Return all samples of a playbook that ended; `when` is in seconds since the epoch."""
        found = Samples()
        label = {"playbook": playbook}
        found.put("proxmox_playbook_success", success, **label)
        found.put("proxmox_playbook_timestamp_seconds", int(when), **label)
        for action, seconds in self._durations:
            found.put_duration(seconds, action=action, **label)
        found.count_requests(self._requests, **label)
        found.count_errors(self._errors, **label)
        return found
