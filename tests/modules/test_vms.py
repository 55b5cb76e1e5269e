# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Module vms against the simulator: one plan for many VMs, carried out side by side, completed by a
rerun.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster import state as picture
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import FleetError
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet import execute as carry
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet import reservations as claims
from ansible_collections.pve.fleet.plugins.module_utils._guests.fleet.run import run
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.flow import apply as converge
from ansible_collections.pve.fleet.plugins.modules.vms import ENTRY
from tests.modules.estate_lab import Lab, first_number, open_lab, watched_tasks
from tests.modules.test_tenants import after_request, is_listing

BLANK: dict[str, Any] = {"disks": [{"size": 1, "storage": "ceph"}], "memory": "1G"}
WEB: dict[str, Any] = {"tenant": "acme", "source": "debian-13", "tags": ["web"]}


def named(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [{"name": name, **more} for name in names]


def done(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result that must not have failed."""
    assert not result.get("failed"), result
    return result


def actions(result: dict[str, Any]) -> dict[str, str]:
    return {vm["name"]: vm["action"] for vm in result["vms"]}


@pytest.fixture
def slow() -> Iterator[Lab]:
    """A cluster whose tasks take long enough to be seen side by side."""
    with open_lab("--lag-s", "0", "--task-ms", "qmclone=400,qmstart=200,default=20") as opened:
        yield opened


# -- one plan
# ---------------------------------------------------------------------------------------


def test_made_foreseen_and_left_alone(quiet: Lab) -> None:
    goal = {**WEB, "state": "started", "vms": named("a", "b", "c")}
    foreseen = done(quiet.run("vms", check=True, **goal))
    assert quiet.simulator.writes() == []
    made = done(quiet.run("vms", **goal))
    assert foreseen["changed"]
    assert made["diff"] == foreseen["diff"]
    assert [diff["after_header"] for diff in made["diff"]] == ["VM 'a'", "VM 'b'", "VM 'c'"]
    assert actions(made) == dict.fromkeys("abc", "created") == actions(foreseen)
    assert made["summary"] == {
        "created": 3,
        "changed": 0,
        "removed": 0,
        "unchanged": 0,
        "failed": 0,
        "kept": 0,
    }
    for before, after in zip(foreseen["vms"], made["vms"], strict=True):
        assert (before["vmid"], before["node"], before["plan"]) == (
            after["vmid"],
            after["node"],
            after["plan"],
        )
        assert quiet.status(after) == after["vm"]["status"] == "running"
        assert after["vm"]["tags"] == ["tenant_acme", "web"] or set(after["vm"]["tags"]) >= {
            "tenant_acme",
            "web",
        }
    quiet.simulator.reset_log()
    again = done(quiet.run("vms", **goal))
    assert not again["changed"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert quiet.simulator.writes() == []
    counts = quiet.simulator.counts()
    assert counts.pop("GET /nodes/{node}/qemu") <= 3
    assert counts == {"GET /cluster/resources": 1, "GET /nodes/{node}/qemu/{vmid}/pending": 3}


def without_time(value: Any) -> Any:
    """Return a value of a result without the time at which the VM was read."""
    if isinstance(value, dict):
        return {key: part for key, part in value.items() if key != "checked"}
    return value


@pytest.mark.parametrize(
    "goal",
    [
        {"name": "one", "source": "debian-13", "state": "started"},
        {"name": "one", **BLANK, "nics": [{"bridge": "vmbr0"}], "vmid": 1234},
        {"name": "there", "cores": 4, "state": "started"},
        {"name": "there", "state": "absent"},
        {"name": "there", "memory": "2G", "tags": ["x"]},
        {"name": "gone", "state": "absent"},
        {"name": "there", "node": "pve2"},
        {"name": "there", "class": "big", "classes": {"big": {"cores": 3, "tags": ["y"]}}},
    ],
    ids=str,
)
def test_one_vm_is_treated_as_module_vm_does(quiet: Lab, goal: dict[str, Any]) -> None:
    quiet.vm(name="there", vmid=777, **BLANK)
    alone = quiet.run("vm", check=True, **goal)
    listed = quiet.run("vms", check=True, vms=[goal])
    shared = quiet.run(
        "vms",
        check=True,
        vms=[{"name": goal["name"], **{k: goal[k] for k in ("vmid",) if k in goal}}],
        **{key: value for key, value in goal.items() if key not in ("name", "vmid")},
    )
    for result in (listed, shared):
        (row,) = done(result)["vms"]
        for key in ("changed", "plan", "done", "pending", "placement", "vm"):
            assert without_time(row[key]) == without_time(alone[key]), key
        (diff,) = result["diff"] if result["changed"] else [result["diff"]]
        assert diff["before"] == alone["diff"]["before"]
        assert diff["after"] == alone["diff"]["after"]
    for result in (quiet.run("vms", vms=[goal]), quiet.run("vms", vms=[goal])):
        assert done(result)["changed"] is (
            alone["changed"] and result["vms"][0]["action"] != "unchanged"
        )
    assert not result["changed"]


def test_what_is_said_for_all_and_for_one(quiet: Lab) -> None:
    made = done(
        quiet.run(
            "vms",
            **BLANK,
            cores=2,
            tags=["all"],
            cloud_init={"user": "ops", "nameservers": ["10.0.0.1"]},
            classes={"big": {"cores": 4, "tags": ["big"]}},
            vms=[
                {"name": "plain"},
                {"name": "classy", "class": "big"},
                {
                    "name": "own",
                    "class": "big",
                    "cores": 8,
                    "tags": ["own"],
                    "cloud_init": {"user": "me"},
                },
            ],
        )
    )
    plain, classy, own = (vm["vm"] for vm in made["vms"])
    assert [int(vm["config"]["cores"]) for vm in (plain, classy, own)] == [2, 4, 8]
    assert [sorted(vm["tags"]) for vm in (plain, classy, own)] == [
        ["all"],
        ["all", "big"],
        ["all", "big", "own"],
    ]
    assert [vm["config"]["ciuser"] for vm in (plain, classy, own)] == ["ops", "ops", "me"]
    assert own["config"]["nameserver"] == ["10.0.0.1"]


def test_the_list_is_decided_as_a_whole(quiet: Lab) -> None:
    """Numbers, limits and anti-affinity hold among VMs that do not exist yet."""
    rules = {"anti_affinity": ["web"], "max_vms_per_node": 2}
    goal = {**WEB, "placement": rules, "vms": named("a", "b", "c", "d")}
    for check in (True, False):
        result = quiet.run("vms", check=check, **goal)
        assert result["failed"]
        assert actions(result) == {"a": "created", "b": "created", "c": "created", "d": "failed"}
        assert sorted(vm["node"] for vm in result["vms"][:3]) == ["pve1", "pve2", "pve3"]
        assert [vm["vmid"] for vm in result["vms"][:3]] == [
            first_number(name, "acme") for name in "abc"
        ]
        assert "anti-affinity" in result["vms"][3]["msg"]
        assert "VM 'd'" in result["msg"]
        assert result["error"]["reason"] == "no node fits"
    more = done(
        quiet.run("vms", **BLANK, placement={"max_vms_per_node": 2}, vms=named("e", "f", "g"))
    )
    nodes = Counter(
        row["node"]
        for row in quiet.client.get("cluster", "resources", type="vm")
        if not row["template"]
    )
    assert set(nodes.values()) == {2}, (nodes, more)
    full = quiet.run("vms", **BLANK, placement={"max_vms_per_node": 2}, vms=named("h"))
    assert full["error"]["reason"] == "no node fits"


def test_a_quota_is_shared_by_the_list(quiet: Lab) -> None:
    quiet.vm(name="old", tenant="acme", **BLANK)
    goal = {**BLANK, "tenant": "acme", "quota": {"vms": 3}, "vms": named("a", "b", "c")}
    for check in (True, False):
        result = quiet.run("vms", check=check, **goal)
        assert actions(result) == {"a": "created", "b": "created", "c": "failed"}
        assert result["vms"][2]["error"]["quota"]["vms"] == {"used": 3, "wanted": 1, "limit": 3}
    grown = quiet.run(
        "vms", tenant="acme", quota={"memory": "4G"}, memory="2G", vms=named("old", "a")
    )
    assert actions(grown) == {"old": "changed", "a": "failed"}
    assert grown["vms"][1]["error"]["reason"] == "quota"


def test_names_and_numbers_of_the_list_do_not_meet(quiet: Lab) -> None:
    quiet.vm(name="there", vmid=777, **BLANK)
    twice = quiet.run("vms", vms=[{"name": "there"}, {"vmid": 777, "cores": 3}])
    assert twice["vms"][1]["error"]["reason"] == "listed twice"
    assert actions(twice)["there"] == "unchanged"
    other = quiet.run(
        "vms", check=True, **BLANK, vms=[{"name": "x", "tenant": "a"}, {"name": "x", "tenant": "b"}]
    )
    assert actions(other) == {"x": "created"}
    assert len({vm["vmid"] for vm in other["vms"]}) == 2
    for tenants in ({"tenant": "a"}, {}):
        same = [{"name": "x", "tenant": "a"}, {"name": "x", **tenants}]
        refused = quiet.run("vms", check=True, **BLANK, vms=same)
        error = refused["vms"][1].get("error", refused["error"])
        assert error["reason"] in ("listed twice", "name taken")


@pytest.mark.parametrize(
    ("second", "reason"), [({"name": "c d"}, "name"), ({"name": "c", "memory": "-1"}, "several")]
)
def test_mistakes_have_their_common_reason(quiet: Lab, second: dict[str, Any], reason: str) -> None:
    refused = quiet.run("vms", check=True, vms=[{"name": "a b"}, second])
    assert [one["list"] for one in refused["error"]["vms"]] == ["vms", "vms"]
    assert refused["error"]["reason"] == reason


# -- carried out
# ------------------------------------------------------------------------------------


def test_bounds_hold_and_are_used(slow: Lab) -> None:
    """Six clones of one template: as many at once as is allowed, and no more."""
    with watched_tasks(slow, "qmclone", "pve1") as most:
        done(slow.run("vms", **WEB, vms=named(*"abcdef"), parallel_per_template=2))
        two, most[:] = max(map(len, most)), []
        done(
            slow.run(
                "vms", **WEB, vms=named(*"ghijkl"), parallel_per_node=3, parallel_per_template=0
            )
        )
        three, most[:] = max(map(len, most)), []
        done(slow.run("vms", **WEB, vms=named("m", "n"), parallel=1))
        one, most[:] = max(map(len, most)), []
        done(slow.run("vms", **WEB, vms=named("o", "p", "q"), parallel_per_storage=1))
    assert (two, three, one, max(map(len, most))) == (2, 3, 1, 1)


def test_a_vm_that_fails_stops_no_other_and_a_rerun_completes(quiet: Lab) -> None:
    number = first_number("b", "acme")
    quiet.simulator.fault(
        method="POST", path=rf"/qemu/{number}/status/start$", status=500, message="no", times=1
    )
    goal = {
        **WEB,
        "state": "started",
        "vms": [*named("a", "b", "c"), {"name": "d", "source": "nosuch"}],
    }
    first = quiet.run("vms", **goal)
    assert first["failed"]
    assert first["changed"]
    assert actions(first) == {"a": "created", "b": "failed", "c": "created", "d": "failed"}
    assert first["vms"][1]["done"]
    assert first["vms"][1]["changed"]
    assert first["msg"].startswith(f"2 of 4 VMs failed: Could not start VM 'b' ({number})")
    assert "VM 'd': Template 'nosuch'" in first["msg"]
    assert first["error"]["category"] == "TaskFailed"
    goal["vms"][3]["source"] = "debian-13"
    second = done(quiet.run("vms", **goal))
    assert actions(second) == {"a": "unchanged", "b": "changed", "c": "unchanged", "d": "created"}
    assert not done(quiet.run("vms", **goal))["changed"]
    rows = [
        row for row in quiet.client.get("cluster", "resources", type="vm") if not row["template"]
    ]
    assert sorted(row["name"] for row in rows) == ["a", "b", "c", "d"]


def test_a_number_that_others_take_is_replaced(quiet: Lab) -> None:
    """Someone takes two of the planned numbers after the cluster was read."""
    taken = {first_number(name, "acme") for name in "ab"}

    def take() -> None:
        for vmid in taken:
            quiet.client.task(
                "POST", "nodes", "pve3", "qemu", data={"vmid": vmid, "name": f"other-{vmid}"}
            )

    with after_request(quiet, is_listing, take):
        made = done(quiet.run("vms", **WEB, vms=named("a", "b", "c")))
    vmids = [vm["vmid"] for vm in made["vms"]]
    assert len(set(vmids)) == 3
    assert not taken & set(vmids)
    for vm in made["vms"]:
        assert quiet.config(vm)["name"] == vm["name"]


def test_a_plan_that_grew_old_is_made_again(quiet: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another client creates one VM during the run, one VM changes its tenant, a node goes down."""
    old = quiet.vm(name="old", tenant="acme", node="pve2", **BLANK)["vm"]["vmid"]
    monkeypatch.setattr(picture, "FRESH", 0.2)
    monkeypatch.setattr(claims, "FRESH", 0.2)
    monkeypatch.setattr(converge, "FRESH", 0.2)
    quiet.simulator.steer("settings", {"task_ms": {"qmcreate": 600}})

    def meddle() -> None:
        data = {"vmid": 5000, "name": "c", "tags": "tenant_acme"}
        quiet.client.task("POST", "nodes", "pve2", "qemu", data=data)
        quiet.simulator.steer(f"vms/{old}", {"config": {"tags": "tenant_globex"}})

    def is_create(method: str, segments: tuple[Any, ...]) -> bool:
        return (
            method == "POST"
            and segments[-1] == "qemu"
            and threading.current_thread() is not threading.main_thread()
        )

    goal = {
        **BLANK,
        "tenant": "acme",
        "parallel": 1,
        "vms": [*named("a", "c"), {"name": "old", "state": "started"}],
    }
    with after_request(quiet, is_create, meddle):
        result = quiet.run("vms", **goal)
    assert actions(result)["a"] == "created"
    assert {vm["name"]: vm["vmid"] for vm in result["vms"]}["c"] == 5000
    assert result["vms"][2]["error"]["reason"] == "foreign tenant", result["vms"][2]


def test_locks_and_an_overloaded_server_slow_it_down(slow: Lab) -> None:
    """Lock timeouts and 5xx are waited out, with fewer at once; all VMs are made in the end."""
    lock = "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout"
    slow.simulator.fault(
        method="POST", path=r"/qemu/9000/clone$", status=500, message=lock, times=3
    )
    slow.simulator.fault(method="GET", path=r"/status$", status=596, times=2)
    made = done(slow.run("vms", **WEB, vms=named(*"abcdef")))
    assert set(actions(made).values()) == {"created"}
    begins = [
        row["time"]
        for row in slow.simulator.log()
        if row["path"].endswith("/clone") and row["status"] == 200
    ]
    assert len(begins) == 6


def test_many_tasks_are_waited_for_with_few_requests(slow: Lab) -> None:
    slow.simulator.steer("settings", {"task_ms": {"qmclone": 2000}})
    slow.simulator.reset_log()
    done(
        slow.run("vms", **WEB, vms=named(*"abcdefgh"), parallel_per_node=8, parallel_per_template=8)
    )
    counts = slow.simulator.counts()
    asked = counts["GET /nodes/{node}/tasks/{upid}/status"] + counts["GET /nodes/{node}/tasks"]
    # Each for itself would ask 18 times a task.
    assert asked <= 8 * 6, counts


def test_the_end_of_the_time_ends_the_work(slow: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Ansible's `timeout` raises in the main thread ends the workers at their next pause."""
    slow.simulator.steer("settings", {"task_ms": {"qmclone": 900_000}})

    class Over(BaseException):
        pass

    workers: list[threading.Thread] = []

    def clones() -> list[str]:
        return [row["path"] for row in slow.simulator.writes() if row["path"].endswith("/clone")]

    def interrupted(work: Callable[[], None], number: int) -> None:
        workers.extend(
            threading.Thread(target=suppressed(work), daemon=True) for _number in range(number)
        )
        for worker in workers:
            worker.start()
        while len(clones()) < 2:
            time.sleep(0.02)
        raise Over

    def suppressed(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            with contextlib.suppress(FleetError):
                work()

        return run

    monkeypatch.setattr(carry, "all_at_once", interrupted)
    params = {name: rule.get("default") for name, rule in ENTRY.spec.items()}
    with pytest.raises(Over):
        run(params | {**WEB, "vms": named(*"abcdefgh"), "parallel_per_node": 2}, slow.client)
    for worker in workers:
        worker.join(300)
    assert not any(worker.is_alive() for worker in workers), "they wait for tasks of 900 s"
    assert len(clones()) == 2


# -- refused
# ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vms": [{"cores": 2}]}, "vms[0] (without a name)"),
        (
            {"vms": [{"name": "a"}, {"name": "b", "memory": "1X"}, {"name": "no_name"}]},
            "vms[1] (b)",
        ),
        ({"vms": [{"name": "a"}, {"name": "a"}]}, "both are VM 'a'"),
        ({"vms": [{"name": "a", "vmid": 500}, {"name": "b", "vmid": 500}]}, "vms[0] and vms[1]"),
        ({"vms": [{"name": "a", "class": "big"}]}, "class 'big'"),
        ({"vms": [{"name": "a"}], "prune": True}, "has no bounds"),
        ({"vms": [], "prune": True, "tenant": "acme"}, "is empty"),
        (
            {"vms": [{"name": "a", "tenant": "b"}], "prune": True, "tenant": "acme"},
            "this one says another",
        ),
        ({"vms": [{"name": "a"}], "parallel": -1}, "parallel"),
        ({"vms": [{"name": "a", "placement": {"nodes": ["no node"]}}]}, "placement.nodes"),
    ],
    ids=str,
)
def test_a_list_with_a_mistake_is_refused_as_a_whole(
    quiet: Lab, options: dict[str, Any], said: str
) -> None:
    for check in (True, False):
        result = quiet.run("vms", check=check, **options)
        assert result["failed"]
        assert said in result["msg"], result["msg"]
        assert result["error"]["category"] in ("ValidationFailed", "ConfigurationError")
    assert quiet.simulator.log() == []


def test_a_mistake_of_one_vm_is_not_repeated_for_the_others(quiet: Lab) -> None:
    many = named(*(f"v{number}" for number in range(60)))
    result = quiet.run("vms", vms=[*many, {"name": "oops", "clas": "web"}])
    assert "vms[60] (oops): unknown option 'clas' (did you mean 'class'?)" in result["msg"]
    assert [vm["name"] for vm in result["vms"]] == ["oops"]
    assert result["summary"]["failed"] == 61
    result.pop("invocation", None)
    assert len(str(result)) < 2000
    whole = quiet.run("vms", vms=many, defaults={"memry": "1G"})
    shown = str({**whole, "report": None, "msg": None})
    assert whole["msg"].count("did you mean 'memory'?") == 1
    assert whole["report"] == ["Plan: 60 refused"]
    assert "did you mean 'memory'?" not in shown
    assert len(whole["vms"]) == 60


def test_a_dead_node_stops_only_its_own(quiet: Lab) -> None:
    for at, node in enumerate(("pve1", "pve2")):
        quiet.vm(name=f"on-{node}", vmid=600 + at, node=node, **BLANK)
    quiet.simulator.steer("nodes/pve2", {"online": False})
    result = quiet.run("vms", cores=4, **BLANK, vms=named("on-pve1", "on-pve2", "new"))
    assert actions(result) == {"on-pve1": "changed", "on-pve2": "failed", "new": "created"}
    assert result["error"]["category"] == "NodeUnhealthy"


def test_waiting_for_guests_and_addresses(quiet: Lab) -> None:
    made = done(
        quiet.run("vms", **WEB, state="started", agent=True, wait_for="agent", vms=named("a", "b"))
    )
    assert all(vm["vm"]["agent_problem"] is None for vm in made["vms"])
    shown = done(quiet.run("vms", **WEB, addresses=True, vms=named("a", "b")))
    assert not shown["changed"]
    assert all(vm["vm"]["addresses"] for vm in shown["vms"])


def test_an_empty_list_is_nothing_to_do(quiet: Lab) -> None:
    result = done(quiet.run("vms", vms=[]))
    assert (result["changed"], result["vms"]) == (False, [])
