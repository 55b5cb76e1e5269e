# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook maintenance over a simulated cluster, with a stand-in for SSH to its nodes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.labs.maintenance import places, populate, put_vm
from tests.modules.estate_lab import TOKEN_ID, TOKEN_SECRET, Lab, open_lab
from tests.plays.node_ssh import NodeSsh
from tests.plays.provision_helpers import Played, Player, site_of

PLAYBOOK = "pve.fleet.maintenance"
NODES = ["pve1", "pve2", "pve3"]
BASE: dict[str, Any] = {"maintenance_restart_containers": True, "maintenance_wait_timeout": 60}


@pytest.fixture(scope="module")
def running() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as lab:
        yield lab


class Night:
    """A cluster, its nodes by SSH, and the playbook."""

    def __init__(self, lab: Lab, directory: Path) -> None:
        self.lab = lab
        self.ssh = NodeSsh(lab.simulator, directory, NODES)
        environment = {
            "PROXMOX_HOST": lab.simulator.url,
            "PROXMOX_CA_PATH": str(lab.simulator.ca),
            "PROXMOX_TOKEN_ID": TOKEN_ID,
            "PROXMOX_TOKEN_SECRET": TOKEN_SECRET,
            "ANSIBLE_SHOW_CUSTOM_STATS": "true",
        }
        self.player = Player(directory, environment)
        hosts = {"hosts": dict.fromkeys(NODES), "vars": self.ssh.variables}
        (directory / "hosts.yml").write_text(yaml.safe_dump({"kind_node": hosts}))

    def play(self, *arguments: str, **variables: Any) -> Played:
        return self.player.play(PLAYBOOK, "-i", "hosts.yml", *arguments, **{**BASE, **variables})

    def reboots(self) -> dict[str, bool]:
        """Return whether each node has rebooted."""
        get = self.lab.client.get
        return {node: get("nodes", node, "status")["uptime"] < 3000 for node in NODES}


@pytest.fixture
def night(running: Lab, tmp_path: Path) -> Night:
    running.simulator.clear_faults()
    running.simulator.reset()
    running.simulator.steer("/settings", {"task_ms": "reboot=500"})
    return Night(running, tmp_path)


def test_check_mode_shows_the_plan_of_every_node(night: Night) -> None:
    populate(night.lab)
    night.lab.simulator.reset_log()
    played = night.play("--check").expect()
    assert night.lab.simulator.writes() == []
    assert "vm201  moves to node" in played.output
    assert "Plan: 5 to change" in played.output
    for node in NODES:
        assert f"node {node}: pending" in played.output
        assert night.ssh.calls(node) == []
    artifacts = played.output.partition("CUSTOM STATS")[2]
    assert artifacts.count("Plan: ") == len(NODES)
    refused = night.play("--check", maintenance_restart_containers=False)
    assert refused.status != 0
    assert refused.output.count("fatal: ") == 1
    assert "which maintenance_restart_containers allows" in refused.output


@pytest.mark.slow
def test_a_round_is_planned_approved_and_applied(night: Night) -> None:
    """One file has the plan of each node. A guest that came later stays, and stops the round."""
    before = populate(night.lab)
    place = night.player.directory / "plan.json"
    night.lab.simulator.reset_log()
    refused = night.play("-e", f"plan_file={place}", maintenance_ha_mode=False)
    assert "plan_file is for check mode" in refused.output
    night.play("-e", f"plan_file={place}", "--check").expect()
    assert night.lab.simulator.writes() == []
    parts = json.loads(place.read_text())["parts"]
    assert [(one["task"], one["subject"]) for one in parts] == [("evacuation", n) for n in NODES]
    put_vm(night.lab, 209, {"memory": "512"})
    stopped = night.play("-e", f"apply_plan={place}")
    assert "The round stopped at node pve2" in stopped.output
    assert "The plan of tenant_acme/vm209 is not the approved one" in stopped.output
    assert places(night.lab)[209] == ("pve2", True)
    night.lab.client.task("POST", "nodes", "pve2", "qemu", 209, "status", "stop")
    applied = night.play("-e", f"apply_plan={place}").expect()
    finished = [line for line in applied.lines if " done in " in line]
    assert finished != []
    assert not any(re.search(r"(VM|container) \d+ done in ", line) for line in finished)
    assert {**places(night.lab), 209: None} == {**before, 209: None}
    assert night.lab.run("evacuation_info")["maintenances"] == []
    night.lab.simulator.reset_log()
    known = {node: night.ssh.calls(node) for node in NODES}
    again = night.play("-e", f"apply_plan={place}").expect()
    assert again.changed == 0
    assert len(again.lines) <= 12 * len(NODES) + 1  # with the recap
    assert night.lab.simulator.writes() == []
    for node in NODES:
        assert night.ssh.calls(node) == known[node]


