# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._core.pattern import Pattern


@pytest.mark.parametrize("text", ["web", "WEB", "web-1", "1web", "a web", ""])
@pytest.mark.parametrize("flags", [0, re.IGNORECASE])
def test_it_finds_what_the_compiled_expression_finds(text: str, flags: int) -> None:
    expression = r"web(-\d)?"
    compiled, late = re.compile(expression, flags), Pattern(expression, flags)
    for way in ("fullmatch", "search"):
        expected, found = getattr(compiled, way)(text), getattr(late, way)(text)
        assert (expected and expected.span()) == (found and found.span())


def test_it_is_compiled_at_its_first_use() -> None:
    broken = Pattern("(")
    with pytest.raises(re.error):
        broken.search("web")
