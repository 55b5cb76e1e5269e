# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MTUs and VLANs that PVE stores, and with which it does not start the guest.

Source: qemu-server, QemuServer.pm (print_netdevice_full); pve-container, LXC.pm
(update_lxc_config); pve-common, Network.pm (tap_plug).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.table_lab import refused

VM: dict[str, Any] = {"name": "one", "node": "pve1", "memory": "128M", "disks": []}
CONTAINER: dict[str, Any] = {"name": "one", "node": "pve1", "source": "debian-13-standard"}
TASKS = {"vm": VM, "container": {**CONTAINER, "default_storage": "ceph"}}
MODULE = pytest.mark.parametrize("module", TASKS)


@pytest.fixture
def lab(unused: Lab) -> Lab:
    return unused


def done(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    result = lab.run(module, **options)
    assert not result.get("failed"), result["msg"]
    return dict(result[module])


@MODULE
def test_an_mtu_above_the_bridge_is_refused(lab: Lab, module: str) -> None:
    nics = [{"bridge": "vmbr0", "mtu": 9000}]
    text = refused(lab, module, **TASKS[module], nics=nics)["msg"]
    assert "9000 is more than the MTU 1500 of bridge vmbr0" in text
    done(lab, module, **TASKS[module], nics=[{"bridge": "vmbr0", "mtu": 1400}], state="started")
    changed = [{"name": "net0", "mtu": 1501}]
    assert "1501 is more than" in refused(lab, module, name="one", nics=changed)["msg"]


@MODULE
def test_the_mtu_of_a_bridge_counts(lab: Lab, module: str) -> None:
    """A bridge without an MTU has the smallest of its ports (Linux)."""
    data = {"type": "bridge", "autostart": 1, "mtu": 9000}
    lab.client.write("POST", "nodes", "pve1", "network", data={"iface": "vmbr9", **data})
    lab.client.write("PUT", "nodes", "pve1", "network")
    nics = [{"bridge": "vmbr9", "mtu": 9000}]
    made = done(lab, module, **TASKS[module], nics=nics, state="started")
    assert made["status"] == "running"


@MODULE
def test_the_mtu_of_a_zone_counts(lab: Lab, module: str) -> None:
    """A VNet has the MTU of its zone (pve-network: SDN/Zones/SimplePlugin.pm, get_mtu)."""
    zone = {"zone": "jumbo", "type": "simple", "mtu": 9000}
    lab.client.write("POST", "cluster", "sdn", "zones", data=zone)
    lab.client.write("POST", "cluster", "sdn", "vnets", data={"vnet": "wide", "zone": "jumbo"})
    lab.client.task("PUT", "cluster", "sdn")
    nics = [{"bridge": "wide", "mtu": 9001}]
    text = refused(lab, module, **TASKS[module], nics=nics)["msg"]
    assert "9001 is more than the MTU 9000 of bridge wide" in text
    nics = [{"bridge": "wide", "mtu": 9000}]
    made = done(lab, module, **TASKS[module], nics=nics, state="started")
    assert made["status"] == "running"


@MODULE
def test_a_move_checks_the_mtu_of_the_new_node(lab: Lab, module: str) -> None:
    """The NIC does not change, and the bridge of the new node is narrower."""
    for node, mtu in (("pve1", 9000), ("pve2", 1500), ("pve3", 9000)):
        data = {"iface": "vmbr9", "type": "bridge", "autostart": 1, "mtu": mtu}
        lab.client.write("POST", "nodes", node, "network", data=data)
        lab.client.write("PUT", "nodes", node, "network")
    nics = [{"bridge": "vmbr9", "mtu": 9000}]
    done(lab, module, **TASKS[module], nics=nics)
    text = refused(lab, module, name="one", node="pve2")["msg"]
    assert "9000 is more than the MTU 1500 of bridge vmbr9" in text
    assert done(lab, module, name="one", node="pve3")["node"] == "pve3"


def test_an_mtu_below_the_minimum_is_refused_for_virtio(lab: Lab) -> None:
    text = refused(lab, "vm", **VM, nics=[{"bridge": "vmbr0", "mtu": 500}])["msg"]
    assert "500 is less than 576" in text
    done(lab, "vm", **VM, nics=[{"bridge": "vmbr0", "mtu": 1}], state="started")
    other = [{"bridge": "vmbr0", "model": "e1000", "mtu": 500}]
    done(lab, "vm", **{**VM, "name": "two"}, nics=other, state="started")


@MODULE
@pytest.mark.parametrize("trunk", ["5000", "0", "4095", "20-10", "10-5000", "x", "1-2-3", "", " "])
def test_a_vlan_that_does_not_exist_is_refused(lab: Lab, module: str, trunk: str) -> None:
    nics = [{"bridge": "vmbr0", "trunks": ["10", trunk]}]
    text = refused(lab, module, **TASKS[module], nics=nics)["msg"]
    assert "is not a VLAN or a range of VLANs" in text


@MODULE
def test_zero_removes_the_vlan(lab: Lab, module: str) -> None:
    """PVE takes 1 to 4094 (qemu-server: QemuServer/Network.pm, tag); without a tag there is no VLAN."""
    done(lab, module, **TASKS[module], nics=[{"bridge": "vmbr0", "vlan": 7, "trunks": ["9"]}])
    nics = [{"name": "net0", "bridge": "vmbr0", "vlan": 0, "trunks": []}]
    done(lab, module, name="one", nics=nics)
    written = lab.simulator.writes()[-1]["params"]["net0"]
    assert "tag=" not in written
    assert "trunks=" not in written
    assert not lab.run(module, name="one", nics=nics)["changed"]


@MODULE
def test_vlans_and_ranges_are_passed(lab: Lab, module: str) -> None:
    ranges = ["20-30"] if module == "vm" else []  # the schema of containers has no ranges
    nics = [{"bridge": "vmbr0", "trunks": ["10", *ranges, "4094"]}]
    done(lab, module, **TASKS[module], nics=nics)
    assert not lab.run(module, **TASKS[module], nics=nics)["changed"]
