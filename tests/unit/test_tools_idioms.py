# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the search for idioms finds, and when it fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools import idioms
from tests.tools.idioms import Finding, compare, find_idioms, split_allowed


@pytest.mark.parametrize(
    "text",
    [
        "A name that is no DNS name.",
        "def test_a_template_is_no_vm() -> None:",
        "the VM is\n    # no template",
        "The file shall be there.",
        "Only VMs that bear this tag.",
        "The server is told the name.",
        "AsWished",
        "as often as the caller wished",
        "a template of nobody's",
        "It has left the pool meanwhile.",
        "so many tasks a node",
        "The task itself goes on.",
        "a copy of ours",
        "Tell whether the name is right.",
        "Ask anew.",
    ],
)
def test_idiom_is_found(text: str) -> None:
    assert len(list(find_idioms("some.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "There is no such template.",
        "there are\n# no nodes",
        "The lock is no longer held.",
        "It is not a DNS name.",
        "marshalled, unbearable, foretold, a category",
    ],
)
def test_plain_wording_is_not_found(text: str) -> None:
    assert list(find_idioms("some.py", text)) == []


def test_finding_names_file_and_line() -> None:
    (found,) = find_idioms("docs/vm.md", "one\ntwo\nIt shall be.\n")
    assert str(found) == "docs/vm.md:3: 'shall'; better: must, can, is, will"


def test_count_of_a_directory_must_not_grow() -> None:
    findings = [
        Finding("docs/decisions/a.md", 1, "shall", "shall"),
        Finding("docs/b.md", 2, "shall", "shall"),
    ]
    assert compare(findings, {"docs/decisions": 1, "docs": 1}) == []
    grown = compare(findings, {"docs/decisions": 1})
    assert grown[-1] == "docs: 1 idioms, at most 0 are allowed in tests/tools/idioms.yml"
    assert grown[0].startswith("docs/b.md:2:")


def test_allowed_idiom_needs_a_reason_and_a_use() -> None:
    findings = [Finding("a.py", 1, "shall", "shall"), Finding("b.py", 1, "shall", "shall")]
    left, complaints = split_allowed(
        findings,
        [
            {"file": "a.py", "idiom": "shall", "reason": ""},
            {"file": "c.py", "idiom": "shall", "reason": "Proxmox VE says so"},
        ],
    )
    assert [finding.file for finding in left] == ["b.py"]
    assert complaints == [
        "c.py: 'shall' is allowed but not there",
        "a.py: 'shall' is allowed without a reason",
    ]


def test_counts_are_lowered_and_never_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "idioms.yml"
    copy.write_text(
        '---\n# kept\nbaseline:\n  ".": 2\n  docs: 2\n  roles: 1\nallowed: []\n', encoding="utf-8"
    )
    monkeypatch.setattr(idioms, "BASELINE", copy)
    found = [Finding("docs/b.md", 2, "shall", "shall")] + 3 * [
        Finding("README.md", 2, "shall", "shall")
    ]
    monkeypatch.setattr(idioms, "find_in_repository", lambda: found)
    assert idioms.main(["--write"]) == 0
    assert (
        copy.read_text(encoding="utf-8")
        == '---\n# kept\nbaseline:\n  ".": 2\n  docs: 1\nallowed: []\n'
    )
