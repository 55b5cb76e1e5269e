# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of drills keeps the last proof of each guest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.restore.drill.record import (
    DrillRecord,
    extended,
    read_record,
)

REPO = Path(__file__).resolve().parents[4]
WEB: dict[str, Any] = {"vmid": 100, "type": "qemu", "name": "web", "tenant": "acme"}
PROVEN: dict[str, Any] = {
    **WEB,
    "outcome": "proven",
    "proof": "agent",
    "volume": "nas:backup/one",
    "archive_time": "2026-11-20T00:00:00Z",
    "archive_age": 3600,
    "restore_seconds": 90,
    "boot_seconds": 20,
}
FAILED: dict[str, Any] = {**WEB, "outcome": "failed", "msg": "no room", "restore_seconds": 5}


def add(record: DrillRecord, *rows: dict[str, Any], ended: int) -> dict[str, Any]:
    return extended(record, rows, run="00ff00", began=ended - 100, ended=ended)


def validate(document: dict[str, Any]) -> None:
    schema = json.loads((REPO / "docs/drill.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(document, schema)


def test_a_later_failure_keeps_the_last_proof() -> None:
    first = add(DrillRecord(), PROVEN, ended=1_000_000)
    second = add(read_record(json.dumps(first)), FAILED, ended=2_000_000)
    for document in (first, second):
        validate(document)
    (guest,) = second["guests"]
    assert guest["outcome"] == "failed"
    assert guest["msg"] == "no room"
    assert guest["proven"] == "1970-01-12T13:46:40Z"
    assert (guest["restore_seconds"], guest["boot_seconds"]) == (90, 20)
    assert first["drills"][0]["recovery_time"] == 110
    assert first["drills"][0]["recovery_point"] == 3600
    assert second["drills"][1]["recovery_time"] is None
    assert [drill["failed"] for drill in second["drills"]] == [0, 1]


def test_a_reused_vmid_is_another_guest() -> None:
    first = add(DrillRecord(), PROVEN, ended=1_000_000)
    second = add(read_record(json.dumps(first)), {**FAILED, "name": "shop"}, ended=2_000_000)
    assert [guest["proven"] is None for guest in second["guests"]] == [True, False]


@pytest.mark.parametrize(
    "text",
    ["{", "[]", '{"version": 2}', '{"version": 1}', '{"version": 1, "guests": [{}], "drills": []}'],
)
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed):
        read_record(text)
    assert read_record(" \n") == DrillRecord()
