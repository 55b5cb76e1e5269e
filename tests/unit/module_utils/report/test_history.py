# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The history of reports: any text is read without an error, and growth is only what is known."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.quota import (
    QuotaFigures,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.history import (
    MAX_REPORTS,
    HistoryEntry,
    ReportHistory,
    extended,
    growth_of,
    read_history,
    trend_of,
)

FIGURES = st.builds(QuotaFigures, *[st.integers(0, 1 << 50)] * 4)
USE = st.dictionaries(
    st.text(max_size=3),
    st.none() | st.dictionaries(st.text(max_size=3), st.none() | FIGURES, max_size=3),
    max_size=3,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["version", "reports", "checked", "sites", ""]), inner)
    ),
    max_leaves=12,
)


def entry(day: int, use: Any) -> HistoryEntry:
    return HistoryEntry(f"2026-01-{day:02}T00:00:00Z", use)


def used(number: int) -> dict[str, Any]:
    return {"": {"acme": QuotaFigures(number, number, number, number)}}


@given(USE, USE)
def test_what_is_written_is_read(first: Any, second: Any) -> None:
    file = extended(ReportHistory([entry(1, first)]), entry(2, second))
    history = read_history(json.dumps(file))
    assert history == ReportHistory([entry(1, first), entry(2, second)])


@given(st.text() | JSON.map(json.dumps))
def test_any_text_is_read(text: str) -> None:
    history = read_history(text)
    assert history.reason or isinstance(history.entries, (list, tuple))
    if history.reason:
        assert extended(history, entry(1, {})) is None


@given(JSON)
def test_any_report_is_read(report: Any) -> None:
    text = json.dumps({"version": 1, "reports": [report]})
    history = read_history(text)
    growth_of(history, entry(1, used(1)))
    trend_of(history, entry(1, used(1)))


def test_the_oldest_reports_are_dropped() -> None:
    history = ReportHistory([entry(1, used(number)) for number in range(MAX_REPORTS)])
    file = extended(history, entry(2, used(7)))
    assert file is not None
    assert len(file["reports"]) == MAX_REPORTS
    assert file["reports"][0]["sites"][""]["acme"]["vms"] == 1
    assert file["reports"][-1]["sites"][""]["acme"]["vms"] == 7


def test_growth_is_since_the_newest_report() -> None:
    history = read_history(
        json.dumps(extended(ReportHistory([entry(5, used(4))]), entry(3, used(9))))  # not in order
    )
    growth = growth_of(history, entry(6, used(5)))
    assert growth["since"] == "2026-01-05T00:00:00Z"
    assert growth["total"] == dict.fromkeys(("vms", "cores", "memory", "disk"), 1)


def test_growth_is_unknown_where_a_figure_is() -> None:
    known, unread = used(1), {"": {"acme": None}}
    for then, now in ((known, unread), (unread, known), ({"": None}, known), (known, {"": None})):
        growth = growth_of(ReportHistory([entry(1, then)]), entry(2, now))
        assert growth["total"] is None
        assert growth["tenants"][""].get("acme") is None


def test_growth_is_unknown_where_the_sites_are_others() -> None:
    history = ReportHistory([entry(1, {"berlin": {}})])
    growth = growth_of(history, entry(2, {"berlin": {}, "munich": {"acme": QuotaFigures(1)}}))
    assert growth["total"] is None
    assert growth["tenants"] == {"berlin": {}, "munich": {"acme": None}}


def test_the_trend_is_of_what_was_known() -> None:
    history = ReportHistory([entry(1, used(1)), entry(2, {"": None}), entry(3, {"berlin": {}})])
    trend = trend_of(history, entry(4, used(2)))
    assert [(row["checked"][8:10], row["vms"]) for row in trend] == [("01", 1), ("04", 2)]
