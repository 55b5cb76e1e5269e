# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run comes to in metrics."""

from __future__ import annotations

from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.exposition import (
    text_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.recorder import (
    TaskRecorder,
)
from tests.metrics_text import read_text

REQUEST = {"method": "GET", "endpoint": "/version", "status": "200", "count": 2}
DURATION = "proxmox_reconciliation_duration_seconds"


def test_durations_by_action() -> None:
    recorder = TaskRecorder()
    assert recorder.is_empty
    for host, began, ended in (("a", 10.0, 12.0), ("b", 11.0, 14.5)):
        recorder.begin(host, "task1", began)
        recorder.end(host, "task1", "pve.fleet.vm", ended)
    recorder.end("c", "task1", "pve.fleet.vm", 99.0)
    found = read_text(text_of(recorder.samples("site", 1e9, True)))
    label = {"playbook": "site", "action": "pve.fleet.vm"}
    assert found.get(f"{DURATION}_count", **label) == 2
    assert found.get(f"{DURATION}_sum", **label) == 5.5
    assert found.get("proxmox_playbook_success", playbook="site") == 1
    assert found.get("proxmox_playbook_timestamp_seconds", playbook="site") == 1e9


def test_requests_of_items_and_attempts_add_up() -> None:
    recorder = TaskRecorder()
    recorder.take({"request_counts": [REQUEST]})
    recorder.take({"request_counts": [REQUEST, {**REQUEST, "status": "none", "count": 1}]})
    without: list[dict[str, Any]] = [{}, {"request_counts": None}, {"results": []}]
    for result in without:
        recorder.take(result)
    found = read_text(text_of(recorder.samples("site", 1e9, False)))
    label = {"playbook": "site", "method": "GET", "endpoint": "/version"}
    assert found.get("proxmox_api_requests_total", status="200", **label) == 4
    assert found.get("proxmox_api_requests_total", status="none", **label) == 1
    assert found.get("proxmox_playbook_success", playbook="site") == 0


def test_errors_by_category() -> None:
    recorder = TaskRecorder()
    recorder.fail({"error": {"category": "Conflict"}})
    recorder.fail({"results": [{"error": {"category": "Conflict"}}]})
    hidden: list[dict[str, Any]] = [{}, {"error": None}, {"error": {}}, {"censored": "hidden"}]
    for result in hidden:
        recorder.fail(result)
    found = read_text(text_of(recorder.samples("site", 1e9, False)))
    assert found.get("proxmox_errors_total", error_type="Conflict", playbook="site") == 1
    assert found.get("proxmox_errors_total", error_type="unknown", playbook="site") == 4
    assert found.get("proxmox_errors_total", error_type="ApiError", playbook="site") == 0
