# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Notifications that Proxmox VE sends to a webhook, as events (pure).

A template of the notification target writes the body; docs/events.md has this template. Types and
fields of notifications: pve-docs, notifications.adoc, and pve-ha-manager, NodeStatus.pm (a
notification about fencing has the fenced node as C(hostname)).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from ..events import kinds
from .event import WEBHOOK, clean_text, event_of

_SEVERITIES = frozenset(("info", "notice", "warning", "error", "unknown"))
_LAST_MOMENT = 253402300799  # the end of the year 9999
_FAILED = "error"


def notification_event(data: Any, site: str = "") -> Any:
    """Return the event of a notification; other data is returned unchanged.

    A site in the body has precedence: several clusters can send to one webhook.
    The event contains known keys only, neither headers nor secrets of the webhook.
    """
    payload = _payload_of(data)
    if payload is None:
        return data
    fields = payload["fields"]
    type, values = _type_and_values(fields, payload)
    site = _text(payload.get("site")) or site
    return event_of(type, site, _moment(payload.get("timestamp")), values, origin=WEBHOOK)


def _payload_of(data: Any) -> Mapping[str, Any] | None:
    """Return the body of a notification of Proxmox VE, or None for other data."""
    if not isinstance(data, Mapping):
        return None
    payload = data.get("payload", data)
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except ValueError:
            return None
    if not isinstance(payload, Mapping):
        return None
    has_fields = isinstance(payload.get("fields"), Mapping)
    if has_fields and payload.get("severity") in _SEVERITIES and "title" in payload:
        return payload
    return None


def _type_and_values(
    fields: Mapping[str, Any], payload: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    kind = _text(fields.get("type"))
    severity = str(payload["severity"])
    node = _text(fields.get("hostname"))
    title = _text(payload.get("title"))
    job = _text(fields.get("job-id")) or None
    if kind == "vzdump" and severity == _FAILED:
        return kinds.BACKUP_FAILED, {"node": node, "vmids": [], "exitstatus": title, "job": job}
    if kind == "fencing":
        return kinds.NODE_OFFLINE, {"node": node}
    values = {
        "node": node,
        "severity": severity,
        "title": title,
        "message": _text(payload.get("message")),
        "job": job,
    }
    if kind == "replication" and severity == _FAILED:
        return kinds.REPLICATION_FAILED, values
    return kinds.NOTIFICATION, {**values, "kind": kind}


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return ""
    return clean_text(str(value)).strip()


def _moment(value: Any) -> float:
    """Return the time of a notification in seconds since the epoch, or now if it is not usable."""
    try:
        when = float(value)
    except (TypeError, ValueError):
        return time.time()
    if 0 < when <= _LAST_MOMENT:
        return when
    return time.time()
