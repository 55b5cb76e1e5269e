# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Escape sequences in texts of a server or a guest never reach the terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.demo.lab import Lab
from tests.plays.commands import run
from tests.plays.inventory_helpers import call
from tests.plays.provision_helpers import Player

# It sets the title of a terminal, begins a colour in the one-byte form, and rings the bell.
ESCAPES = "\x1b]0;title\x07 \x9b31mred\x9d"
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_VM: dict[str, object] = {
    "name": "web1",
    "node": "pve1",
    "disks": [{"size": "1G", "storage": "ceph"}],
}


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    return Player(tmp_path, {**lab.environment, "ANSIBLE_NOCOLOR": "1"})


def play(player: Player, module: str, options: dict[str, object], in_process: bool = True) -> str:
    """Return the output of a play with one task, at -vvv and with its differences."""
    task = {f"pve.fleet.{module}": options, "ignore_errors": True}
    variables = {"pve_fleet_in_process": in_process, "pve_fleet_progress": True}
    whole = {"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": [task]}
    (player.directory / "play.yml").write_text(json.dumps([whole]), encoding="utf-8")
    return player.play("play.yml", "--diff", "-vvv").output


@pytest.mark.parametrize("in_process", [True, False])
def test_messages(lab: Lab, player: Player, in_process: bool) -> None:
    lab.simulator.fault(method="POST", path="/pools$", status=500, message=ESCAPES, times=None)
    output = play(player, "pool", {"name": "p1"}, in_process)
    assert "title" in output
    assert not _CONTROL.search(output)


@pytest.mark.parametrize("in_process", [True, False])
def test_differences(lab: Lab, player: Player, in_process: bool) -> None:
    call(lab.simulator, "POST", "/pools", poolid="p1", comment=ESCAPES)
    output = play(player, "pool", {"name": "p1", "comment": "new"}, in_process)
    assert re.search("-.*title", output)
    assert not _CONTROL.search(output)


def test_warnings(lab: Lab, player: Player) -> None:
    lab.simulator.fault(task="qmcreate", warn=ESCAPES)
    output = play(player, "vm", _VM)
    assert re.search("WARNING.*title", output, re.DOTALL)
    assert not _CONTROL.search(output)


def test_inventory(lab: Lab, player: Player) -> None:
    call(lab.simulator, "PUT", "/nodes/pve1/qemu/9000/config", description=ESCAPES)
    output = listed(player, templates=True, fetch=["config"])
    assert "title" in output
    assert not _CONTROL.search(output)


def test_failed_inventory(lab: Lab, player: Player) -> None:
    lab.simulator.fault(path="/cluster/resources", status=500, message=ESCAPES, times=None)
    output = listed(player)
    assert "title" in output
    assert not _CONTROL.search(output)


def listed(player: Player, **options: object) -> str:
    """Return the output of `ansible-inventory`."""
    source = {"plugin": "pve.fleet.proxmox", **options}
    (player.directory / "lab.proxmox.yml").write_text(json.dumps(source), encoding="utf-8")
    command = ["ansible-inventory", "-i", "lab.proxmox.yml", "--list"]
    done = run(command, player.directory, player.environment)
    return done.stdout + done.stderr
