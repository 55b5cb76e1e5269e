# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the search for idioms finds, and when it fails."""

from __future__ import annotations

import pytest

from tests.tools.lint import idioms, sentences
from tests.tools.lint.idioms import Finding, find_idioms, split_allowed


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


@pytest.mark.parametrize(("directory", "expected"), [("docs", 1), ("docs/b.md", 1), ("doc", 0)])
def test_what_a_directory_holds_is_listed(
    directory: str,
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [Finding("docs/b.md", 2, "shall", "shall"), Finding("README.md", 2, "shall", "shall")]
    monkeypatch.setattr(idioms, "find_in_repository", lambda: found)
    monkeypatch.setattr(sentences, "read_files", list)
    assert idioms.main([directory]) == expected
    assert ("docs/b.md:2: 'shall'" in capsys.readouterr().out) == bool(expected)


def test_share_of_sentence_structures_at_the_limit_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(idioms, "find_in_repository", list)
    monkeypatch.setattr(idioms, "split_allowed", lambda _findings, _allowed: ([], []))
    for hit, expected in ((0, 0), (100, 1)):
        shares = [sentences.Share("in all", 100, hit)]
        monkeypatch.setattr(sentences, "measure", lambda _files, shares=shares: (shares, []))
        assert idioms.main([]) == expected
    assert "100.0 % of the docstrings and comments" in capsys.readouterr().out


def test_an_idiom_that_is_not_allowed_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Finding("docs/b.md", 2, "shall", "shall")]
    monkeypatch.setattr(idioms, "find_in_repository", lambda: found)
    monkeypatch.setattr(sentences, "read_files", list)
    assert idioms.main([]) == 1
