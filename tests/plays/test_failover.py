# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook failover over two simulated sites, one of which dies in the middle of a backup."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.modules.backup_lab import share_archives
from tests.plays.commands import start
from tests.plays.interrupting import End, await_that, end
from tests.plays.provision_helpers import Played, Player, machine, writes

FAILOVER = "pve.fleet.failover"
NAS = {"storage": "nas", "type": "dir", "path": "/mnt/nas", "shared": 1, "content": "backup"}
GUESTS = {"db": "order=1", "web": "order=2", "mail": ""}


@pytest.fixture
def vienna(tmp_path: Path) -> Iterator[Lab]:
    """A site with three running VMs of tenant acme, each with a backup."""
    with Lab(task_ms="default=10", lag_s=0, auth_delay_s=0) as lab:
        lab.call("POST", "/storage", **NAS)
        tasks: list[dict[str, Any]] = []
        for name, startup in GUESTS.items():
            vm = {"name": name, "tenant": "acme", "memory": "256M", "state": "started"}
            disk = {"disks": [{"name": "scsi0", "size": 1, "storage": "ceph"}]}
            tasks.append({"pve.fleet.vm": {**vm, **disk, "startup": startup}})
        tasks.append({"pve.fleet.backup": {"tenant": "acme", "storage": "nas"}})
        play = [{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]
        (tmp_path / "prepare.yml").write_text(yaml.safe_dump(play), encoding="utf-8")
        Player(tmp_path, lab.environment).play("prepare.yml").expect()
        yield lab


def options(player: Player, sites: dict[str, Lab], **more: Any) -> dict[str, Any]:
    """Return the variables of a failover from Vienna to Munich."""
    listed = [{"name": name, **lab.connection} for name, lab in sites.items()]
    given = {
        "failover_directory": str(player.directory / "failover"),
        "failover_connection": {"sites": json.loads(json.dumps(listed, default=str))},
        "failover_from_site": "vienna",
        "failover_storages": ["nas"],
        "failover_pools": {"acme": "acme"},
        "failover_settle": 0,
        **more,
    }
    given["failover_connection"]["site"] = "munich"
    return given


def play(player: Player, sites: dict[str, Lab], *arguments: str, **more: Any) -> Played:
    return player.play(FAILOVER, *arguments, **options(player, sites, **more))


@pytest.mark.slow
def test_the_guests_of_a_lost_site_come_up(vienna: Lab, lab: Lab, tmp_path: Path) -> None:
    munich, sites = lab, {"vienna": vienna, "munich": lab}
    player = Player(tmp_path, {"ANSIBLE_SHOW_CUSTOM_STATS": "true"})
    munich.call("POST", "/storage", **NAS)
    share_archives(vienna.simulator, munich.simulator)

    rehearsed = play(player, sites, failover_rehearsal=True).expect()
    assert "Traceback" not in rehearsed.output
    assert munich.machines() == []
    record = json.loads((tmp_path / "failover/rehearsal.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in record["guests"]] == ["db", "web", "mail"]
    assert {row["outcome"] for row in record["guests"]} == {"up"}

    mark = munich.mark()
    refused = play(player, sites, failover_lost=True).expect(2)
    for name in GUESTS:
        assert f"VM '{name}'" in refused.output
    assert "is running as guest" in refused.output
    assert writes(munich, mark) == []

    vienna.simulator.steer("/settings", {"task_ms": "vzdump=600000"})
    web = machine(vienna, "web")
    vienna.session.post(
        f"{vienna.url}/api2/json/nodes/{web.node}/vzdump",
        data={"vmid": web.vmid, "storage": "nas"},
        verify=str(vienna.simulator.ca),
        timeout=30,
    )
    os.kill(vienna.simulator.pid, signal.SIGKILL)

    assert "cannot be asked whether guests run there" in play(player, sites).expect(2).output
    plan = ("-e", "plan_file=plan.json")
    foreseen = play(player, sites, "--check", *plan, failover_lost=True).expect()
    assert "Plan: 3 to create" in foreseen.output.partition("CUSTOM STATS")[2]
    assert writes(munich, mark) == []
    assert not (tmp_path / "failover/failover.json").exists()
    refused = play(player, sites, *plan, failover_lost=True).expect(2)
    assert "plan_file is for check mode" in refused.output
    assert munich.machines() == []
    approved = ("-e", "apply_plan=plan.json")
    done = play(player, sites, *approved, failover_lost=True).expect()
    assert "Done: 3 created" in done.output.partition("CUSTOM STATS")[2]
    assert len([line for line in done.lines if line.startswith("+ acme/web ")]) == 1
    found = {one.name: one for one in munich.machines()}
    assert {name: (one.status, one.tenant) for name, one in found.items()} == dict.fromkeys(
        GUESTS, ("running", "acme")
    )
    record = json.loads((tmp_path / "failover/failover.json").read_text(encoding="utf-8"))
    assert record["recovery_time"] is not None
    assert record["recovery_point"] >= 0
    mark = munich.mark()
    again = play(player, sites, failover_lost=True).expect()
    assert again.changed == 0
    assert len(again.lines) <= 12
    assert "Plan: 3 unchanged" in again.lines
    assert writes(munich, mark) == []


# As test_a_run_that_fails_at_any_write_is_completed of tests/modules/test_failover.py.
@pytest.mark.long
def test_a_failover_that_is_killed_is_completed_by_the_next(
    vienna: Lab, lab: Lab, tmp_path: Path
) -> None:
    """SIGKILL ends ansible-playbook and its worker while the second of three start orders is
    restored. The guest of the first one runs, and is not touched again.
    """
    munich, sites = lab, {"vienna": vienna, "munich": lab}
    player = Player(tmp_path, {})
    munich.call("POST", "/storage", **NAS)
    share_archives(vienna.simulator, munich.simulator)
    os.kill(vienna.simulator.pid, signal.SIGKILL)
    munich.simulator.steer("/settings", {"task_ms": "default=10,qmrestore=2000"})
    given = options(player, sites, failover_lost=True)
    command = ["ansible-playbook", FAILOVER, "-e", json.dumps(given)]
    process = start(command, tmp_path, player.environment)
    await_that(lambda: len(restores(munich)) == 2)
    end(process, End(signal.SIGKILL, worker_too=True))
    process.communicate()
    assert not (tmp_path / "failover/failover.json").exists()
    assert [one.status for one in munich.machines() if one.name == "db"] == ["running"]

    munich.simulator.steer("/settings", {"task_ms": "default=10"})
    mark = munich.mark()
    play(player, sites, failover_lost=True).expect()
    found = {one.name: one for one in munich.machines()}
    assert {name: one.status for name, one in found.items()} == dict.fromkeys(GUESTS, "running")
    assert not [row for row in writes(munich, mark) if f"/{found['db'].vmid}/" in row]
    assert sorted(set(restores(munich))) == sorted(one.vmid for one in found.values())
    record = json.loads((tmp_path / "failover/failover.json").read_text(encoding="utf-8"))
    outcomes = {row["name"]: row["outcome"] for row in record["guests"]}
    assert outcomes == {"db": "unchanged", "web": "up", "mail": "up"}
    for name in GUESTS:
        notes = munich.call("GET", f"/nodes/{found[name].node}/qemu/{found[name].vmid}/config")
        assert " run=" not in notes["description"]


def restores(lab: Lab) -> list[int]:
    """Return the VMIDs of the restores that PVE has accepted."""
    found: list[int] = []
    for row in lab.simulator.writes():
        if row["path"].endswith("/qemu") and "archive" in row["params"] and row["status"] == 200:
            found.append(int(row["params"]["vmid"]))
    return found


def test_wrong_variables_are_refused(lab: Lab, tmp_path: Path) -> None:
    player = Player(tmp_path, lab.environment)
    typo = player.play(
        FAILOVER, "-e", "failover_netwroks={}", "-e", f"failover_directory={tmp_path}"
    )
    assert "failover_netwroks" in typo.expect(2).output
    relative = play(player, {"munich": lab}, failover_directory="here").expect(2)
    assert "absolute path" in relative.output
