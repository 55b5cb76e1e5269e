# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python's collector of garbage, out of the way while an inventory is filled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """Spare the search for garbage, which walks again and again through an inventory that only grows and then stays.

    What is there at the end is left out of later searches too; forked workers then do not copy it. An inventory of
    before, which `meta: refresh_inventory` replaces, is given back first.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
