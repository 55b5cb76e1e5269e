# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each write of module relocate, at both sites, with each fault: the rows that the fault table,
which has one cluster, cannot have.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from tests.cases import repeated
from tests.labs.maintenance import Killed
from tests.labs.relocate import (
    add_vaults,
    both_states,
    make_guest,
    make_managed,
    make_replicated,
    managed_in,
    options,
    prepare,
    remove_marked,
    share_vaults,
    unlock,
)
from tests.labs.replicas import TANK
from tests.modules.estate_lab import Lab

VMID, SID = 20300, "vm:20300"
CONFIG = f"/qemu/{VMID}/config$"
# The writes of a move and of a way back: the side, the method, the path, and which of its kind.
MOVE = [
    ("vienna", "PUT", CONFIG, 1),
    ("vienna", "DELETE", f"/ha/resources/{SID}$", 1),
    ("vienna", "DELETE", f"/replication/{VMID}-0$", 1),
    ("vienna", "POST", "/remote_migrate$", 1),
    ("munich", "PUT", "/pools$", 1),
    ("munich", "POST", "/ha/resources$", 1),
    ("munich", "POST", "/ha/rules$", 1),
    ("munich", "POST", "/cluster/replication$", 1),
    ("munich", "PUT", "/backup/nightly$", 1),
    ("munich", "PUT", CONFIG, 1),
    ("vienna", "DELETE", f"/qemu/{VMID}$", 1),
    ("munich", "PUT", CONFIG, 2),
]
RETURN = [
    ("munich", "DELETE", f"/ha/resources/{SID}$", 1),
    ("munich", "POST", "/status/shutdown$", 1),
    ("munich", "PUT", CONFIG, 1),
    ("vienna", "POST", "/status/start$", 1),
    ("munich", "DELETE", f"/qemu/{VMID}$", 1),
    ("vienna", "POST", "/ha/resources$", 1),
    ("vienna", "POST", "/ha/rules$", 1),
    ("vienna", "POST", "/cluster/replication$", 1),
    ("vienna", "PUT", CONFIG, 1),
]
# The writes of a move by an archive that other ways do not make, and those in other states.
ARCHIVE = [
    ("vienna", "PUT", CONFIG, 1),
    ("vienna", "DELETE", f"/ha/resources/{SID}$", 1),
    ("vienna", "POST", "/status/shutdown$", 1),
    ("vienna", "POST", "/vzdump$", 1),
    ("munich", "POST", "/nodes/pve1/qemu$", 1),
    ("munich", "POST", "/status/start$", 1),
    ("munich", "POST", "/ha/resources$", 1),
    ("munich", "PUT", CONFIG, 1),
    ("vienna", "DELETE", f"/qemu/{VMID}$", 1),
]
# The way back of a source that root has released as a template.
RELEASED = [("vienna", "PUT", CONFIG, 1), ("vienna", "POST", "/status/start$", 1)]
WAYS = {"present": MOVE, "returned": RETURN, "archive": ARCHIVE, "released": RELEASED}
FAULTS: dict[str, dict[str, Any]] = {
    "no connection": {"drop": "before"},
    "lost answer": {"drop": "after"},
    "refused": {"status": 500, "message": "internal error"},
    "forbidden": {"status": 403, "message": "Permission check failed"},
    "killed before": {},
    "killed after": {},
}
RUNS = 12
Write = tuple[str, str, str, int]
# The texts are those of tests/faults/faults.py, with their sources.
LOCKED = {"status": 500, "message": "VM is locked (backup)"}
LOCK_FILE = {"status": 500, "message": "can't lock file '/var/lock/lock-20300.conf' - got timeout"}
TICKET = {"status": 401, "message": "permission denied - invalid PVE ticket"}
FULL = "lvcreate error: insufficient free space (10 extents)"
OF_REQUESTS: dict[str, dict[str, Any]] = {
    "locked for a moment": {**LOCKED, "times": 2},
    "lock file": LOCK_FILE,
    "expired ticket": TICKET,
    "gateway": {"status": 502},
    "answer cut": {"cut": 9},
    "quorum lost": {"steer": [["PUT", "/cluster", {"quorate": False}]]},
}
OF_TASKS: dict[str, dict[str, Any]] = {
    "task fails": {"fail": "command 'qm' failed: exit code 1"},
    "storage full": {"fail": FULL},
    "lock in the task": {"fail": LOCK_FILE["message"]},
    "task vanishes": {"steer": [["DELETE", "/tasks", None]]},
}
TASKS = {
    "/remote_migrate$": "migrate",
    "/status/shutdown$": "shutdown",
    "/status/start$": "start",
    "/nodes/pve1/qemu$": "restore",
    f"/qemu/{VMID}$": "destroy",
}
CHANGED = "changed by others"
# The tunnel of the source, and root by its own client.
BY_OTHERS = re.compile("/mtunnel|/access/ticket$")


