# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook drill, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.commands import start
from tests.plays.interrupting import End, await_that, end
from tests.plays.provision_helpers import Played, Player, writes
from tests.plays.test_connections import stand_in_for_ssh

DRILL = "pve.fleet.drill"
SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "drill.schema.json"
COPIES = range(900000, 910000)


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    """Two VMs of tenant acme with an agent, one with an archive."""
    tasks: list[dict[str, Any]] = []
    for name in ("web", "db"):
        vm = {"name": name, "tenant": "acme", "agent": True, "memory": "256M"}
        disk = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
        tasks.append({"pve.fleet.vm": {**vm, **disk}})
    tasks.append({"pve.fleet.backup": {"name": "web", "storage": "local"}})
    player = Player(tmp_path, lab.environment)
    play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (tmp_path / "prepare.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
    player.play(str(tmp_path / "prepare.yml")).expect()
    return player


def play(player: Player, folder: Path, *arguments: str, status: int = 0, **more: Any) -> Played:
    given = {"drill_directory": str(folder), "drill_tenant": "acme", "drill_settle": 0, **more}
    played = player.play(DRILL, "-e", json.dumps(given), *arguments).expect(status)
    assert "Traceback" not in played.output
    return played


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "drill.json").read_text(encoding="utf-8"))
    jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return found


def copies(lab: Lab) -> list[int]:
    return [one.vmid for one in lab.machines() if one.vmid in COPIES]


