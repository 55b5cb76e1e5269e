# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two runs of one approved plan at once: its state is reached once, nothing is doubled or lost."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.arguments.options import (
    parse_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import TaskFailed
from ansible_collections.pve.fleet.plugins.module_utils._foundation.entry.module import (
    ModuleEntry,
    TaskMode,
    TaskOutcome,
)
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate import resource
from ansible_collections.pve.fleet.plugins.modules.cluster import ENTRY as CLUSTER
from ansible_collections.pve.fleet.plugins.modules.container_image import ENTRY as CONTAINER_IMAGE
from ansible_collections.pve.fleet.plugins.modules.failover import ENTRY as FAILOVER
from ansible_collections.pve.fleet.plugins.modules.power import ENTRY as POWER
from ansible_collections.pve.fleet.plugins.modules.relocate import ENTRY as RELOCATE
from ansible_collections.pve.fleet.plugins.modules.tenant import ENTRY as TENANT
from tests.labs.relocate import make_guest, prepare, state
from tests.labs.relocate import options as options_of_move
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_cluster import FILE
from tests.modules.test_container_image import config, container, holders, publish
from tests.modules.test_failover import munich, options, stop, vienna, web
from tests.modules.test_plan_relocate import MAPS
from tests.modules.test_power import places, populate
from tests.modules.test_tenant_networks import INITECH, ZONE

__all__ = ["munich", "vienna", "web"]

pytestmark = pytest.mark.usefixtures("fast")
# The outcomes of a run that lost the race, in words that tell what to do.
_CLEAR = ("not the approved one", "run again", "another run has changed the file")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return str(tmp_path / "plan.json")


def at_once(lab: Lab, entry: ModuleEntry, place: str, **task: Any) -> list[TaskOutcome]:
    """Plan a task, apply its plan in two runs at the same time, and return both outcomes: one run has
    succeeded, the other one is done too or says what to do. A third run changes nothing.
    """
    planned = lab.run(entry.name, check=True, plan_file=place, **task)
    assert not planned.get("failed"), planned["msg"]
    lab.simulator.reset_log()
    params = parse_options(entry.whole_spec, {**lab.connection, "apply_plan": place, **task})
    mode = TaskMode(check=False, diff=False, verbosity=0)
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(entry.perform, dict(params), {}, mode, lend=Client) for _run in range(2)
        ]
        outcomes = [one.result() for one in runs]
    failed = [one.values for one in outcomes if one.failed]
    assert len(failed) < 2, failed
    for values in failed:
        assert "exception" not in values
        assert any(text in values["msg"] for text in _CLEAR), values["msg"]
    third = lab.run(entry.name, apply_plan=place, **task)
    assert not third.get("failed"), third["msg"]
    assert not third["changed"]
    return outcomes


def test_guests_are_stopped_once(unused: Lab, place: str) -> None:
    populate(unused)
    at_once(unused, POWER, place, state="stopped", tenants=["acme"])
    states = places(unused)
    assert not any(states[vmid][1] for vmid in (401, 402, 403, 404, 405))


def test_the_objects_of_a_cluster_file_are_made_once(unused: Lab, place: str) -> None:
    file = {name: FILE[name] for name in ("groups", "pools", "roles", "storages", "backup_jobs")}
    at_once(unused, CLUSTER, place, **file)
    get = unused.client.get
    for path, key in (
        (("access", "groups"), "groupid"),
        (("pools",), "poolid"),
        (("access", "roles"), "roleid"),
        (("storage",), "storage"),
        (("cluster", "backup"), "id"),
    ):
        names = [row[key] for row in get(*path)]
        assert len(names) == len(set(names))
    assert {row["name"] for row in FILE["groups"]} <= {
        row["groupid"] for row in get("access", "groups")
    }


