# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback plugin metrics: what a run of ansible-playbook leaves in its file."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import repeated
from tests.demo.lab import Lab
from tests.metrics_text import Text, read_text
from tests.plays.provision_helpers import Player
from tests.simulator.process import TOKEN_SECRET

WAYS = {"here": "true", "as a module": "false"}
COUNT = "proxmox_reconciliation_duration_seconds_count"
TASKS: list[dict[str, Any]] = [
    {"name": "One", "pve.fleet.vm_info": {"name": "no-such-vm"}},
    {
        "name": "A loop with a failure",
        "pve.fleet.pool_info": {"name": "{{ item }}"},
        "loop": ["acme", "bad name", "globex"],
        "ignore_errors": True,
    },
    {
        "name": "Attempts",
        "pve.fleet.node_info": {"node": "pve1"},
        "register": "attempt",
        "until": "attempt.attempts == 2",
        "retries": 3,
        "delay": 0,
    },
    {
        "name": "Hidden",
        "pve.fleet.node_info": {"node": "canary-node"},
        "no_log": True,
        "ignore_errors": True,
    },
    {"name": "Skipped", "pve.fleet.node_info": {}, "when": False},
    {"name": "Another collection's", "ansible.builtin.debug": {"msg": "{{ attempt.keys() }}"}},
    {
        "name": "A number that does not become a label",
        "pve.fleet.vm_info": {"vmid": 4711, "host": "https://127.0.0.1:1", "retries": 1},
        "failed_when": False,
    },
]


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    write(tmp_path, "first", TASKS)
    environment = {
        **lab.environment,
        "ANSIBLE_CALLBACKS_ENABLED": "pve.fleet.metrics",
        "PVE_FLEET_METRICS_FILE": str(tmp_path / "runs.prom"),
    }
    return Player(tmp_path, environment)


def write(place: Path, name: str, tasks: list[dict[str, Any]]) -> None:
    plays = [{"name": "Tasks", "hosts": "localhost", "gather_facts": False, "tasks": tasks}]
    text = yaml.safe_dump(plays, sort_keys=False)
    (place / f"{name}.yml").write_text(text, encoding="utf-8")


def play(player: Player, *arguments: str, status: int = 0) -> tuple[Text, str]:
    """Return the metrics that the callback wrote, and the output."""
    output = player.play(*arguments).expect(status).output
    text = (player.directory / "runs.prom").read_text(encoding="utf-8")
    # A duration may have any digits.
    without_values = re.sub(r" \S+$", "", text, flags=re.MULTILINE)
    for secret in (TOKEN_SECRET, "canary", "4711"):
        assert secret not in without_values
    return read_text(text), output


@pytest.mark.parametrize("way", repeated(WAYS))
def test_a_run_is_counted(lab: Lab, player: Player, way: str) -> None:
    mark = lab.mark()
    found, output = play(player, "first.yml", "-e", f"pve_fleet_in_process={WAYS[way]}")
    assert "No metrics" not in output
    assert "request_counts" in output
    requests = lab.requests_since(mark)
    label = {"playbook": "first"}

    actions = {"vm_info": 2, "pool_info": 1, "node_info": 3}
    for name, number in actions.items():
        assert found.get(COUNT, action=f"pve.fleet.{name}", **label) == number
    assert found.sum(COUNT) == sum(actions.values())

    counted = found.sum("proxmox_api_requests_total")
    hidden = 4  # of the task with no_log, in node_info
    without_answer = {"method": "GET", "endpoint": "/cluster/resources", "status": "none"}
    assert found.get("proxmox_api_requests_total", **without_answer, **label) == 1
    assert counted == len(requests) - hidden + 1

    errors = {"NetworkError": 1, "unknown": 1, "ValidationFailed": 1, "ApiError": 0}
    for category, number in errors.items():
        assert found.get("proxmox_errors_total", error_type=category, **label) == number
    assert found.sum("proxmox_errors_total") == 3
    assert found.get("proxmox_playbook_success", **label) == 1
    assert stat.S_IMODE((player.directory / "runs.prom").stat().st_mode) == 0o644


