# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A task that fails for many VMs prints a short line, and a play that reads it gets every row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player

NUMBER = 111
REFUSED = [{"name": f"vm{number}", "tenant": "acme", "memory": "999T"} for number in range(NUMBER)]
# Refused by the storage when they are created.
FAILING = [
    {"name": f"vm{number}", "node": "pve1", "disks": [{"size": "1G", "storage": "local-lvm"}]}
    for number in range(NUMBER)
]
ALL = f"found.vms | selectattr('failed') | length == {NUMBER}"


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    return Player(tmp_path, lab.environment)


def play(player: Player, vms: list[dict[str, Any]], *arguments: str) -> str:
    """Return the output of a play with one task of module vms."""
    task = {"name": "Create", "pve.fleet.vms": {"vms": vms}}
    whole = {"name": "Many", "hosts": "localhost", "gather_facts": False, "tasks": [task]}
    (player.directory / "many.yml").write_text(yaml.safe_dump([whole]), encoding="utf-8")
    return player.play("many.yml", *arguments).output


def fatal(output: str) -> str:
    (line,) = [line for line in output.splitlines() if line.startswith("fatal: ")]
    return line


def printed(output: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(fatal(output).split("=> ", 1)[1])
    return result


@pytest.mark.parametrize("vms", [REFUSED, FAILING], ids=["refused", "failing"])
def test_the_line_of_a_failed_task_is_short(
    lab: Lab, player: Player, vms: list[dict[str, Any]]
) -> None:
    lab.simulator.fault(
        method="POST", path="/qemu$", status=500, message="no space left", times=999
    )
    output = play(player, vms)
    result = printed(output)
    assert len(result["vms"]) == 10
    assert all(row["failed"] and row["msg"] for row in result["vms"])
    assert result["summary"]["failed"] == NUMBER
    assert len(fatal(output)) < 25_000
    assert f"Rows that are not printed: {NUMBER - 10} of vms" in " ".join(output.split())


def test_vms_that_did_not_fail_are_not_printed(lab: Lab, player: Player) -> None:
    lab.simulator.fault(method="POST", path="/qemu$", status=500, message="no space left")
    result = printed(play(player, FAILING))
    assert [row["failed"] for row in result["vms"]] == [True]
    assert result["summary"]["created"] == NUMBER - 1


def test_a_play_that_reads_the_result_has_every_row(lab: Lab, player: Player) -> None:
    task = {"name": "Create", "pve.fleet.vms": {"vms": REFUSED}}
    count = {"name": "Count", "ansible.builtin.assert": {"that": [ALL]}}
    of_block = {**count, "vars": {"found": "{{ ansible_failed_result }}"}}
    nested = {"name": "Within", "block": [task]}
    tried = {"name": "Try", "block": [nested], "rescue": [of_block]}
    kept = {**task, "register": "found", "ignore_errors": True}
    tasks = [tried, kept, count]
    whole = {"name": "Many", "hosts": "localhost", "gather_facts": False, "tasks": tasks}
    (player.directory / "read.yml").write_text(yaml.safe_dump([whole]), encoding="utf-8")
    player.play("read.yml").expect()


def test_every_row_is_printed_on_request(lab: Lab, player: Player) -> None:
    assert len(printed(play(player, REFUSED, "-v"))["vms"]) == NUMBER
