# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""No conditional expression contains another."""

from __future__ import annotations

from pathlib import Path

from tests.tools.lint.nesting import find_nested


def test_nested_conditional_expressions_are_found(tmp_path: Path) -> None:
    (tmp_path / "room").mkdir()
    nested = "y = 0\nx = 1 if y else (2 if y else 3)\n"
    (tmp_path / "room" / "nested.py").write_text(nested)
    (tmp_path / "room" / "plain.py").write_text("x = 1 if y else 2\n")
    assert find_nested(["room"], tmp_path) == ["room/nested.py:2: nested conditional expression"]
