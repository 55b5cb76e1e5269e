# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Times as people and programs read them."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone


def iso(when: float) -> str | None:
    """Return seconds since the epoch as ISO 8601 in UTC, None for 0."""
    if not when:
        return None
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(when))


def seconds(text: str) -> int | None:
    """Return a date, or a time in ISO 8601, as seconds since the epoch; None for anything else.

    A date stands for its first moment. A time without an offset is in UTC. A number is returned as
    it is.
    """
    if re.fullmatch("[0-9]{1,12}", text):
        return int(text)
    # Python 3.10 does not accept the Z.
    written = re.sub("[zZ]$", "+00:00", text)
    try:
        when = datetime.fromisoformat(written)
    except ValueError:
        return None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return int(when.timestamp())
