# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The staged copy follows the working tree."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.tools.stage import stage


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "plugins").mkdir(parents=True)
    (tree / "plugins" / "a.py").write_text("a = 1\n")
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "noise.log").write_text("noise\n")
    subprocess.run(["git", "init", "--quiet", str(tree)], check=True)
    return tree


def copied(copy: Path) -> dict[str, str]:
    files = (
        path
        for path in copy.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(copy).parts
    )
    return {path.relative_to(copy).as_posix(): path.read_text() for path in files}


def test_copies_what_git_would_know_and_makes_a_repository(tree: Path, tmp_path: Path) -> None:
    copy = stage(tree, tmp_path / "copy")
    assert copied(copy) == {".gitignore": "*.log\n", "plugins/a.py": "a = 1\n"}
    assert (copy / ".git").is_dir()


def test_second_run_follows_edits_and_removals_and_keeps_what_tools_left(
    tree: Path, tmp_path: Path
) -> None:
    copy = stage(tree, tmp_path / "copy")
    (copy / "tests" / "output").mkdir(parents=True)
    (copy / "tests" / "output" / "cache").write_text("kept\n")
    (tree / "plugins" / "a.py").unlink()
    (tree / "plugins").rmdir()
    (tree / "plugins").write_text("now a file\n")
    (tree / ".gitignore").write_text("*.log\n*.tmp\n")
    stage(tree, copy)
    assert copied(copy) == {
        ".gitignore": "*.log\n*.tmp\n",
        "plugins": "now a file\n",
        "tests/output/cache": "kept\n",
    }
