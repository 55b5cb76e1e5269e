# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain data as YAML: each reader gets the same data back, and people can read it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.texts.yaml_text import (
    CommentedValue,
    lines_of,
    one_line,
    scalar,
)
from tests.cases import cases
from tests.unit.module_utils.estate.configs import HOSTILE
from tests.unit.module_utils.estate.test_promise import Loader, Unsafe, refuse_templates

# PyYAML with libyaml is what Ansible reads with, where it is there.
LOADERS: list[Any] = [Loader]
if hasattr(yaml, "CSafeLoader"):

    class FastLoader(yaml.CSafeLoader):
        """Reads an estate file as Ansible does, with libyaml."""

    FastLoader.add_constructor("!unsafe", Loader.yaml_constructors["!unsafe"])
    LOADERS.append(FastLoader)

TEXTS = st.one_of(
    st.sampled_from(HOSTILE),
    st.text(max_size=20),
    st.text("0123456789.:-+_exobTZ~ ", max_size=12),
    st.sampled_from(["Yes", "OFF", "nUll", "0o17", "1_000", "1:30", "+.inf", ".NaN", "0b1", "8G"]),
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
DATA = st.dictionaries(
    TEXTS,
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
)


@settings(max_examples=cases(20000, 300), deadline=None)
@given(data=DATA, note=TEXTS)
@example(data={100 * "k": []}, note="")
@example(data={100 * "k": {}}, note="")
def test_every_reader_gets_the_data_back(data: dict[str, Any], note: str) -> None:
    noted = {name: CommentedValue(value, note) for name, value in data.items()}
    for lines in (lines_of(data), lines_of(noted)):
        text = "\n".join(lines) or "{}"
        for loader in LOADERS:
            read = yaml.load(text.encode(), loader)
            assert read == data
            refuse_templates(read)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("8G", "8G"),
        ("10.0.0.5/24", "10.0.0.5/24"),
        ("local:iso/debian-13.iso", "local:iso/debian-13.iso"),
        ("web server of acme", "web server of acme"),
        ("2c-4g", "2c-4g"),
        ("yes", '"yes"'),
        ("0123", '"0123"'),
        ("1.5", '"1.5"'),
        ("2026-11-20", '"2026-11-20"'),
        ("12:30", '"12:30"'),
        ("", '""'),
        ("a: b", '"a: b"'),
        ("{{ x }}", '!unsafe "{{ x }}"'),
        ("\x1b\u2028\U000e0001", '"\\x1B\\u2028\\U000E0001"'),
        (1.5, "1.5"),
        (None, "null"),
    ],
    ids=str,
)
def test_single_values(value: Any, text: str) -> None:
    assert scalar(value) == text


def test_forms() -> None:
    data = {
        "short": {"cores": 2, "memory": "4G"},
        "notes": "first\n\n  - second",
        "unsafe": "one\n{{ two }}",
        "disks": [{"name": "scsi0", "size": "8G"}, {"name": "x", "options": {"aio": "native"}}],
        "empty": [],
        "noted": CommentedValue({"args": "-x"}, "raw\nvalue"),
    }
    assert list(lines_of(data)) == [
        "short: {cores: 2, memory: 4G}",
        "notes: |-",
        "  first",
        "",
        "    - second",
        "unsafe: !unsafe |-",
        "  one",
        "  {{ two }}",
        "disks:",
        "  - {name: scsi0, size: 8G}",
        "  - name: x",
        "    options: {aio: native}",
        "empty: []",
        'noted: {args: "-x"} # raw\\x0Avalue',
    ]
    assert isinstance(yaml.load("x: !unsafe |-\n  {{ y }}", Loader)["x"], Unsafe)


def test_a_comment_is_one_line() -> None:
    assert one_line("a\r\nb\u2028c\x85d") == "a\\x0D\\x0Ab\\u2028c\\x85d"
