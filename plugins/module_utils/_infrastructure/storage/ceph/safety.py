# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks whether Ceph can lose a daemon now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core.errors import Conflict

FORCE = "Wait until Ceph can lose it, or set force=true"


def read_safety(client: Api, node: str, service: str, name: str, action: str) -> Mapping[str, Any]:
    """Return Ceph's answer whether it can lose a daemon; one request.

    `service` is mon, mds or osd, `action` is stop or destroy (pve-manager: PVE/API2/Ceph.pm,
    cmd_safety).
    """
    answer: Mapping[str, Any] = client.get(
        *("nodes", node, "ceph", "cmd-safety"),
        params={"service": service, "id": name, "action": action},
        attempted=f"Could not ask Ceph if it can lose {service}.{name}",
    )
    return answer


def require_safe(answer: Mapping[str, Any], attempted: str, next_step: str = FORCE) -> None:
    """Raise Conflict if Ceph does not call an action safe (pure)."""
    if answer.get("safe"):
        return
    raise Conflict(
        attempted=attempted,
        answer=f"Ceph cannot lose it now: {answer.get('status') or 'it gives no reason'}",
        next_step=next_step,
        reason="not safe",
    )
