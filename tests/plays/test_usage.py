# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook usage, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import json
import stat
import time
from pathlib import Path

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player, writes

USAGE = "pve.fleet.usage"


def test_a_month_is_written_and_not_complete_before_its_end(lab: Lab, tmp_path: Path) -> None:
    player = Player(tmp_path, lab.environment)
    place = tmp_path / "usage"
    mark = lab.mark()
    sampled = player.play(USAGE, "-e", f"usage_path={place}").expect()
    assert "\nSampled guests: " in sampled.output
    assert [path.name for path in place.rglob("*.json")] == ["last.json"]
    month = time.strftime("%Y-%m", time.gmtime())
    options = ("-e", f"usage_path={place}", "-e", f"usage_month={month}")
    checked = player.play(USAGE, *options, "--check").expect(2).output
    assert not (place / f"usage-{month}.json").exists()
    assert "no samples" in checked, checked
    player.play(USAGE, *options).expect(2)
    usage = json.loads((place / f"usage-{month}.json").read_text(encoding="utf-8"))
    assert (usage["month"], usage["closed"], usage["complete"]) == (month, False, False)
    file = place / f"usage-{month}.csv"
    assert file.read_text(encoding="utf-8").startswith("month,site,tenant,class,core_hours")
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    report = (
        "-e",
        f"report_directory={tmp_path}",
        "-e",
        f"report_usage={place}/usage-{month}.json",
    )
    player.play("pve.fleet.report", *report).expect()
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert f"Metered use in {month}" in page
    assert writes(lab, mark) == []
