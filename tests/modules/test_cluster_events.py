# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event source cluster_events against the simulator."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
    Client,
    connect,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.advance import advance
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.follow import follow_sites
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.model import (
    EventOptions,
    SitePosition,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.events.read_site import read_site
from tests.labs.events import OPTIONS
from tests.modules.backup_lab import add_nas
from tests.modules.estate_lab import TOKEN_SECRET, Lab

Events = list[dict[str, Any]]


class Watch:
    """Reads a cluster again and again, as the source does."""

    def __init__(self, lab: Lab, wanted: EventOptions = OPTIONS) -> None:
        self.lab = lab
        self.client: Client = connect({**lab.connection, "retries": 1}, {})
        self.wanted = wanted
        self.position = SitePosition()

    def read(self) -> Events:
        """Return the events since the last reading."""
        reading = read_site(self.client, self.position, self.wanted)
        self.position, events = advance(self.position, reading, self.wanted)
        return events

    def guests(self) -> Events:
        return [event for event in self.read() if event["type"].startswith("guest_")]

    def requests(self) -> list[str]:
        """Return the requests of a reading."""
        self.lab.simulator.reset_log()
        self.read()
        return sorted(f"{row['method']} {row['path']}" for row in self.lab.simulator.log())


@pytest.fixture
def watch(unused: Lab) -> Iterator[Watch]:
    found = Watch(unused)
    found.read()
    yield found
    found.client.close()


def make(lab: Lab, vmid: int, **values: Any) -> None:
    lab.simulator.ask("POST", f"/vms/{vmid}", {"node": "pve1", **values})


def types(events: Events) -> list[str]:
    return [event["type"] for event in events]


def test_requests_of_a_reading(watch: Watch) -> None:
    """One listing, the status of the cluster, and the tasks of each of the three nodes."""
    assert watch.requests() == [
        "GET /cluster/resources",
        "GET /cluster/status",
        "GET /nodes/pve1/tasks",
        "GET /nodes/pve2/tasks",
        "GET /nodes/pve3/tasks",
    ]


def test_a_new_guest_costs_one_request_more(watch: Watch) -> None:
    make(watch.lab, 150, name="web")
    assert len(watch.requests()) == 6
    assert len(watch.requests()) == 5


def test_the_slow_part_has_a_budget(unused: Lab) -> None:
    """Backups: version, listing, status, rights and the content of each storage of backups."""
    watch = Watch(unused, replace(OPTIONS, max_age=3600.0))
    first = len(watch.requests())
    assert len(watch.requests()) == 5
    assert first <= 5 + 4 + 4


def test_nothing_is_written(watch: Watch) -> None:
    watch.lab.simulator.reset_log()
    watch.read()
    assert watch.lab.simulator.writes() == []


def test_the_life_of_a_guest(watch: Watch) -> None:
    lab = watch.lab
    vm = lab.vm(name="web", tenant="acme", node="pve1", state="started", memory=128)["vm"]
    events = watch.read()
    started = [event["task"] for event in events if event["type"] == "task_started"]
    ended = [event["task"] for event in events if event["type"] == "task_ended"]
    assert {"qmcreate", "qmstart"} <= set(started)
    assert sorted(started) == sorted(ended)
    (guest,) = [event for event in events if event["type"].startswith("guest_")]
    assert (guest["type"], guest["name"], guest["tenant"], guest["vmid"]) == (
        "guest_appeared",
        "web",
        "acme",
        vm["vmid"],
    )
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"running": False})
    (event,) = watch.guests()
    assert (event["type"], event["previous_status"], event["status"]) == (
        "guest_power_changed",
        "running",
        "stopped",
    )
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"node": "pve2", "config": {"tags": None}})
    assert types(watch.guests()) == ["guest_tenant_changed", "guest_moved"]
    lab.simulator.ask("DELETE", f"/vms/{vm['vmid']}", None)
    assert types(watch.guests()) == ["guest_disappeared"]
    assert watch.read() == []


def test_a_vmid_that_is_used_again(watch: Watch) -> None:
    """The listing has the guest at both readings."""
    lab = watch.lab
    make(lab, 150, name="old", config={"tags": "tenant_acme"})
    watch.read()
    path = ("nodes", "pve1", "qemu", 150)
    lab.client.task("DELETE", *path)
    lab.client.task("POST", *path[:3], data={"vmid": 150, "name": "new"})
    gone, come = watch.guests()
    assert (gone["type"], gone["name"]) == ("guest_disappeared", "old")
    assert (come["type"], come["name"], come["tenant"]) == ("guest_appeared", "new", "")
    assert watch.guests() == []


