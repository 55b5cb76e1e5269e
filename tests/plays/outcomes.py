# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs many tasks in one playbook, because a start of ansible-playbook costs more, and returns what
each came to.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.modules.estate_lab import Lab
from tests.plays.provision_helpers import Player


@dataclass(frozen=True)
class Task:
    """One task of the collection, the category of the failure it must come to, and whether it
    must change something.

    `changed` is None where the task fails.
    """

    name: str
    module: str
    options: dict[str, Any]
    category: str = ""
    changed: bool | None = None
    keywords: dict[str, Any] = field(default_factory=dict)


def refused(name: str, module: str, options: dict[str, Any], category: str) -> Task:
    return Task(name, module, options, category)


def environment_of(lab: Lab) -> dict[str, str]:
    return {f"PROXMOX_{name.upper()}": value for name, value in lab.connection.items()}


def outcomes(player: Player, tasks: Sequence[Task], *arguments: str) -> dict[str, dict[str, Any]]:
    """Play the tasks in order and return what each registered, after a check of category and
    change.
    """
    written: list[dict[str, Any]] = [
        {
            "name": task.name,
            f"pve.fleet.{task.module}": task.options,
            "register": f"r{number}",
            "ignore_errors": True,
            **task.keywords,
        }
        for number, task in enumerate(tasks)
    ]
    keep = {
        "name": "Write the outcomes",
        "keep": {
            "content": "{{ ["
            + ", ".join(f"r{number}" for number in range(len(tasks)))
            + "] | to_json }}",
            "dest": "outcomes.json",
        },
    }
    play = {
        "name": "Outcomes",
        "hosts": "localhost",
        "gather_facts": False,
        "tasks": [*written, keep],
    }
    (player.directory / "outcomes.yml").write_text(
        yaml.safe_dump([play], sort_keys=False), encoding="utf-8"
    )
    played = player.play("outcomes.yml", *arguments).expect()
    assert "Traceback" not in played.output
    rows = json.loads((player.directory / "outcomes.json").read_text(encoding="utf-8"))
    results = {task.name: row for task, row in zip(tasks, rows, strict=True)}
    came_to = {name: (row.get("error") or {}).get("category", "") for name, row in results.items()}
    assert came_to == {task.name: task.category for task in tasks}, {
        name: row.get("msg") for name, row in results.items() if came_to[name]
    }
    changes = {
        task.name: results[task.name]["changed"] for task in tasks if task.changed is not None
    }
    assert changes == {task.name: task.changed for task in tasks if task.changed is not None}
    return results
