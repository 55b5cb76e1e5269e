# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What modules come to in a playbook: done, refused, locked, failed, late."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import with_directory
from tests.modules.clone_lab import BASE, LOCAL, REFUSED, make_sources
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.snapshot_lab import machine, names, prepare, settle, take
from tests.plays.outcomes import Task, environment_of, outcomes, refused
from tests.plays.provision_helpers import Player


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0", "--proxy-delay-s", "0.1") as opened:
        make_sources(prepare(opened))
        yield opened


@pytest.fixture
def player(tmp_path: Path, lab: Lab) -> Iterator[Player]:
    yield Player(tmp_path, environment_of(lab))
    lab.simulator.clear_faults()
    lab.simulator.steer("/settings", {"task_ms": {"qmclone": 20, "qmsnapshot": 20, "download": 20}})


def unlock_later(lab: Lab, vmid: int, method: str, seconds: float = 3.0) -> None:
    """Lock a VM until that number of seconds after the first request of that kind for it."""
    lab.simulator.steer(f"/vms/{vmid}", {"lock": "backup"})

    def free() -> None:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if any(
                f"/qemu/{vmid}/" in one["path"] + "/" and one["method"] == method
                for one in lab.simulator.log()
            ):
                break
            time.sleep(0.2)
        time.sleep(seconds)
        lab.simulator.steer(f"/vms/{vmid}", {"lock": None})

    threading.Thread(target=free, daemon=True).start()


# Module clone.


def test_every_refusal_of_a_clone(lab: Lab, player: Player) -> None:
    tasks = [
        refused(f"{number} {word}", "clone", options, category)
        for number, (options, category, word) in enumerate(REFUSED)
    ]
    for arguments in (("--check",), ()):
        settle(lab)
        shown = outcomes(player, tasks, *arguments)
        assert lab.simulator.writes() == []
        for number, (_options, _category, word) in enumerate(REFUSED):
            assert word in shown[f"{number} {word}"]["msg"]


@pytest.mark.slow
def test_locks_and_tasks_of_a_clone(lab: Lab, player: Player) -> None:
    late = {"name": "late", "source": "debian-13", "full": True, "node": "pve1"}
    tasks = [
        refused(
            "locked for long", "clone", {"name": "c1", "source": 9130, "lock_timeout": 1}, "Locked"
        ),
        Task("locked for 3 s", "clone", {"name": "c2", "source": 9001}, changed=True),
        Task("another's lock", "clone", {"name": "c3", "source": BASE}, changed=True),
        refused("a task that fails", "clone", {"name": "c4", "source": LOCAL}, "TaskFailed"),
        Task("and then not", "clone", {"name": "c4", "source": LOCAL}, changed=True),
        Task("warnings", "clone", {"name": "c5", "source": 9140}, changed=True),
        Task("no warnings", "clone", {"name": "c5", "source": 9140}, changed=False),
        refused("outlasts its timeout", "clone", {**late, "task_timeout": 1}, "TaskTimeout"),
        Task("picked up", "clone", {**late, "cores": 3}, changed=True),
        Task("and done", "clone", {**late, "cores": 3}, changed=False),
    ]
    settle(lab)
    lab.simulator.steer("/vms/9130", {"lock": "backup"})
    unlock_later(lab, 9001, "GET")
    lock = f"can't lock file '/var/lock/qemu-server/lock-{BASE}.conf' - got timeout"
    lab.simulator.fault(task="qmclone", id=BASE, fail=lock, times=2)
    lab.simulator.fault(task="qmclone", id=LOCAL, fail="the pool is on fire")
    lab.simulator.fault(task="qmclone", id=9140, warn="the pool is slow")
    lab.simulator.steer("/settings", {"task_ms": {"qmclone": 2500}})
    shown = outcomes(player, tasks)
    lab.simulator.steer("/vms/9130", {"lock": None})
    assert shown["a task that fails"]["error"]["upid"].split(":")[5] == "qmclone"
    assert (
        shown["a task that fails"]["error"]["log"][-1]
        == "TASK ERROR: clone failed: the pool is on fire"
    )
    assert shown["warnings"]["warnings"][0].endswith("the pool is slow")
    assert not shown["no warnings"].get("warnings")
    assert shown["outlasts its timeout"]["error"]["upid"].split(":")[5] == "qmclone"
    assert shown["picked up"]["vm"]["config"]["cores"] == 3
    assert shown["picked up"]["vm"]["vmid"] == shown["and done"]["vm"]["vmid"]
    rows = [
        row for node in ("pve1", "pve2", "pve3") for row in lab.client.get("nodes", node, "qemu")
    ]
    assert sorted(
        row["name"] for row in rows if row["name"] in ("c1", "c2", "c3", "c4", "c5", "late")
    ) == ["c2", "c3", "c4", "c5", "late"]


