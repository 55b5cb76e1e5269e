# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook relocate over two simulated sites, with SSH to the nodes of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.node_ssh import NodeSsh
from tests.plays.provision_helpers import Player, machine, writes

RELOCATE = "pve.fleet.relocate"


@pytest.mark.slow
def test_a_tenant_moves_and_its_sources_are_removed(lab: Lab, tmp_path: Path) -> None:
    """Check mode writes nothing. After the hold time, the role unlocks the source over SSH and its
    next round removes it. Another run changes nothing. All runs apply one plan.
    """
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as munich:
        disk = {"name": "scsi0", "size": 1, "storage": "ceph"}
        web: dict[str, Any] = {"name": "web1", "tenant": "acme", "node": "pve1", "disks": [disk]}
        play = [
            {
                "hosts": "localhost",
                "gather_facts": False,
                "tasks": [{"pve.fleet.vm": {**web, "memory": "256M", "state": "started"}}],
            }
        ]
        (tmp_path / "prepare.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
        Player(tmp_path, lab.environment).play("prepare.yml").expect()
        nodes: dict[str, Any] = {}
        for name, site in {"vienna": lab, "munich": munich}.items():
            (tmp_path / name).mkdir()
            ssh = NodeSsh(site.simulator, tmp_path / name, ["pve1"])
            nodes[f"{name}-pve1"] = {**ssh.variables, "ansible_host": "pve1"}
        (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"nodes": {"hosts": nodes}}))
        sites = [{"name": "vienna", **lab.connection}, {"name": "munich", **munich.connection}]
        player = Player(tmp_path, {"ANSIBLE_SHOW_CUSTOM_STATS": "true"})
        message = "{{ relocate_guest.name }} is now {{ relocate_guest.outcome }}"
        tasks = [{"name": "Tell DNS", "ansible.builtin.debug": {"msg": message}}]
        (tmp_path / "dns.yml").write_text(yaml.safe_dump(tasks), encoding="utf-8")
        given: dict[str, Any] = {
            "relocate_tasks": str(tmp_path / "dns.yml"),
            "relocate_connection": {
                "sites": json.loads(json.dumps(sites, default=str)),
                "site": "vienna",
            },
            "relocate_to_site": "munich",
            "relocate_tenant": "acme",
            "relocate_node": "pve1",
            "relocate_settle": 0,
            "relocate_node_hosts": {"vienna/pve1": "vienna-pve1"},
        }
        arguments = (RELOCATE, "-i", "hosts.yml")
        mark = lab.mark()
        plan = str(tmp_path / "plan.json")
        foreseen = player.play(*arguments, "--check", **given, plan_file=plan).expect()
        given["apply_plan"] = plan  # of both sites, over the hold time and the commands of root
        assert "planned as" in foreseen.output
        assert "web1 is now" not in foreseen.output
        assert writes(lab, mark) == []
        held = player.play(*arguments, **given).expect()
        assert "held until" in held.output
        assert "web1 is now held" in held.output
        assert machine(munich, "web1").status == "running"
        assert machine(lab, "web1").status == "stopped"
        done = player.play(*arguments, **given, relocate_hold="0s").expect()
        assert "complete as" in done.output
        assert "web1 is now complete" in done.output
        assert lab.machines() == []
        mark = lab.mark()
        again = player.play(*arguments, **given).expect()
        assert again.changed == 0
        assert len(again.lines) <= 12
        assert writes(lab, mark) == []
