"""Module vm_info against the simulator: filters, and the same keys as module vm."""

from __future__ import annotations

import time
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import times
from tests.modules.estate_lab import Lab


def names(result: dict[str, object]) -> list[str]:
    assert not result.get("failed"), result
    return sorted(vm["name"] for vm in result["vms"])  # type: ignore[attr-defined]


def test_one_request_lists_and_filters_exactly(quiet: Lab) -> None:
    lab = quiet
    for name, tenant, tags in (
        ("info-a", "info1", ["web"]),
        ("info-b", "info1", []),
        ("info-c", "info12", ["web"]),
    ):
        lab.vm(name=name, source="debian-13", tenant=tenant, tags=tags)
    lab.simulator.reset_log()
    assert names(lab.run("vm_info", tenant="info1")) == ["info-a", "info-b"]
    assert len(lab.simulator.log()) == 1
    assert names(lab.run("vm_info", tenant="info1", tags=["web"])) == ["info-a"]
    assert names(lab.run("vm_info", tenant="info12")) == ["info-c"]
    assert "(did you mean 'info1'?)" in lab.run("vm_info", tenant="info")["msg"]
    assert names(lab.run("vm_info", name="info-a")) == ["info-a"]
    assert names(lab.run("vm_info", vmid=9000)) == ["debian-13"]
    assert "debian-13" in names(lab.run("vm_info", template=True))
    assert "debian-13" not in names(lab.run("vm_info", template=False))
    assert lab.simulator.writes() == []


def test_the_configuration_comes_with_the_keys_of_module_vm(lab: Lab, name: str) -> None:
    result = lab.vm(name=name, source="debian-13", tenant="acme", cores=3, state="started")
    made = {**result["vm"], "conditions": result["conditions"]}
    shown = lab.run("vm_info", name=name, config=True, check=True)["vms"]
    assert len(shown) == 1
    moving = {"uptime": 0, "checked": None}
    assert {**shown[0], **moving} == {**made, **moving}
    assert set(lab.run("vm_info", name=name)["vms"][0]) == set(made)
    waiting = lab.vm(name=name, cores=2)
    shown = lab.run("vm_info", name=name, config=True)["vms"]
    assert shown[0]["conditions"] == waiting["conditions"]
    assert [one["reason"] for one in shown[0]["conditions"] if one["type"] == "Ready"] == [
        "PendingChanges"
    ]
    assert lab.run("vm_info", name=name)["changed"] is False


def test_phase_and_time_of_the_reading(lab: Lab, name: str) -> None:
    options: dict[str, Any] = {"name": name, "source": "debian-13", "tenant": "acme"}
    began = time.time() - 1
    for module in ("vm", "clone"):
        planned = lab.run(module, check=True, **{**options, "name": f"{name}-{module}"})["vm"]
        assert planned["phase"] == "Pending"
        assert began <= (times.seconds(planned["checked"]) or 0) <= time.time()
    several = lab.run("vms", check=True, vms=[{**options, "name": f"{name}-x"}])
    assert several["vms"][0]["vm"]["phase"] == "Pending"
    made = lab.vm(**options, state="started")["vm"]
    assert made["phase"] == "Running"
    again = lab.vm(**options, state="started")
    assert not again["changed"]
    assert "checked" not in str(again["diff"])
    assert lab.vm(name=name, state="stopped", force=True)["vm"]["phase"] == "Stopped"
    for config in (False, True):
        (shown,) = lab.run("vm_info", name=name, config=config)["vms"]
        assert shown["phase"] == "Stopped"
        assert (times.seconds(shown["checked"]) or 0) >= began
    lab.simulator.steer(f"/vms/{made['vmid']}", {"lock": "clone"})
    assert lab.run("vm_info", vmid=made["vmid"], config=True)["vms"][0]["phase"] == "Creating"
    lab.simulator.steer(f"/vms/{made['vmid']}", {"lock": None})


def test_a_paused_vm_is_listed_as_paused(quiet: Lab) -> None:
    """The cluster's listing has QEMU's state, that of a node whether there is a process."""
    quiet.vm(name="still", disks=[{"size": 1}], state="started")
    quiet.vm(name="still", state="paused")
    quiet.simulator.reset_log()
    (vm,) = quiet.run("vm_info", name="still")["vms"]
    assert (vm["status"], vm["power_state"]) == ("paused", "suspended")
    assert len(quiet.simulator.log()) == 4  # the cluster, and the names of each node
    assert quiet.vm(name="still")["vm"]["status"] == "paused"