# Module snapshot.


@pytest.mark.slow
def test_refusals_locks_and_tasks_of_snapshots(lab: Lab, player: Player) -> None:
    vm, locked, busy, bad = (machine(lab, running=True) for _number in range(4))
    raw, tank = machine(lab, disk="local:1,format=raw"), machine(lab, disk="tank:1")
    theirs = machine(lab, tags="tenant_globex")
    for one in (vm, bad):
        take(lab, one, "s1")
    take(lab, tank, "s1", "s2")
    one, s1 = {"vmid": vm["vmid"]}, {"snapshot": "s1"}
    absent, back = {**s1, "state": "absent"}, {**s1, "state": "rolled_back"}
    tasks = [
        refused("no storage for it", "snapshot", {"vmid": raw["vmid"], **s1}, "NotSupported"),
        refused("wrong name", "snapshot", {**one, "snapshot": "1"}, "ValidationFailed"),
        refused("reserved name", "snapshot", {**one, "snapshot": "current"}, "ValidationFailed"),
        refused("retention of nothing", "snapshot", {**one, **s1, "keep": 1}, "ValidationFailed"),
        refused(
            "another tenant",
            "snapshot",
            {"vmid": theirs["vmid"], **s1, "tenant": "acme"},
            "Conflict",
        ),
        refused("unknown VM", "snapshot", {"vmid": 77777, **s1}, "NotFound"),
        refused(
            "unknown snapshot",
            "snapshot",
            {**one, "snapshot": "s9", "state": "rolled_back"},
            "NotFound",
        ),
        refused("template", "snapshot", {"vmid": 9000, **s1}, "Conflict"),
        refused("newer snapshots", "snapshot", {"vmid": tank["vmid"], **back}, "Conflict"),
        Task("unchanged", "snapshot", {**one, **s1}, changed=False),
    ]
    for arguments in (("--check",), ()):
        settle(lab)
        outcomes(player, tasks, *arguments)
        assert lab.simulator.writes() == []

    slow = {**one, "snapshot": "slow"}
    tasks = [
        refused(
            "locked for long",
            "snapshot",
            {"vmid": locked["vmid"], **s1, "lock_timeout": 1},
            "Locked",
        ),
        Task("locked for 3 s", "snapshot", {"vmid": busy["vmid"], **s1}, changed=True),
        refused("a snapshot that fails", "snapshot", {**one, "snapshot": "s2"}, "TaskFailed"),
        refused("a rollback that fails", "snapshot", {"vmid": bad["vmid"], **back}, "TaskFailed"),
        refused(
            "its lock", "snapshot", {"vmid": bad["vmid"], **absent, "lock_timeout": 1}, "Locked"
        ),
        Task("a snapshot with warnings", "snapshot", {**one, "snapshot": "s2"}, changed=True),
        Task(
            "a rollback with warnings",
            "snapshot",
            {**one, "snapshot": "s2", "state": "rolled_back"},
            changed=True,
        ),
        Task(
            "a deletion with warnings",
            "snapshot",
            {**one, "snapshot": "s2", "state": "absent"},
            changed=True,
        ),
        Task(
            "no warnings", "snapshot", {**one, "snapshot": "s2", "state": "absent"}, changed=False
        ),
        refused("outlasts its timeout", "snapshot", {**slow, "task_timeout": 1}, "TaskTimeout"),
        Task("picked up", "snapshot", slow, changed=False),
    ]
    settle(lab)
    lab.simulator.steer(f"/vms/{locked['vmid']}", {"lock": "backup"})
    unlock_later(lab, busy["vmid"], "POST")
    lab.simulator.fault(task="qmsnapshot", id=vm["vmid"], fail="the pool is on fire")
    lab.simulator.fault(task="qmrollback", id=bad["vmid"], fail="the pool is on fire")
    for kind in ("qmsnapshot", "qmrollback", "qmdelsnapshot"):
        lab.simulator.fault(task=kind, id=vm["vmid"], warn="the pool is slow")
    lab.simulator.steer("/settings", {"task_ms": {"qmsnapshot": 2500}})
    shown = outcomes(player, tasks)
    for name in ("a snapshot that fails", "a rollback that fails"):
        assert shown[name]["error"]["log"][-1] == "TASK ERROR: the pool is on fire"
    assert "qm unlock" in shown["its lock"]["msg"]
    for name in (
        "a snapshot with warnings",
        "a rollback with warnings",
        "a deletion with warnings",
    ):
        assert shown[name]["warnings"][0].endswith("the pool is slow")
    assert not shown["no warnings"].get("warnings")
    assert shown["outlasts its timeout"]["error"]["upid"].split(":")[5] == "qmsnapshot"
    assert names(lab, vm) == ["s1", "slow"]


