# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook failover after the loss of a node, whose guests have replicas on another one."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.labs.replicas import AGE, LEFT, LOST, TANK, put_container, put_guest, replicate
from tests.plays.commands import start
from tests.plays.interrupting import End, await_that, end
from tests.plays.node_ssh import NodeSsh
from tests.plays.provision_helpers import Played, Player, writes

FAILOVER = "pve.fleet.failover"
GUESTS = {701: "db", 702: "web"}
BOX = 703  # a container


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    """A node with two guests and their replicas, and the nodes by SSH."""
    lab.call("POST", "/storage", **TANK)
    for order, (vmid, name) in enumerate(GUESTS.items(), 1):
        nic = {"net0": "virtio,bridge=vmbr0", "ipconfig0": f"ip=10.1.0.{order}/24"}
        put_guest(lab.simulator, vmid, name, startup=f"order={order}", **nic)
    net = "name=eth0,bridge=vmbr0,ip=10.1.0.8/24"
    put_container(lab.simulator, BOX, "box", startup="order=3", net0=net)
    for vmid in (*GUESTS, BOX):
        lab.call("POST", "/cluster/replication", id=f"{vmid}-0", type="local", target=LEFT)
        replicate(lab.simulator, vmid)
    ssh = NodeSsh(lab.simulator, tmp_path, [LOST, LEFT])
    hosts = {"hosts": dict.fromkeys([LOST, LEFT]), "vars": ssh.variables}
    (tmp_path / "hosts.yml").write_text(yaml.safe_dump({"nodes": hosts}), encoding="utf-8")
    return Player(tmp_path, lab.environment)


def options(player: Player, **more: Any) -> dict[str, Any]:
    folder = {"failover_directory": str(player.directory / "failover"), "failover_settle": 0}
    tables = {"failover_addresses": {"10.1.0.0/24": "10.2.0.0/24"}}
    nodes = {"failover_lost_nodes": [LOST], "failover_replica_nodes": [LEFT]}
    return {**nodes, **tables, **folder, **more}


def play(player: Player, *arguments: str, **more: Any) -> Played:
    return player.play(FAILOVER, "-i", "hosts.yml", *arguments, **options(player, **more))


def states(lab: Lab) -> dict[int, tuple[str, bool]]:
    rows = lab.simulator.ask("GET", "/vms")
    return {row["vmid"]: (row["node"], row["running"]) for row in rows if row["vmid"] in GUESTS}


@pytest.mark.slow
def test_the_guests_of_a_lost_node_come_up(lab: Lab, player: Player) -> None:
    """The playbook is killed while the guest of the first start order starts; the next run
    completes it.
    """
    mark = lab.mark()
    rehearsed = play(player, failover_rehearsal=True).expect()
    assert "+ acme/web  planned as 702 on pve3, from replica 702-0" in rehearsed.output
    assert "db (701): net0 ip 10.1.0.1/24 becomes 10.2.0.1/24" in rehearsed.output
    assert f"Node {LOST} answers by SSH" in play(player).expect(2).output
    lab.simulator.ask("PUT", f"/nodes/{LOST}", {"online": False})
    play(player, "--check").expect()
    assert writes(lab, mark) == []
    assert states(lab) == dict.fromkeys(GUESTS, (LOST, True))

    lab.simulator.steer("/settings", {"task_ms": "default=10,qmstart=600000"})
    command = ["ansible-playbook", FAILOVER, "-i", "hosts.yml", "-e", json.dumps(options(player))]
    process = start(command, player.directory, player.environment)
    await_that(lambda: any(row["path"].endswith("/start") for row in lab.simulator.writes()))
    end(process, End(signal.SIGKILL, worker_too=True))
    process.communicate()
    assert {node for node, _runs in states(lab).values()} == {LEFT}
    assert not (player.directory / "failover/failover.json").exists()

    for row in lab.call("GET", f"/nodes/{LEFT}/tasks", source="active"):
        lab.call("DELETE", f"/nodes/{LEFT}/tasks/{row['upid']}")
    lab.simulator.steer("/settings", {"task_ms": "qmstart=10"})
    play(player).expect()
    assert states(lab) == dict.fromkeys(GUESTS, (LEFT, True))
    record = json.loads((player.directory / "failover/failover.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in record["guests"]] == ["db", "web", "box"]
    for vmid, name in GUESTS.items():
        config = lab.call("GET", f"/nodes/{LEFT}/qemu/{vmid}/config")
        assert config["ipconfig0"] == f"ip=10.2.0.{1 + list(GUESTS).index(vmid)}/24", name
    assert "ip=10.2.0.8/24" in lab.call("GET", f"/nodes/{LEFT}/lxc/{BOX}/config")["net0"]
    assert record["recovery_point"] >= AGE
    for job in lab.call("GET", "/cluster/replication"):
        assert (job["source"], job["target"]) == (LEFT, LOST)
        assert "pve.fleet" not in job.get("comment", "")
    mark = lab.mark()
    assert play(player).expect().changed == 0
    assert writes(lab, mark) == []
