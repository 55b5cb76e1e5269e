# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures and times as the page shows them."""

from __future__ import annotations

import pytest

from ansible_collections.pve.fleet.plugins.plugin_utils._report import formatting
from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import spark

GIB = 1 << 30


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (1023, "1023 B"),
        (GIB, "1 GiB"),
        (12 * GIB + GIB // 2, "12.5 GiB"),
        (-GIB, "\u22121 GiB"),
        (4 * 1024 * GIB, "4 TiB"),
    ],
    ids=str,
)
def test_sizes(value: int | None, text: str) -> None:
    assert formatting.size(value).replace("\u00a0", " ") == text


@pytest.mark.parametrize(
    ("used", "total", "percent"),
    [(None, 1, None), (1, None, None), (0, 0, 0), (1, 0, 101), (1, 3, 33), (3, 2, 150)],
    ids=str,
)
def test_shares(used: int | None, total: int | None, percent: int | None) -> None:
    assert formatting.share(used, total) == percent


def test_changes() -> None:
    assert [formatting.change(value) for value in (None, 0, 1, -1200)] == [
        "",
        "",
        "+1",
        "\u22121,200",
    ]
    assert formatting.change_size(-GIB).replace("\u00a0", " ") == "\u22121 GiB"
    assert formatting.change_size(GIB).replace("\u00a0", " ") == "+1 GiB"


def test_times() -> None:
    now = "2026-11-22T10:00:00Z"
    assert formatting.moment(now) == "22 November 2026, 10:00 UTC"
    assert formatting.day("no time") == "unknown"
    times = ("2026-11-22T09:59:30Z", "2026-11-22T09:00:00Z", "2026-11-10T09:00:00Z", None)
    texts = [formatting.ago(time, now).replace("\u00a0", " ") for time in times]
    assert texts == ["less than a minute ago", "1 hour ago", "12 days ago", "unknown"]


def test_the_line_of_a_figure() -> None:
    assert spark([{"vms": 3}], "vms") == ""
    assert spark([{"vms": 3}, {"vms": 3}], "vms") == "0.00,22.00 100.00,22.00"
    assert (
        spark([{"vms": 1}, {"vms": 3}, {"vms": 2}], "vms") == "0.00,22.00 50.00,2.00 100.00,12.00"
    )
