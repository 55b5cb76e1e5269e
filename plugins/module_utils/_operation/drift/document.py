# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on drift as a document with a version (pure): C(docs/drift.schema.json)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..._guests.kinds.model import Guest
from .model import DRIFTED, IN_SYNC, MISSING, OUTDATED, STATUSES, UNKNOWN, UNWANTED, DriftReading
from .quotas import uses_over_sites

VERSION = 1


def document_of(
    readings: Sequence[DriftReading], checked: str | None, counted: Sequence[Guest] = ()
) -> dict[str, Any]:
    """Return the report on all sites; `counted` is that of DriftScope.

    C(complete) is whether everything is known. C(drift) is whether anything differs, except images
    of VMs, which no run changes.
    """
    document: dict[str, Any] = {
        "version": VERSION,
        "checked": checked,
        "drift": False,
        "complete": True,
        "summary": {},
        "sites": [],
        "nodes": [],
        "vms": [],
        "unlisted": [],
        "quotas": [],
        "cluster": [],
        "logins": [],
    }
    for reading in readings:
        document["sites"].append({"site": reading.site, "reason": reading.reason})
        document["nodes"] += map(asdict, reading.nodes)
        document["vms"] += map(asdict, reading.vms)
        document["unlisted"] += map(asdict, reading.unlisted)
        document["quotas"] += map(asdict, reading.quotas)
        document["cluster"] += map(asdict, reading.cluster)
        document["logins"] += map(asdict, reading.logins)
    document["quotas"] += map(asdict, uses_over_sites(readings, counted))
    counts = Counter(vm["status"] for vm in document["vms"])
    summary = {status: counts[status] for status in STATUSES}
    summary["unlisted"] = len(document["unlisted"])
    of_file = Counter(resource["status"] for resource in document["cluster"])
    summary["cluster"] = sum(of_file[status] for status in (DRIFTED, MISSING, UNWANTED))
    summary["ignored"] = sum(reading.ignored for reading in readings)
    document["summary"] = summary
    without_drift = {IN_SYNC, UNKNOWN, OUTDATED, "ignored"}
    document["drift"] = any(summary[name] for name in summary.keys() - without_drift)
    unread = [reading.reason for reading in readings if reading.reason]
    unknown = summary[UNKNOWN] or of_file[UNKNOWN]
    document["complete"] = not (unknown or document["nodes"] or unread)
    return document
