# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The costs of each tenant in a month, and the same as CSV (pure)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any
from unicodedata import category

from ..._foundation.core import validate
from ..._foundation.core.formatting import printable
from ..._foundation.core.quantities import GIB
from .model import Prices, Row

_CENT = Decimal("0.01")
_HIGHEST = Decimal(1_000_000_000)
_PRICES = ("core", "memory", "storage")
_PARTS = ("cores", "memory", "disk")
_COLUMNS = (
    "month",
    "site",
    "tenant",
    "vms",
    "cores",
    "memory_gib",
    "storage_gib",
    "cost_cores",
    "cost_memory",
    "cost_storage",
    "cost",
    "currency",
    "unknown",
)
# Spreadsheets read a cell as a formula if it begins with one of these characters or its wide form.
_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"
_INVISIBLE = ("Cf", "Zs", "Zl", "Zp", "Cc")


def read_prices(given: Mapping[str, Any] | None) -> Prices | None:
    """Return the prices, None without any. Raises ValidationFailed for an invalid price."""
    if not given or all(given.get(name) is None for name in _PRICES):
        return None
    amounts = {name: _price(given.get(name), f"prices.{name}") for name in _PRICES}
    return Prices(**amounts, currency=str(given.get("currency") or ""))


def _price(value: Any, what: str) -> Decimal:
    if value is None:
        return Decimal(0)
    try:
        price = Decimal(str(value).strip())
    except InvalidOperation:
        price = Decimal("NaN")
    if price.is_nan() or not 0 <= price <= _HIGHEST:
        step = "Give a number such as 4.50, the price for a month"
        raise validate.refused(what, value, "is not a price", step)
    return price


def costs_of(tenants: Iterable[Row], prices: Prices) -> list[dict[str, Any]]:
    """Return the costs of each tenant at each site, as texts with two decimals.

    The total is the sum of the rounded parts. All are None for a tenant whose use is not known.
    """
    return [_cost(tenant, prices) for tenant in tenants]


def _cost(tenant: Row, prices: Prices) -> dict[str, Any]:
    row: dict[str, Any] = {"site": tenant["site"], "tenant": tenant["tenant"]}
    if tenant["reason"]:
        return {**row, **dict.fromkeys((*_PARTS, "total")), "reason": tenant["reason"]}
    amounts = {
        "cores": tenant["cores"] * prices.core,
        "memory": _gib(tenant["memory"]) * prices.memory,
        "disk": _gib(tenant["disk"]) * prices.storage,
    }
    rounded = {part: _rounded(amount) for part, amount in amounts.items()}
    formatted = {part: str(amount) for part, amount in rounded.items()}
    return {**row, **formatted, "total": str(sum(rounded.values())), "reason": None}


def sum_of(costs: Iterable[Row]) -> str | None:
    """Return the sum of all costs, None if one of them is not known."""
    totals = [cost["total"] for cost in costs]
    if None in totals:
        return None
    return str(sum(map(Decimal, totals), Decimal("0.00")))


def csv_of(tenants: Sequence[Row], costs: Sequence[Row], currency: str, month: str) -> str:
    """Return the costs as CSV with a heading (RFC 4180), a line for each tenant at each site.

    Unknown values are empty, with the reason in the last column.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for tenant, cost in zip(tenants, costs, strict=True):
        writer.writerow(map(cell, _line(tenant, cost, currency, month)))
    return text.getvalue()


def _line(tenant: Row, cost: Row, currency: str, month: str) -> list[Any]:
    amounts: list[Any] = [""] * 4
    if not tenant["reason"]:
        sizes = [str(_rounded(_gib(tenant[part]))) for part in ("memory", "disk")]
        amounts = [tenant["vms"], tenant["cores"], *sizes]
    prices = [cost[part] or "" for part in (*_PARTS, "total")]
    head = [month, tenant["site"], tenant["tenant"]]
    return [*head, *amounts, *prices, currency, tenant["reason"] or ""]


def cell(value: Any) -> str:
    """Return a cell that no spreadsheet reads as a formula.

    A text gets a leading apostrophe if its first visible character could begin a formula.
    """
    if not isinstance(value, str):
        return str(value)
    text = printable(value)
    for character in text:
        if category(character) in _INVISIBLE:
            continue
        if character in _FORMULA:
            return f"'{text}"
        break
    return text


def _gib(size: int) -> Decimal:
    return Decimal(size) / GIB


def _rounded(amount: Decimal) -> Decimal:
    return amount.quantize(_CENT, rounding=ROUND_HALF_UP)
