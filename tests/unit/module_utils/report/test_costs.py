# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Costs are exact, and no cell of the CSV file is a formula."""

from __future__ import annotations

import csv
import io
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.formatting import printable
from ansible_collections.pve.fleet.plugins.module_utils._operation.report.costs import (
    cell,
    costs_of,
    csv_of,
    read_prices,
    sum_of,
)

GIB = 1 << 30
PRICES = read_prices({"core": "0.105", "memory": "0.333", "storage": "0.01"})


def tenant(name: str = "acme", **more: Any) -> dict[str, Any]:
    used = {"vms": 1, "cores": 3, "memory": GIB, "disk": GIB // 2}
    return {"site": "", "tenant": name, **used, "reason": None, **more}


def test_the_total_is_the_sum_of_what_is_shown() -> None:
    assert PRICES is not None
    (row,) = costs_of([tenant()], PRICES)
    # 0.315, 0.333 and 0.005: halves go up
    assert (row["cores"], row["memory"], row["disk"]) == ("0.32", "0.33", "0.01")
    assert row["total"] == "0.66"


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 1 << 50)), max_size=5))
def test_sums_are_exact(use: list[tuple[int, int]]) -> None:
    assert PRICES is not None
    tenants = [tenant(cores=cores, memory=size, disk=size) for cores, size in use]
    rows = costs_of(tenants, PRICES)
    expected = sum((Decimal(row["total"]) for row in rows), Decimal("0.00"))
    assert sum_of(rows) == str(expected)


def test_what_is_unknown_has_no_price() -> None:
    assert PRICES is not None
    unread = tenant(reason="node pve3 is offline")
    rows = costs_of([tenant(), unread], PRICES)
    assert rows[1]["total"] is None
    assert sum_of(rows) is None
    text = csv_of([tenant(), unread], rows, "EUR", "2026-11")
    lines = list(csv.DictReader(io.StringIO(text)))
    assert (lines[1]["cores"], lines[1]["cost"]) == ("", "")
    assert lines[1]["unknown"] == "node pve3 is offline"


def test_without_prices() -> None:
    assert read_prices(None) is None
    assert read_prices({"currency": "EUR", "core": None}) is None


@pytest.mark.parametrize("price", ["", " ", "free", "1,50", "Infinity", "-0.01", "sNaN", "0x10"])
def test_an_invalid_price_is_refused(price: str) -> None:
    with pytest.raises(ValidationFailed, match=r"prices\.core"):
        read_prices({"core": price})


@pytest.mark.parametrize(
    "start", [*"=+-@＝＋－＠", " =", "\t=", "\n=", "\u00a0=", "\ufeff=", "\u200b ="], ids=ascii
)
def test_a_formula_is_a_text(start: str) -> None:
    text = f"{start}HYPERLINK(1)"
    assert cell(text) == f"'{printable(text)}"


@given(st.text())
def test_a_cell_is_the_text_or_has_an_apostrophe(text: str) -> None:
    shown = cell(text)
    assert shown.removeprefix("'") == printable(text).removeprefix("'")
    assert not shown.strip().startswith(tuple("=+-@＝＋－＠"))
    shown.encode("utf-8")


def test_a_number_stays_a_number() -> None:
    assert cell(-5) == "-5"
    assert cell("5") == "5"


@given(st.text(min_size=1), st.text())
def test_a_line_of_csv_is_one_tenant(name: str, currency: str) -> None:
    assert PRICES is not None
    rows = costs_of([tenant(name)], PRICES)
    text = csv_of([tenant(name)], rows, currency, "2026-11")
    heading, line = csv.reader(io.StringIO(text, newline=""))
    assert len(line) == len(heading)
    assert line[heading.index("tenant")] == cell(name)
