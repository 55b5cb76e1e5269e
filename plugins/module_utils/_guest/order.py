# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests in the order of their names (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any


def followers_by_name(guests: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the VMID that follows each one, of rows of a listing; the last one has none."""
    in_order = sorted(guests, key=lambda guest: _sort_key(str(guest.get("name"))))
    vmids = [str(guest["vmid"]) for guest in in_order]
    return dict(zip(vmids, vmids[1:], strict=False))


def _sort_key(name: str) -> list[str | int]:
    """Return texts and numbers in turns, which order web-2 before web-10."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if part.isdecimal() else part for part in parts]