@pytest.mark.slow
def test_a_round(night: Night) -> None:
    """Every node is upgraded, the one that needs it is rebooted, and each guest is at home."""
    before = populate(night.lab)
    put_vm(night.lab, 301, {"memory": "512"}, node="pve1")
    data = {"sid": "vm:301"}
    night.lab.client.write("POST", "cluster", "ha", "resources", data=data)
    night.ssh.require_reboot("pve2")
    artifacts = night.play().expect().output.partition("CUSTOM STATS")[2]
    assert (artifacts.count("Done: "), artifacts.count("Plan: ")) == (2 * len(NODES), 0)
    assert places(night.lab) == {**before, 301: ("pve1", True)}
    assert night.reboots() == {"pve1": False, "pve2": True, "pve3": False}
    for node in NODES:
        assert night.ssh.calls(node)[0] == "-q update"
        assert night.ssh.calls(node)[1].endswith("dist-upgrade")
    assert night.lab.run("evacuation_info")["maintenances"] == []


@pytest.mark.long
@pytest.mark.slow
def test_a_round_stops_at_a_node_that_is_not_complete_and_continues_there(night: Night) -> None:
    before = populate(night.lab)
    sim = night.lab.simulator
    night.ssh.require_reboot("pve2")
    sim.steer("/nodes/pve2", {"after_reboot": {"lost_storages": ["local-lvm"]}})
    stopped = night.play(maintenance_wait_timeout=8)
    assert stopped.status != 0
    assert "storage local-lvm is not available" in stopped.output
    assert night.ssh.calls("pve3") == []
    assert all(place[0] != "pve2" or not place[1] for place in places(night.lab).values())
    sim.steer("/nodes/pve2", {"lost_storages": []})
    first = len(night.ssh.calls("pve1"))
    again = night.play().expect()
    assert "Node pve1 was completed before the round was interrupted at node pve2" in again.output
    assert len(night.ssh.calls("pve1")) == first
    assert night.ssh.calls("pve3") != []
    assert places(night.lab) == before


def test_a_node_without_ssh_is_refused_before_the_first_write(night: Night) -> None:
    populate(night.lab)
    night.ssh.refuse("pve2")
    night.lab.simulator.reset_log()
    refused = night.play("--limit", "pve2", maintenance_wait_timeout=5).expect(2)
    assert "The round stopped at node pve2: timed out waiting for ping" in refused.output
    assert night.lab.simulator.writes() == []


def test_without_ssh_and_with_tasks_of_the_user(night: Night, tmp_path: Path) -> None:
    before = populate(night.lab, stuck=True)
    tasks = tmp_path / "mine.yml"
    mine = {"ansible.builtin.command": "touch mine", "delegate_to": "localhost"}
    tasks.write_text(yaml.safe_dump([{**mine, "args": {"chdir": str(tmp_path)}}]))
    refused = night.play("--limit", "pve2", maintenance_ha_mode=False)
    assert refused.status != 0
    assert "vm207 (207): it uses devices of its node: hostpci0" in refused.output
    assert not (tmp_path / "mine").exists()
    variables = {"maintenance_ha_mode": False, "maintenance_reboot": "never"}
    night.play(
        "--limit",
        "pve2",
        maintenance_tasks=str(tasks),
        maintenance_unmovable="shutdown",
        **variables,
    ).expect()
    assert (tmp_path / "mine").exists()
    assert night.ssh.calls("pve2") == []
    assert places(night.lab) == before


@pytest.fixture
def munich() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0") as lab:
        yield lab


def play_sites(night: Night, munich: Lab, *arguments: str, **variables: Any) -> Played:
    """Play a round over two nodes of vienna, then one of munich, without SSH."""
    sites = [site_of("vienna", night.lab.simulator), site_of("munich", munich.simulator)]
    places = (("vienna", "pve1"), ("vienna", "pve2"), ("munich", "pve1"))
    hosts = {
        f"{site}_{node}": {"proxmox_site": site, "proxmox_node": node} for site, node in places
    }
    inventory = {"kind_node": {"hosts": hosts}}
    text = yaml.safe_dump(inventory, sort_keys=False)
    (night.player.directory / "hosts.yml").write_text(text)
    options = {"maintenance_ha_mode": False, "maintenance_reboot": "never", "maintenance_tasks": ""}
    connection = {"maintenance_connection": {"sites": sites}}
    return night.play(*arguments, **options, **connection, **variables)


@pytest.mark.slow
def test_a_round_over_several_sites(night: Night, munich: Lab) -> None:
    """A failure at the first site stops the round, the next run continues there, and the second
    site is the last one.
    """
    at_home = populate(night.lab, stuck=True)
    put_vm(munich, 201, {"memory": "512"}, node="pve1")
    before = places(munich)
    night.lab.simulator.reset_log()
    munich.simulator.reset_log()
    stopped = play_sites(night, munich).expect(2).output
    reported = " ".join(stopped.split())
    assert "The round stopped at node vienna pve2: 1 guest cannot leave node pve2" in reported
    assert "Not touched: munich pve1. The next run continues here." in reported
    assert munich.simulator.writes() == []
    assert found_records(night.lab) == [("pve2", "pending")]
    shut = {"maintenance_unmovable": "shutdown"}
    shown = play_sites(night, munich, "--check", **shut).expect().output
    assert "node pve2: pending" in shown
    assert "vm201  moves to node" in shown
    assert munich.simulator.writes() == []
    done = play_sites(night, munich, **shut).expect().output
    assert "Node vienna pve1 was completed before" in done
    assert places(night.lab) == at_home
    assert places(munich) == before
    moves = [one["path"] for one in munich.simulator.writes() if one["path"].endswith("/migrate")]
    assert len(moves) == 2
    assert found_records(night.lab) == found_records(munich) == []


