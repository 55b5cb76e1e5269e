# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A report as a table of guests for a terminal (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.formatting import counted, printable
from ..._foundation.core.times import seconds
from ..._guests.kinds.move import move_text
from .model import DAY, Row

COLUMNS = ("name", "tenant", "kind", "node", "state", "address", "backup", "drift")
# States of a guest as PVE lists them, and of its comparison with the estate.
_STATES = ("running", "stopped", "paused", "suspended", "prelaunch", "unknown")
_DRIFT = ("in sync", "drifted", "pending", "outdated", "unwanted", "unknown", "not listed", "-")
_HOUR = 3600
_NUMBER = re.compile(r"[0-9]+")


def status_rows(report: Row) -> list[dict[str, str]]:
    """Return the guests of a report with a text for each column, and their site."""
    is_single = len(report["sites"]) == 1
    drift = report["drift"] or {"vms": []}
    found = {(one["site"] or "", one["vmid"]): str(one["status"]) for one in drift["vms"]}
    rows: list[dict[str, str]] = []
    for guest in [*report["vms"], *report["containers"]]:
        site = str(guest["site"] or "")
        key = ("" if is_single else site, guest["vmid"])
        state = found.get((site, guest["vmid"])) or found.get(key)
        unlisted = "not listed" if report["drift"] else "-"
        rows.append(
            {
                "site": site,
                "name": str(guest["name"] or guest["vmid"]),
                "tenant": str(guest["tenant"] or "-"),
                "kind": str(guest["kind"]),
                "node": str(guest["node"]),
                "state": str(guest["status"]),
                "address": str(guest.get("address") or "-"),
                "backup": _age(guest["backup"], str(report["checked"])),
                "move": move_text(guest.get("move")) or "-",
                "drift": (state or unlisted).replace("_", " "),
            }
        )
    return rows


def _age(backup: Mapping[str, Any], checked: str) -> str:
    """Return the age of the newest backup in hours or days, or its state without a time."""
    then, now = seconds(str(backup["time"] or "")), seconds(checked)
    if then is None or now is None:
        return str(backup["state"])
    age = max(0, now - then)
    text = f"{age // DAY} d" if age >= 2 * DAY else f"{age // _HOUR} h"
    return f"{text}, old" if backup["state"] == "old" else text


def select_rows(
    rows: Iterable[Mapping[str, str]], wanted: Mapping[str, Sequence[str]]
) -> list[Mapping[str, str]]:
    """Return the rows whose column is among the wanted values, for each column with values."""
    kept = list(rows)
    for column, values in wanted.items():
        if values:
            kept = [row for row in kept if row[column] in values]
    return kept


def unknown_names(
    report: Row, rows: Iterable[Mapping[str, str]], wanted: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return a text for each wanted value that no guest of the report has or could have."""
    names = ("node", "tenant", "site", "kind", "state", "drift")
    known = {name: {row[name] for row in rows} for name in names}
    known["kind"] |= {"vm", "container"}
    known["state"] |= set(_STATES)
    known["drift"] |= set(_DRIFT)
    known["node"] |= {str(node["node"]) for site in report["sites"] for node in site["nodes"] or ()}
    known["tenant"] |= {str(tenant["tenant"]) for tenant in report["tenants"]}
    known["site"] |= {str(site["site"] or "") for site in report["sites"]}
    return [
        f"there is no {column} '{name}'{did_you_mean(name, names)}"
        for column, names in known.items()
        for name in wanted.get(column, ())
        if name not in names
    ]


def _natural(text: str) -> str:
    """Return a text by which C(web2) comes before C(web10)."""
    return _NUMBER.sub(lambda found: found[0].zfill(20), text)


def unread_sites(report: Row) -> list[str]:
    """Return a line for each site whose guests are missing in the table."""
    unread = [site for site in report["sites"] if site["reason"]]
    return [
        printable(f"The guests of {site['site'] or 'the cluster'} are missing: {site['reason']}")
        for site in unread
    ]


def table_of(
    rows: Sequence[Mapping[str, str]], sort: Sequence[str] = (), *, reverse: bool = False
) -> list[str]:
    """Return the lines of a table, sorted by these columns, and the number of its rows. If guests
    of several sites are in it, it has their site; if guests move, it has their moves.
    """
    sites = {row["site"] for row in rows}
    columns = COLUMNS if len(sites) < 2 else ("site", *COLUMNS)
    if any(row["move"] != "-" for row in rows):
        columns = (*columns, "move")
    order = [*sort, "tenant", "name"]
    ordered = sorted(rows, key=lambda row: [_natural(row[name]) for name in order], reverse=reverse)
    cells = [[name.upper() for name in columns]]
    cells += [[printable(" ".join(row[name].split())) for name in columns] for row in ordered]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines: list[str] = []
    for line in cells:
        padded = [f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    return [*lines, counted(len(rows), "guest")]