def test_proxmox_ve_8(old: Lab) -> None:
    watch = Watch(old, replace(OPTIONS, max_age=3600.0))
    watch.read()
    make(old, 150, name="web")
    old.client.task("POST", "nodes", "pve1", "qemu", 150, "status", "start")
    assert types(watch.read()) == ["task_started", "task_ended", "guest_appeared"]
    watch.client.close()


def test_more_tasks_than_the_cluster_lists(watch: Watch) -> None:
    """C(/cluster/tasks) has the last 25 of a node (pve-common: RESTEnvironment.pm,
    active_workers), so it would lose some.
    """
    lab = watch.lab
    make(lab, 150, name="web")
    watch.read()
    for _number in range(20):
        for action in ("start", "stop"):
            lab.client.task("POST", "nodes", "pve1", "qemu", 150, "status", action)
    upids = [event["upid"] for event in watch.read() if event["type"] == "task_ended"]
    assert len(upids) == len(set(upids)) == 40


def test_a_node_is_down_and_returns(watch: Watch) -> None:
    simulator = watch.lab.simulator
    make(watch.lab, 150, name="web")
    watch.read()
    watch.lab.client.task("POST", "nodes", "pve1", "qemu", 150, "status", "start")
    simulator.steer("/nodes/pve2", {"online": False})
    events = watch.read()
    assert ("node_offline", "pve2") in [(event["type"], event.get("node")) for event in events]
    assert not [event for event in events if event["type"].startswith("guest_dis")]
    simulator.steer("/nodes/pve2", {"online": True})
    assert types(watch.read()) == ["node_online"]


def test_the_quorum(watch: Watch) -> None:
    watch.lab.simulator.steer("/cluster", {"quorate": False})
    assert types(watch.read()) == ["quorum_lost"]
    watch.lab.simulator.steer("/cluster", {"quorate": True})
    assert types(watch.read()) == ["quorum_restored"]


def test_a_failed_backup_names_its_guests(watch: Watch) -> None:
    lab = watch.lab
    add_nas(lab)
    for vmid in (150, 151):
        make(lab, vmid, name=f"web{vmid}")
    lab.simulator.steer("/vms/151", {"lock": "migrate"})
    watch.read()
    data = {"vmid": "150,151", "storage": "nas", "mode": "snapshot"}
    upid = lab.client.write("POST", "nodes", "pve1", "vzdump", data=data)
    while lab.client.get("nodes", "pve1", "tasks", upid, "status")["status"] == "running":
        pass
    (event,) = [event for event in watch.read() if event["type"] == "backup_failed"]
    assert (event["upid"], event["vmids"]) == (upid, [151])
    assert event["exitstatus"]


def test_missing_backups(unused: Lab) -> None:
    add_nas(unused)
    make(unused, 150, name="web", config={"tags": "tenant_acme"})
    watch = Watch(unused, replace(OPTIONS, max_age=3600.0, slow_interval=0))
    missing = {event["vmid"]: event for event in watch.read() if event["type"] == "backup_missing"}
    assert (missing[150]["name"], missing[150]["newest"]) == ("web", None)
    data = {"vmid": "150", "storage": "nas"}
    unused.client.task("POST", "nodes", "pve1", "vzdump", data=data)
    found = [event for event in watch.read() if event["type"] == "backup_found"]
    assert [event["vmid"] for event in found] == [150]


def test_drift(unused: Lab) -> None:
    vm = unused.vm(name="web", tenant="acme", node="pve1", cores=2, memory=128)["vm"]
    listed = {"name": "web", "tenant": "acme", "node": "pve1", "cores": 2, "memory": 128}
    given = {"state_file": "/tmp/x", "drift": {"vms": [listed]}}
    wanted = replace(_parsed(given), slow_interval=0)
    watch = Watch(unused, wanted)
    assert watch.read() == []
    unused.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"cores": 4}})
    (event,) = watch.read()
    assert (event["type"], event["name"], event["options"]) == ("drift_found", "web", ["cores"])
    unused.simulator.steer(f"/vms/{vm['vmid']}", {"config": {"cores": 2}})
    assert types(watch.read()) == ["drift_ended"]


def _parsed(given: dict[str, Any]) -> EventOptions:
    from ansible_collections.pve.fleet.plugins.module_utils._operation.events.follow import (
        read_options,
    )

    return read_options(given)[0]


def test_a_caller_without_rights_is_reported(watch: Watch) -> None:
    watch.lab.simulator.fault(
        method="GET", path="/nodes/pve2/tasks", status=403, message="denied", times=None
    )
    (event,) = watch.read()
    assert (event["type"], event["part"]) == ("reading_failed", "tasks of pve2")
    assert (event["category"], "denied" in event["reason"]) == ("PermissionDenied", True)
    assert watch.read() == []
    watch.lab.simulator.clear_faults()
    assert types(watch.read()) == ["reading_restored"]


