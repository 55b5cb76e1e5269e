"""Power states and templates: each reached from every other, once.

What cannot be is refused before a write.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab

STATES = ["started", "paused", "hibernated", "stopped"]
STATUS = {
    "started": "running",
    "paused": "paused",
    "hibernated": "hibernated",
    "stopped": "stopped",
}


def real_status(lab: Lab, vm: dict[str, Any]) -> str:
    """Return what the server says the VM is."""
    current = lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "status", "current")
    if current["status"] == "stopped":
        return "hibernated" if current.get("lock") == "suspended" else "stopped"
    return str(current.get("qmpstatus", current["status"]))


def bring(lab: Lab, name: str, state: str) -> dict[str, Any]:
    """Return a VM in that state."""
    vm: dict[str, Any] = lab.vm(
        name=name, source="debian-13", state="stopped" if state == "stopped" else "started"
    )["vm"]
    if state in ("paused", "hibernated"):
        vm = lab.vm(name=name, state=state)["vm"]
    assert real_status(lab, vm) == STATUS[state]
    return vm


@pytest.mark.parametrize("wanted", [*STATES, "resumed"])
@pytest.mark.parametrize("first", STATES)
def test_each_state_from_every_other(lab: Lab, name: str, first: str, wanted: str) -> None:
    vm = bring(lab, name, first)
    if (first == "stopped" and wanted in ("paused", "hibernated", "resumed")) or (
        first,
        wanted,
    ) == ("hibernated", "paused"):
        assert lab.refused(name=name, state=wanted)["error"]["category"] == "Conflict"
        return
    lab.simulator.reset_log()
    foreseen = lab.vm(name=name, state=wanted, check=True)
    assert lab.simulator.writes() == []
    made = lab.vm(name=name, state=wanted)
    assert made["diff"] == foreseen["diff"]
    assert made["done"] == foreseen["plan"]
    expected = "running" if wanted == "resumed" else STATUS[wanted]
    if (first, wanted) == ("hibernated", "stopped"):
        expected = "hibernated"  # it is off; its memory is not thrown away
    assert made["vm"]["status"] == real_status(lab, vm) == expected
    assert made["changed"] is (expected != STATUS[first])
    again = lab.vm(name=name, state=wanted)
    assert not again["changed"]


@pytest.mark.parametrize("state", ["restarted", "reset"])
def test_an_action_happens_in_every_run(lab: Lab, name: str, state: str) -> None:
    vm = bring(lab, name, "started")
    for _dummy in range(2):
        lab.simulator.reset_log()
        assert lab.vm(name=name, state=state, check=True)["changed"]
        assert lab.simulator.writes() == []
        assert lab.vm(name=name, state=state)["changed"]
    assert real_status(lab, vm) == "running"


def test_a_restart_applies_what_waits(lab: Lab, name: str) -> None:
    vm = bring(lab, name, "started")
    done = lab.vm(name=name, cores=5, state="restarted")
    assert done["pending"] == []
    assert (
        lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config", current=1)["cores"] == 5
    )


def test_what_does_not_exist_cannot_be_switched(lab: Lab) -> None:
    for state in ("paused", "hibernated", "resumed", "restarted", "reset"):
        result = lab.refused(name="nosuch", source="debian-13", state=state)
        assert result["error"]["category"] == "ValidationFailed"


def test_a_guest_that_does_not_listen(lab: Lab, name: str) -> None:
    vm = bring(lab, name, "started")
    lab.simulator.steer(f"vms/{vm['vmid']}", {"acpi": False, "agent": "silent"})
    result = lab.run("vm", name=name, state="stopped", shutdown_timeout=1)
    assert result["error"]["category"] == "TaskFailed", result
    assert "timeout" in result["msg"]
    assert real_status(lab, vm) == "running"
    assert (
        lab.vm(name=name, state="stopped", shutdown_timeout=1, force=True)["vm"]["status"]
        == "stopped"
    )


def test_the_plug(lab: Lab, name: str) -> None:
    bring(lab, name, "started")
    assert lab.vm(name=name, state="stopped", shutdown_timeout=0)["plan"][0].startswith("Stop ")


@pytest.mark.parametrize("first", ["started", "stopped"])
def test_a_vm_becomes_a_template_once(lab: Lab, name: str, first: str) -> None:
    vm = bring(lab, name, first)
    foreseen = lab.vm(name=name, state="template", cores=3, check=True)
    made = lab.vm(name=name, state="template", cores=3)
    assert made["diff"] == foreseen["diff"]
    assert made["vm"]["template"] is True
    assert made["vm"]["vmid"] == vm["vmid"]
    assert lab.config(vm)["template"] == 1
    assert not lab.vm(name=name, state="template", cores=3)["changed"]
    assert lab.refused(name=name, state="started")["error"]["category"] == "Conflict"
    assert lab.refused(name=name, description="golden")["error"]["reason"] == "template"
    golden = lab.vm(name=name, description="golden", state="template")["vm"]
    assert golden["description"] == "golden"
    assert lab.vm(name=f"{name[:25]}-c", source=name)["vm"]["cloned_from"] == vm["vmid"]


def test_a_new_vm_can_be_a_template_at_once(lab: Lab, name: str) -> None:
    options: dict[str, Any] = {"name": name, "disks": [{"size": 1}], "state": "template"}
    foreseen = lab.vm(check=True, **options)
    made = lab.vm(**options)
    assert made["diff"] == foreseen["diff"]
    assert made["vm"]["template"] is True
    assert not lab.vm(**options)["changed"]


def deaf(lab: Lab, vm: dict[str, Any]) -> None:
    """Let the guest ignore the request to shut down."""
    lab.simulator.steer(f"vms/{vm['vmid']}", {"acpi": False, "agent": "silent"})


@pytest.mark.parametrize("how", [{"force": True, "shutdown_timeout": 1}, {"shutdown_timeout": 0}])
@pytest.mark.parametrize(
    "goal", [{"state": "restarted"}, {"reboot": "if_needed"}, {"reboot": "always"}]
)
@pytest.mark.parametrize("first", ["started", "paused"])
def test_a_forced_restart_stops_and_starts(
    lab: Lab, name: str, first: str, goal: dict[str, Any], how: dict[str, Any]
) -> None:
    """PVE's reboot takes no forceStop and refuses a paused VM (qemu-server, API2/Qemu.pm,
    vm_reboot).
    """
    vm = bring(lab, name, first)
    deaf(lab, vm)
    options = {"name": name, "cores": 5, **goal, **how}
    foreseen = lab.vm(**options, check=True)
    done = lab.vm(**options)
    assert done["diff"] == foreseen["diff"]
    assert done["diff"]["after"]["restarted"] is True
    assert done["done"] == foreseen["plan"]
    assert [text.split()[0] for text in done["done"][-2:]] in (["Shut", "Start"], ["Stop", "Start"])
    assert done["pending"] == []
    assert done["vm"]["status"] == real_status(lab, vm) == "running"
    assert (
        lab.client.get("nodes", vm["node"], "qemu", vm["vmid"], "config", current=1)["cores"] == 5
    )


def test_without_force_a_guest_that_ignores_a_reboot_is_left_running(lab: Lab, name: str) -> None:
    vm = bring(lab, name, "started")
    deaf(lab, vm)
    result = lab.run("vm", name=name, state="restarted", shutdown_timeout=1)
    assert result["error"]["reason"] == "shutdown timeout"
    assert real_status(lab, vm) == "running"


@pytest.mark.parametrize("goal", [{"state": "restarted"}, {"reboot": "always"}])
def test_a_paused_vm_is_resumed_before_its_reboot(
    lab: Lab, name: str, goal: dict[str, Any]
) -> None:
    vm = bring(lab, name, "paused")
    done = lab.vm(name=name, **goal)
    assert [text.split()[0] for text in done["done"]] == ["Resume", "Reboot"]
    assert done["vm"]["status"] == real_status(lab, vm) == "running"


@pytest.mark.parametrize("action", ["stop", "start"])
@pytest.mark.parametrize("goal", [{"state": "restarted"}, {"reboot": "always"}])
def test_a_forced_restart_is_completed_when_an_answer_is_lost(
    quiet: Lab, name: str, goal: dict[str, Any], action: str
) -> None:
    vm = quiet.vm(name=name, source="debian-13", state="started")["vm"]
    path = f"/nodes/{vm['node']}/qemu/{vm['vmid']}/status/{action}"
    quiet.simulator.fault(method="POST", path=path, drop="after")
    done = quiet.vm(name=name, shutdown_timeout=0, **goal)
    assert done["vm"]["status"] == real_status(quiet, vm) == "running"


def test_a_graceful_removal_without_time_to_shut_down_stops_the_vm(lab: Lab, name: str) -> None:
    vm = bring(lab, name, "started")
    deaf(lab, vm)
    done = lab.vm(name=name, state="absent", graceful=True, shutdown_timeout=0)
    assert done["done"][0].startswith("Stop ")


@pytest.mark.parametrize("there", [False, True], ids=["new", "there before"])
def test_an_interrupted_conversion_is_completed(lab: Lab, name: str, there: bool) -> None:
    """PVE marks the VM as a template before it converts its disks (qemu-server: API2/Qemu.pm)."""
    options: dict[str, Any] = {"name": name, "disks": [{"size": 1}, {"size": 2}], "node": "pve1"}
    if there:
        lab.vm(**options)
    lab.simulator.fault(task="qmtemplate", fail="command 'qm' failed: exit code 1")
    failed = lab.run("vm", **options, state="template")
    assert failed["error"]["category"] == "TaskFailed"
    foreseen = lab.vm(**options, state="template", check=True)
    completed = lab.vm(**options, state="template")
    assert foreseen["diff"] == completed["diff"]
    assert completed["diff"]["before"]["unconverted_disks"] == ["scsi0", "scsi1"]
    assert completed["done"][-2:] == foreseen["plan"][-2:]
    vm = completed["vm"]
    volumes = [lab.config(vm)[slot].partition(",")[0] for slot in ("scsi0", "scsi1")]
    assert all("base-" in volume for volume in volumes)
    assert not lab.vm(**options, state="template")["changed"]