def test_a_tenant_is_made_once_with_its_token_and_networks(unused: Lab, place: str) -> None:
    do(unused, "sdn", zones=[ZONE])
    do(unused, "firewall", scope="cluster", options={"enable": True})
    login = Path(f"{place}.sites.yml")
    task = {**INITECH, "credentials_file": str(login)}
    at_once(unused, TENANT, place, **task)
    tokens = unused.client.get("access", "users", "tenant_initech@pve", "token")
    assert len(tokens) == 1
    (written,) = yaml.safe_load(login.read_text())["sites"]
    secret = {name: written[name] for name in ("token_id", "token_secret")}
    assert not unused.run("vm_info", **secret).get("failed")
    vnets = [row["vnet"] for row in unused.client.get("cluster", "sdn", "vnets")]
    assert len(vnets) == len(set(vnets))


def test_the_guests_of_a_lost_site_come_up_once(
    vienna: Lab, munich: Lab, place: str, web: dict[str, Any]
) -> None:
    stop(vienna, web)
    task = {**options(vienna, munich, lost=True), "from_site": None}
    at_once(munich, FAILOVER, place, **task)
    names = [row["name"] for row in munich.client.get("cluster", "resources", type="vm")]
    assert names.count("web") == names.count("box") == 1


def test_the_image_of_a_container_is_replaced_once(unused: Lab, place: str) -> None:
    publish(unused, "1")
    vmid = container(unused, state="started")
    publish(unused, "2")
    at_once(unused, CONTAINER_IMAGE, place, vmid=vmid, source="golden", start=True)
    assert "image=golden:2" in config(unused, vmid)["description"]
    assert len(holders(unused)) == 1


def test_a_move_that_meets_another_run_says_so(
    unused: Lab, munich: Lab, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run moves the guest between the record and the migration of the other one."""
    prepare(munich)
    make_guest(unused, "offline", 20301, "w1")
    task = options_of_move(unused, munich, tenant="acme", **MAPS)
    planned = unused.run("relocate", check=True, plan_file=place, **task)
    assert not planned.get("failed"), planned["msg"]
    given = {**unused.connection, **task, "apply_plan": place}
    given = {key: value for key, value in given.items() if value is not None}
    params = parse_options(RELOCATE.whole_spec, given)
    params |= dict.fromkeys(("host", "token_id", "token_secret", "ca_path"))
    mode = TaskMode(check=False, diff=False, verbosity=0)
    others: list[TaskOutcome] = []
    real = resource.Relocation.send

    def send(move: resource.Relocation, step: Any) -> Any:
        if step.action == "move" and not others:
            others.append(TaskOutcome(True, {}))  # so that the other run moves the guest
            others[0] = RELOCATE.perform(dict(params), {}, mode, lend=Client)
        return real(move, step)

    monkeypatch.setattr(resource.Relocation, "send", send)
    met = RELOCATE.perform(dict(params), {}, mode, lend=Client)
    assert not others[0].failed, others[0].values
    assert "another run or user has moved it" in met.values["msg"]
    assert "unlock" not in met.values["msg"]
    assert (state(unused, 20301), state(munich, 20301)) == ("stopped migrate", "stopped")
    third = unused.run("relocate", apply_plan=place, **task)
    assert (third.get("failed", False), third["changed"]) == (False, False)


@pytest.mark.parametrize(
    ("line", "is_met"),
    [
        ("ERROR: migration aborted: VM is locked (migrate)", True),
        ("can't lock file '/var/lock/pve-manager/pve-migrate-20301' - got timeout", True),
        ("unable to create VM 20301 - VM 20301 already exists on node 'pve1'", True),
        ("unable to create VM 20301: config file already exists", True),
        ("VM is locked (backup)", False),
        ("ERROR: storage 'ceph' is not available on node 'pve1'", False),
    ],
)
def test_the_log_of_a_migration_shows_whether_another_run_was_faster(
    line: str, is_met: bool
) -> None:
    error = TaskFailed("Could not move it: migration aborted", "Read the log", log=("begin", line))
    found = resource._with_rival(error).message
    assert ("another run or user has moved it" in found) == is_met
    assert ("Read the log" in found) != is_met
