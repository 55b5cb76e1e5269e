# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a maintenance in the notes of a node."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.node.record import (
    EVACUATED,
    NodeRecord,
    join_record,
    split_record,
)

RECORD = NodeRecord(
    EVACUATED, 1000, {101: "ab12", 400: ""}, frozenset({400}), ("ceph",), (), "9.2.11"
)


def test_a_record_survives_the_notes() -> None:
    notes = join_record("Rack 4\n\n# Power", RECORD)
    assert split_record("pve2", notes) == ("Rack 4\n\n# Power", RECORD)
    assert split_record("pve2", f"{notes}\nadded below\n") == (
        "Rack 4\n\n# Power\nadded below",
        RECORD,
    )
    assert join_record("Rack 4", None) == "Rack 4"
    assert split_record("pve2", join_record("", RECORD)) == ("", RECORD)


@pytest.mark.parametrize("text", ["{", "[]", '{"phase":"evacuated"}', '{"phase":1,"since":2}'])
def test_a_damaged_record(text: str) -> None:
    with pytest.raises(Conflict, match="was edited and cannot be read"):
        split_record("pve2", f"<!-- pve.fleet maintenance {text} -->")
