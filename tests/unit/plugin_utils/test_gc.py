# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin leaves Python's garbage collector as it was, and keeps no old inventory
alive.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils._gc import gc_paused, gc_slowed


class Ring:
    """Garbage that only the collector finds."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_it_is_as_before(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with gc_paused():
        assert not gc.isenabled()
    assert gc.isenabled() is enabled
    with pytest.raises(RuntimeError), gc_paused():
        raise RuntimeError
    assert gc.isenabled() is enabled


def test_an_inventory_that_was_replaced_is_given_back() -> None:
    with gc_paused():
        ring = Ring()
    known = weakref.ref(ring)
    del ring
    gc.collect()
    assert known() is not None
    with gc_paused():
        assert known() is None


def test_a_slowed_collector_is_as_before_at_the_end() -> None:
    before = gc.get_threshold()
    with gc_slowed():
        assert gc.isenabled()
        assert gc.get_threshold() > before
    assert gc.get_threshold() == before
    with pytest.raises(RuntimeError), gc_slowed():
        raise RuntimeError
    assert gc.get_threshold() == before