def test_a_drill_writes_its_record_and_leaves_no_copy(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    folder = tmp_path / "drill"
    mark = lab.mark()
    foreseen = play(player, folder, "--check")
    assert not folder.exists()
    assert "round 1, local:backup/vzdump-qemu-" in foreseen.output
    assert writes(lab, mark) == []

    played = play(player, folder, status=2)
    assert "1 of 2 guests cannot be restored" in played.output
    assert "there is none" in played.output
    assert copies(lab) == []
    found = {guest["name"]: guest for guest in record(folder)["guests"]}
    assert found["web"]["proof"] == "agent"
    assert found["web"]["proven"]
    assert found["db"]["outcome"] == "failed"
    page = (folder / "drill.html").read_text(encoding="utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert "its agent answered" in page
    assert "never" in page

    again = play(player, folder, drill_vms="web", drill_unproven_for="30d")
    assert "Plan: nothing to do" in again.output
    assert again.changed == 0
    assert len(record(folder)["drills"]) == 1
    assert len(again.lines) <= 12


def test_a_drill_that_proves_nothing_fails(lab: Lab, player: Player, tmp_path: Path) -> None:
    """Its only guest is younger than the last backup, and is skipped by name."""
    folder = tmp_path / "drill"
    time.sleep(1.1)  # the times of tasks are whole seconds
    vm = {"name": "young", "tenant": "acme", "disks": [{"size": 1, "storage": "ceph"}]}
    made = [{"hosts": "localhost", "gather_facts": False, "tasks": [{"pve.fleet.vm": vm}]}]
    (tmp_path / "young.yml").write_text(yaml.safe_dump(made), encoding="utf-8")
    player.play(str(tmp_path / "young.yml")).expect()
    foreseen = play(player, folder, "--check", status=2, drill_vms="young")
    assert "No restore would be proven" in foreseen.output
    played = play(player, folder, status=2, drill_vms="young")
    assert "No restore was proven" in played.output
    assert "created after the last backup" in played.output
    assert record(folder)["drills"][0]["skipped"] == 1


@pytest.mark.parametrize("passes", [True, False])
def test_checks_run_in_the_copy(lab: Lab, player: Player, tmp_path: Path, passes: bool) -> None:
    folder, guest = tmp_path / "drill", tmp_path / "guest"
    guest.mkdir()
    checks = [
        {
            "name": "Look at the guest",
            "ansible.builtin.raw": f"test {'here' if passes else 'there'} = here",
            "changed_when": False,
        }
    ]
    (tmp_path / "checks.yml").write_text(yaml.safe_dump(checks), encoding="utf-8")
    vmid = COPIES[0]
    begin = ["PUT", f"/vms/{vmid}", {"processes_in": str(guest)}]
    lab.simulator.fault(method="POST", path=f"/qemu/{vmid}/agent/exec$", steer=[begin])
    more = {"drill_checks": str(tmp_path / "checks.yml"), "drill_vmid_range": [vmid, vmid]}
    play(player, folder, status=0 if passes else 2, drill_vms="web", **more)
    (row,) = record(folder)["drills"][0]["results"]
    if passes:
        assert (row["outcome"], row["proof"]) == ("proven", "checks")
    else:
        assert row["outcome"] == "failed"
        assert "The check 'Look at the guest' failed" in row["msg"]
    assert copies(lab) == []


@pytest.mark.parametrize("passes", [True, False])
def test_checks_run_in_the_copy_of_a_container(
    lab: Lab, player: Player, tmp_path: Path, passes: bool
) -> None:
    """Over SSH to the node of the copy, and `pct exec` there."""
    folder, bin_directory, guest = (tmp_path / name for name in ("drill", "bin", "guest"))
    guest.mkdir()
    box = {"name": "box", "tenant": "acme", "source": "debian-13-standard", "memory": "128M"}
    tasks: list[dict[str, Any]] = [
        {"pve.fleet.container": {**box, "default_storage": "ceph"}},
        {"pve.fleet.backup": {"name": "box", "tenant": "acme", "storage": "local"}},
    ]
    play_of_tasks = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    (tmp_path / "box.yml").write_text(yaml.safe_dump(play_of_tasks), encoding="utf-8")
    player.play(str(tmp_path / "box.yml")).expect()
    (guest / "there").touch()
    check = {"name": "Look at the guest", "changed_when": False}
    check["ansible.builtin.raw"] = f"test -e {'there' if passes else 'nowhere'}"
    (tmp_path / "checks.yml").write_text(yaml.safe_dump([check]), encoding="utf-8")
    ssh = stand_in_for_ssh(bin_directory, guest)
    nodes = {node: node for node in ("pve1", "pve2", "pve3")}
    more = {
        "drill_checks": str(tmp_path / "checks.yml"),
        "ansible_pct_node_ssh_executable": str(ssh),
        "ansible_pct_node_addresses": nodes,
    }
    play(player, folder, status=0 if passes else 2, drill_vms="box", **more)
    (row,) = record(folder)["drills"][0]["results"]
    assert (bin_directory / "calls").read_text().split()[0] == row["node"]
    if passes:
        assert (row["outcome"], row["proof"]) == ("proven", "checks")
    else:
        assert row["outcome"] == "failed"
        assert "The check 'Look at the guest' failed" in row["msg"]
    containers = [one for one in lab.call("GET", "/cluster/resources") if one["type"] == "lxc"]
    assert [one["name"] for one in containers] == ["box"]


def test_a_drill_that_is_killed_in_a_round_is_cleaned_up_by_the_next(
    lab: Lab, player: Player, tmp_path: Path
) -> None:
    """The play is killed while it waits for the agent of a copy, which does not answer."""
    folder, (vmid, *_rest) = tmp_path / "drill", COPIES
    given = {"drill_directory": str(folder), "drill_vms": "web", "drill_vmid_range": [vmid, vmid]}
    asks, silent = f"/qemu/{vmid}/agent/network-get-interfaces", "QEMU guest agent is not running"
    lab.simulator.fault(method="GET", path=f"{asks}$", status=500, message=silent, times=None)
    command = ["ansible-playbook", DRILL, "-e", json.dumps({**given, "drill_wait_timeout": 600})]
    process = start(command, tmp_path, player.environment)
    await_that(lambda: any(row["path"].endswith(asks) for row in lab.simulator.log()))
    end(process, End(signal.SIGKILL, worker_too=True))
    process.communicate()
    assert copies(lab) == [vmid]
    assert not (folder / "drill.json").exists()
    lab.simulator.clear_faults()
    more: dict[str, Any] = {"drill_vmid_range": [vmid, vmid + 1], "drill_abandoned_after": "0s"}
    play(player, folder, drill_vms="web", **more)
    assert copies(lab) == []
    (row,) = record(folder)["drills"][0]["results"]
    assert row["outcome"] == "proven"


def test_wrong_variables_are_refused(player: Player, tmp_path: Path) -> None:
    assert "absolute path" in play(player, Path("drill"), status=2).output
    missing = play(player, tmp_path / "drill", status=2, drill_checks="/nowhere.yml")
    assert "There is no file /nowhere.yml" in missing.output
    typo = player.play(DRILL, "-e", "drill_tennant=acme", "-e", f"drill_directory={tmp_path}")
    assert "drill_tennant" in typo.expect(2).output