def test_the_module_and_the_callback_share_a_file(player: Player) -> None:
    path = str(player.directory / "runs.prom")
    options = {"path": path, "snapshots": False, "backups": False, "volumes": False}
    write(player.directory, "site", [{"name": "Write", "pve.fleet.metrics": options}])
    play(player, "first.yml")
    for runs in (1, 2):
        found, output = play(player, "site.yml")
        assert "No metrics" not in output
        assert found["proxmox_cluster_nodes_available"] == 3
        own, counted = {"action": "pve.fleet.metrics"}, {"action": "pve.fleet.node_info"}
        assert found.get(COUNT, **own) == runs
        assert found.get(COUNT, playbook="site", **own) == runs
        assert found.get(COUNT, playbook="first", **counted) == 3
        assert found.get("proxmox_playbook_success", playbook="first") == 1


def test_counters_continue_and_other_playbooks_are_kept(player: Player) -> None:
    write(player.directory, "second", [*TASKS[:1], {"ansible.builtin.fail": {"msg": "x"}}])
    play(player, "first.yml")
    found, _output = play(player, "second.yml", status=2)
    assert found.get("proxmox_playbook_success", playbook="first") == 1
    assert found.get("proxmox_playbook_success", playbook="second") == 0
    again, _output = play(player, "first.yml")
    label = {"action": "pve.fleet.vm_info", "playbook": "first"}
    assert (found.get(COUNT, **label), again.get(COUNT, **label)) == (2, 4)
    assert again.get("proxmox_playbook_success", playbook="second") == 0
    label = {"action": "pve.fleet.vm_info", "playbook": "second"}
    assert again.get(COUNT, **label) == 1


def test_nothing_is_written_in_check_mode_or_without_tasks(player: Player) -> None:
    player.play("first.yml", "--check").expect()
    write(player.directory, "third", [{"ansible.builtin.debug": {"msg": "x"}}])
    player.play("third.yml").expect()
    assert not (player.directory / "runs.prom").exists()


@pytest.mark.parametrize(
    ("path", "cause"),
    [
        ("", "no path is set"),
        ("x.txt", "does not end in .prom"),
        ("missing/runs.prom", "there is no directory"),
        ("others.prom", "has metrics of others"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_warning(player: Player, path: str, cause: str) -> None:
    (player.directory / "others.prom").write_text("node_x 1\n", encoding="utf-8")
    player.environment["PVE_FLEET_METRICS_FILE"] = str(player.directory / path)
    if not path:
        del player.environment["PVE_FLEET_METRICS_FILE"]
    output = " ".join(player.play("first.yml").expect().output.split())
    assert "No metrics of this run are written" in output
    assert cause in output
    assert "Traceback" not in output
    assert sorted(one.name for one in player.directory.glob("*.prom")) == ["others.prom"]


def test_a_missing_library_is_a_warning(player: Player) -> None:
    hide = (
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'prometheus_client' else find(name, *a)\n"
    )
    (player.directory / "sitecustomize.py").write_text(hide, encoding="utf-8")
    known = os.environ.get("PYTHONPATH", "")
    player.environment["PYTHONPATH"] = f"{player.directory}:{known}"
    player.usual = False  # Python reads it when it starts
    output = " ".join(player.play("first.yml").expect().output.split())
    assert "library prometheus_client is missing" in output
    assert not (player.directory / "runs.prom").exists()


def test_without_the_callback_results_have_no_counts(lab: Lab, player: Player) -> None:
    del player.environment["ANSIBLE_CALLBACKS_ENABLED"]
    output = player.play("first.yml", "-v").expect().output
    assert "request_counts" not in output
    assert not (player.directory / "runs.prom").exists()
