# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The number that a new VM tries next, after PVE refused the one it asked for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.vmids import (
    VmidAllocator,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import VmidTaken
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.create import vmid_race
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.live.creation import Match
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Guest
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM

NUMBERS = VmidAllocator((10000, 99999), "tenant_acme", "web1")
FIRST, SECOND = islice(NUMBERS.order(), 2)


def refused(vmid: int) -> VmidTaken:
    """Return the refusal of a number that is in use."""
    return VmidTaken(attempted="", answer=f"{vmid} is in use", next_step="", reason="taken vmid")


def numbers_after(monkeypatch: pytest.MonkeyPatch, *met: tuple[Match, bool]) -> list[int]:
    """Return the number that is asked for after each refusal.

    `met`: what the VM of the number is, and whether the number is in use when that is asked.
    """
    seen = iter(met)
    is_in_use = False

    def match_desired(*_args: Any) -> Match:
        nonlocal is_in_use
        match, is_in_use = next(seen)
        return match

    monkeypatch.setattr(vmid_race, "match_desired", match_desired)
    monkeypatch.setattr(vmid_race, "read_other_kind", lambda *_args: None)
    monkeypatch.setattr(vmid_race, "is_in_use", lambda _client, _vmid: is_in_use)
    monkeypatch.setattr(vmid_race, "read_other_kind", lambda *_args: None)
    desired = Guest(VM, "web1", None, None, tenant="acme")
    none = cast(Any, None)
    race = vmid_race.VmidRace(none, desired, 60, frozenset(), random.Random(1))

    def tries() -> Iterator[int]:
        vmid = FIRST
        for _each in met:
            vmid = race.next_vmid(vmid, "pve1", none, refused(vmid))
            yield vmid

    return list(tries())


def test_a_number_that_is_free_again_is_asked_for_each_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The others ask for it too: one that skips it makes a second VM (decision 0014)."""
    free_again = (Match.GONE, False)
    assert numbers_after(monkeypatch, free_again, free_again, free_again) == [FIRST] * 3


def test_the_number_of_a_hidden_vm_is_skipped_at_the_second_refusal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the caller sees the tasks of its node, no run can be creating it."""
    hidden = (Match.GONE, True)
    monkeypatch.setattr(vmid_race.VmidRace, "_is_of_others", lambda *_args: True)
    assert numbers_after(monkeypatch, hidden, hidden) == [FIRST, SECOND]


def test_the_number_of_another_vm_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert numbers_after(monkeypatch, (Match.OTHER, True)) == [SECOND]