@pytest.mark.slow
def test_a_round_continues_at_the_second_site(night: Night, munich: Lab) -> None:
    """The first site was completed before the interruption; an unreachable site stops all."""
    munich.run("evacuation", node="pve1", state="next")
    night.lab.simulator.reset_log()
    output = play_sites(night, munich).expect().output
    for node in ("pve1", "pve2"):
        assert f"Node vienna {node} was completed before the round was interrupted at" in output
    assert night.lab.simulator.writes() == []
    assert found_records(munich) == []
    munich.simulator.stop()
    output = " ".join(play_sites(night, munich).expect(2).output.split())
    assert "The round stopped at node vienna pve1" in output
    assert night.lab.simulator.writes() == []


def found_records(lab: Lab) -> list[tuple[str, str]]:
    rows = lab.run("evacuation_info")["maintenances"]
    return [(row["node"], row["phase"]) for row in rows]


# As tests/modules/test_maintenance_round.py, by module.
@pytest.mark.long
def test_a_round_whose_process_is_killed_is_completed_by_the_next(night: Night) -> None:
    """SIGKILL ends ansible-playbook and its workers while guests leave the first node."""
    before = populate(night.lab)
    night.lab.simulator.steer("/settings", {"task_ms": "qmigrate=1500"})
    command = ["ansible-playbook", PLAYBOOK, "-i", "hosts.yml", "-e", json.dumps(BASE)]
    running = subprocess.Popen(
        command,
        cwd=night.player.directory,
        env=night.player.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while not any("/migrate" in one["path"] for one in night.lab.simulator.writes()):
        assert running.poll() is None
        time.sleep(0.1)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    night.lab.simulator.steer("/settings", {"task_ms": "qmigrate=20"})
    assert night.lab.run("evacuation_info")["maintenances"] != []
    night.play().expect()
    assert places(night.lab) == before
    assert night.lab.run("evacuation_info")["maintenances"] == []


def test_nodes_are_used_evenly_by_the_rules_of_the_estate(night: Night, tmp_path: Path) -> None:
    """The guest of the tag stays: both other nodes have one, and the tenant keeps them apart."""
    for vmid, node in ((401, "pve1"), (402, "pve3")):
        put_vm(night.lab, vmid, {"memory": "512"}, node=node, tags=["tenant_acme", "db"])
    put_vm(night.lab, 300, {"memory": "8192"}, tags=["tenant_acme", "db"])
    for vmid in (301, 302):
        put_vm(night.lab, vmid, {"memory": "8192"})
    defaults = {"placement": {"anti_affinity": ["db"]}}
    estate = {"tenants": {"acme": {"defaults": defaults}, "globex": {}}}
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(estate))
    arguments = ("-e", "@estate.yml", "-e", "rebalance_max_moves=2")
    night.lab.simulator.reset_log()
    shown = night.player.play("pve.fleet.rebalance", *arguments, "--check").expect()
    assert night.lab.simulator.writes() == []
    assert "vm301  moves to node" in shown.output
    night.player.play("pve.fleet.rebalance", *arguments).expect()
    found = places(night.lab)
    assert found[300] == ("pve2", True)
    assert {found[301][0], found[302][0]} == {"pve1", "pve3"}


def test_an_estate_stops_and_starts(night: Night, tmp_path: Path) -> None:
    """Guests of tenants that the estate does not have run on."""
    before = populate(night.lab)
    put_vm(night.lab, 301, {"memory": "512"}, tags=["tenant_globex"])
    estate = {"tenants": {}, "provision_vms": [{"name": "vm202", "tenant": "acme"}]}
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(estate))
    arguments = ("-e", "@estate.yml", "-e", f"power_record={tmp_path}/power.json", "-e")
    night.lab.simulator.reset_log()
    shown = night.player.play("pve.fleet.power", *arguments, "power_state=stopped", "--check")
    assert "~ acme/vm202  stop in tier 3, guests of start order 1" in shown.expect().output
    assert night.lab.simulator.writes() == []
    done = night.player.play("pve.fleet.power", *arguments, "power_state=stopped").expect()
    assert len([line for line in done.lines if line.startswith("~ acme/vm202 ")]) == 1
    assert [line for line in done.lines if line.startswith("Done: ")] != []
    stopped = places(night.lab)
    assert [vmid for vmid, (_node, runs) in stopped.items() if runs] == [301, 206]
    night.player.play("pve.fleet.power", *arguments, "power_state=started").expect()
    assert places(night.lab) == {**before, 301: ("pve2", True)}
    again = night.player.play("pve.fleet.power", *arguments[:2], "-e", "power_state=started")
    assert len(again.expect().lines) <= 12