def rules_of(way: str, write: Write, fault: str) -> list[dict[str, Any]]:
    """Return the rules of a fault at the site of a write, none if it cannot meet the write."""
    _site, method, path, nth = write
    rule = {"method": method, "path": path, "nth": nth}
    if fault in FAULTS:
        return [{**rule, **FAULTS[fault]}] if FAULTS[fault] else []
    if fault in OF_REQUESTS:
        return [{**rule, **OF_REQUESTS[fault]}]
    is_container = way.startswith("container")
    if fault == CHANGED:
        kind = "containers" if is_container else "vms"
        if f"/{VMID}/" not in path:
            return []
        return [{**rule, "steer": [["PUT", f"/{kind}/{VMID}", {"config": {"onboot": "1"}}]]}]
    if path == "/vzdump$":
        task = "vzdump"
    elif name := TASKS.get(path.replace("/lxc", "/qemu")):
        task = f"{'vz' if is_container else 'qm'}{name}"
    else:
        return []
    if fault == "task vanishes":
        return [{"method": "GET", "path": f"/tasks/UPID:[^/]*:{task}:", **OF_TASKS[fault]}]
    return [{"task": task, "nth": nth, **OF_TASKS[fault]}]


def of_container(writes: list[Write]) -> list[Write]:
    """Return the writes of the same way of a container."""
    return [
        (site, method, path.replace("/qemu", "/lxc").replace("vm:", "ct:"), nth)
        for site, method, path, nth in writes
    ]


def cases_of(ways: dict[str, list[Write]], faults: list[str]) -> Iterator[Any]:
    """Yield the cases of each way, write and fault that can meet it."""
    for way, writes in ways.items():
        for write in writes:
            for fault in faults:
                if fault.startswith("killed") or rules_of(way, write, fault):
                    name = f"{way} {write[1]} {write[2]} {write[3]} {fault}"
                    yield pytest.param(way, write, fault, id=name)


OF_CONTAINERS = {f"container {way}": of_container(writes) for way, writes in WAYS.items()}
MORE = [*OF_REQUESTS, *OF_TASKS, CHANGED]
CASES = [*cases_of({**WAYS, **OF_CONTAINERS}, [*FAULTS, *MORE])]
random.Random(45).shuffle(CASES)  # all of them take an hour


class Course:
    """The runs of one case. A request of the module ends its process if the fault says so."""

    def __init__(self, sites: dict[str, Lab], given: dict[str, Any], sid: str) -> None:
        self.sites = sites
        self.sid = sid
        self.given = given
        self.write: Write | None = None
        self.kills = ""
        self.met = False
        self.count = 0

    def check(self) -> tuple[str, str]:
        """Return the states of both sides; at most one guest runs, and at least one is there."""
        found = both_states(self.sites["vienna"], self.sites["munich"], VMID)
        assert [one.split()[0] for one in found].count("running") <= 1, found
        assert found != ("gone", "gone")
        managed = [self.sid in managed_in(site) for site in self.sites.values()]
        assert managed != [True, True], "it is an HA resource at both sites"
        return found

    def _is_met(self, transport: ProxmoxerTransport, request: Request) -> bool:
        if self.write is None or self.met or not self.kills:
            return False
        site, method, path, nth = self.write
        own = "/" + "/".join(map(str, request.path))
        is_there = transport.endpoint.port == self.sites[site].simulator.port
        if request.method != method or not own.endswith(path.rstrip("$")) or not is_there:
            return False
        self.count += 1
        return self.count == nth

    def send(self, transport: ProxmoxerTransport, request: Request) -> Any:
        if (request.method, request.path) == ("GET", ("cluster", "replication")):
            with mock.patch.object(ProxmoxerTransport, "send", real_send):
                remove_marked(self.sites["vienna"])
        if request.path[-1] == "content":
            share_vaults(*self.sites.values())
        is_met = self._is_met(transport, request)
        if is_met:
            self.met = True
        if is_met and self.kills == "before":
            raise Killed
        answer = real_send(transport, request)
        if is_met:
            raise Killed
        if request.method != "GET":
            self.check()
        return answer

    def run(self) -> dict[str, Any] | None:
        """Return the result of a run, None if it was killed; root then removes the locks."""

        def send(transport: ProxmoxerTransport, request: Request) -> Any:
            return self.send(transport, request)

        with mock.patch.object(ProxmoxerTransport, "send", send):
            try:
                result: dict[str, Any] = self.sites["vienna"].run("relocate", **self.given)
            except Killed:
                return None
        unlock(self.sites, result.get("commands", ()))
        self.check()
        return result


