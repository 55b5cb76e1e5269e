# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report on drift as a document with a version (pure): C(docs/drift.schema.json)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from .model import IN_SYNC, STATUSES, UNKNOWN, Look

VERSION = 1


def document_of(looks: Sequence[Look], checked: str | None) -> dict[str, Any]:
    """Return the report on all sites. C(drift) is whether anything differs, C(complete) whether
    everything is known.
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
    }
    for look in looks:
        document["sites"].append({"site": look.site, "reason": look.reason})
        document["nodes"] += map(asdict, look.nodes)
        document["vms"] += map(asdict, look.vms)
        document["unlisted"] += map(asdict, look.unlisted)
        document["quotas"] += map(asdict, look.quotas)
    counts = Counter(vm["status"] for vm in document["vms"])
    summary = {status: counts[status] for status in STATUSES}
    summary["unlisted"] = len(document["unlisted"])
    summary["ignored"] = sum(look.ignored for look in looks)
    document["summary"] = summary
    settled = {IN_SYNC, UNKNOWN, "ignored"}
    document["drift"] = any(summary[name] for name in summary.keys() - settled)
    unread = [look.reason for look in looks if look.reason]
    document["complete"] = not (summary[UNKNOWN] or document["nodes"] or unread)
    return document