class Rules:
    """A queue whose reader takes events until it has seen enough, and then ends the source."""

    def __init__(self, enough: Callable[[Events], bool]) -> None:
        self.events: Events = []
        self.enough = enough
        self.task: asyncio.Task[None] | None = None

    async def put(self, event: dict[str, Any]) -> None:
        self.events.append(event)
        if self.task is not None and self.enough(self.events):
            self.task.cancel()

    def empty(self) -> bool:
        return True


def follow(args: dict[str, Any], enough: Callable[[Events], bool], steps: Any = ()) -> Events:
    """Run the source until there are enough events, with a step after each second of it."""
    rules = Rules(enough)

    async def main() -> None:
        rules.task = asyncio.create_task(follow_sites(rules, args))
        for step in steps:
            await asyncio.sleep(0.5)
            await asyncio.to_thread(step)
        await asyncio.gather(rules.task, return_exceptions=True)

    asyncio.run(main())
    return rules.events


def test_two_sites_over_a_restart(unused: Lab, munich: Lab, tmp_path: Path) -> None:
    """What happens while the source is stopped is reported once, when it runs again."""
    sites = [
        {"name": "berlin", "default": True, **unused.connection},
        {"name": "munich", **munich.connection},
    ]
    state = tmp_path / "events.json"
    args = {"state_file": str(state), "interval": 1, "sites": sites}

    def site_names(events: Events) -> set[str]:
        return {event["site"] for event in events if event["type"] == "guest_appeared"}

    first = follow(
        args,
        lambda events: site_names(events) == {"berlin", "munich"},
        [
            lambda: _await_positions(state, 2),
            lambda: make(unused, 150, name="a"),
            lambda: make(munich, 151, name="b"),
        ],
    )
    make(unused, 152, name="c")
    munich.client.task("POST", "nodes", "pve1", "qemu", 151, "status", "start")
    second = follow(
        args,
        lambda events: (
            {"guest_appeared", "task_ended", "guest_power_changed"} <= set(types(events))
        ),
    )
    ids = [event["id"] for event in (*first, *second)]
    assert len(ids) == len(set(ids))
    appeared = [event for event in (*first, *second) if event["type"] == "guest_appeared"]
    assert sorted((event["site"], event["name"]) for event in appeared) == [
        ("berlin", "a"),
        ("berlin", "c"),
        ("munich", "b"),
    ]
    tasks = [event["site"] for event in second if event["type"] == "task_ended"]
    assert tasks == ["munich"]
    assert TOKEN_SECRET not in state.read_text(encoding="utf-8")
    assert TOKEN_SECRET not in json.dumps([*first, *second])


def _await_positions(state: Path, number: int) -> None:
    """Wait until the first reading of each site is in the file."""
    while not state.exists() or state.read_text(encoding="utf-8").count('"taken":') < number:
        pass


def test_a_site_that_does_not_answer_is_asked_less_and_less(
    unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pauses grow, with a random part, up to the longest one; other sites are not held up."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def quick(seconds: float) -> None:
        if seconds >= 0.5:
            pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", quick)
    monkeypatch.setattr(random.Random, "random", lambda _self: 0.5)
    args = {
        **unused.connection,
        "host": "127.0.0.1:9",
        "retries": 1,
        "state_file": str(tmp_path / "events.json"),
        "interval": 10,
        "longest_pause": 60,
    }

    rules = Rules(lambda events: False)

    async def main() -> None:
        rules.task = asyncio.create_task(follow_sites(rules, args))
        while len(pauses) < 6:
            await sleep(0.01)
        rules.task.cancel()
        await asyncio.gather(rules.task, return_exceptions=True)

    asyncio.run(main())
    assert pauses[:6] == [11.25, 22.5, 45.0, 60.0, 60.0, 60.0]
    assert types(rules.events) == ["site_unreachable"]


@pytest.mark.parametrize(
    ("args", "error", "text"),
    [
        ({}, ValidationFailed, "state_file"),
        ({"intervall": 1}, ValidationFailed, "intervall"),
        ({"token_secret": None}, ConfigurationError, "token_secret"),
        (
            {"host": None, "sites": [{"name": "a", "host": "h"}, {"name": "b"}]},
            ConfigurationError,
            "site a",
        ),
    ],
)
def test_mistakes_end_the_source_before_any_request(
    unused: Lab, tmp_path: Path, args: dict[str, Any], error: type[Exception], text: str
) -> None:
    given = {**unused.connection, "state_file": str(tmp_path / "events.json"), **args}
    if not args:
        del given["state_file"]
    if "sites" in args:
        del given["token_id"], given["token_secret"]
    unused.simulator.reset_log()
    with pytest.raises(error, match=text):
        asyncio.run(follow_sites(Rules(lambda events: False), given))
    assert unused.simulator.log() == []
