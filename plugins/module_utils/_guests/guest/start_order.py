# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The place of a guest in the start order of its node (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..._foundation.core.propstring import Format, parse

# pve-guest-common, PVE/GuestHelpers.pm: pve-startup-order.
_STARTUP: Format = {"order": {"default_key": 1}, "up": {}, "down": {}}
LAST = 1 << 31  # the place of guests without an order


class StartOrder(NamedTuple):
    """The place of a guest, the seconds to wait after its start, and the limit of its shutdown."""

    place: int = LAST
    wait: int = 0
    down: int | None = None


def start_order(config: Mapping[str, str]) -> StartOrder:
    """Return the start order of a guest; a value that is not a number does not count."""
    values = parse(str(config.get("startup") or ""), _STARTUP)
    names = {"order": "place", "up": "wait", "down": "down"}
    numbers = {names[key]: int(value) for key, value in values.items() if value.isdigit()}
    return StartOrder(**numbers)
