"""The control plane: what no API call can do, faults, the request log, latency and capacity."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.simulator.process import DEMO, Simulator, SimulatorError
from tests.simulator_tests.client import Client

# -- faults ----------------------------------------------------------------------------------------


def test_answering_a_status(pve: Client, sim: Simulator) -> None:
    sim.fault(method="GET", path="^/version$", nth=2, status=503)
    assert [pve.call("GET", "/version").status for _dummy in range(3)] == [200, 503, 200]


@pytest.mark.parametrize(
    ("status", "reason", "empty"),
    [
        (500, "got timeout", False),
        (595, "Connection refused", True),
        (596, "Connection timed out", True),
    ],
)
def test_the_usual_text_of_a_status(
    pve: Client, sim: Simulator, status: int, reason: str, empty: bool
) -> None:
    sim.fault(path="/version", status=status)
    answer = pve.call("GET", "/version")
    assert (answer.status, answer.reason, answer.text == "") == (status, reason, empty)


def test_a_text_of_ones_own(pve: Client, sim: Simulator) -> None:
    sim.fault(
        path="/clone$", status=500, message="can't lock file '/var/lock/x.lock' - got timeout"
    )
    answer = pve.call("POST", "/nodes/pve1/qemu/9000/clone", {"newid": 100})
    assert answer.reason == "can't lock file '/var/lock/x.lock' - got timeout"
    assert pve.get("/cluster/nextid") == "100"


@pytest.mark.parametrize(("when", "there"), [("before", False), ("after", True)])
def test_dropping_a_write(pve: Client, sim: Simulator, when: str, there: bool) -> None:
    sim.fault(method="POST", path="/pools$", drop=when)
    with pytest.raises(requests.exceptions.ConnectionError):
        pve.call("POST", "/pools", {"poolid": "initech"})
    assert ("initech" in {item["poolid"] for item in pve.get("/pools")}) is there
    assert pve.call("POST", "/pools", {"poolid": "umbrella"}).status == 200


def test_cutting_a_body(pve: Client, sim: Simulator) -> None:
    sim.fault(path="/cluster/resources", cut=20)
    with pytest.raises(
        (requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError)
    ):
        pve.call("GET", "/cluster/resources")
    assert pve.get("/cluster/resources")


def test_delaying(pve: Client, sim: Simulator) -> None:
    sim.fault(path="/version", delay_ms=300)
    started = time.monotonic()
    assert pve.get("/version")
    assert time.monotonic() - started >= 0.3


def test_a_rule_can_hold_for_ever(pve: Client, sim: Simulator) -> None:
    sim.fault(path="/version", status=502, times=None)
    assert [pve.call("GET", "/version").status for _dummy in range(3)] == [502] * 3
    (rule,) = sim.ask("GET", "/faults")
    assert (rule["seen"], rule["done"]) == (3, 3)
    sim.clear_faults()
    assert pve.get("/version")


@pytest.mark.parametrize(
    "rule",
    [
        {"status": 503, "colour": "red"},
        {"path": "/x"},
        {"status": 500, "path": "("},
        {"drop": "sometimes"},
        {"steer": "PUT /vms/100"},
        {"steer": [["PUT", "/vms/100"]]},
    ],
)
def test_rules_that_make_no_sense(sim: Simulator, rule: dict[str, object]) -> None:
    with pytest.raises(SimulatorError):
        sim.fault(**rule)


# -- faults of tasks -------------------------------------------------------------------------------


def test_a_task_that_ends_with_a_warning(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, scsi0="ceph:1")
    sim.fault(task="qmsnapshot", warn="the disk is slow")
    upid = pve.call("POST", f"{path}/snapshot", {"snapname": "s1"}).data
    assert pve.wait(upid) == "WARNINGS: 1"
    assert "WARN: the disk is slow" in pve.task_log(upid)
    assert pve.task_log(upid)[-1] == "TASK WARNINGS: 1"
    assert pve.do("POST", f"{path}/snapshot", snapname="s2") == "OK"
    assert {row["name"] for row in pve.get(f"{path}/snapshot")} == {"s1", "s2", "current"}


def test_a_task_that_fails_cleans_up_as_proxmox_ve_does(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, scsi0="ceph:1")
    sim.fault(task="qmclone", id=9000, fail="no space left", nth=2)
    assert pve.do("POST", "/nodes/pve1/qemu/9000/clone", newid=200) == "OK"
    assert pve.do("POST", "/nodes/pve1/qemu/9000/clone", newid=201) == "clone failed: no space left"
    assert pve.call("GET", "/nodes/pve1/qemu/201/config").status == 500
    sim.fault(task="qmsnapshot", fail="the pool is full")
    assert pve.do("POST", f"{path}/snapshot", snapname="s1", vmstate=1) == "the pool is full"
    assert [row["name"] for row in pve.get(f"{path}/snapshot")] == ["current"]
    assert "lock" not in pve.config(path)
    assert pve.do("POST", f"{path}/snapshot", snapname="s1") == "OK"
    sim.fault(task="qmrollback", fail="the pool is gone")
    assert pve.do("POST", f"{path}/snapshot/s1/rollback") == "the pool is gone"
    assert pve.config(path)["lock"] == "rollback"  # only an administrator unlocks it


def test_a_fault_meets_tasks_of_one_machine(pve: Client, sim: Simulator) -> None:
    paths = [pve.create(vmid) for vmid in (100, 101)]
    sim.fault(task="qmstart", id=101, fail="no memory", times=None)
    assert [pve.do("POST", f"{path}/status/start") for path in paths] == ["OK", "no memory"]
    (rule,) = sim.ask("GET", "/faults")
    assert (rule["seen"], rule["done"]) == (1, 1)


@pytest.mark.parametrize(
    "rule",
    [
        {"task": "qmclone"},
        {"task": "qmclone", "fail": "x", "warn": "y"},
        {"fail": "x"},
        {"task": "qmclone", "fail": "x", "status": 500},
        {"task": "qmclone", "warn": 7},
    ],
)
def test_rules_for_tasks_that_make_no_sense(sim: Simulator, rule: dict[str, object]) -> None:
    with pytest.raises(SimulatorError):
        sim.fault(**rule)


# -- the log ---------------------------------------------------------------------------------------


def test_the_log_and_its_counts(pve: Client, sim: Simulator) -> None:
    pve.create(100, description="hello")
    pve.config("/nodes/pve1/qemu/100")
    (write,) = sim.writes()
    assert (write["method"], write["path"], write["status"]) == ("POST", "/nodes/pve1/qemu", 200)
    assert write["params"]["description"] == "hello"
    assert sim.counts()["GET /nodes/{node}/qemu/{vmid}/config"] == 1
    sim.reset_log()
    assert (sim.log(), sim.counts()) == ([], {})


def test_refusals_are_in_the_log(pve: Client, sim: Simulator) -> None:
    pve.call("GET", "/nope")
    pve.call("POST", "/pools", {"poolid": "acme"})
    assert [(entry["path"], entry["status"]) for entry in sim.log()] == [
        ("/nope", 501),
        ("/pools", 500),
    ]


def test_secrets_are_not_in_the_log(pve: Client, sim: Simulator) -> None:
    pve.post("/access/users", userid="carl@pve", password="very-secret-1")
    assert "very-secret-1" not in json.dumps(sim.log())


# -- behind the client's back ----------------------------------------------------------------------


def test_a_machine_changes_behind_the_back(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, cores=1)
    digest = pve.config(path)["digest"]
    sim.steer("/vms/100", {"config": {"cores": 7, "description": "changed"}})
    config = pve.config(path)
    assert (config["cores"], config["description"]) == (7, "changed")
    assert config["digest"] != digest
    assert sim.ask("GET", "/vms/100")["config"]["description"] == "changed"


def test_a_machine_is_deleted_behind_the_back(pve: Client, sim: Simulator) -> None:
    path = pve.create(100, scsi0="ceph:1", pool="acme")
    sim.ask("DELETE", "/vms/100")
    assert pve.call("GET", f"{path}/config").status == 500
    assert "ceph:vm-100-disk-0" not in pve.volumes("ceph")
    assert pve.create(100) == path


def test_another_client_makes_a_machine(pve: Client, sim: Simulator) -> None:
    entry = {"node": "pve2", "name": "theirs", "config": {"scsi0": "ceph:vm-777-disk-0,size=1G"}}
    sim.ask("POST", "/vms/777", entry)
    assert pve.get("/nodes/pve2/qemu/777/config")["name"] == "theirs"
    assert "ceph:vm-777-disk-0" in {one["volid"] for one in sim.ask("GET", "/volumes")}
    assert 777 in {one["vmid"] for one in sim.ask("GET", "/vms")}
    with pytest.raises(SimulatorError, match="twice"):
        sim.ask("POST", "/vms/777", entry)


def test_a_fault_steers_the_cluster_right_before_a_request(pve: Client, sim: Simulator) -> None:
    pve.create(100)
    steer = [["DELETE", "/vms/100", None], ["POST", "/vms/100", {"node": "pve1", "name": "new"}]]
    sim.fault(method="GET", path="/100/config$", nth=2, steer=steer)
    names = [pve.get("/nodes/pve1/qemu/100/config").get("name") for _dummy in range(3)]
    assert names[1:] == ["new", "new"]
    assert names[0] != "new"


def test_a_node_forgets_its_tasks(pve: Client, sim: Simulator) -> None:
    pve.create(100)
    upid = pve.post("/nodes/pve1/qemu/100/status/start")
    pve.wait(upid)
    sim.ask("DELETE", "/tasks")
    answer = pve.call("GET", f"/nodes/pve1/tasks/{upid}/status")
    assert (answer.status, answer.errors) == (400, {"upid": "no such task"})


def test_a_task_that_its_node_forgot_is_at_work_to_its_end(pve: Client, sim: Simulator) -> None:
    pve.create(100)
    sim.steer("/settings", {"task_ms": {"qmstart": 3_600_000}})
    upid = pve.post("/nodes/pve1/qemu/100/status/start")
    sim.ask("DELETE", "/tasks")
    assert sim.ask("GET", "/tasks") == {"forgotten": [upid]}
    sim.steer("/settings", {"task_ms": {"qmstart": 1}})
    while sim.ask("GET", "/tasks")["forgotten"]:
        time.sleep(0.01)
    assert pve.get("/nodes/pve1/qemu/100/status/current")["status"] == "running"


def test_without_quorum_a_change_does_not_get_into_the_file(pve: Client, sim: Simulator) -> None:
    """pmxcfs is read-only then: what a call changed in memory is gone with its process."""
    pve.create(100)
    before = pve.get("/nodes/pve1/qemu/100/config")
    sim.steer("/cluster", {"quorate": False})
    pve.call("PUT", "/nodes/pve1/qemu/100/config", {"cores": 7})
    pve.call("POST", "/nodes/pve1/qemu/100/template")
    sim.steer("/cluster", {"quorate": True})
    assert pve.get("/nodes/pve1/qemu/100/config") == before


def test_a_guest_powers_itself_off(pve: Client, sim: Simulator) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"running": False})
    assert pve.state(path) == "stopped"


def test_what_the_control_plane_does_not_know(sim: Simulator) -> None:
    for method, path, body in (
        ("PUT", "/vms/100", {"lock": "backup"}),
        ("PUT", "/vms/9000", {"colour": "red"}),
        ("PUT", "/nodes/pve9", {"online": False}),
        ("GET", "/nope", None),
    ):
        with pytest.raises(SimulatorError):
            sim.ask(method, path, body)


def test_reset(pve: Client, sim: Simulator) -> None:
    pve.create(100)
    sim.fault(path="/version", status=503, times=None)
    sim.steer("/nodes/pve2", {"online": False})
    sim.reset()
    assert pve.get("/version")
    assert {item["vmid"] for item in pve.get("/cluster/resources", type="vm")} == {9000, 9001}
    assert {item["status"] for item in pve.get("/nodes")} == {"online"}
    assert sim.ask("GET", "/state")["faults"] == 0


# -- maintenance -----------------------------------------------------------------------------------


def test_a_request_that_is_late_does_not_change_what_is_there_after_a_reset(
    pve: Client, sim: Simulator
) -> None:
    sim.fault(method="POST", path="/pools$", delay_ms=400)
    with ThreadPoolExecutor(1) as other:
        late = other.submit(pve.call, "POST", "/pools", {"poolid": "initech"})
        while not sim.ask("GET", "/faults")[0]["done"]:
            time.sleep(0.01)
        sim.reset()
        with pytest.raises(requests.exceptions.ConnectionError):
            late.result()
    assert "initech" not in {item["poolid"] for item in pve.get("/pools")}
    assert all(row["path"] != "/pools" or row["method"] == "GET" for row in sim.log())


def test_the_manager_knows_no_node_before_it_has_had_work(pve: Client, sim: Simulator) -> None:
    shown = pve.get("/cluster/ha/status/manager_status")
    assert shown == {
        "manager_status": {"node_status": {}},
        "quorum": {"node": "pve1", "quorate": "1"},
    }
    pve.create(100)
    pve.post("/cluster/ha/resources", sid="vm:100", state="stopped")
    shown = pve.get("/cluster/ha/status/manager_status")
    own = shown["manager_status"]
    assert own["node_status"] == {"pve1": "online", "pve2": "online", "pve3": "online"}
    assert own["master_node"] == "pve1"
    assert abs(own["timestamp"] - time.time()) < 5
    assert {key: own["service_status"]["vm:100"][key] for key in ("node", "state")} == {
        "node": "pve1",
        "state": "stopped",
    }
    assert shown["lrm_status"]["pve2"]["mode"] == "active"
    sim.steer("/nodes/pve3", {"online": False})
    assert (
        pve.get("/cluster/ha/status/manager_status")["manager_status"]["node_status"]["pve3"]
        == "unknown"
    )


def test_maintenance_moves_what_the_manager_manages(pve: Client, sim: Simulator) -> None:
    for vmid in (100, 101):
        path = pve.create(vmid, scsi0="ceph:1")
        pve.ok("POST", f"{path}/status/start")
    pve.post("/cluster/ha/resources", sid="vm:100", state="started")
    sim.steer("/nodes/pve1", {"maintenance": True})
    pve.until(lambda: sim.ask("GET", "/vms/100")["node"] == "pve2")
    assert sim.ask("GET", "/vms/101")["node"] == "pve1"
    shown = pve.get("/cluster/ha/status/manager_status")
    own = shown["manager_status"]
    assert own["node_status"]["pve1"] == "maintenance"
    assert own["node_request"] == {"pve1": {"maintenance": 1}}
    assert own["master_node"] == "pve2"
    assert own["service_status"]["vm:100"]["maintenance_node"] == "pve1"
    assert shown["lrm_status"]["pve1"]["mode"] == "maintenance"
    rows = {row["node"]: row for row in pve.get("/cluster/resources", type="node")}
    assert (rows["pve1"]["hastate"], rows["pve2"]["hastate"]) == ("maintenance", "online")
    current = {row["id"]: row for row in pve.get("/cluster/ha/status/current")}
    assert "maintenance mode" in current["lrm:pve1"]["status"]
    sim.steer("/nodes/pve1", {"maintenance": False})
    pve.until(lambda: sim.ask("GET", "/vms/100")["node"] == "pve1")
    assert "node_request" not in pve.get("/cluster/ha/status/manager_status")["manager_status"]


# -- latency and capacity --------------------------------------------------------------------------


def test_latency() -> None:
    with Simulator("--cluster", DEMO, "--latency-ms", "150") as sim:
        pve = Client(sim)
        pve.get("/version")
        started = time.monotonic()
        pve.get("/version")
        assert time.monotonic() - started >= 0.15


def test_requests_served_at_once() -> None:
    with Simulator("--cluster", DEMO, "--latency-ms", "100", "--max-concurrency", "3") as sim:
        clients = [Client(sim) for _dummy in range(9)]
        started = time.monotonic()
        with ThreadPoolExecutor(9) as pool:
            assert all(pool.map(lambda client: client.get("/version"), clients))
        assert time.monotonic() - started >= 0.29


def test_settings_can_be_changed_on_the_way(pve: Client, sim: Simulator) -> None:
    sim.steer("/settings", {"latency_ms": 200})
    started = time.monotonic()
    pve.get("/version")
    assert time.monotonic() - started >= 0.2


@pytest.mark.parametrize("given", ["qmcreate=700", {"qmcreate": 700}])
def test_the_duration_of_tasks_can_be_changed_on_the_way(
    pve: Client, sim: Simulator, given: object
) -> None:
    sim.steer("/settings", {"task_ms": given})
    started = time.monotonic()
    pve.create(100)
    assert time.monotonic() - started >= 0.7


@pytest.mark.parametrize("given", ["qmcreate", "qmcreate=-1", ["qmcreate"]])
def test_a_duration_that_makes_no_sense_is_refused(sim: Simulator, given: object) -> None:
    with pytest.raises(SimulatorError, match="task_ms|bad request"):
        sim.steer("/settings", {"task_ms": given})
