# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Patterns of differences that are expected."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.drift.ignore import read_ignored


@pytest.mark.parametrize(
    ("text", "name", "option", "expected"),
    [
        ("web*:memory", "web1", "memory", True),
        ("web*:memory", "web1", "cores", False),
        ("web*", "web1", "", True),
        ("ha_resources/vm:300", "ha_resources/vm:300", "", True),
        ("ha_resources/vm:300", "ha_resources/vm:301", "", False),
        ("ha_resources/vm:300:comment", "ha_resources/vm:300", "comment", True),
        ("ha_resources/vm:300:comment", "ha_resources/vm:300", "failback", False),
        ("ha_resources/vm:*", "ha_resources/vm:300", "", True),
    ],
)
def test_a_pattern_can_name_a_resource_with_a_colon(
    text: str, name: str, option: str, expected: bool
) -> None:
    ignored = read_ignored([text])
    found = ignored.option((name,), option) if option else ignored.vm((name,))
    assert found is expected


@pytest.mark.parametrize("text", ["", ":memory", "web1:", "a::b"])
def test_an_empty_part_is_refused(text: str) -> None:
    with pytest.raises(ValidationFailed, match="is not a pattern"):
        read_ignored([text])
