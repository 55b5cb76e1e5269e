# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules node_service and node_service_info against the simulator, which follows pve-manager:
PVE/API2/Services.pm.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import done, refused

POSTFIX: dict[str, Any] = {"node": "pve2", "name": "postfix"}


def test_service_is_stopped_and_started(unused: Lab) -> None:
    assert done(unused, "node_service", **POSTFIX, state="stopped")["service"]["state"] == "dead"
    assert done(unused, "node_service", **POSTFIX, state="started")["service"]["state"] == "running"
    listed = unused.run("node_service_info", node="pve2")["services"]
    assert [one["name"] for one in listed] == ["chrony", "corosync", "postfix", "pveproxy"]


@pytest.mark.parametrize(("state", "call"), [("restarted", "restart"), ("reloaded", "reload")])
def test_service_is_restarted_in_each_run(unused: Lab, state: str, call: str) -> None:
    unused.simulator.reset_log()
    assert unused.run("node_service", check=True, **POSTFIX, state=state)["changed"]
    assert unused.simulator.writes() == []
    for _run in range(2):
        assert unused.run("node_service", **POSTFIX, state=state)["done"]
    paths = [entry["path"] for entry in unused.simulator.writes()]
    assert paths == [f"/nodes/pve2/services/postfix/{call}"] * 2


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"name": "pveproxy", "state": "stopped"}, "essential service", "Refused to stop"),
    ({"name": "corosync", "node": "pve1", "state": "stopped"}, "essential service", "be lost"),
    (
        {"name": "nope", "state": "started"},
        "unknown service",
        "has chrony, corosync, postfix, pveproxy",
    ),
]


@pytest.mark.parametrize(("options", "reason", "word"), REFUSED, ids=str)
def test_service_is_refused(unused: Lab, options: dict[str, Any], reason: str, word: str) -> None:
    result = refused(unused, "node_service", **{**POSTFIX, **options})
    assert result["error"]["reason"] == reason, result["msg"]
    assert word in result["msg"]


def test_corosync_of_another_node_is_stopped(unused: Lab) -> None:
    assert unused.run("node_service", node="pve2", name="corosync", state="stopped")["changed"]
