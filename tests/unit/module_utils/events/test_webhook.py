# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Notifications of Proxmox VE as events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._operation.events.kinds import COMMON, KEYS
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.webhook import (
    notification_event,
)

SECRET = "correct-horse"


def notification(type: str, severity: str, **fields: str) -> dict[str, Any]:
    """Return what source eda.builtin.webhook makes of a notification.

    Types, severities and fields: pve-docs, notifications.adoc.
    """
    payload = {
        "title": "vzdump backup status (pve1.example.com): backup failed",
        "message": "Details\n=======\n",
        "severity": severity,
        "timestamp": 1795208400,
        "fields": {"type": type, "hostname": "pve1", **fields},
    }
    headers = {"Content-Type": "application/json", "X-Token": SECRET}
    return {"payload": payload, "meta": {"endpoint": "endpoint", "headers": headers}}


@pytest.mark.parametrize(
    ("type", "severity", "expected"),
    [
        ("vzdump", "error", "backup_failed"),
        ("vzdump", "info", "notification"),
        ("fencing", "error", "node_offline"),
        ("replication", "error", "replication_failed"),
        ("package-updates", "info", "notification"),
        ("system-mail", "unknown", "notification"),
    ],
)
def test_types(type: str, severity: str, expected: str) -> None:
    event = notification_event(notification(type, severity), "munich")
    assert set(event) == {*COMMON, *KEYS[expected]}
    assert (event["type"], event["site"], event["node"]) == (expected, "munich", "pve1")
    assert (event["time"], event["origin"]) == ("2026-11-20T21:00:00Z", "webhook")


def test_the_body_can_name_its_site() -> None:
    data = notification("vzdump", "error")
    data["payload"]["site"] = "vienna"
    assert notification_event(data, "munich")["site"] == "vienna"
    data["payload"]["site"] = ["vienna"]
    assert notification_event(data, "munich")["site"] == "munich"


def test_a_failed_backup_has_its_job() -> None:
    event = notification_event(notification("vzdump", "error", **{"job-id": "backup-1"}))
    assert event["job"] == "backup-1"
    assert event["exitstatus"] == "vzdump backup status (pve1.example.com): backup failed"
    assert (event["upid"], event["vmids"]) == (None, [])


def test_no_secret_is_in_an_event() -> None:
    """Headers carry the token of a webhook; only known keys of the body are used."""
    data = notification("vzdump", "error", secret=SECRET)
    data["payload"]["secrets"] = {"token": SECRET}
    assert SECRET not in repr(notification_event(data))


def test_the_same_notification_has_the_same_id() -> None:
    first = notification_event(notification("vzdump", "error"))
    assert first["id"] == notification_event(notification("vzdump", "error"))["id"]
    assert first["id"] != notification_event(notification("vzdump", "error"), "munich")["id"]


@pytest.mark.parametrize(
    "data",
    [
        {"payload": {"anything": 1}, "meta": {}},
        {"payload": "no JSON"},
        {"payload": {"title": "x", "severity": "error", "fields": "vzdump"}},
        {"payload": {"title": "x", "severity": "loud", "fields": {}}},
        {},
    ],
)
def test_other_events_pass_unchanged(data: dict[str, Any]) -> None:
    assert notification_event(data) == data


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.text(max_size=5), one, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON, JSON, JSON)
def test_any_value_in_any_place(title: Any, moment: Any, type: Any, host: Any) -> None:
    payload = {
        "title": title,
        "severity": "error",
        "timestamp": moment,
        "fields": {"type": type, "hostname": host, "job-id": title},
    }
    event = notification_event({"payload": payload})
    assert event["type"] in KEYS
    assert isinstance(event["node"], str)
    assert event["time"]
