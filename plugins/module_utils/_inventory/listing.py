# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the cluster's listing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._api.client import Client
from .._core.errors import ApiError
from .._kinds.words import VM

Rows = list[dict[str, Any]]


def listed(client: Client) -> Rows:
    """Return the VMs of `/cluster/resources`. Raises FleetError."""
    attempted = "Could not list the VMs"
    answer = client.get("cluster", "resources", type="vm", attempted=attempted)
    rows = checked_rows(answer, attempted)
    return [dict(row) for row in rows if row.get("type") == VM.type]


def checked_rows(answer: Any, attempted: str) -> list[Mapping[str, Any]]:
    """Return the rows of a listing.

    Raises ApiError for an answer that is not a listing: it must not count as an empty one.
    """
    if not isinstance(answer, list):
        raise ApiError(
            attempted=attempted,
            answer="the answer is not a list",
            next_step="Check that host and port lead to Proxmox VE, and the proxies on the way",
            reason="not a listing",
        )
    return [row for row in answer if isinstance(row, Mapping)]
