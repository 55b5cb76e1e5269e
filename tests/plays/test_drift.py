# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook drift, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.modules.test_drift_info import VALIDATOR
from tests.plays.provision_helpers import PROVISION, Player, writes

DRIFT = "pve.fleet.drift"
ESTATE: dict[str, Any] = {
    "tenants": {
        "acme": {"quota": {"vms": 5}, "defaults": {"blank": True, "cores": 1, "memory": 256}}
    },
    "provision_state": "stopped",
    "provision_vms": [{"name": "web", "tenant": "acme"}, {"name": "db", "tenant": "acme"}],
}


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    return Player(tmp_path, lab.environment)


def play(player: Player, *arguments: str, status: int = 0) -> tuple[dict[str, Any], str]:
    """Return the report that the playbook wrote, and its output."""
    file = player.directory / "drift.json"
    said = ("-e", "@estate.yml", "-e", f"provision_drift_file={file}", *arguments)
    file.unlink(missing_ok=True)
    output = player.play(DRIFT, *said).expect(status).output
    report: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    VALIDATOR.validate(report)
    assert "Traceback" not in output
    return report, output


def test_exit_status_says_whether_there_is_drift(lab: Lab, player: Player) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    mark = lab.mark()
    report, output = play(player)
    assert (report["drift"], report["complete"]) == (False, True)
    assert "No drift: in_sync 2" in output
    assert "quota of acme: vms 2 of 5" in output

    (web,) = [machine for machine in lab.machines() if machine.name == "web"]
    assert writes(lab, mark) == []
    lab.simulator.steer(f"/vms/{web.vmid}", {"config": {"cores": "4"}})
    mark = lab.mark()
    for arguments in ((), ("--check",)):
        report, output = play(player, *arguments, status=2)
        assert report["summary"]["drifted"] == 1
        assert "cores 4 -> 1" in output
    assert writes(lab, mark) == []

    play(player, "-e", '{"provision_drift_ignore": ["web:cores"]}')
    player.play(PROVISION, "-e", "@estate.yml").expect()
    play(player)


def test_what_cannot_be_known_is_not_a_success(lab: Lab, player: Player) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    lab.simulator.steer("/nodes/pve3", {"online": False})
    report, output = play(player, status=2)
    lab.simulator.steer("/nodes/pve3", {"online": True})
    assert not report["complete"]
    assert '"Unknown: ' in output
    assert "! node pve3 unknown: node pve3 is offline" in " ".join(output.split())


def test_a_folder_that_does_not_exist_is_reported(lab: Lab, player: Player) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    for file, cause in (
        (f"{player.directory}/missing/drift.json", "missing"),
        ("drift.json", "must be an absolute path"),
    ):
        said = ("-e", "@estate.yml", "-e", f"provision_drift_file={file}")
        output = player.play(DRIFT, *said).expect(2).output
        assert cause in output
        assert "Traceback" not in output
