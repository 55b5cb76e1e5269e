# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times as people and programs read them."""

from __future__ import annotations

import time


def iso(when: float) -> str | None:
    """Return seconds since the epoch as ISO 8601 in UTC, None for 0."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when)) if when else None
