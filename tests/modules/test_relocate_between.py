# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module relocate between its steps: a source that does not answer, VNets, and the inventory."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Step
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.decide import PROVE
from ansible_collections.pve.fleet.plugins.module_utils._protection.relocate.resource import (
    Relocation,
)
from tests.labs.maintenance import Killed
from tests.labs.relocate import make_guest, moved, options, prepare, state, unlock
from tests.modules.estate_lab import Lab

VMID = 20300
PROJECT = Path(__file__).parents[2] / "playbooks" / "awx" / "project"
POINTS = ("at source", "arrived", "held", "released")
READS = ("/cluster/resources$", f"/qemu/{VMID}/pending$", f"/qemu/{VMID}/status/current$")

pytestmark = pytest.mark.usefixtures("fast")


@pytest.fixture
def away(munich: Lab) -> Lab:
    """The other site."""
    prepare(munich)
    return munich


def reach(here: Lab, given: dict[str, Any], point: str) -> None:
    """Move the guest to a point of its move."""

    def send(move: Relocation, step: Step) -> Any:
        if step.action == PROVE:
            raise Killed
        return real(move, step)

    real = Relocation.send
    if point == "arrived":
        with mock.patch.object(Relocation, "send", send), pytest.raises(Killed):
            here.run("relocate", **given)
    elif point != "at source":
        due = moved(here, given)
        if point == "released":
            unlock({"vienna": here}, due["commands"])


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("point", POINTS)
def test_a_source_that_does_not_answer_stops_everything(
    unused: Lab, away: Lab, point: str, path: str
) -> None:
    """The target is complete, or even alone: without an answer of the source, nothing is written
    to it.
    """
    make_guest(unused, "online")
    given = options(unused, away, vms=["mover"], storage_map={"ceph": "local-lvm"}, hold="0s")
    reach(unused, given, point)
    before = state(unused, VMID), state(away, VMID)
    unused.simulator.fault(method="GET", path=path, drop="before", times=None)
    for lab in (unused, away):
        lab.simulator.reset_log()
    found = unused.run("relocate", retries=1, **given)
    assert found["failed"]
    assert "site vienna" in found["msg"], found
    assert unused.simulator.writes() == away.simulator.writes() == []
    unused.simulator.clear_faults()
    assert (state(unused, VMID), state(away, VMID)) == before
    assert not unused.run("relocate", **given).get("failed")


ZONE: dict[str, Any] = {"zones": [{"name": "teams", "type": "simple"}]}
NETWORK: dict[str, Any] = {
    **ZONE,
    "vnets": [{"name": "front", "zone": "teams"}],
    "subnets": [{"cidr": "10.50.0.0/24", "vnet": "front", "gateway": "10.50.0.1"}],
}


@pytest.mark.parametrize("is_there", [True, False])
def test_a_guest_on_a_vnet_keeps_it_and_its_address(unused: Lab, away: Lab, is_there: bool) -> None:
    """Or it is refused, because the target lacks the VNet. An address in the IPAM stays behind: the
    NIC gets one when its option is written at the target (qemu-server: QemuServer.pm,
    vmconfig_apply_pending, add_next_free_cidr), and loses its own with the source (destroy_vm).
    """
    unused.run("sdn", **NETWORK)
    away.run("sdn", **(NETWORK if is_there else ZONE))
    make_guest(unused, "offline")
    nic = "virtio=BC:24:11:00:00:07,bridge=front,firewall=1"
    data = {"net0": nic, "ipconfig0": "ip=10.50.0.7/24,gw=10.50.0.1"}
    path = ("nodes", "pve1", "qemu", VMID, "config")
    unused.client.write("PUT", *path, data=data)
    given = options(unused, away, vms=["mover"], storage_map={"ceph": "local-lvm"})
    unused.simulator.reset_log()
    found = unused.run("relocate", **given)
    if is_there:
        assert not found.get("failed"), found
        config = away.client.get(*path)
        assert {key: config[key] for key in data} == data
        return
    assert "pve1: bridge front is not there" in str(found["report"]), found
    assert unused.simulator.writes() == []
    other = {**given, "networks": {"front": "vmbr1"}}
    moved(unused, other)
    assert away.client.get(*path)["net0"] == nic.replace("front", "vmbr1")


def test_the_inventory_has_one_host_of_a_name_during_a_move(
    unused: Lab, away: Lab, tmp_path: Path
) -> None:
    """The inventory of AWX with the details of moves is read before and after each step. The host
    of the name is at the source until the target is proven.
    """
    make_guest(unused, "online")
    given = options(unused, away, vms=["mover"], storage_map={"ceph": "local-lvm"}, hold="0s")
    file = tmp_path / "moving.proxmox.yml"
    source = yaml.safe_load((PROJECT / file.name).read_text(encoding="utf-8"))
    file.write_text(yaml.safe_dump({**source, "sites": given["sites"]}), encoding="utf-8")
    seen: list[tuple[str, str]] = []

    def look() -> None:
        inventory = InventoryManager(loader=DataLoader(), sources=[str(file)])
        found = {name: host.vars for name, host in inventory.hosts.items() if "mover" in name}
        assert "mover" in found, found
        assert set(found) <= {"mover", f"mover_{VMID}"}
        move = found["mover"].get("proxmox_move") or {"state": ""}
        seen.append((found["mover"]["proxmox_site"], move["state"]))

    def send(move: Relocation, step: Step) -> Any:
        look()
        answer = real(move, step)
        look()
        return answer

    real = Relocation.send
    with mock.patch.object(Relocation, "send", send):
        for _number in range(2):
            unlock({"vienna": unused}, moved(unused, given)["commands"])
            look()
        moved(unused, given)
    look()
    assert (state(unused, VMID), state(away, VMID)) == ("gone", "running")
    assert list(dict.fromkeys(seen)) == [
        ("vienna", ""),
        ("vienna", "moving"),
        ("munich", "proven"),
        ("munich", "complete"),
    ]
