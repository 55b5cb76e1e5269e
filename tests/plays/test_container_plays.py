# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks about an estate that has containers only, and role snapshot_policy on one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Player, writes

CT1: dict[str, Any] = {
    "name": "ct1",
    "tenant": "acme",
    "source": "debian-13-standard",
    "default_storage": "ceph",
}
ESTATE: dict[str, Any] = {"tenants": {"acme": {"quota": {"vms": 5}}}, "provision_containers": [CT1]}
PREFLIGHT: dict[str, Any] = {
    "preflight_tasks": ["container"],
    "preflight_templates": ["debian-13-standard"],
    "preflight_storages": [{"name": "ceph", "content": "rootdir"}],
}


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    """A player in the directory of the estate, whose container exists and runs."""
    found = Player(tmp_path, lab.environment)
    write(found, ESTATE)
    found.play("pve.fleet.preflight", "-e", json.dumps(PREFLIGHT)).expect()
    found.play(PROVISION, "-e", "@estate.yml").expect()
    return found


def write(player: Player, estate: dict[str, Any]) -> None:
    (player.directory / "estate.yml").write_text(yaml.safe_dump(estate), encoding="utf-8")


def container(lab: Lab) -> dict[str, Any]:
    (row,) = [row for row in lab.call("GET", "/cluster/resources") if row["type"] == "lxc"]
    return dict(row)


def drifts(player: Player) -> str:
    """Return the list of what differs on the page of the report, empty without one."""
    page = (player.directory / "report" / "report.html").read_text(encoding="utf-8")
    assert 'id="drift"' in page
    return page.partition('<ul class="changes">')[2].partition("</ul>")[0]


@pytest.mark.slow
def test_drift_metrics_and_report_compare_it(lab: Lab, player: Player) -> None:
    estate = ("-e", "@estate.yml")
    mark = lab.mark()
    place = f"metrics_path={player.directory}/pve.prom"
    folder = f"report_directory={player.directory}/report"
    player.play("pve.fleet.drift", *estate).expect()
    player.play("pve.fleet.metrics", *estate, "-e", place).expect()
    text = (player.directory / "pve.prom").read_text(encoding="utf-8")
    assert "proxmox_drift" in text
    assert player.play("pve.fleet.report", *estate, "-e", folder).expect()
    assert "ct1" not in drifts(player)

    write(player, {**ESTATE, "provision_containers": [{**CT1, "cores": 2}]})
    differs = player.play("pve.fleet.drift", *estate).expect(2)
    assert "cores 2 added" in differs.output
    player.play("pve.fleet.metrics", *estate, "-e", place).expect()
    changed = (player.directory / "pve.prom").read_text(encoding="utf-8")
    drift = {line for line in text.splitlines() if line.startswith("proxmox_drift")}
    assert drift != {line for line in changed.splitlines() if line.startswith("proxmox_drift")}
    player.play("pve.fleet.report", *estate, "-e", folder).expect()
    assert "ct1" in drifts(player)
    assert writes(lab, mark) == []


def test_exported_container_is_provisioned_without_a_write(lab: Lab, player: Player) -> None:
    player.play("pve.fleet.export", "-e", "export_directory=exported").expect()
    mark = lab.mark()
    file = player.directory / "exported" / "estate.yml"
    estate = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert [one["name"] for one in estate["provision_containers"]] == ["ct1"]
    assert player.play(PROVISION, "-e", f"@{file}").expect().changed == 0
    assert writes(lab, mark) == []


PLAY = """
- hosts: localhost
  gather_facts: false
  roles:
    - role: pve.fleet.snapshot_policy
      snapshot_policy_vms: ct1
      snapshot_policy_tenant: acme
      snapshot_policy_tasks: "{{ playbook_dir }}/change.yml"
"""
CHANGE = """
- pve.fleet.container: {name: ct1, tenant: acme, cores: 2}
- ansible.builtin.fail: {msg: the change failed}
"""


def test_snapshot_policy_rolls_a_container_back(lab: Lab, player: Player) -> None:
    (player.directory / "change.yml").write_text(CHANGE, encoding="utf-8")
    (player.directory / "play.yml").write_text(PLAY, encoding="utf-8")
    failed = player.play("play.yml").expect(2)
    assert "The VMs were rolled back to snapshot" in failed.output
    row = container(lab)
    path = f"/nodes/{row['node']}/lxc/{row['vmid']}"
    assert "cores" not in lab.call("GET", f"{path}/config")
    assert lab.call("GET", f"{path}/status/current")["status"] == "running"


def test_snapshots_by_vmid_and_tidy(lab: Lab, player: Player) -> None:
    row = container(lab)
    by_vmid = ("-e", f"snapshot_policy_vms={row['vmid']}", "-e", "snapshot_policy_name=one")
    player.play("pve.fleet.snapshot", *by_vmid).expect()
    player.play("pve.fleet.rollback", *by_vmid).expect()
    tidied = player.play("pve.fleet.tidy", "-e", "tidy_tenant=acme").expect()
    assert "\nNothing is unfinished\n" in tidied.output
