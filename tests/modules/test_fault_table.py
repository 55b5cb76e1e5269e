# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fault table: a part of it in each run, the whole in the long one and by `make faults`."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from tests.faults.table import FAULTS, KNOWN, SCENARIOS, Report, open_table, run_part, run_scenario
from tests.modules.estate_lab import Lab

# One of this number of combinations of each fault is run each time, and each fault at least once.
SHARE = 240
# Requests of a run that gives way to another one: tests of their own make them.
ELSEWHERE = {
    **{
        ("_protection/relocate/steps.py", name): "test_relocate_faults.py, which has two sites"
        for name in (
            *("_back_up", "_prove", "_restore", "_step"),
            *("arrival_request", "tunnel_request"),
        )
    },
    (
        "_guests/guest/flow/create.py",
        "_remove",
    ): "test_quota.py, test_place_race.py, test_kinds_race.py",
    # The name of an archive has the second of the backup, so that no two runs end alike.
    ("_protection/backup/create/guest.py", "_take"): "test_backup.py",
    ("_protection/backup/create/guest.py", "_remove"): "test_backup.py",
    # Before PVE 9.2, where a token cannot get another secret.
    ("_tenants/access/run_token.py", "give"): "test_token.py",
    # Commands in a guest: no module writes them.
    ("_foundation/entry/connection/agent.py", "_kill"): "tests/plays/test_connections.py",
    ("_foundation/entry/connection/agent.py", "_run"): "tests/plays/test_connections.py",
    ("_foundation/entry/connection/agent.py", "_write_part"): "tests/plays/test_connections.py",
    ("_foundation/entry/connection/agent.py", "ping"): "tests/plays/test_connections.py",
    ("_operation/maintenance/execute.py", "set_noout"): "test_evacuation.py",
    ("_operation/maintenance/execute.py", "noout_plan"): "test_evacuation.py",
    # Steps for a plan file only; the return of the guests plans and writes them.
    ("_operation/maintenance/approval.py", "_returns"): "test_plan_maintenance.py",
    ("_operation/maintenance/approval.py", "_back"): "test_plan_maintenance.py",
    ("_operation/maintenance/approval.py", "_by_ha"): "test_plan_maintenance.py",
    # One write changes several guests; the table is about one.
    ("_operation/maintenance/power/execute.py", "_send_bulk"): "test_power.py",
    ("_operation/maintenance/power/execute.py", "_bulk_step"): "test_power.py",
    # A step for a plan file only; _complete writes.
    ("_guests/guest/flow/apply.py", "_with_take_over"): "test_plans.py",
    # A step for the check of privileges only; keep_record writes.
    ("_operation/maintenance/keep.py", "recording"): "test_check_each_privilege.py",
    # The probe of a lock, which is released again.
    ("_infrastructure/sdn/run.py", "with_holder"): "test_sdn.py",
    # It stops a task that another module started.
    ("_operation/tasks/run.py", "plan_stop"): "test_task_info.py",
    # What follows a failure of another write.
    ("_guests/guest/create/orphan.py", "remove_orphan"): "test_restore.py",
    ("_guests/guest/create/orphan.py", "removal_step"): "test_restore.py",
    ("_tenants/firewall/plan.py", "_group_step"): "test_firewall.py",
    # It stands for the writes of a firewall, which are in the table.
    ("_guests/guest/plan/steps.py", "isolate"): "test_isolation.py",
    ("_infrastructure/sdn/resource.py", "_undo"): "test_sdn.py",
    ("_infrastructure/sdn/resource.py", "_roll_back_lock"): "test_sdn.py",
    ("_infrastructure/node/network/plan.py", "discard_step"): "test_node_network.py",
    ("_infrastructure/node/network/run.py", "_taken_back"): "test_node_network.py",
    ("_infrastructure/node/network/run.py", "_restored"): "test_node_network.py",
    ("_infrastructure/storage/volume/plan.py", "_fetch"): "test_volume.py",
    ("_infrastructure/storage/volume/plan.py", "_plan_attributes"): "test_volume.py",
    # They write a file of the machine that runs the task, or of a node by SSH.
    ("_infrastructure/storage/volume/run.py", "plan_snippet"): "test_volume.py",
    ("_guests/guest/plan/steps.py", "write_step"): "test_snippets_visible.py",
}
Place = tuple[str, str]


@pytest.fixture(scope="module")
def table() -> Iterator[Lab]:
    with open_table() as lab:
        yield lab


def judged(report: Report) -> None:
    print(report.line())
    assert [str(finding) for finding in report.findings] == []


@pytest.mark.slow
def test_every_write_has_a_row(table: Lab, repo: Path) -> None:
    """A place in the source that writes is passed by a run of some scenario, and in a part of the
    table nothing is lost, doubled or harmed, and no run reports what is not so.

    Both need a run of each scenario: it is most of the time.
    """
    passed: set[Place] = set()
    with (
        mock.patch.object(Step, "__init__", noting(passed, Step.__init__)),
        mock.patch.object(Client, "write", noting(passed, Client.write)),
        mock.patch.object(Client, "task", noting(passed, Client.task)),
    ):
        report = run_part(table, SHARE)
    judged(report)
    assert {fault.kind for fault in FAULTS} <= report.faults
    places = written_places(repo)
    missing = places - passed - set(ELSEWHERE)
    assert not missing
    assert set(ELSEWHERE) <= places


@pytest.mark.long
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.key)
def test_the_whole_table(table: Lab, scenario: Any) -> None:
    judged(run_scenario(table, scenario))


def test_each_known_end_belongs_to_the_table() -> None:
    faults = {fault.key for fault in FAULTS}
    scenarios = {scenario.key for scenario in SCENARIOS}
    for scenario, keys, reason in KNOWN:
        assert scenario in scenarios
        assert set(keys) <= faults
        assert reason


def written_places(repo: Path) -> set[Place]:
    """Return where the source makes a step or a write: file and function."""
    base = repo / "plugins" / "module_utils"
    found: set[Place] = set()
    for path in sorted(base.rglob("*.py")):
        file = path.relative_to(base).as_posix()
        if file.startswith("_foundation/api/"):
            continue
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef):
                found |= {(file, function.name) for call in calls(function) if makes_write(call)}
    return found


def calls(function: ast.FunctionDef) -> Iterator[ast.Call]:
    """Return the calls in a function, without those of functions within it."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            continue
        if isinstance(node, ast.Call):
            yield node
        pending.extend(ast.iter_child_nodes(node))


def makes_write(call: ast.Call) -> bool:
    """Return whether a call makes a `Step`, or sends a write with a client."""
    if isinstance(call.func, ast.Name):
        return call.func.id == "Step"
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("write", "task"):
        return False
    owner = call.func.value
    name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
    return name in ("client", "_client")


def noting(places: set[Place], original: Any) -> Any:
    """Return the function, noting from where it is called."""

    def noted(*args: Any, **keywords: Any) -> Any:
        frame = sys._getframe(1)
        while frame.f_code.co_name.startswith("<") and frame.f_back is not None:
            frame = frame.f_back  # out of a comprehension
        code = frame.f_code
        _before, _found, file = code.co_filename.replace(os.sep, "/").rpartition("/module_utils/")
        places.add((file, code.co_name))
        return original(*args, **keywords)

    return noted
