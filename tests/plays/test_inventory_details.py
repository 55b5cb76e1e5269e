# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Details of the inventory's hosts, through the real `ansible-inventory`."""

from __future__ import annotations

from typing import Any

from tests.plays.inventory_helpers import AGENT, LISTING, Lister, configure, most_at_once
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

    def test_a_guest_that_moves_to_another_cluster(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        """The record is in the notes, so it takes no request besides those for the configurations.
        A tenant can write any notes.
        """
        moves = {
            10000: "0f:10000:munich:700:online:1:1764500000:proven:1764500100:vienna",
            10001: "0f:10001:munich:701:online:1:1764500000::0:vienna",
            10002: f"0f:10002:munich:702:online:1:{10**17}::0:vienna",
        }
        for vmid, move in moves.items():
            configure(simulator, vmid, description=f"mail\n<!-- pve.fleet: move={move} -->")
        found = listed(fetch=["config"])
        assert found.by_vmid(10000)["proxmox_move"] == {
            "from_site": "vienna",
            "from_vmid": 10000,
            "to_site": "munich",
            "to_vmid": 700,
            "mode": "online",
            "state": "proven",
            "began": "2025-11-30T10:53:20Z",
            "since": "2025-11-30T10:55:00Z",
        }
        moving = found.by_vmid(10001)["proxmox_move"]
        assert (moving["state"], moving["since"]) == ("moving", None)
        assert "proxmox_move" not in found.by_vmid(10002)
        assert sum(simulator.counts().values()) == 1 + len(found.hosts)

    def test_an_agent_that_is_off_is_not_asked(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, agent="0", ipconfig0="ip=10.5.0.7/24,gw=10.5.0.1")
        found = listed(fetch=["config", "addresses"], filters=["proxmox_vmid == 10000"])
        assert AGENT not in simulator.counts()
        one = found.by_vmid(10000)
        assert one["proxmox_errors"] == {"addresses": "agent not configured"}
        assert (one["ansible_host"], one["proxmox_address_source"]) == ("10.5.0.7", "cloud-init")

    def test_a_silent_agent_costs_only_its_own_address(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.steer("/vms/10000", {"agent": "silent"})
        found = listed(fetch=["addresses"])
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "agent not running"}
        assert found.by_vmid(10001)["ansible_host"]

    def test_a_hanging_agent_costs_only_its_own_address(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.fault(path="/qemu/10000/agent", delay_ms=8000, status=500, times=None)
        found = listed(fetch=["addresses"], fetch_timeout=0.5)
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "timeout"}
        assert len(found.hosts) == 13
        assert found.by_vmid(10001)["ansible_host"]

    def test_a_dropped_connection_costs_only_its_own_address(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.fault(path="/qemu/10000/agent", drop="before", times=None)
        found = listed(fetch=["addresses"])
        assert found.by_vmid(10000)["proxmox_errors"] == {"addresses": "connection broken"}
        assert found.by_vmid(10001)["ansible_host"]

    def test_the_deadline_for_everything(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/agent/", delay_ms=1500, status=500, times=None)
        found = listed(fetch=["addresses"], fetch_workers=2, fetch_deadline=1)
        reasons = [
            one["proxmox_errors"]["addresses"]
            for one in found.hosts.values()
            if "proxmox_errors" in one
        ]
        assert "not asked within 1 s" in reasons
        assert len(found.hosts) == 13

    def test_no_more_at_once_than_asked_for(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/config$", delay_ms=80, times=None)
        for workers in (1, 3):
            assert len(listed(fetch=["config"], fetch_workers=workers).hosts) == 13
            configs = [one for one in simulator.log() if one["path"].endswith("/config")]
            assert len(configs) == 13
            assert most_at_once(configs) == workers

    def test_a_broken_answer_costs_only_its_own_details(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.fault(path="/qemu/10000/config", cut=20, times=None)
        simulator.fault(path="/qemu/10001/snapshot", status=500, message="boom", times=None)
        simulator.fault(path="/qemu/10002/config", status=403, times=None)
        found = listed(fetch=["config", "snapshots"])
        assert len(found.hosts) == 13
        for vmid, kind in ((10000, "config"), (10001, "snapshots"), (10002, "config")):
            assert list(found.by_vmid(vmid)["proxmox_errors"]) == [kind]
            assert found.by_vmid(vmid)["proxmox_errors"][kind]
        assert found.by_vmid(10000)["proxmox_config"] == {}
        assert found.by_vmid(10001)["proxmox_snapshots"] == []
        assert "proxmox_errors" not in found.by_vmid(10003)

    def test_an_answer_that_is_not_an_answer_is_reported(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        """It must not pass for a VM without addresses or snapshots."""
        for vmid, part in (
            (10000, "agent/network-get-interfaces"),
            (10001, "config"),
            (10002, "snapshot"),
        ):
            simulator.fault(path=f"/qemu/{vmid}/{part}$", status=200, times=None)
        found = listed(fetch=["addresses", "config", "snapshots"])
        for vmid, kind in ((10000, "addresses"), (10001, "config"), (10002, "snapshots")):
            assert found.by_vmid(vmid)["proxmox_errors"] == {kind: "malformed answer"}
        assert found.by_vmid(10000)["proxmox_address"] is None
        assert found.by_vmid(10001)["ansible_host"]

    def test_family_and_nic(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, net1="virtio=BC:24:11:AA:AA:AA,bridge=vmbr0")
        configure(
            simulator,
            10000,
            ipconfig0="ip=10.5.0.7/24,ip6=fd00:5::7/64",
            ipconfig1="ip=172.20.0.7/24",
        )
        only = {"filters": ["proxmox_vmid == 10000"], "fetch": ["addresses"]}
        expected: list[tuple[dict[str, Any], str | None]] = [
            ({}, "10.5.0.7"),
            ({"address_family": "ipv6"}, "fd00:5::7"),
            ({"address_nics": ["eth1"]}, "172.20.0.7"),
            ({"address_nics": ["bc:24:11:aa:aa:aa"]}, "172.20.0.7"),
            ({"address_nics": ["net1"], "fetch": ["addresses", "config"]}, "172.20.0.7"),
            ({"address_nics": ["eth7", "eth1", "eth0"]}, "172.20.0.7"),
            ({"address_nics": ["eth7"]}, None),
            ({"address_subnets": ["172.16.0.0/12"]}, "172.20.0.7"),
            (
                {"address_subnets": ["172.16.0.0/12", "10.0.0.0/8"], "address_nics": ["eth0"]},
                "10.5.0.7",
            ),
        ]
        for options, address in expected:
            one = listed(**{**only, **options}).by_vmid(10000)
            assert one.get("ansible_host") == one["proxmox_address"] == address, options
            assert one["proxmox_addresses"] == ["10.5.0.7", "fd00:5::7", "172.20.0.7"]

    def test_a_stopped_vm_has_the_address_of_cloud_init(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        configure(simulator, 10000, ipconfig0="ip=10.5.0.7/24")
        simulator.steer("/vms/10000", {"running": False})
        one = listed(fetch=["addresses", "config"]).by_vmid(10000)
        assert (one["ansible_host"], one["proxmox_address_source"]) == ("10.5.0.7", "cloud-init")

    def test_an_empty_ansible_host_sets_none(self, listed: Lister) -> None:
        one = listed(fetch=["addresses"], ansible_host="").by_vmid(10000)
        assert "ansible_host" not in one
        assert one["proxmox_address"]

    def test_choice_of_the_address(self, listed: Lister) -> None:
        address = listed(fetch=["addresses"]).by_vmid(10000)["ansible_host"]
        assert (
            listed(fetch=["addresses"], address_subnets=[f"{address}/32"]).by_vmid(10000)[
                "ansible_host"
            ]
            == address
        )
        other = listed(fetch=["addresses"], address_subnets=["172.31.0.0/16"]).by_vmid(10000)
        assert "ansible_host" not in other
        assert other["proxmox_addresses"] == [address]
        named = listed(fetch=["addresses"], ansible_host="proxmox_name ~ '.example.org'").by_vmid(
            10000
        )
        assert named["ansible_host"] == f"{named['proxmox_name']}.example.org"
