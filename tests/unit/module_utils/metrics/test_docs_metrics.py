# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page about metrics has each of them, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from ansible_collections.pve.fleet.plugins.module_utils._operation.report.metrics.families import (
    FAMILIES,
    family_of,
)


def test_the_page_has_every_metric_and_no_other(repo: Path) -> None:
    text = (repo / "docs" / "metrics.md").read_text(encoding="utf-8")
    listed = re.findall(r"`(proxmox_[a-z_]+)`", text.partition("## Metrics")[2])
    assert set(listed) == set(FAMILIES)
    used = set(re.findall(r"\bproxmox_[a-z_]+", text))
    beginnings = {name for name in used if any(known.startswith(name) for known in FAMILIES)}
    assert {name for name in used - beginnings if not family_of(name)} == set()
