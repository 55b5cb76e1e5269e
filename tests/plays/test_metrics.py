# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook metrics, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.metrics_text import FEATURES, Text, read_text
from tests.plays.provision_helpers import PROVISION, Player, writes

METRICS = "pve.fleet.metrics"
ESTATE: dict[str, Any] = {
    "tenants": {
        "acme": {"quota": {"vms": 5}, "defaults": {"blank": True, "cores": 1, "memory": 256}},
        "globex": {"defaults": {"cloud_init": {"password": "canary-1"}}},
        "initech": None,
    },
    "provision_state": "stopped",
    "provision_vms": [{"name": "web", "tenant": "acme"}, {"name": "db", "tenant": "acme"}],
}


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    return Player(tmp_path, lab.environment)


def play(player: Player, *arguments: str, status: int = 0) -> tuple[Text, str]:
    """Return the metrics that the playbook wrote, and its output."""
    file = player.directory / "proxmox.prom"
    said = ("-e", f"metrics_path={file}", *arguments)
    output = player.play(METRICS, *said).expect(status).output
    assert "Traceback" not in output
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    return read_text(file.read_text(encoding="utf-8")), output


def test_a_file_of_an_estate(lab: Lab, player: Player) -> None:
    player.play(PROVISION, "-e", "@estate.yml").expect()
    mark = lab.mark()
    file = player.directory / "proxmox.prom"
    said = ("-e", f"metrics_path={file}", "-e", "@estate.yml", "--check", "--diff")
    output = player.play(METRICS, *said).expect().output
    assert not file.exists()
    assert f'"file": "{file}"' in output

    first, output = play(player, "-e", "@estate.yml", "-v")
    assert "canary-1" not in output
    assert first.types | FEATURES == first.types
    assert first["proxmox_cluster_nodes_available"] == 3
    assert first.get("proxmox_tenant_vms", tenant="acme") == 2
    assert first.get("proxmox_tenant_quota_vms", tenant="acme") == 5
    assert first.get("proxmox_drift_vms", tenant="acme", status="in_sync") == 2
    assert first.get("proxmox_drift_vms", tenant="acme", status="drifted") == 0

    (web,) = [machine for machine in lab.machines() if machine.name == "web"]
    lab.simulator.steer(f"/vms/{web.vmid}", {"config": {"cores": "4"}})
    second, _output = play(player, "-e", "@estate.yml")
    assert second.get("proxmox_drift_vms", tenant="acme", status="drifted") == 1
    count = "proxmox_reconciliation_duration_seconds_count"
    assert (first.sum(count), second.sum(count)) == (1, 2)
    assert writes(lab, mark) == []

    without, _output = play(player, "-e", "@estate.yml", "-e", "metrics_drift=false")
    assert not without.has("proxmox_drift_vms")


def test_an_estate_that_cannot_be_compared_fails_after_the_file_is_written(
    lab: Lab, player: Player
) -> None:
    broken = json.dumps({"provision_vms": [{"name": "web", "coers": 1}]})
    found, output = play(player, "-e", broken, status=2)
    assert found["proxmox_cluster_connection_status"] == 1
    assert not found.has("proxmox_drift_vms")
    assert "has no metrics about drift" in output
    assert "coers" in output


def test_a_site_that_does_not_answer_is_written_as_such(lab: Lab, player: Player) -> None:
    connection = {"host": "https://127.0.0.1:1", "retries": 1}
    login = {"token_id": "root@pam!dead", "token_secret": "canary-2"}
    dead = json.dumps({"provision_connection": {**connection, **login}})
    found, output = play(player, "-e", dead, status=2)
    assert found["proxmox_cluster_connection_status"] == 0
    assert not found.has("proxmox_machines_total")
    assert "Could not read the version" in output
    assert "canary-2" not in output


def test_a_folder_that_does_not_exist_is_reported(lab: Lab, player: Player) -> None:
    for path, cause in (
        (f"{player.directory}/missing/x.prom", "there is no directory"),
        ("x.prom", "is not absolute"),
    ):
        output = player.play(METRICS, "-e", f"metrics_path={path}").expect(2).output
        assert cause in output
        assert "Traceback" not in output
