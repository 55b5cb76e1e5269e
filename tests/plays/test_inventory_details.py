# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of the inventory's hosts, through the real `ansible-inventory`."""

from __future__ import annotations

from tests.plays.inventory_helpers import AGENT, LISTING, Lister, configure
from tests.simulator.process import Simulator


class TestDetails:
    def test_addresses(self, listed: Lister, simulator: Simulator) -> None:
        found = listed(fetch=["addresses"])
        running = [one for one in found.hosts.values() if one["proxmox_status"] == "running"]
        assert simulator.counts() == {LISTING: 1, AGENT: len(running)}
        for one in running:
            assert one["ansible_host"] == one["proxmox_address"] == one["proxmox_addresses"][0]
            assert one["proxmox_address_source"] == "agent"

    def test_a_stopped_vm_is_not_asked(self, listed: Lister, simulator: Simulator) -> None:
        simulator.steer("/vms/10000", {"running": False})
        found = listed(fetch=["addresses"], filters=["proxmox_vmid == 10000"])
        assert simulator.counts() == {LISTING: 1}
        assert found.by_vmid(10000)["proxmox_address"] is None

    def test_config_and_snapshots(self, listed: Lister) -> None:
        found = listed(fetch=["config", "snapshots"])
        one = found.by_vmid(10000)
        assert one["proxmox_config"]["ostype"] == "l26"
        assert one["proxmox_snapshots"] == []
        assert found.host_of(10000) in found.group("os_l26")

    def test_an_agent_that_is_off_is_not_asked(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, agent="0", ipconfig0="ip=10.5.0.7/24,gw=10.5.0.1")
        found = listed(fetch=["config", "addresses"], filters=["proxmox_vmid == 10000"])
        assert AGENT not in simulator.counts()
        one = found.by_vmid(10000)
        assert one["proxmox_errors"] == {"addresses": "agent not configured"}
        assert (one["ansible_host"], one["proxmox_address_source"]) == ("10.5.0.7", "cloud-init")

    def test_a_silent_agent_costs_only_its_own_address(self, listed: Lister, simulator: Simulator) -> None:
        simulator.steer("/vms/10000", {"agent": "silent"})
        found = listed(fetch=["addresses"])
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "agent not running"}
        assert found.by_vmid(10001)["ansible_host"]

    def test_a_hanging_agent_costs_only_its_own_address(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/qemu/10000/agent", delay_ms=8000, status=500, times=None)
        found = listed(fetch=["addresses"], fetch_timeout=0.5)
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "timeout"}
        assert len(found.hosts) == 13
        assert found.by_vmid(10001)["ansible_host"]

    def test_a_dropped_connection_costs_only_its_own_address(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/qemu/10000/agent", drop="before", times=None)
        found = listed(fetch=["addresses"])
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "connection broken"}
        assert found.by_vmid(10001)["ansible_host"]

    def test_the_deadline_for_everything(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/agent/", delay_ms=1500, status=500, times=None)
        found = listed(fetch=["addresses"], fetch_workers=2, fetch_deadline=1)
        reasons = [one["proxmox_errors"]["addresses"] for one in found.hosts.values() if "proxmox_errors" in one]
        assert "not asked within 1 s" in reasons
        assert len(found.hosts) == 13

    def test_choice_of_the_address(self, listed: Lister) -> None:
        address = listed(fetch=["addresses"]).by_vmid(10000)["ansible_host"]
        assert listed(fetch=["addresses"], address_subnets=[f"{address}/32"]).by_vmid(10000)["ansible_host"] == address
        other = listed(fetch=["addresses"], address_subnets=["172.31.0.0/16"]).by_vmid(10000)
        assert "ansible_host" not in other
        assert other["proxmox_addresses"] == [address]
        named = listed(fetch=["addresses"], ansible_host="proxmox_name ~ '.example.org'").by_vmid(10000)
        assert named["ansible_host"] == f"{named['proxmox_name']}.example.org"
