# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The bridges of the NICs of VMs and containers."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.container.kind import (
    CONTAINER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.vm.kind import VM


def test_bridges_are_in_the_order_of_the_nics() -> None:
    """A NIC of a VM can be stored without a MAC address (qemu-server: PVE/QemuServer.pm)."""
    config = {
        "net10": "virtio=BC:24:11:00:00:10,bridge=vmbr0",
        "net2": "virtio,bridge=vweb",
        "net3": "virtio",
        "name": "web",
    }
    assert list(VM.bridges_in(config).items()) == [("net2", "vweb"), ("net10", "vmbr0")]


def test_a_nic_that_cannot_be_parsed_has_no_bridge() -> None:
    """Proxmox VE ignores it (qemu-server: PVE/QemuServer.pm, parse_net)."""
    assert VM.bridges_in({"net0": "bridge=a,bridge=b", "net1": "bridge=c"}) == {"net1": "c"}
    config = {"net0": "nonsense", "net1": "name=eth1,bridge=vweb"}
    assert CONTAINER.bridges_in(config) == {"net1": "vweb"}
