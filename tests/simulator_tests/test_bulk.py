"""Actions on many machines: whose, in which order, and what their task says.

Sources: pve-manager, PVE/API2/Cluster/BulkAction/Guest.pm and PVE/API2/Nodes.pm; the texts are in
recordings, too.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client

BULK = "/cluster/bulk-action/guest"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"


def ends(pve: Client, path: str, /, **params: Any) -> tuple[str, list[str]]:
    """The exit status of the task, and its log without the last line."""
    upid = pve.post(path, **params)
    return pve.wait(upid), pve.task_log(upid)[:-1]


@pytest.fixture
def operator(pve: Client, sim: Simulator) -> Client:
    """A user who may switch VM 100, and nothing else."""
    pve.post("/access/users", userid="op@pve", password="opspw1234")
    pve.put("/access/acl", path="/vms/100", users="op@pve", roles="PVEVMAdmin")
    client = Client(sim, None)
    ticket = client.post("/access/ticket", username="op@pve", password="opspw1234")
    client.session.cookies.set("PVEAuthCookie", ticket["ticket"])
    client.session.headers["CSRFPreventionToken"] = ticket["CSRFPreventionToken"]
    return client


@pytest.mark.parametrize(
    ("action", "extra", "priv"),
    [
        ("start", {}, "VM.PowerMgmt"),
        ("shutdown", {}, "VM.PowerMgmt"),
        ("suspend", {}, "VM.PowerMgmt"),
        ("migrate", {"target": "pve2"}, "VM.Migrate"),
    ],
)
def test_all_guests_need_the_privilege_on_everything(
    pve: Client, operator: Client, action: str, extra: dict[str, str], priv: str
) -> None:
    pve.create(100)
    refused = operator.call("POST", f"{BULK}/{action}", extra)
    assert (refused.status, refused.reason) == (403, f"Permission check failed (/, {priv})")
    refused = operator.call("POST", f"{BULK}/{action}", {"vms": [100, 101], **extra})
    assert refused.reason == f"Permission check failed (/vms/101, {priv})"
    assert operator.wait(operator.post(f"{BULK}/{action}", vms=[100], **extra)).startswith(
        ("OK", "WARNINGS")
    )


def test_machines_start_in_their_order_and_stop_in_reverse(pve: Client) -> None:
    pve.create(100)
    pve.create(101, startup="order=2")
    pve.create(102, startup="order=1", node="pve2")
    pve.create(103)
    status, log = ends(pve, f"{BULK}/start", vms=[100, 101, 102, 103])
    assert status == "OK"
    assert log == [
        "Starting guests: 100, 101, 102, 103",
        "Starting VM 102",
        "Starting VM 101",
        "Starting VM 100",
        "Starting VM 103",
    ]
    assert {
        pve.state(f"/nodes/{node}/qemu/{vmid}") for node, vmid in (("pve1", 100), ("pve2", 102))
    } == {"running"}
    status, log = ends(pve, f"{BULK}/shutdown", vms=[100, 101, 102, 103], timeout=7)
    assert status == "OK"
    assert [line.split()[3] for line in log[1:]] == ["100", "103", "101", "102"]
    assert log[1] == "Shutting down VM 100 (Timeout = 7 seconds)"


def test_a_startup_delay_is_waited_for_and_a_down_delay_is_the_timeout(pve: Client) -> None:
    pve.create(100, startup="order=1,up=1,down=33")
    pve.create(101, startup="order=2")
    status, log = ends(pve, f"{BULK}/start", vms=[100, 101])
    assert (status, log[1:]) == (
        "OK",
        ["Starting VM 100", "Waiting for 1 seconds (startup delay)", "Starting VM 101"],
    )
    status, log = ends(pve, f"{BULK}/shutdown", vms=[100], timeout=7)
    assert log[1:] == ["Shutting down VM 100 (Timeout = 33 seconds)"]


def test_what_there_is_nothing_to_do_for_is_skipped_with_a_warning(pve: Client) -> None:
    path = pve.create(100)
    pve.create(101)
    pve.ok("POST", f"{path}/status/start")
    assert ends(pve, f"{BULK}/start", vms=[100, 999]) == (
        "WARNINGS: 1",
        ["Starting guests: 100, 999", "WARN: Skipping VM 100, already running."],
    )
    for action, doing in (("shutdown", "Shutting down"), ("suspend", "Suspending")):
        assert ends(pve, f"{BULK}/{action}", vms=[101]) == (
            "WARNINGS: 1",
            [f"{doing} guests: 101", "WARN: Skipping VM 101, not running."],
        )
    assert ends(pve, f"{BULK}/migrate", vms=[101], target="pve1") == (
        "WARNINGS: 1",
        ["Migrating guests to pve1: 101", "WARN: VM 101 already on pve1, skipping."],
    )


def test_a_paused_machine_is_resumed_and_not_shut_down(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    assert ends(pve, f"{BULK}/suspend", vms=[100])[0] == "OK"
    status, log = ends(pve, f"{BULK}/shutdown", vms=[100])
    assert (status, log[1]) == (
        "WARNINGS: 1",
        "WARN: Skipping VM 100, resume paused VM before shutdown.",
    )
    assert ends(pve, f"{BULK}/start", vms=[100])[0] == "OK"
    assert pve.get(f"{path}/status/current")["qmpstatus"] == "running"


def test_failed_machines_are_named_in_the_exit_status(pve: Client, sim: Simulator) -> None:
    for vmid in (100, 101, 102):
        pve.create(vmid)
    sim.steer("/vms/100", {"lock": "backup"})
    sim.steer("/vms/102", {"lock": "backup"})
    status, log = ends(pve, f"{BULK}/start", vms=[100, 101, 102])
    assert status == "Some guests failed to start: 100, 102"
    assert "WARN: Starting VM 100 failed: VM is locked (backup)" in log
    pve.create(103, scsi0="local:1")
    pve.ok("POST", "/nodes/pve1/qemu/103/status/start")
    status, log = ends(pve, f"{BULK}/migrate", vms=[103], target="pve2")
    assert status == "Some guests failed to migrate 103"
    assert log[2] == "WARN: 500 can't migrate running VM without --online"


def test_a_shutdown_that_is_not_forced_fails_for_a_guest_that_does_not_react(
    pve: Client, sim: Simulator
) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    sim.steer("/vms/100", {"acpi": False})
    call = {"vms": [100], "timeout": 1}
    status, log = ends(pve, f"{BULK}/shutdown", **call, **{"force-stop": 0})
    assert status == "Some guests failed to shutdown 100"
    assert log[2] == "WARN: Stopping VM 100 failed: VM quit/powerdown failed - got timeout"
    assert ends(pve, f"{BULK}/shutdown", **call)[0] == "OK"
    assert pve.state(path) == "stopped"


def test_all_guests_are_those_that_are_neither_templates_nor_the_ha_managers(pve: Client) -> None:
    pve.create(100)
    pve.create(101)
    pve.post("/cluster/ha/resources", sid="vm:101", state="stopped")
    status, log = ends(pve, f"{BULK}/start")
    assert log[0] == "Starting all guests"
    assert "Starting VM 100" in log
    assert not {"Starting VM 101", "Starting VM 9000"} & set(log), log
    assert "Starting VM 101" in ends(pve, f"{BULK}/start", vms=[101])[1]


def test_a_machine_moves_while_it_runs_only_when_asked_for(pve: Client) -> None:
    path = pve.create(100)
    pve.ok("POST", f"{path}/status/start")
    assert (
        ends(pve, f"{BULK}/migrate", vms=[100], target="pve2")[0]
        == "Some guests failed to migrate 100"
    )
    assert ends(pve, f"{BULK}/migrate", vms=[100], target="pve2", online=1)[0] == "OK"
    assert pve.state("/nodes/pve2/qemu/100") == "running"


# -- of one node -----------------------------------------------------------------------------------


def test_a_nodes_machines_start_and_stop_in_their_order(pve: Client) -> None:
    pve.create(100, onboot=1, startup="up=0")
    pve.create(101, onboot=1, startup="order=1,up=0,down=9")
    pve.create(102)
    assert ends(pve, "/nodes/pve1/startall") == ("OK", ["Starting VM 101", "Starting VM 100"])
    assert ends(pve, "/nodes/pve1/stopall", timeout=20) == (
        "OK",
        ["Stopping VM 100 (timeout = 20 seconds)", "Stopping VM 101 (timeout = 9 seconds)"],
    )


def test_a_nodes_machines_that_cannot_move_are_left(pve: Client) -> None:
    path = pve.create(100, scsi0="local:1")
    pve.ok("POST", f"{path}/status/start")
    call = {"target": "pve2", "max-workers": 1, "vms": "100"}
    status, log = ends(pve, "/nodes/pve1/migrateall", **call)
    assert status == "no migrations worker started..."
    assert log[0] == "Check VM 100: skip VM 100 - precondition check failed:"
    refused = pve.call("POST", "/nodes/pve1/migrateall", {"target": "pve1", "max-workers": 1})
    assert refused.errors == {"target": "target is local node."}


def test_containers_start_and_stop_like_machines(pve: Client) -> None:
    """Source: get_start_stop_list has guests of both kinds, get_type_text their words."""
    pve.create(100)
    made = {"vmid": 200, "ostemplate": TEMPLATE, "rootfs": "local-lvm:1", "startup": "order=1"}
    assert pve.wait(pve.post("/nodes/pve1/lxc", **made)) == "OK"
    status, log = ends(pve, f"{BULK}/start", vms=[100, 200])
    assert (status, log[1:]) == ("OK", ["Starting CT 200", "Starting VM 100"])
    assert pve.state("/nodes/pve1/lxc/200") == "running"
    status, log = ends(pve, f"{BULK}/shutdown", vms=[100, 200], timeout=7)
    assert status == "OK"
    assert log[1:] == [
        "Shutting down VM 100 (Timeout = 7 seconds)",
        "Shutting down CT 200 (Timeout = 7 seconds)",
    ]
