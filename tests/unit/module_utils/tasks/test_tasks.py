# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks as nodes list them, and which of them are wanted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.read import read_query
from ansible_collections.pve.fleet.plugins.module_utils._operation.tasks.row import (
    TaskRow,
    describe_task,
    is_of_earlier_guest,
    newest_first,
    removals_of,
    status_of,
    task_of,
)

NOW = 1_795_208_400.0


def recorded(shared: Path) -> list[dict[str, Any]]:
    """Return the rows of every list of tasks that a real cluster was recorded to answer."""
    rows: list[dict[str, Any]] = []
    for file in sorted((shared / "pve" / "recordings").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if entry.get("path") == "/nodes/pve1/tasks":
                rows += entry["body"]["data"] or []
    return rows


def test_recorded_rows(shared: Path) -> None:
    rows = recorded(shared)
    assert len(rows) > 5
    tasks = [task_of(row, "pve1") for row in rows]
    assert {task.user for task in tasks} == {"root@pam"}
    assert {task.token for task in tasks} == {"test", None}
    assert {task.status for task in tasks} >= {"ok", "failed"}
    for task in tasks:
        assert f":{task.type}:{task.id}:" in task.upid
        assert task.started > 0
        assert task.status == "running" or task.ended >= task.started


def row(**changes: Any) -> dict[str, Any]:
    return {
        "upid": "UPID:pve1:00000F66:000549F0:6B00B479:qmstart:340:root@pam!test:",
        "type": "qmstart",
        "id": "340",
        "user": "root@pam",
        "tokenid": "test",
        "starttime": 100,
        "endtime": 103,
        "status": "OK",
        **changes,
    }


def task(**changes: Any) -> TaskRow:
    return task_of(row(**changes), "pve1")


def test_a_running_task_has_its_token_within_the_user() -> None:
    running = row(user="root@pam!test", status="RUNNING")
    del running["tokenid"], running["endtime"]
    shown = describe_task(task_of(running, "pve1"))
    assert (shown["user"], shown["token"]) == ("root@pam", "test")
    assert (shown["status"], shown["exitstatus"], shown["ended"]) == ("running", None, None)
    assert shown["duration"] is None


@pytest.mark.parametrize(
    ("exitstatus", "status"),
    [
        ("OK", "ok"),
        ("WARNINGS: 2", "warning"),
        ("RUNNING", "running"),
        (None, "unknown"),
        ("unexpected status", "unknown"),
        ("VM 340 already running", "failed"),
        ("WARNINGS", "failed"),
        ("OKAY", "failed"),
    ],
)
def test_how_a_task_ended(exitstatus: str | None, status: str) -> None:
    assert status_of(exitstatus) == status


@pytest.mark.parametrize(
    ("text", "vmid"), [("340", 340), ("", None), ("340@ceph", None), ("\u0663", None)]
)
def test_what_a_task_is_about(text: str, vmid: int | None) -> None:
    assert task(id=text).vmid == vmid


def test_tasks_are_listed_once() -> None:
    old, new = task(upid="a", starttime=1), task(upid="b", starttime=2)
    assert newest_first([old, new, old]) == [new, old]


def test_tasks_before_a_removal_are_of_the_earlier_guest() -> None:
    removal = task(upid="r", type="qmdestroy", starttime=200, endtime=202)
    failed = task(upid="f", type="qmdestroy", starttime=300, endtime=301, status="no")
    removals = removals_of([removal, failed, task(id="", type="qmdestroy")])
    assert removals == {340: 202}
    assert is_of_earlier_guest(removal, removals)
    assert is_of_earlier_guest(task(starttime=202), removals)
    assert not is_of_earlier_guest(task(starttime=203), removals)
    assert not is_of_earlier_guest(failed, removals)
    assert not is_of_earlier_guest(task(id="341", starttime=1), removals)


@pytest.mark.parametrize(
    ("text", "since"), [("90s", 90), ("30m", 1800), ("24h", 86400), ("7d", 604800), ("2w", 1209600)]
)
def test_ages(text: str, since: int) -> None:
    query = read_query({"limit": 1, "since": text}, NOW)
    assert query.since == int(NOW) - since


def test_times() -> None:
    query = read_query({"limit": 1, "since": "2026-11-20", "until": "1795208313"}, NOW)
    assert (query.since, query.until) == (1795132800, 1795208313)
    with pytest.raises(ValidationFailed, match="neither a time nor an age"):
        read_query({"limit": 1, "since": "-1h"}, NOW)


def test_filters_of_a_node() -> None:
    params = {"limit": 5, "failed": True, "types": ["qmstart"], "started_by": "ops@pve!auto"}
    assert read_query(params, NOW).parameters() == {
        "source": "all",
        "userfilter": "ops@pve",
        "typefilter": "qmstart",
        "statusfilter": "error,unknown",
    }
    assert read_query({"limit": 5, "types": ["a", "b"]}, NOW).parameters() == {"source": "all"}
