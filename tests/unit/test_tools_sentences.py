# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the measure of sentence structures."""

from __future__ import annotations

import pytest

from tests.tools.lint.sentences import Passage, find_hits, find_passages, measure

CODE = '''# Copyright (c) 2026, the pve.fleet authors
"""Return what came of the VMs."""

# The first line of a block,
# where it ends.
limit = 3  # None where it is unknown
other = 4  # noqa: where


def call():
    """Return the name."""
    text = "what is not a comment"
'''


@pytest.mark.parametrize(
    "text",
    [
        "Return what came of the VMs.",
        "Whatever the server sends.",
        "Return all that is missing.",
        "Return that which is missing.",
        "None where it cannot be read.",
        "Conflict,\nwhere another VM has it.",
        "Wherever a value is missing, the default holds.",
        "A disk that is not one that the tenant may touch.",
        "The disks and those of the template.",
        "Another VM than the other one.",
        "Whoever reads it.",
        "Raises when the result comes to the same.",
        "The file has to exist.",
        "The VM that is to be removed.",
        "The VMID is used by now.",
        "It exists all the same.",
        "The value as it is.",
        "The VM is left as it is alone, left alone.",
        "All disks but for the first.",
    ],
)
def test_structure_is_found(text: str) -> None:
    assert len({hit.text for hit in find_hits(Passage("a.py", 1, text))}) >= 1


@pytest.mark.parametrize(
    "text",
    [
        "Return the node where the VM runs.",
        "The file where PVE keeps it.",
        "What now? Where to?",
        "Checks all VMs and everything that needs the listing.",
        "One of the nodes, or that node.",
        "Names the option `what` and ``where``.",
        'The message says "what is wrong where".',
        "An error whereas the others pass; somewhat later.",
        "The one of two disks that is larger.",
    ],
)
def test_plain_sentence_is_not_found(text: str) -> None:
    assert find_hits(Passage("a.py", 1, text)) == []


def test_passages_are_docstrings_blocks_and_comments_behind_code() -> None:
    found = sorted((passage.line, passage.text) for passage in find_passages("a.py", CODE))
    assert found == [
        (2, "Return what came of the VMs."),
        (4, "The first line of a block,\nwhere it ends."),
        (6, "None where it is unknown"),
        (11, "Return the name."),
    ]


def test_comments_of_yaml_are_passages() -> None:
    (passage,) = find_passages("roles/vms/tasks/main.yml", "# Where it\n# is.\n- name: what\n")
    assert passage.text == "Where it\nis."


def test_share_counts_passages_by_room_and_in_all() -> None:
    shares, hits = measure(
        [
            ("plugins/module_utils/_foundation/core/a.py", CODE),
            ("plugins/modules/vm.py", "# The name.\n"),
            ("roles/vms/tasks/main.yml", "# The name.\n"),
        ]
    )
    assert [(share.room, share.passages, share.hit) for share in shares] == [
        ("module_utils/_foundation/core", 4, 3),
        ("modules", 1, 0),
        ("roles", 1, 0),
        ("in all", 6, 3),
    ]
    assert shares[-1].percent == 50.0
    assert str(hits[0]) == (
        "plugins/module_utils/_foundation/core/a.py:2: 'what'; better: "
        "the noun: 'the result of each VM' for 'what came of the VMs'"
    )
