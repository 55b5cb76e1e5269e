# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of a guest in the start order of its node (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ..._foundation.core.propstring import Format, parse

# pve-guest-common, PVE/GuestHelpers.pm: pve-startup-order.
_STARTUP: Format = {"order": {"default_key": 1}, "up": {}, "down": {}}
LAST = 1 << 31  # the place of guests without an order


def start_order(config: Mapping[str, str]) -> tuple[int, int]:
    """Return the place of a guest in the order, and the seconds to wait after its start."""
    values = parse(str(config.get("startup") or ""), _STARTUP)
    order, wait = values.get("order", ""), values.get("up", "")
    return int(order) if order.isdigit() else LAST, int(wait) if wait.isdigit() else 0
