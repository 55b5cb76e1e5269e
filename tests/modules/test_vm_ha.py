"""Module vm and VMs under the HA manager, which does what it is asked for when its next round
comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.estate_lab import Lab, open_lab

ROUND_MS = 700


@pytest.fixture(scope="module")
def slow() -> Iterator[Lab]:
    """The demo cluster with an HA manager that takes its time."""
    with open_lab("--lag-s", "0", "--task-ms", f"default=20,ha={ROUND_MS}") as opened:
        yield opened


def managed(lab: Lab, name: str, state: str) -> dict[str, Any]:
    """Return a VM that the HA manager keeps started or stopped."""
    vm = lab.vm(name=name, source="debian-13", state=state, tenant="acme")["vm"]
    lab.client.write(
        "POST", "cluster", "ha", "resources", data={"sid": f"vm:{vm['vmid']}", "state": state}
    )
    return vm


def kinds(lab: Lab, vm: dict[str, Any]) -> list[str]:
    """Return the types of the VM's tasks, the oldest first."""
    rows = lab.client.get("nodes", vm["node"], "tasks", vmid=vm["vmid"], source="all", limit=50)
    return [row["type"] for row in sorted(rows, key=lambda row: (row["starttime"], row["upid"]))]


def test_a_start_is_over_when_the_vm_runs(slow: Lab, name: str) -> None:
    vm = managed(slow, name, "stopped")
    result = slow.vm(name=name, tenant="acme", state="started")
    assert result["vm"]["status"] == "running"
    assert slow.status(vm) == "running"
    assert {"hastart", "qmstart"} <= set(kinds(slow, vm))
    assert {c["type"]: c["status"] for c in result["conditions"]}["Ready"]
    assert not slow.vm(name=name, tenant="acme", state="started")["changed"]


@pytest.mark.parametrize("how", [{}, {"shutdown_timeout": 0}], ids=["shutdown", "stop"])
def test_a_stop_is_over_when_the_vm_is_off(slow: Lab, name: str, how: dict[str, Any]) -> None:
    vm = managed(slow, name, "started")
    result = slow.vm(name=name, tenant="acme", state="stopped", **how)
    assert result["vm"]["status"] == "stopped"
    assert slow.status(vm) == "stopped"
    assert {"hastop", "qmstop" if how else "qmshutdown"} <= set(kinds(slow, vm))
    assert not slow.vm(name=name, tenant="acme", state="stopped")["changed"]


def test_a_running_vm_is_stopped_before_it_is_removed(slow: Lab, name: str) -> None:
    vm = managed(slow, name, "started")
    result = slow.vm(name=name, tenant="acme", state="absent")
    assert len(result["done"]) == 2
    assert vm["vmid"] not in {
        row["vmid"] for row in slow.client.get("cluster", "resources", type="vm")
    }
    assert f"vm:{vm['vmid']}" not in {
        row["sid"] for row in slow.client.get("cluster", "ha", "resources")
    }


def test_a_template_is_made_of_a_vm_that_is_really_off(slow: Lab, name: str) -> None:
    managed(slow, name, "started")
    assert slow.vm(name=name, tenant="acme", state="template")["vm"]["template"]


def test_a_manager_that_is_not_at_work_is_reported(slow: Lab, name: str) -> None:
    slow.simulator.steer("settings", {"task_ms": {"ha": 3_600_000}})
    try:
        vm = managed(slow, name, "stopped")
        result = slow.run("vm", name=name, tenant="acme", state="started", task_timeout=2)
    finally:
        slow.simulator.steer("settings", {"task_ms": {"ha": ROUND_MS}})
    assert result["failed"]
    assert result["error"]["category"] == "TaskTimeout"
    assert "HA manager" in result["msg"]
    assert "not running after 2 s" in result["msg"]
    assert slow.status(vm) == "stopped"


def test_a_manager_that_is_disarmed_is_reported(slow: Lab, name: str) -> None:
    vm = managed(slow, name, "stopped")
    disarmed: dict[str, Any] = {"armed_state": "disarmed", "resource_mode": "freeze"}
    assert slow.run("ha_state", **disarmed)["changed"]
    try:
        result = slow.run("vm", name=name, tenant="acme", state="started", task_timeout=2)
    finally:
        assert slow.run("ha_state", armed_state="armed")["changed"]
    assert (result["error"]["category"], result["error"]["reason"]) == ("TaskTimeout", "HA frozen")
    assert "pve.fleet.ha_state" in result["msg"]
    assert slow.vm(name=name, tenant="acme", state="started")["vm"]["vmid"] == vm["vmid"]
    assert slow.status(vm) == "running"


def test_what_the_manager_fails_at_is_reported(slow: Lab, name: str) -> None:
    vm = managed(slow, name, "stopped")
    slow.client.write(
        "PUT",
        "nodes",
        vm["node"],
        "qemu",
        vm["vmid"],
        "config",
        data={"net1": "virtio,bridge=vmbr99"},
    )
    result = slow.run("vm", name=name, tenant="acme", state="started", task_timeout=3)
    assert result["failed"]
    assert "bridge 'vmbr99' does not exist" in result["msg"]
    assert slow.status(vm) == "stopped"