real_send = ProxmoxerTransport.send


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(("way", "write", "fault"), repeated(CASES, first=9, more=48))
def test_a_write_that_meets_a_fault(
    unused: Lab, munich: Lab, way: str, write: Write, fault: str
) -> None:
    """A run whose write is refused fails. The next runs complete the move, or the way back."""
    course = begin(unused, munich, way)
    sites, sid = course.sites, course.sid
    site, is_killed = write[0], fault.startswith("killed")
    for rule in rules_of(way, write, fault):
        sites[site].simulator.fault(**rule)
    course.write, course.kills = write, fault.split()[1] if is_killed else ""
    is_back = way.endswith(("returned", "released"))
    final = ("running", "gone") if is_back else ("gone", "running")
    is_refused = False
    for _number in range(RUNS):
        result = course.run()
        rules = sites[site].simulator.ask("GET", "/faults")
        if fault == "quorum lost":
            sites[site].simulator.ask("PUT", "/cluster", {"quorate": True})
        if fault in ("refused", "forbidden") and rules[0]["done"] and not is_refused:
            is_refused = True
            assert result, "a refused write ends no process"
            assert result["failed"], result
        if result is None or result.get("failed"):
            continue
        if course.check() == final and not result["changed"]:
            break
    else:
        raise AssertionError(f"not complete: {course.check()}, {(result or {}).get('msg')}")
    side = unused if is_back else munich
    assert managed_in(side)[sid]["max_restart"] == 2
    assert side.client.get("cluster", "ha", "rules")[0]["resources"] == sid
    assert [row["id"] for row in side.client.get("cluster", "replication")] == [f"{VMID}-0"]
    assert str(VMID) in side.client.get("cluster", "backup")[0]["vmid"]
    assert course.met or any(rule["done"] for rule in rules), "the fault was not met"


def begin(unused: Lab, munich: Lab, way: str) -> Course:
    """Make the guest, and return the runs of a way: its move, or its way back after the move."""
    prepare(munich)
    is_container = way.startswith("container")
    sid = SID.replace("vm", "ct") if is_container else SID
    kind, way = "lxc" if is_container else "qemu", way.removeprefix("container ")
    for lab in (unused, munich):
        lab.client.write("POST", "storage", data=TANK)
    make_guest(unused, "restart" if is_container else "online", VMID, storage="tank")
    make_managed(unused, VMID, sid[:2])
    make_replicated(unused, munich, VMID)
    maps = {"networks": {"vmbr0": "vmbr1"}}
    given = options(unused, munich, vms=["mover"], hold="0s", task_timeout=30, **maps)
    if way == "archive":
        add_vaults(unused, munich)
        snapshots = ("nodes", "pve1", kind, VMID, "snapshot")
        unused.client.task("POST", *snapshots, data={"snapname": "before"})
        time.sleep(1.1)  # a start in the second of a backup may be one after it
        given |= {"archive_storage": "nas", "archive_without": ["snapshots"]}
    course = Course({"vienna": unused, "munich": munich}, given, sid)
    if way in ("returned", "released"):
        assert (course.run() or {}).get("guests"), "the move has failed"
        prepare_return(course, is_locked=way == "returned")
    return course


def prepare_return(course: Course, *, is_locked: bool) -> None:
    """Let the way back begin, perhaps of a source that root has just released for its removal."""
    lab = course.sites["vienna"]
    if is_locked and course.sid.startswith("ct"):
        lab.client.write("PUT", "nodes", "pve1", "lxc", VMID, "config", data={"delete": "template"})
        lab.simulator.steer(f"/containers/{VMID}", {"config": {"lock": "migrate"}})
    elif is_locked:
        lock = {"lock": "migrate", "config": {"template": None}}
        lab.simulator.steer(f"/vms/{VMID}", lock)
    course.given = {**course.given, "state": "returned", "confirm": ["mover"]}


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("way", repeated([*WAYS, *OF_CONTAINERS], first=4))
def test_each_write_of_a_way_has_a_row(unused: Lab, munich: Lab, way: str) -> None:
    """A new write of a move is noticed here until it has one."""
    course = begin(unused, munich, way)
    rows = [row for rows in (WAYS, OF_CONTAINERS) for writes in rows.values() for row in writes]
    for lab in course.sites.values():
        lab.simulator.reset_log()
    for _number in range(RUNS):
        if not (course.run() or {})["changed"]:
            break
    missing: set[tuple[str, str, str]] = set()
    for site, lab in course.sites.items():
        for one in lab.simulator.writes():
            is_known = any(
                row[:2] == (site, one["method"]) and re.search(row[2], one["path"]) for row in rows
            )
            if not is_known and not BY_OTHERS.search(one["path"]):
                missing.add((site, one["method"], one["path"]))
    assert missing == set()
