# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a caller may do on a path that the answer about all paths does not have."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.access.privileges import (
    Privileges,
)

HELD = Privileges(
    {
        "/": {"Sys.Audit": 0, "VM.Audit": 1},
        "/vms": {"VM.Audit": 1, "VM.Backup": 0},
        "/vms/100": {"VM.Console": 0},
        "/storage": {"Datastore.Audit": 1},
    }
)


def test_a_listed_path_has_what_is_listed() -> None:
    assert HELD.on("/vms") == {"VM.Audit", "VM.Backup"}
    assert HELD.on("/vms/100") == {"VM.Console"}


def test_another_path_has_what_its_parent_hands_down() -> None:
    assert HELD.on("/vms/101") == {"VM.Audit"}
    assert HELD.below("/vms") == {"VM.Audit"}
    assert HELD.on("/nodes/pve1") == {"VM.Audit"}
    assert HELD.on("/storage/local") == {"Datastore.Audit"}


def test_without_an_entry_nothing_is_held() -> None:
    nothing = Privileges({})
    assert nothing.on("/vms/100") == nothing.below("/storage") == nothing.on("/") == frozenset()
