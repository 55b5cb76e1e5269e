# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module container_info against the simulator: filters, and the same keys as module vm_info."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab

NIC = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:07:01,ip=10.99.0.77/24,type=veth"
GUESTS: dict[int, tuple[str, dict[str, Any]]] = {
    710: ("proxy1", {"tags": "tenant_ct1;web", "net0": NIC, "env": "A=1\0SECRET=hunter2"}),
    711: ("proxy2", {"tags": "tenant_ct1"}),
    712: ("proxy3", {"tags": "tenant_ct12;web", "template": 1}),
}


@pytest.fixture
def lab(unused: Lab) -> Iterator[Lab]:
    """Yield a lab with three containers, two of them of one tenant."""
    for vmid, (name, more) in GUESTS.items():
        config = {"hostname": name, "rootfs": f"ceph:vm-{vmid}-disk-0,size=1G", **more}
        running = not more.get("template")
        body = {"node": "pve1", "running": running, "pool": None, "config": config}
        unused.simulator.ask("POST", f"/containers/{vmid}", body)
    unused.simulator.reset_log()
    yield unused
    for vmid in GUESTS:
        unused.simulator.ask("DELETE", f"/containers/{vmid}", None)


def names(lab: Lab, **filters: Any) -> list[str]:
    found = do(lab, "container_info", **filters)["containers"]
    return [container["name"] for container in found]


def test_one_request_lists_and_filters_exactly(lab: Lab) -> None:
    assert names(lab, tenant="ct1") == ["proxy1", "proxy2"]
    assert len(lab.simulator.log()) == 1
    assert names(lab, tenant="ct12") == ["proxy3"]
    assert names(lab, tenant="ct1", tags=["web"]) == ["proxy1"]
    assert names(lab, name="proxy2") == ["proxy2"]
    assert names(lab, vmid=711) == ["proxy2"]
    assert "proxy3" in names(lab, template=True)
    assert "proxy3" not in names(lab, template=False)
    assert names(lab, name="debian-13") == []  # a VM
    assert lab.simulator.writes() == []


def test_the_configuration_and_the_addresses_of_a_running_container(lab: Lab) -> None:
    (shown,) = do(lab, "container_info", vmid=710, config=True, addresses=True)["containers"]
    assert shown["config"]["env"] == {"A": "(set)", "SECRET": "(set)"}
    assert shown["config"]["rootfs"] == {"storage": "ceph", "size": "1G"}
    assert shown["macs"] == {"net0": "BC:24:11:00:07:01"}
    assert (shown["address"], shown["address_source"]) == ("10.99.0.77", "interfaces")
    assert shown["agent_problem"] is None
    assert (shown["tenant"], shown["phase"]) == ("ct1", "Running")
    assert "console=lxc" in shown["console_url"]
    (vm,) = do(lab, "vm_info", vmid=9000, config=True)["vms"]
    assert set(shown) == set(vm)


def test_the_addresses_of_a_stopped_container_are_those_of_its_configuration(lab: Lab) -> None:
    body = {
        "node": "pve1",
        "running": False,
        "pool": None,
        "config": {"hostname": "proxy1", "rootfs": "ceph:vm-710-disk-0,size=1G", "net0": NIC},
    }
    lab.simulator.ask("DELETE", "/containers/710", None)
    lab.simulator.ask("POST", "/containers/710", body)
    (shown,) = do(lab, "container_info", vmid=710, addresses=True)["containers"]
    assert (shown["address"], shown["address_source"]) == ("10.99.0.77", "config")
    assert "stopped" in shown["agent_problem"]


@pytest.mark.parametrize("is_error", [False, True])
def test_a_container_that_stops_while_it_is_read(lab: Lab, is_error: bool) -> None:
    """Its node answers null, or an error (pve-container: LXC.pm, get_interfaces)."""
    path = "/710/interfaces$"
    stop = [["PUT", "/containers/710", {"running": False}]]
    text = "command 'nsenter -t 99 --net -- ip --json a' failed: exit code 1"
    error = {"status": 500, "message": text} if is_error else {}
    lab.simulator.fault(method="GET", path=path, steer=stop, **error)
    result = do(lab, "container_info", vmid=710, addresses=True)
    (shown,) = result["containers"]
    assert (shown["address"], shown["address_source"]) == ("10.99.0.77", "config")
    assert shown["agent_problem"] == "the container is stopped"
    assert not result.get("warnings")


def test_a_tenant_without_a_name_is_refused(lab: Lab) -> None:
    assert "tenant" in refused(lab, "container_info", tenant="")["msg"]
