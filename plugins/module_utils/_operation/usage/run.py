# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module usage: takes a sample of each site, keeps the use since the last one, and
returns the use of a month.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError
from ..._foundation.core.parallel import SITES_AT_ONCE, side_by_side
from ..._foundation.core.result import Result
from ..._foundation.core.times import iso
from .model import Sample, Window
from .month import read_month, usage_of
from .read_site import read_sample
from .statement import csv_of, lines_of, read_classes
from .store import UsageStore
from .timeline import use_between

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_SHORTEST, _LONGEST = 60, 86400
SiteClient = tuple[Collection[str], "Client"]


@dataclass(frozen=True)
class _Taken:
    """The sample of a site, and the window that it ends; or why the site could not be read."""

    site: str
    before: Sample | None = None
    sample: Sample | None = None
    window: Window | None = None
    reason: str = ""


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Take a sample of a site; in check mode no file is written.

    A site that cannot be read is in the result. Raises FleetError for a mistake in the options, and
    for files that cannot be used.
    """
    return run_at_sites(params, [((), client)], check_mode)


def run_at_sites(
    params: Mapping[str, Any], clients: Sequence[SiteClient], check_mode: bool = False
) -> Result:
    """Take a sample of each site, as `run` does."""
    max_gap = validate.number(params["max_gap"], _SHORTEST, _LONGEST, "max_gap")
    prefix = str(params.get("tenant_prefix") or PREFIX).lower()
    classes = read_classes(params.get("classes") or {})
    month = params.get("month")
    if month is not None:
        read_month(month)
    store = UsageStore(params["path"])

    def one(part: SiteClient) -> _Taken:
        _names, client = part
        if check_mode:
            return _take(store, client, prefix, max_gap)
        with store.locked(client.site):
            taken = _take(store, client, prefix, max_gap)
            if taken.sample is not None:
                store.save(taken.site, taken.window, taken.sample)
        return taken

    found = sorted(side_by_side(one, clients, SITES_AT_ONCE), key=lambda taken: taken.site)
    before = {taken.site: _time(taken.before) for taken in found}
    after = {taken.site: _time(taken.sample or taken.before) for taken in found}
    unread = [taken for taken in found if taken.reason]
    values: dict[str, Any] = {
        "sites": [_described(taken) for taken in found],
        "complete": not unread,
        "usage": None,
        "csv": None,
        "lines": [_warning(taken) for taken in unread],
    }
    if month is not None:
        days = {taken.site: store.days(taken.site, *read_month(month)).values() for taken in found}
        usage = usage_of(days, month, classes, clients[0][1].clock.time())
        lines = [*values["lines"], *lines_of(usage)]
        values |= {"usage": usage, "csv": csv_of(usage), "lines": lines}
    diff = {"before": {"samples": before}, "after": {"samples": after}}
    warnings = tuple(_warning(taken) for taken in unread)
    return Result(len(unread) < len(found), values, diff, warnings=warnings)


def _take(store: UsageStore, client: Client, prefix: str, max_gap: int) -> _Taken:
    """Return the sample of a site. Raises ConfigurationError for a file that cannot be used."""
    site = client.site
    before = store.last(site)
    try:
        sample, tasks, lost = read_sample(client, before, prefix)
    except FleetError as error:
        return _Taken(site, before, reason=error.message)
    if before is None or sample.time <= before.time:
        return _Taken(site, before, sample)
    window = use_between(before, sample, tasks, lost, max_gap)
    sample = replace(sample, waiting=window.waiting, gone=window.gone)
    return _Taken(site, before, sample, window)


def _time(sample: Sample | None) -> str | None:
    return None if sample is None else iso(sample.time)


def _described(taken: _Taken) -> dict[str, Any]:
    """Return the sample of a site in the form of the result."""
    row: dict[str, Any] = {
        "site": taken.site,
        "last": _time(taken.before),
        "checked": _time(taken.sample),
        "covered": taken.window is not None and taken.window.covered,
        "guests": None,
        "backups": None,
        "missing": [],
        "reason": taken.reason or None,
    }
    if taken.sample is not None:
        row |= {"guests": len(taken.sample.guests), "backups": len(taken.sample.archives)}
    if taken.window is not None:
        row["missing"] = [
            {"part": lack.part, "subject": lack.subject, "reason": lack.reason}
            for lack in taken.window.missing
        ]
    return row


def _warning(taken: _Taken) -> str:
    head = f"Site {taken.site}: " if taken.site else ""
    return f"{head}The use since the last sample is missing until the next one. {taken.reason}"
