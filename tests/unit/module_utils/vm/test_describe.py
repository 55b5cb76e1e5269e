# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules say of a VM."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._vm.describe import describe, power_state
from tests.unit.module_utils.vm.vm_cases import actual


@pytest.mark.parametrize(
    ("status", "power"),
    [
        ("running", "on"),
        ("prelaunch", "on"),
        ("io-error", "on"),
        ("stopped", "off"),
        ("paused", "suspended"),
        ("hibernated", "suspended"),
        ("unknown", None),
        ("", None),
    ],
)
def test_the_state_in_short(status: str, power: str | None) -> None:
    assert power_state(status) == power


def test_both_states_are_reported() -> None:
    shown = describe(actual(status="paused"))
    assert (shown["status"], shown["power_state"]) == ("paused", "suspended")
