# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of events, and the keys of each (data)."""

from __future__ import annotations

from collections.abc import Mapping

TASK_STARTED, TASK_ENDED, TASKS_LOST = "task_started", "task_ended", "tasks_lost"
BACKUP_FAILED = "backup_failed"
GUEST_APPEARED, GUEST_DISAPPEARED = "guest_appeared", "guest_disappeared"
GUEST_POWER, GUEST_TENANT = "guest_power_changed", "guest_tenant_changed"
GUEST_MOVED = "guest_moved"
NODE_APPEARED, NODE_DISAPPEARED = "node_appeared", "node_disappeared"
NODE_OFFLINE, NODE_ONLINE = "node_offline", "node_online"
QUORUM_LOST, QUORUM_RESTORED = "quorum_lost", "quorum_restored"
STORAGE_ABOVE, STORAGE_BELOW = "storage_above_limit", "storage_below_limit"
QUOTA_ABOVE, QUOTA_BELOW = "quota_above_limit", "quota_below_limit"
BACKUP_MISSING, BACKUP_FOUND = "backup_missing", "backup_found"
DRIFT_FOUND, DRIFT_ENDED = "drift_found", "drift_ended"
READING_FAILED, READING_RESTORED = "reading_failed", "reading_restored"
SITE_UNREACHABLE, SITE_REACHABLE = "site_unreachable", "site_reachable"
REPLICATION_FAILED, NOTIFICATION = "replication_failed", "notification"

COMMON = ("id", "type", "site", "time", "origin")
"""Keys that every event has."""

_TASK = ("node", "task", "upid", "vmid", "user", "token", "status")
_GUEST = ("vmid", "kind", "name", "node", "tenant", "tenant_problem", "status", "template")
_STORAGE = ("storage", "node", "used", "total", "percent", "limit")
_QUOTA = ("tenant", "resource", "used", "quota", "percent", "limit")
_BACKUP = ("vmid", "kind", "name", "node", "tenant", "newest", "max_age_hours")
_DRIFT = ("vmid", "kind", "name", "node", "tenant", "status", "options")
_FAILURE = ("part", "category", "reason")
_NOTICE = ("node", "severity", "title", "message", "job")

KEYS: Mapping[str, tuple[str, ...]] = {
    TASK_STARTED: _TASK,
    TASK_ENDED: (*_TASK, "exitstatus", "started", "ended"),
    TASKS_LOST: ("node", "since"),
    BACKUP_FAILED: ("node", "upid", "vmids", "exitstatus", "job"),
    GUEST_APPEARED: _GUEST,
    GUEST_DISAPPEARED: _GUEST,
    GUEST_POWER: (*_GUEST, "previous_status"),
    GUEST_TENANT: (*_GUEST, "previous_tenant"),
    GUEST_MOVED: (*_GUEST, "previous_node"),
    NODE_APPEARED: ("node",),
    NODE_DISAPPEARED: ("node",),
    NODE_OFFLINE: ("node",),
    NODE_ONLINE: ("node",),
    QUORUM_LOST: (),
    QUORUM_RESTORED: (),
    STORAGE_ABOVE: _STORAGE,
    STORAGE_BELOW: _STORAGE,
    QUOTA_ABOVE: _QUOTA,
    QUOTA_BELOW: _QUOTA,
    BACKUP_MISSING: _BACKUP,
    BACKUP_FOUND: _BACKUP,
    DRIFT_FOUND: _DRIFT,
    DRIFT_ENDED: _DRIFT,
    READING_FAILED: _FAILURE,
    READING_RESTORED: _FAILURE,
    SITE_UNREACHABLE: _FAILURE,
    SITE_REACHABLE: _FAILURE,
    REPLICATION_FAILED: _NOTICE,
    NOTIFICATION: (*_NOTICE, "kind"),
}
"""Keys of each type, in addition to the keys of every event."""

ENDS: Mapping[str, str] = {
    NODE_OFFLINE: NODE_ONLINE,
    QUORUM_LOST: QUORUM_RESTORED,
    STORAGE_ABOVE: STORAGE_BELOW,
    QUOTA_ABOVE: QUOTA_BELOW,
    BACKUP_MISSING: BACKUP_FOUND,
    DRIFT_FOUND: DRIFT_ENDED,
    READING_FAILED: READING_RESTORED,
    SITE_UNREACHABLE: SITE_REACHABLE,
}
"""The event at the end of each alarm, by the event at its beginning."""
