# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusal of a task about several guests."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import Conflict
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.failures.problems import (
    RefusalWords,
    require_none,
)

WORDS = RefusalWords("No guest was moved", "Solve these", "refused move", "not moved")
NAMES = {"VM 'web1' (101)": "acme/web1", "VM 'db' (102)": "db"}


def refusal(*problems: str) -> Conflict:
    with pytest.raises(Conflict) as caught:
        require_none(problems, WORDS, NAMES)
    return caught.value


def test_each_guest_has_one_line_and_the_message_is_about_the_first() -> None:
    error = refusal(
        "VM 'web1' (101): it has the snapshot a",
        "VM 'db' (102): its ide2 has a medium: eject it",
        "VM 'web1' (101) runs at site b",
        "guest wbe2 was not found",
        "guest wbe2 was not found",
    )
    assert error.as_result()["report"] == [
        "! acme/web1                 not moved: it has the snapshot a; runs at site b",
        "! db                        not moved: its ide2 has a medium: eject it",
        "! guest wbe2 was not found",
        "Plan: 3 refused",
    ]
    assert error.message == (
        "No guest was moved: VM 'web1' (101): it has the snapshot a; runs at site b; and 2 other"
        " problems. Solve these."
    )
    assert len(error.details["problems"]) == 4


def test_a_sentence_without_a_guest_is_the_whole_message() -> None:
    error = refusal("guest wbe2 was not found")
    assert error.message == "No guest was moved: guest wbe2 was not found. Solve these."


def test_without_problems_nothing_is_refused() -> None:
    require_none([], WORDS, NAMES)
