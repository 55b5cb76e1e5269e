"""How many made-up cases a test tries: few in `make test`, all in `make test-long`."""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")


def cases(full: T, short: T) -> T:
    """Return all where PVE_FLEET_CASES is set, as `make test-long` does: a number, or a table."""
    return full if os.environ.get("PVE_FLEET_CASES") else short
