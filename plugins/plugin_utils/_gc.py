# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python's garbage collector, paused or slowed where it takes time and finds nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = (20_000, 50, 100)  # thresholds of the three generations, in place of 700, 10 and 10


@contextmanager
def gc_slowed() -> Iterator[None]:
    """Collect rarely, while Ansible parses the files that it sends with a module."""
    thresholds = gc.get_threshold()
    gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


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
