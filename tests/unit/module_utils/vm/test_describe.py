# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules say of a VM."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.describe import (
    describe,
    phase,
    power_state,
)
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


@pytest.mark.parametrize(
    ("status", "lock", "name"),
    [
        ("running", None, "Running"),
        ("prelaunch", None, "Running"),
        ("running", "backup", "Running"),
        ("stopped", None, "Stopped"),
        ("paused", None, "Stopped"),
        ("hibernated", "suspended", "Stopped"),
        ("stopped", "clone", "Creating"),
        ("stopped", "create", "Creating"),
        ("io-error", None, "Error"),
        ("internal-error", None, "Error"),
        ("guest-panicked", None, "Error"),
        ("unknown", None, None),
    ],
)
def test_phase(status: str, lock: str | None, name: str | None) -> None:
    assert phase(status, lock) == name


def test_vm_with_a_creation_marker_is_being_created() -> None:
    notes = "<!-- pve.fleet: origin=9000 run=gone tenant=tenant_acme -->"
    assert describe(actual(description=notes))["phase"] == "Creating"


def test_checked_is_the_time_of_the_reading() -> None:
    assert describe(actual(), checked=1_763_913_600.0)["checked"] == "2025-11-23T16:00:00Z"
