# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as lines for a terminal (pure)."""

from __future__ import annotations

from .model import Row


def lines_of(report: Row) -> list[str]:
    """Return the extent of the report in one line, and a line for each risk."""
    unread = [site for site in report["sites"] if site["reason"]]
    head = f"Report: sites {len(report['sites'])}, VMs {len(report['vms'])}"
    if report["containers"]:
        head = f"{head}, containers {len(report['containers'])}"
    if unread:
        head = f"{head}, sites that could not be read {len(unread)}"
    lines = [head]
    for risk in report["attention"]:
        severity = risk["severity"]
        title = risk["title"]
        number = risk["count"]
        lines.append(f"{severity}: {title}: {number}")
    if not report["attention"]:
        lines.append("Nothing needs attention")
    return lines
