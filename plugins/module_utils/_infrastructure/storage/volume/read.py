# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads volumes of a storage."""

from __future__ import annotations

from typing import Any

from ...._foundation.api.interface import Api
from ..desired import DesiredFile


def find_volume(client: Api, file: DesiredFile) -> dict[str, Any] | None:
    """Return PVE's row of the volume, or None."""
    query = {} if file.content == "images" else {"content": file.content}
    path = ("nodes", str(file.node), "storage", file.storage, "content")
    rows: list[dict[str, Any]] = client.get(*path, params=query) or []
    for row in rows:
        if row.get("volid") == file.volume:
            return row
    return None
