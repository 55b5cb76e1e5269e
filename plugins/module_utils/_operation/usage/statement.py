# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The classes of an estate by their size, and the use of a month as CSV (pure)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from ..._foundation.core import validate
from ..._foundation.core.quantities import MIB, parse_memory, whole_number
from ..report.costs import cell
from .month import AMOUNTS, Class

_MAX_CORES = 8192
_LINES = 20
_COLUMNS = (
    "month",
    "site",
    "tenant",
    "class",
    "core_hours",
    "memory_gib_hours",
    "disk_gib_hours",
    "backup_gib_hours",
    "uncertain_core_hours",
    "uncertain_memory_gib_hours",
    "uncertain_disk_gib_hours",
    "uncertain_backup_gib_hours",
    "complete",
)


def read_classes(given: Mapping[str, Any]) -> list[Class]:
    """Return the classes of an estate by their size; classes without cores or memory have no size.

    Raises ValidationFailed.
    """
    found: list[Class] = []
    for name, options in given.items():
        what = f"classes.{name}"
        if not isinstance(options, Mapping):
            raise validate.refused(what, options, "is not a dictionary", "Give cores and memory")
        if options.get("cores") is None or options.get("memory") is None:
            continue
        amounts = [_count(options.get(key) or 1, f"{what}.{key}") for key in ("cores", "sockets")]
        memory = parse_memory(options["memory"], what=f"{what}.memory", minimum=1) * MIB
        found.append(Class(str(name), amounts[0] * amounts[1], memory))
    return found


def _count(value: Any, what: str) -> int:
    number = whole_number(str(value))
    if number is None:
        raise validate.refused(what, value, "is not a whole number", "Give a number of cores")
    return validate.number(number, 1, _MAX_CORES, what)


def lines_of(usage: Mapping[str, Any]) -> list[str]:
    """Return why a month is not complete, in words; the first parts only."""
    lines: list[str] = []
    if not usage["closed"]:
        lines.append(f"{usage['month']} is not over yet")
    missing = usage["missing"]
    for row in missing[:_LINES]:
        site = f"site {row['site']}, " if row["site"] else ""
        subject = f"{row['part']} {row['subject']}".strip()
        lines.append(f"Missing: {site}{subject}, {row['from']} to {row['to']}: {row['reason']}")
    if len(missing) > _LINES:
        lines.append(f"There are {len(missing) - _LINES} more missing parts")
    return lines


def csv_of(usage: Mapping[str, Any]) -> str:
    """Return the use as CSV with a heading (RFC 4180), a line for each tenant and class at each
    site, in core hours and GiB hours.
    """
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    complete = str(usage["complete"]).lower()
    for row in usage["tenants"]:
        head = [usage["month"], row["site"], row["tenant"], row["class"]]
        amounts = [row[part][name] for part in ("hours", "uncertain") for name in AMOUNTS]
        writer.writerow(map(cell, [*head, *amounts, complete]))
    return text.getvalue()