# Module storage_download.


def test_downloads(lab: Lab, player: Player) -> None:
    """No server has the files: what is here is refused, or there already, or the task's
    own fate.
    """
    said = {"storage": "local", "node": "pve1", "source_url": "http://127.0.0.1:9/x.iso"}
    lab.simulator.fault(task="download", fail="the disk is full")
    tasks = [
        refused(
            "no URL",
            "storage_download",
            {**said, "source_url": "ftp://x/y.iso"},
            "ValidationFailed",
        ),
        refused(
            "no storage for it",
            "storage_download",
            {**said, "storage": "ceph"},
            "ConfigurationError",
        ),
        refused("unknown node", "storage_download", {**said, "node": "pve9"}, "ConfigurationError"),
        refused(
            "no file",
            "storage_download",
            {"storage": "local", "filename": "missing.iso"},
            "NotFound",
        ),
    ]
    settle(lab)
    outcomes(player, tasks, "--check")
    outcomes(player, tasks)
    assert lab.simulator.writes() == []
    shown = outcomes(player, [refused("no server answers", "storage_download", said, "TaskFailed")])
    assert shown["no server answers"]["error"]["upid"].split(":")[5] == "download"
    assert shown["no server answers"]["error"]["log"]


# Module pool.


def test_pools(lab: Lab, player: Player) -> None:
    """What is refused is refused in check mode too.

    A lock that is held for a moment is waited for.
    """
    vm, other = machine(lab), machine(lab)
    tasks = [
        refused("no name for a pool", "pool", {"name": "a b"}, "ValidationFailed"),
        refused("no such VM", "pool", {"name": "outcome", "vms": [987654]}, "NotFound"),
        refused(
            "no such storage",
            "pool",
            {"name": "outcome", "storages": ["nosuch"]},
            "ConfigurationError",
        ),
        refused("no pool above", "pool", {"name": "nosuch/sub"}, "ConfigurationError"),
        Task("already gone", "pool", {"name": "outcome", "state": "absent"}, changed=False),
    ]
    settle(lab)
    outcomes(player, tasks, "--check")
    outcomes(player, tasks)
    assert lab.simulator.writes() == []
    lab.simulator.fault(
        method="POST",
        path="/pools$",
        status=500,
        message="create pool failed: cfs-lock 'file-user_cfg' error: got lock request timeout",
    )
    made = {"name": "outcome", "comment": "both", "vms": [vm["vmid"]]}
    results = outcomes(
        player,
        [
            Task("made behind a lock", "pool", made, changed=True),
            Task("once more", "pool", made, changed=False),
            Task("another", "pool", {"name": "outcome2", "vms": [other["vmid"]]}, changed=True),
            refused(
                "in another pool", "pool", {"name": "outcome", "vms": [other["vmid"]]}, "Conflict"
            ),
            refused("not empty", "pool", {"name": "outcome", "state": "absent"}, "Conflict"),
            Task("read", "pool_info", {"name": "outcome"}, changed=False),
            Task(
                "emptied and gone",
                "pool",
                {"name": "outcome", "state": "absent", "force": True},
                changed=True,
            ),
            Task(
                "the other too",
                "pool",
                {"name": "outcome2", "state": "absent", "force": True},
                changed=True,
            ),
        ],
    )
    assert results["read"]["pools"] == [results["made behind a lock"]["pool"]]
    assert results["emptied and gone"]["pool"] is None


# Modules for users and rights, and for options of the cluster.

_GRANT = {"user": "ops@pve", "role": "PVEAuditor"}
_ACL = {"path": "/pool/acme", "grants": [_GRANT]}
_TAGS = {"registered_tags": ["outcome"]}

