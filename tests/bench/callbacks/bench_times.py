"""A callback of Ansible that notes when a play began and ended, when each task did, and what came
of it.
"""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: bench_times
type: aggregate
short_description: Notes times of plays and tasks
description: Writes them as JSON to the file that the environment variable BENCH_TIMES names.
"""


class CallbackModule(CallbackBase):
    """Notes times; prints nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bench_times"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.began = 0.0
        self.tasks: list[dict[str, Any]] = []

    def v2_playbook_on_play_start(self, play: Any) -> None:
        self.began = self.began or time.monotonic()

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        counts = {"ok": 0, "changed": 0, "failed": 0, "items": 0, "items_changed": 0}
        self.tasks.append(
            {
                "name": task.get_name(),
                "began": time.monotonic(),
                "ended": None,
                "failure": "",
                **counts,
            }
        )

    def v2_runner_on_ok(self, result: Any) -> None:
        values = self._values(result)
        self._note("changed" if values.get("changed") else "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self.tasks[-1]["failure"] = str(self._values(result).get("msg"))[:500]
        self._note("failed")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._note("failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._note("ok")

    def v2_runner_item_on_ok(self, result: Any) -> None:
        self.tasks[-1]["items"] += 1
        self.tasks[-1]["items_changed"] += bool(self._values(result).get("changed"))

    def v2_runner_item_on_failed(self, result: Any) -> None:
        self.tasks[-1]["failure"] = str(self._values(result).get("msg"))[:500]

    def v2_playbook_on_stats(self, stats: Any) -> None:
        found = {"began": self.began, "ended": time.monotonic(), "tasks": self.tasks}
        with open(os.environ["BENCH_TIMES"], "w", encoding="utf-8") as file:
            json.dump(found, file)

    def _note(self, what: str) -> None:
        self.tasks[-1][what] += 1
        self.tasks[-1]["ended"] = time.monotonic()

    @staticmethod
    def _values(result: Any) -> dict[str, Any]:
        """Return the result's values; the attribute has no underscore from ansible-core 2.19 on."""
        values: dict[str, Any] = getattr(result, "result", None) or getattr(result, "_result", {})
        return values
