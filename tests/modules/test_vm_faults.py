"""Module vm when the world misbehaves: lost answers, locks, races, interrupted runs, machines that
move.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import Marker
from tests.modules.estate_lab import Lab, open_lab


@pytest.fixture
def rough(lab: Lab) -> Iterator[Lab]:
    """The shared cluster; faults are taken back afterwards."""
    yield lab
    lab.simulator.clear_faults()


def named(lab: Lab, name: str) -> list[dict[str, Any]]:
    """Return every VM of that name that really exists."""
    rows = [
        row for node in ("pve1", "pve2", "pve3") for row in lab.client.get("nodes", node, "qemu")
    ]
    return [row for row in rows if row.get("name") == name]


LOST: list[tuple[dict[str, Any], str, str]] = [
    ({"source": "debian-13", "node": "pve1", "cores": 3}, "POST", r"/qemu/9000/clone$"),
    ({"source": "debian-13", "node": "pve1", "cores": 3}, "PUT", r"/config$"),
    ({"source": "debian-13", "node": "pve1", "state": "started"}, "POST", r"/status/start$"),
    ({"source": "debian-13", "node": "pve1", "disks": [{"size": "9G"}]}, "PUT", r"/resize$"),
    ({"node": "pve1", "disks": [{"size": 1}], "cores": 3}, "POST", r"/nodes/pve1/qemu$"),
]


@pytest.mark.usefixtures("fast")
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize(("options", "method", "path"), LOST, ids=lambda value: str(value)[:50])
def test_a_lost_answer_makes_no_second_vm(
    rough: Lab, name: str, options: dict[str, Any], method: str, path: str, moment: str
) -> None:
    """Whether the write took effect or not, the run ends with the one VM that was asked for."""
    rough.simulator.fault(method=method, path=path, drop=moment)
    made = rough.vm(name=name, tenant="acme", **options)
    assert made["vm"]["tenant"] == "acme"
    assert [row["vmid"] for row in named(rough, name)] == [made["vm"]["vmid"]]
    rough.simulator.clear_faults()
    again = rough.vm(name=name, tenant="acme", **options)
    assert not again["changed"], again["plan"]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("pool", ["globex", ""], ids=["moved", "taken out"])
def test_a_lost_answer_about_the_pool(rough: Lab, name: str, pool: str, moment: str) -> None:
    """PVE refuses to put a VM into the pool that it is in, and to take it out of one that it is not
    in (pve-manager, API2/Pool.pm, update_pool): sent again without a look, it would fail.
    """
    rough.vm(name=name, source="debian-13", pool="acme")
    rough.simulator.fault(method="PUT", path=r"/pools$", drop=moment)
    moved = rough.vm(name=name, pool=pool)
    assert moved["vm"]["pool"] == (pool or None)
    assert len(moved["done"]) == 1
    listed = rough.run("vm_info", name=name)["vms"][0]
    assert (listed["pool"] or "") == pool
    assert not rough.vm(name=name, pool=pool)["changed"]


@pytest.mark.parametrize("status", [502, 503, 596, 599])
def test_a_broken_proxy_is_survived(rough: Lab, name: str, status: int) -> None:
    rough.simulator.fault(method="GET", path="/cluster/resources", status=status)
    rough.simulator.fault(method="PUT", path="/config$", status=status)
    assert rough.vm(name=name, source="debian-13", cores=3)["vm"]["config"]["cores"] == 3


@pytest.mark.parametrize("module", ["vms", "vm", "vm_info", "node_info"])
def test_a_guest_that_vanishes_while_a_node_lists_is_survived(
    rough: Lab, name: str, module: str
) -> None:
    text = "Configuration file 'nodes/pve1/qemu-server/22013.conf' does not exist"
    rough.simulator.fault(
        method="GET", path="/nodes/pve[0-9]/(qemu|lxc)$", status=500, message=text
    )
    needed: dict[str, dict[str, Any]] = {"vms": {"vms": [{"name": name}]}, "vm": {"name": name}}
    options = needed.get(module, {})
    assert not rough.run(module, **options).get("failed")


def test_an_answer_that_is_cut_is_not_an_answer(rough: Lab, name: str) -> None:
    rough.simulator.fault(method="GET", path="/cluster/resources", cut=40)
    assert rough.vm(name=name, source="debian-13")["changed"]


def test_a_lock_is_waited_for(rough: Lab, name: str) -> None:
    vm = rough.vm(name=name, source="debian-13")["vm"]
    rough.simulator.steer(f"vms/{vm['vmid']}", {"lock": "backup"})
    timer = threading.Timer(1.5, rough.simulator.steer, (f"vms/{vm['vmid']}", {"lock": None}))
    timer.start()
    try:
        assert rough.vm(name=name, cores=5)["vm"]["config"]["cores"] == 5
    finally:
        timer.join()


def test_a_lock_that_stays_is_named(rough: Lab, name: str) -> None:
    vm = rough.vm(name=name, source="debian-13")["vm"]
    rough.simulator.steer(f"vms/{vm['vmid']}", {"lock": "backup"})
    result = rough.run("vm", name=name, cores=5, lock_timeout=1)
    assert result["error"]["category"] == "Locked"
    assert "backup" in result["msg"]
    assert name in result["msg"]
    rough.simulator.steer(f"vms/{vm['vmid']}", {"lock": None})


def test_a_failed_task_tells_its_end(rough: Lab, name: str) -> None:
    vm = rough.vm(name=name, source="debian-13", node="pve1")["vm"]
    rough.client.write(
        "PUT", "nodes", "pve1", "qemu", vm["vmid"], "config", data={"net0": "virtio,bridge=vmbr66"}
    )
    result = rough.run("vm", name=name, state="started")
    assert result["failed"]
    assert result["error"]["upid"].startswith("UPID:pve1:")
    assert "vmbr66" in result["msg"]
    assert result["error"]["log"]


def test_an_interrupted_clone_is_completed_and_not_doubled(rough: Lab, name: str) -> None:
    """What a run leaves that ended right after its clone: no tag, no configuration, only the
    marker.
    """
    marker = Marker(origin=9000, run="gone", tenant="tenant_acme").render()
    data = {"newid": 30001, "name": name, "full": 0, "description": marker}
    rough.client.task("POST", "nodes", "pve1", "qemu", 9000, "clone", data=data)
    by_number = rough.refused(vmid=30001, tenant="globex", cores=3)["error"]
    assert by_number["reason"] == "foreign tenant"
    # By its name, another tenant's task means a VM of its own.
    assert rough.vm(name=name, tenant="globex", source="debian-13")["vm"]["vmid"] != 30001
    made = rough.vm(name=name, tenant="acme", source="debian-13", cores=3)
    assert made["vm"]["vmid"] == 30001
    assert made["vm"]["tenant"] == "acme"
    assert made["vm"]["description"] == ""
    assert made["vm"]["cloned_from"] == 9000
    assert not rough.vm(name=name, tenant="acme", source="debian-13", cores=3)["changed"]


def test_a_vm_that_moved_is_followed(rough: Lab, name: str) -> None:
    vm = rough.vm(name=name, source="debian-13", node="pve1", state="started")["vm"]
    rough.simulator.steer(f"vms/{vm['vmid']}", {"node": "pve2"})
    moved = rough.vm(name=name, cores=3)
    assert (moved["vm"]["node"], moved["vm"]["vmid"]) == ("pve2", vm["vmid"])


def test_a_dead_node_stops_only_its_own_vms() -> None:
    with open_lab("--lag-s", "0", "--proxy-delay-s", "0.1") as lab:
        there = lab.vm(name="there", source="debian-13", node="pve2", state="started")["vm"]
        here = lab.vm(name="here", source="debian-13", node="pve1", state="started")["vm"]
        lab.simulator.steer("nodes/pve2", {"online": False})
        assert lab.vm(name="here", cores=here["config"]["cores"] + 1)["changed"]
        assert lab.vm(name="new", source="debian-13")["vm"]["node"] != "pve2"
        result = lab.run("vm", name="there", cores=7, retries=1)
        assert result["failed"]
        assert result["error"]["category"] in ("NodeUnhealthy", "NetworkError")
        assert "pve2" in result["msg"]
        assert there["name"] in result["msg"]
        shown = lab.run("vm_info", config=True)
        assert not shown.get("failed")
        assert {vm["name"] for vm in shown["vms"]} >= {"there", "here", "new"}


def test_many_at_once_get_a_vm_each(name: str) -> None:
    """Twenty runs that all see the same stale listing: twenty VMs, twenty numbers, each its own."""
    with open_lab("--lag-s", "8", "--latency-ms", "5") as lab:
        from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import (
            connect,
        )
        from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import (
            run as converge,
        )

        def make(index: int) -> dict[str, Any]:
            with connect(lab.connection, {}) as client:
                options = {
                    "name": f"many{index}",
                    "node": "pve1",
                    "disks": [{"size": 1}],
                    "tenant": "acme",
                }
                return dict(converge(options, client).values["vm"])

        with ThreadPoolExecutor(20) as pool:
            made = list(pool.map(make, range(20)))
        assert len({vm["vmid"] for vm in made}) == 20
        assert [vm["name"] for vm in made] == [f"many{index}" for index in range(20)]
        for vm in made:
            assert lab.config(vm)["name"] == vm["name"]