ACCESS_REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("group", {"name": "a b"}, "ValidationFailed"),
    ("user", {"name": "alice"}, "ValidationFailed"),
    ("user", {"name": "new@nosuch"}, "ConfigurationError"),
    ("user", {"name": "new@pve", "groups": ["nosuch"]}, "NotFound"),
    ("user", {"name": "new@pve", "expire": "2001-01-01"}, "ValidationFailed"),
    ("user", {"name": "root@pam", "state": "absent"}, "Conflict"),
    ("role", {"name": "Outcome", "privileges": ["VM.Fly"]}, "ValidationFailed"),
    ("role", {"name": "PVEAdmin", "privileges": ["VM.Audit"]}, "ValidationFailed"),
    ("acl", {"path": "/bogus", "grants": [_GRANT]}, "ValidationFailed"),
    ("acl", {**_ACL, "grants": [{**_GRANT, "role": "NoSuch"}]}, "NotFound"),
    ("acl", {**_ACL, "grants": [{**_GRANT, "user": "nosuch@pve"}]}, "NotFound"),
    ("token", {"owner": "nosuch@pve", "name": "tt"}, "NotFound"),
    ("token", {"owner": "ops@pve", "name": "tt", "expire": "2001-01-01"}, "ValidationFailed"),
    ("token", {"owner": "ops@pve", "name": "tt", "state": "rotated"}, "NotFound"),
    ("cluster_options", {"mac_prefix": "01:00:00"}, "ValidationFailed"),
    ("cluster_options", {"crs": {"ha_auto_rebalance_margin": "5"}}, "ValidationFailed"),
    ("realm_sync", {"name": "nosuch", "scope": "both"}, "ConfigurationError"),
    ("realm_sync", {"name": "pve", "scope": "both"}, "ConfigurationError"),
]
# What each does, and what it has changed of itself after that.
ACCESS_DONE: list[tuple[str, dict[str, Any]]] = [
    ("group", {"name": "outcome", "comment": "both"}),
    ("user", {"name": "outcome@pve", "groups": ["outcome"]}),
    ("role", {"name": "Outcome", "privileges": ["VM.Audit", "agent_read"]}),
    ("acl", {"path": "/pool/acme", "grants": [{"group": "outcome", "role": "Outcome"}]}),
    ("token", {"owner": "outcome@pve", "name": "tt"}),
    ("cluster_options", _TAGS),
    ("realm_sync", {"name": "ldap", "scope": "both"}),
]
ACCESS_READ: list[tuple[str, dict[str, Any]]] = [
    ("group_info", {"name": "outcome"}),
    ("user_info", {"name": "outcome@pve"}),
    ("role_info", {"name": "Outcome"}),
    ("acl_info", {"path": "/pool/acme"}),
    ("token_info", {"owner": "outcome@pve", "name": "tt"}),
    ("cluster_options_info", {}),
    ("realm_info", {"name": "ldap"}),
]
# In this order each is still in use, or has gone with what is above it.
ACCESS_GONE: list[tuple[str, dict[str, Any], str]] = [
    ("role", {"name": "Outcome"}, "Conflict"),
    ("group", {"name": "outcome"}, "Conflict"),
    ("token", {"owner": "outcome@pve", "name": "tt"}, ""),
    ("user", {"name": "outcome@pve"}, ""),
    ("acl", {"path": "/pool/acme", "grants": [{"group": "outcome", "role": "Outcome"}]}, ""),
    ("group", {"name": "outcome"}, ""),
    ("role", {"name": "Outcome"}, ""),
    ("cluster_options", _TAGS, ""),
]


def test_refusals_about_users_and_rights(lab: Lab, player: Player) -> None:
    tasks = [
        refused(f"{number} {module}", module, options, category)
        for number, (module, options, category) in enumerate(ACCESS_REFUSED)
    ]
    settle(lab)
    foreseen = outcomes(player, tasks, "--check")
    came_to = outcomes(player, tasks)
    assert lab.simulator.writes() == []
    for name, result in came_to.items():
        assert result["msg"] == foreseen[name]["msg"]


