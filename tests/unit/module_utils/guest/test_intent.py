# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the plan of a guest says of its node."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.intent import Intent


@pytest.mark.parametrize(
    ("image", "volume", "expected"),
    [(None, None, True), ("local:import/a.raw", None, False), (None, "tank:vm-1-disk-0", False)],
)
def test_a_guest_with_files_of_a_node_stays_on_it(
    image: str | None, volume: str | None, expected: bool
) -> None:
    disks = [SimpleNamespace(import_from=image, volume=volume)]
    desired = SimpleNamespace(hardware=SimpleNamespace(disks=disks))
    nothing: Any = None
    intent = Intent[Any](desired, nothing, nothing, {})
    assert intent.can_be_placed_again is expected
