"""Module clone against the simulator: made, completed, left alone, refused.

In parallel and from what others left.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.clone.run import (
    run as converge_clone,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from tests.modules.clone_lab import (
    BASE,
    CLONE,
    FILES,
    LOCAL,
    MINE,
    REFUSED,
    RUNNING,
    THEIRS,
    make_sources,
)
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.test_vm_lifecycle import comparable


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    """A cluster with things to clone."""
    with open_lab("--lag-s", "0.2") as opened:
        make_sources(opened)
        yield opened


@pytest.fixture
def rough(lab: Lab) -> Iterator[Lab]:
    yield lab
    lab.simulator.clear_faults()


def clone(lab: Lab, *, check: bool = False, **options: Any) -> dict[str, Any]:
    result = lab.run("clone", check=check, **options)
    assert not result.get("failed"), result
    return result


def refused(lab: Lab, **options: Any) -> dict[str, Any]:
    lab.simulator.reset_log()
    result = lab.run("clone", **options)
    assert result.get("failed"), result
    assert lab.simulator.writes() == []
    assert "Traceback" not in str(result)
    return result


def named(lab: Lab, name: str) -> list[int]:
    """Return the number of every VM of that name that really exists."""
    rows = [
        row for node in ("pve1", "pve2", "pve3") for row in lab.client.get("nodes", node, "qemu")
    ]
    return [row["vmid"] for row in rows if row.get("name") == name]


def clone_data(lab: Lab) -> dict[str, Any]:
    (entry,) = [row for row in lab.simulator.writes() if row["path"].endswith("/clone")]
    return dict(entry["params"])


NEW: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "linked": ({"source": "debian-13"}, {"full": "0"}),
    "sized": (
        {
            "source": 9000,
            "tenant": "acme",
            "pool": "acme",
            "cores": 4,
            "memory": "4G",
            "disks": [
                {"name": "scsi0", "size": "9G"},
                {"name": "scsi1", "size": 1, "storage": "ceph"},
            ],
            "nics": [{"network": "lan", "vlan": 7, "ip": "10.0.0.5/24"}, {"network": "dmz"}],
            "cloud_init": {"user": "ops", "password": "hunter2222"},
            "tags": ["web"],
            "description": "a clone",
            "state": "started",
        },
        {"full": "0", "pool": "acme"},
    ),
    "elsewhere": ({"source": "debian-13", "node": "pve3"}, {"full": "0", "target": "pve3"}),
    "full": ({"source": "debian-13", "node": "pve1", "full": True}, {"full": "1"}),
    "storage": (
        {"source": "debian-13", "node": "pve1", "storage": "local-lvm"},
        {"full": "1", "storage": "local-lvm"},
    ),
    "format": (
        {
            "source": "debian-13",
            "node": "pve1",
            "storage": "local",
            "format": "qcow2",
            "full": True,
        },
        {"full": "1", "storage": "local", "format": "qcow2"},
    ),
    "two-storages": (
        {
            "source": "debian-13",
            "node": "pve1",
            "storage": "local-lvm",
            "disks": [{"name": "scsi0", "storage": "local"}],
        },
        {"full": "1", "storage": "local-lvm"},
    ),
    "local-storage-elsewhere": (
        {"source": "debian-13", "node": "pve2", "storage": "local-lvm"},
        {"target": "pve2"},
    ),
    "local-disks": ({"source": f"source-{LOCAL}"}, {"full": "0"}),
    "local-disks-elsewhere": (
        {"source": LOCAL, "node": "pve2", "full": True, "state": "started"},
        {"full": "1"},
    ),
    "local-linked-elsewhere": ({"source": LOCAL, "node": "pve3"}, {"full": "0"}),
    "files": ({"source": BASE}, {"full": "0"}),
    "files-elsewhere": ({"source": BASE, "node": "pve3"}, {"full": "1"}),
    "of-a-vm": ({"source": f"source-{RUNNING}", "state": "stopped"}, {"full": "1"}),
    "of-a-snapshot": (
        {"source": RUNNING, "snapshot": "before"},
        {"full": "1", "snapname": "before"},
    ),
    "linked-to-a-snapshot": (
        {"source": RUNNING, "snapshot": "before", "full": False, "node": "pve1"},
        {"full": "0", "snapname": "before"},
    ),
    "mine": ({"source": MINE, "tenant": "acme"}, {"full": "1"}),
    "shared": (
        {"source": THEIRS, "tenant": "acme", "shared_sources": [f"source-{THEIRS}"]},
        {"full": "0"},
    ),
}


@pytest.mark.parametrize("case", NEW)
def test_made_as_foreseen_and_then_left_alone(lab: Lab, name: str, case: str) -> None:
    options, asked = NEW[case]
    said: dict[str, Any] = {"name": name, **options}
    lab.simulator.reset_log()
    foreseen = clone(lab, check=True, **said)
    assert lab.simulator.writes() == []
    assert foreseen["changed"]
    made = clone(lab, **said)
    assert {key: clone_data(lab).get(key) for key in asked} == asked
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"] == made["done"]
    source = made["vm"]["cloned_from"]
    assert source in (9000, LOCAL, RUNNING, THEIRS, MINE, BASE)
    assert made["vm"]["vmid"] != source
    assert made["vm"]["name"] == name
    after = made["diff"]["after"]
    where = {key: made["vm"][key] for key in ("vmid", "node", "status", "pool") if made["vm"][key]}
    assert comparable({**made["vm"]["config"], **where}) == comparable(after)
    assert "pve.fleet" not in made["vm"]["description"]

    lab.simulator.reset_log()
    again = clone(lab, **said)
    assert not again["changed"], again["plan"]
    assert again["vm"]["vmid"] == made["vm"]["vmid"]
    assert again["diff"]["before"] == again["diff"]["after"] == {}
    assert lab.simulator.writes() == []
    assert named(lab, name) == [made["vm"]["vmid"]]


def test_a_snapshot_is_cloned_as_it_was(lab: Lab, name: str) -> None:
    made = clone(
        lab, name=name, source=RUNNING, snapshot="before", storage="local-lvm", node="pve1"
    )
    assert made["vm"]["config"]["scsi0"] == {"storage": "local-lvm", "size": "2G"}
    assert made["vm"]["description"] == ""


def test_a_disk_goes_where_it_is_asked_for(lab: Lab, name: str) -> None:
    made = clone(lab, name=name, **NEW["two-storages"][0])
    assert made["vm"]["config"]["scsi0"]["storage"] == "local"
    moved = clone(lab, name=f"{name[:40]}-x", **NEW["local-storage-elsewhere"][0])
    assert moved["vm"]["node"] == "pve2"
    assert moved["vm"]["config"]["scsi0"]["storage"] == "local-lvm"


def test_a_number_alone_is_enough(lab: Lab) -> None:
    made = clone(lab, vmid=23456, source="debian-13")
    assert (made["vm"]["vmid"], made["vm"]["name"]) == (23456, "Copy-of-VM-debian-13")
    assert not clone(lab, vmid=23456, source="debian-13")["changed"]


def test_what_is_there_is_left_as_it_is_but_for_its_power(lab: Lab, name: str) -> None:
    made = clone(lab, name=name, source="debian-13", cores=3)
    said: dict[str, Any] = {
        "name": name,
        "source": 9000,
        "cores": 5,
        "node": "pve3",
        "description": "x",
        "tags": ["y"],
    }
    assert not clone(lab, **said)["changed"]
    lab.vm(name=name, memory="3G")
    assert not clone(lab, **said)["changed"]
    foreseen = clone(lab, check=True, **said, state="started")
    started = clone(lab, **said, state="started")
    assert started["diff"] == foreseen["diff"]
    assert started["diff"]["before"] == {"status": "stopped"}
    assert started["diff"]["after"] == {"status": "running"}
    assert started["vm"]["config"]["cores"] == 3
    assert started["vm"]["node"] == made["vm"]["node"]
    assert (
        clone(lab, **said, state="stopped", force=True, shutdown_timeout=0)["vm"]["status"]
        == "stopped"
    )


@pytest.mark.parametrize(
    ("options", "category", "word"), REFUSED, ids=lambda value: str(value)[:70]
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, word: str
) -> None:
    result = refused(lab, **options)
    assert result["error"]["category"] == category, result["msg"]
    assert word in result["msg"]


def test_a_source_on_a_node_that_is_down() -> None:
    with open_lab("--lag-s", "0", "--proxy-delay-s", "0.1") as down:
        down.simulator.steer("nodes/pve2", {"online": False})
        result = refused(down, name="x", source="alma-10", node="pve1")
        assert result["error"]["category"] == "NodeUnhealthy"
        assert "pve2" in result["msg"]
        assert clone(down, name="x", source="debian-13")["vm"]["node"] != "pve2"


def test_the_older_version_clones_as_well() -> None:
    with open_lab("--lag-s", "0", "--pve-version", "8.4") as old:
        said: dict[str, Any] = {
            "name": "x",
            "source": "debian-13",
            "node": "pve2",
            "cores": 3,
            "state": "started",
        }
        assert clone(old, check=True, **said)["changed"]
        assert clone(old, **said)["vm"]["status"] == "running"
        assert not clone(old, **said)["changed"]


def test_a_source_name_that_means_two(lab: Lab) -> None:
    for vmid in (9801, 9802):
        lab.client.task("POST", "nodes", "pve1", "qemu", data={"vmid": vmid, "name": "twice"})
    time.sleep(0.5)  # until the listing knows both names
    result = refused(lab, **CLONE, source="twice")
    assert result["error"]["category"] == "Conflict"
    assert "9801" in result["msg"]
    lab.client.task("POST", "nodes", "pve1", "qemu", 9802, "template")
    time.sleep(0.5)
    assert clone(lab, check=True, **CLONE, source="twice")["plan"][0].startswith(
        "Clone VM 'twice' (9802)"
    )


def test_a_clone_of_something_else_is_a_conflict(lab: Lab, name: str) -> None:
    made = clone(lab, name=name, source="debian-13", tenant="acme")
    for said in (
        {"name": name},
        {"vmid": made["vm"]["vmid"]},
        {"vmid": made["vm"]["vmid"], "name": name},
    ):
        result = refused(lab, **said, source="alma-10", tenant="acme")
        assert result["error"]["reason"] == "other origin"
        assert "9000" in result["msg"]
    assert (
        refused(lab, vmid=made["vm"]["vmid"], name="another", source=9000)["error"]["reason"]
        == "other origin"
    )
    refusal = refused(lab, vmid=made["vm"]["vmid"], source=9000, tenant="globex")
    assert refusal["error"]["reason"] == "foreign tenant"
    other = clone(lab, name=name, source=9000, tenant="globex")
    assert other["vm"]["vmid"] != made["vm"]["vmid"]


def leave_unfinished(lab: Lab, name: str, vmid: int) -> None:
    """Leave what a run leaves that ended right after its clone."""
    marker = Marker(origin=9000, run="gone", tenant="tenant_acme").render()
    data = {"newid": vmid, "name": name, "full": 0, "description": marker}
    lab.client.task("POST", "nodes", "pve1", "qemu", 9000, "clone", data=data)


@pytest.mark.usefixtures("alone", "fast")
def test_an_unfinished_clone_is_completed(lab: Lab, name: str) -> None:
    leave_unfinished(lab, name, 31001)
    refusal = refused(lab, vmid=31001, tenant="globex", source=9000)
    assert refusal["error"]["reason"] == "foreign tenant"
    said: dict[str, Any] = {
        "name": name,
        "tenant": "acme",
        "source": "debian-13",
        "cores": 3,
        "disks": [{"name": "scsi0", "size": "9G"}],
        "cloud_init": {"password": "hunter2222"},
        "node": "pve2",
        "state": "started",
    }
    foreseen = clone(lab, check=True, **said)
    made = clone(lab, **said)
    assert made["changed"]
    assert made["diff"] == foreseen["diff"]
    assert made["plan"] == foreseen["plan"]
    vm = made["vm"]
    assert (vm["vmid"], vm["node"], vm["tenant"], vm["status"]) == (
        31001,
        "pve2",
        "acme",
        "running",
    )
    assert vm["config"]["scsi0"]["size"] == "9G"
    assert vm["config"]["cipassword"] == "(set)"
    assert vm["cloned_from"] == 9000
    assert not clone(lab, **said)["changed"]


STUMBLES: list[tuple[str, str, dict[str, Any]]] = [
    ("PUT", "/resize$", {"disks": [{"name": "scsi0", "size": "9G"}]}),
    ("POST", "/config$", {"disks": [{"name": "scsi1", "size": 1, "storage": "ceph"}]}),
    ("POST", "/migrate$", {"source": LOCAL, "node": "pve2"}),
    (
        "POST",
        "/move_disk$",
        {"storage": "local-lvm", "disks": [{"name": "scsi0", "storage": "local"}]},
    ),
    ("POST", "/status/start$", {"state": "started"}),
]


@pytest.mark.usefixtures("alone", "fast")
@pytest.mark.parametrize(("method", "path", "options"), STUMBLES, ids=lambda value: str(value)[:50])
def test_what_was_started_is_completed(
    rough: Lab, name: str, method: str, path: str, options: dict[str, Any]
) -> None:
    """Wherever a run ends, the next one does the rest, with the same VM."""
    said = {
        "name": name,
        "source": "debian-13",
        "node": "pve1",
        "tenant": "acme",
        "cores": 3,
        **options,
    }
    rough.simulator.fault(method=method, path=path, status=500, message="the disk is on fire")
    result = rough.run("clone", **said)
    assert result["error"]["category"] == "ApiError", result
    assert result["error"]["done"]
    assert result["changed"]
    rough.simulator.clear_faults()
    foreseen = clone(rough, check=True, **said)
    made = clone(rough, **said)
    assert made["changed"]
    assert made["plan"] == foreseen["plan"]
    assert named(rough, name) == [made["vm"]["vmid"]]
    assert made["vm"]["node"] == said["node"]
    assert made["vm"]["config"]["cores"] == 3
    assert not clone(rough, **said)["changed"]
    assert not rough.run(
        "vm", **{key: said[key] for key in said if key not in ("source", "storage")}
    )["changed"]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_lost_answer_makes_no_second_vm(rough: Lab, name: str, moment: str) -> None:
    rough.simulator.fault(method="POST", path="/clone$", drop=moment)
    made = clone(rough, name=name, source="debian-13", tenant="acme", cores=3)
    assert named(rough, name) == [made["vm"]["vmid"]]
    rough.simulator.clear_faults()
    assert not clone(rough, name=name, source="debian-13", tenant="acme")["changed"]


def test_a_locked_source_is_waited_for_and_then_named(rough: Lab, name: str) -> None:
    rough.simulator.steer("vms/9001", {"lock": "backup"})
    result = refused(rough, name=name, source=9001, lock_timeout=1)
    assert result["error"]["category"] == "Locked"
    assert "backup" in result["msg"]
    timer = threading.Timer(3, rough.simulator.steer, ("vms/9001", {"lock": None}))
    timer.start()
    try:
        assert clone(rough, name=name, source=9001)["vm"]["cloned_from"] == 9001
    finally:
        timer.join()


def test_a_task_that_fails_leaves_nothing_and_tells_its_end(rough: Lab, name: str) -> None:
    rough.simulator.steer(
        f"vms/{FILES}", {"config": {"scsi5": "local:9120/vm-9120-disk-7.raw,size=1G"}}
    )
    result = rough.run("clone", name=name, source=FILES)
    rough.simulator.steer(f"vms/{FILES}", {"config": {"scsi5": None}})
    assert result["failed"]
    assert result["error"]["upid"].startswith("UPID:pve1:")
    assert result["error"]["log"]
    assert named(rough, name) == []


def test_a_task_that_fails_midway_is_started_again(rough: Lab, name: str) -> None:
    said: dict[str, Any] = {"name": name, "source": "debian-13", "full": True, "cores": 3}
    rough.simulator.fault(task="qmclone", fail="no space left on device")
    result = rough.run("clone", **said)
    assert result["error"]["category"] == "QuotaExceeded"
    assert result["error"]["upid"].split(":")[5] == "qmclone"
    assert "no space left" in result["msg"]
    assert named(rough, name) == []
    assert clone(rough, **said)["changed"]
    assert len(named(rough, name)) == 1


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("qmclone", {}),
        ("qmclone", {"full": True}),
        ("resize", {"disks": [{"name": "scsi0", "size": "9G"}]}),
        ("qmstart", {"state": "started"}),
    ],
)
def test_a_task_that_ends_with_warnings(
    rough: Lab, name: str, kind: str, options: dict[str, Any]
) -> None:
    said = {"name": name, "source": "debian-13", "node": "pve1", **options}
    rough.simulator.fault(task=kind, warn="the disk is slow")
    made = clone(rough, **said)
    assert made["changed"]
    assert len(made["warnings"]) == 1
    assert made["warnings"][0].endswith("the disk is slow")
    assert not clone(rough, **said)["changed"]


LOCKED = "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout"


def many(lab: Lab, source: object, count: int, prefix: str) -> list[dict[str, Any]]:
    """Return what that many clones at once came to, each by a client of its own."""

    def make(index: int) -> dict[str, Any]:
        with connect({**lab.connection, "lock_timeout": 120}, {}) as client:
            options: dict[str, Any] = {
                "name": f"{prefix}{index}",
                "source": str(source),
                "tenant": "acme",
                "cores": 3,
            }
            options["shared_sources"] = [str(source)]
            return dict(converge_clone(options, client).values["vm"])

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(make, range(count)))


def check_many(lab: Lab, made: list[dict[str, Any]], source: int, prefix: str) -> None:
    assert len({vm["vmid"] for vm in made}) == len(made)
    for index, vm in enumerate(made):
        assert (vm["name"], vm["cloned_from"], vm["tenant"]) == (f"{prefix}{index}", source, "acme")
        config = lab.config(vm)
        assert config["cores"] == 3
        assert "run=" not in config["description"]


def test_ten_clones_at_once_wait_for_a_lock_in_the_reply(rough: Lab) -> None:
    rough.simulator.fault(method="POST", path="/clone$", status=500, message=LOCKED, times=5)
    check_many(rough, many(rough, 9000, 10, "ten-"), 9000, "ten-")


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize(
    "fault",
    [
        {"method": "POST", "path": "/clone$", "status": 500, "message": LOCKED},
        {"task": "qmclone", "fail": LOCKED},
    ],
    ids=["reply", "exit status"],
)
def test_a_lock_that_outlasts_its_budget_is_named(
    rough: Lab, name: str, fault: dict[str, Any]
) -> None:
    rough.simulator.fault(**fault, times=None)
    result = rough.run("clone", name=name, source=9000, lock_timeout=1)
    assert result["error"]["category"] == "Locked"
    assert result["error"]["tries"] > 1
    assert "lock_timeout" in result["msg"]
    assert named(rough, name) == []


def test_ten_clones_at_once_wait_for_a_lock_in_the_exit_status() -> None:
    """The lock of a running VM is not shared by the tasks that clone it: those that wait too long
    fail.
    """
    with open_lab("--task-ms", "qmclone=700,default=20", "--lag-s", "0") as busy:
        made = {"vmid": RUNNING, "name": "busy", "scsi0": "ceph:1", "start": 1}
        busy.client.task("POST", "nodes", "pve1", "qemu", data=made)
        check_many(busy, many(busy, RUNNING, 10, "ten-"), RUNNING, "ten-")
        tasks = busy.client.get("nodes", "pve1", "tasks", typefilter="qmclone", limit=100)
        ends = [task["status"] for task in tasks]
        assert ends.count("OK") == 10
        assert any("can't lock file" in end for end in ends)


@pytest.mark.usefixtures("alone", "fast")
@pytest.mark.parametrize("whose", ["name", "number"])
def test_a_clone_that_outlasts_its_time_is_picked_up(whose: str) -> None:
    """The next run finds the clone while PVE still copies it, waits until that is over, and
    completes it.
    """
    with open_lab("--task-ms", "qmclone=3000,default=20", "--lag-s", "0") as slow:
        said: dict[str, Any] = {
            "name": "late",
            "source": "debian-13",
            "full": True,
            "cores": 3,
            "node": "pve1",
            "tenant": "acme",
        }
        if whose == "number":
            said["vmid"] = 12345
        result = slow.run("clone", task_timeout=1, **said)
        assert result["error"]["category"] == "TaskTimeout"
        upid = result["error"]["upid"]
        assert upid.startswith("UPID:pve1:")
        result = slow.run("clone", task_timeout=1, **said)
        assert result["error"]["category"] == "TaskTimeout"
        assert result["error"]["upid"] == upid
        made = slow.run("clone", **said)
        assert made.get("changed"), made
        assert made["vm"]["config"]["cores"] == 3
        assert made["vm"]["lock"] is None
        assert len(named(slow, "late")) == 1
        assert not slow.run("clone", **said)["changed"]