def test_users_and_rights(lab: Lab, player: Player) -> None:
    """Each is done, again, read and taken away; the first one meets a lock."""
    with_directory(lab.client, lab.simulator)
    lab.simulator.fault(
        method="(POST|PUT)",
        path="/(access|cluster/options)",
        status=500,
        message="cfs-lock 'file-user_cfg' error: got lock request timeout",
        times=1,
    )
    tasks = [Task(f"do {one}", one, options, changed=True) for one, options in ACCESS_DONE]
    tasks += [Task(f"again {one}", one, options, changed=False) for one, options in ACCESS_DONE]
    tasks += [Task(f"read {one}", one, options, changed=False) for one, options in ACCESS_READ]
    for number, (module, options, category) in enumerate(ACCESS_GONE):
        changed = None if category else True
        absent = {**options, "state": "absent"}
        tasks.append(Task(f"{number} absent {module}", module, absent, category, changed))
    came_to = outcomes(player, tasks)
    assert came_to["do token"]["secret"]
    assert came_to["again token"]["secret"] is None
    assert came_to["read user_info"]["users"][0]["groups"] == ["outcome"]
    assert came_to["read cluster_options_info"]["cluster_options"]["registered_tags"] == ["outcome"]
    for module in ("group", "user", "role"):
        assert came_to[f"read {module}_info"][f"{module}s"][0]["name"].lower().startswith("outcome")


# What only looks.


def test_infos_of_a_cluster_in_trouble(lab: Lab, player: Player) -> None:
    """A node that is down, one in maintenance and a part that does not answer leave the rest, with
    reasons.
    """
    there = machine(lab, node="pve3")
    here = machine(lab)
    take(lab, here, "s1")
    quiet: dict[str, Any] = {"changed": False}
    tasks = [
        Task("nodes", "node_info", {"details": True}, **quiet),
        Task("one node", "node_info", {"node": "pve3"}, **quiet),
        refused("no such node", "node_info", {"node": "pve9"}, "ConfigurationError"),
        Task("its tasks", "task_info", {"name": here["name"], "log": True, "retries": 1}, **quiet),
        Task("drift", "drift_info", {"vms": [{"name": here["name"]}], "retries": 1}, **quiet),
        Task("report", "report_info", {"retries": 1}, **quiet),
        refused("no price", "report_info", {"prices": {"core": "free"}}, "ValidationFailed"),
        refused("no list of VMs", "drift_info", {"vms": [{"core": 1}]}, "ValidationFailed"),
        Task("estate", "estate_info", {"retries": 1}, **quiet),
        refused("no VM to export", "estate_info", {"vms": ["no-such-vm"]}, "NotFound"),
        refused("no such VM", "task_info", {"name": "no-such-vm"}, "NotFound"),
        Task("cluster", "cluster_info", {"networks": True, "failed_tasks": 3}, **quiet),
        Task(
            "trees", "snapshot_info", {"vms": [here["name"], there["name"]], "retries": 1}, **quiet
        ),
        refused(
            "wrong token",
            "cluster_info",
            {"token_secret": "00000000-0000-4000-8000-00000000dead"},
            "AuthenticationError",
        ),
        Task("table", "preflight_info", {"nodes": ["pve1", "pve3"], "bridges": ["vmbr0"]}, **quiet),
    ]
    settle(lab)
    lab.simulator.steer("/nodes/pve2", {"maintenance": True})
    lab.simulator.steer("/nodes/pve3", {"online": False})
    lab.simulator.fault(
        method="GET", path="/cluster/tasks$", status=500, message="internal error", times=None
    )
    try:
        for arguments in (("--check",), ()):
            shown = outcomes(player, tasks, *arguments)
        assert lab.simulator.writes() == []
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
        lab.simulator.steer("/nodes/pve2", {"maintenance": False})
    nodes = {node["node"]: node for node in shown["nodes"]["nodes"]}
    assert {name: node["health"]["status"] for name, node in nodes.items()} == {
        "pve1": "ok",
        "pve2": "warning",
        "pve3": "critical",
    }
    assert nodes["pve2"]["maintenance"]
    assert nodes["pve3"]["error"] == "the node is offline"
    assert nodes["pve1"]["kernel"]
    assert shown["one node"]["nodes"][0]["status"] == "offline"
    cluster = shown["cluster"]["cluster"]
    assert {"node pve2 is in maintenance", "node pve3 is offline"} <= set(
        cluster["health"]["reasons"]
    )
    assert [row["part"] for row in cluster["missing"]] == ["tasks"]
    assert shown["cluster"]["warnings"]
    assert [vm["snapshots"] is None for vm in shown["trees"]["vms"]] == [False, True]
    assert "pve3" in shown["trees"]["warnings"][0]
    assert not shown["table"]["passed"]
    assert [row["subject"] for row in shown["table"]["failed_checks"]] == ["pve3"]
