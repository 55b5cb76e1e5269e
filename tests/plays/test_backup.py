# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook backup, and the backup of an estate, run by ansible-playbook."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Played, Player, writes

NIGHTLY = {"schedule": "02:30", "storage": "local", "keep": {"keep_daily": 7}}
ESTATE: dict[str, Any] = {
    "provision_state": "present",
    "provision_defaults": {
        "tenant": "acme",
        "memory": "256M",
        "disks": [{"size": 1, "storage": "ceph"}],
        "backup": NIGHTLY,
    },
    "provision_vms": [{"name": "web"}, {"name": "db"}],
}


def back_up(player: Player, *arguments: str, status: int = 0, **more: Any) -> Played:
    given = {"backup_tenant": "acme", "backup_storage": "local", **more}
    played = player.play("pve.fleet.backup", "-e", json.dumps(given), *arguments).expect(status)
    assert "Traceback" not in played.output
    return played


def test_an_estate_keeps_its_jobs_and_the_playbook_backs_its_guests_up(
    lab: Lab, tmp_path: Path
) -> None:
    player = Player(tmp_path, lab.environment)
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    estate = ("-e", "@estate.yml")
    mark = lab.mark()
    foreseen = player.play(PROVISION, *estate, "--check").expect()
    assert "+ backup job fleet-" in foreseen.output
    assert writes(lab, mark) == []
    player.play(PROVISION, *estate).expect()
    (job,) = lab.call("GET", "/cluster/backup")
    assert len(job["vmid"].split(",")) == 2
    player.play("pve.fleet.drift", *estate).expect()

    mark = lab.mark()
    foreseen = back_up(player, "--check")
    assert writes(lab, mark) == []
    assert "Plan: 2 to change" in foreseen.output
    done = back_up(player, backup_keep="keep_last=1,keep_daily=7", backup_max_age="20h")
    assert done.output.count("local:backup/vzdump-qemu-") >= 2
    mark = lab.mark()
    again = back_up(player, backup_vms="web", backup_max_age="20h")
    assert again.recap["localhost"]["changed"] == 0
    assert writes(lab, mark) == []
    failed = back_up(player, status=2, backup_storage="ceph")
    assert "does not have content backup" in failed.output
