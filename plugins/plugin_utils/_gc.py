# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pause Python's garbage collector while an inventory is filled."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause the collector, which would traverse a growing inventory again and again.

    What exists at the end is excluded from later collections too; forked workers then do not copy
    it. An older inventory, which `meta: refresh_inventory` replaces, is released first.
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
