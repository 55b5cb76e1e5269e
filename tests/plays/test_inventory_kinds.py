# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Containers and nodes in the inventory, through the real `ansible-inventory`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plays.inventory_helpers import CONFIG, LISTING, Listed, Lister, configure, one_line
from tests.simulator.process import TOKEN_SECRET, Simulator

INTERFACES = "GET /nodes/{node}/lxc/{vmid}/interfaces"
CT_CONFIG = "GET /nodes/{node}/lxc/{vmid}/config"
STATUS = "GET /cluster/status"
NODES = {"pve1", "pve2", "pve3"}
VMS = 13
NIC = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:07:01,ip=10.99.0.77/24,type=veth"
SECOND = "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:07:02,ip=172.20.0.7/24,type=veth"
CONTAINERS: dict[int, dict[str, Any]] = {
    710: {"hostname": "proxy1", "tags": "tenant_acme;web", "net0": NIC, "net1": SECOND},
    711: {"hostname": "proxy2", "tags": "tenant_acme", "net0": NIC},
    712: {"hostname": "base", "template": 1},
}


@pytest.fixture(autouse=True)
def containers(simulator: Simulator) -> None:
    """A running and a stopped container of tenant acme, and a template."""
    for vmid, config in CONTAINERS.items():
        add(simulator, vmid, running=vmid == 710, **config)


def add(simulator: Simulator, vmid: int, *, running: bool = False, **config: Any) -> None:
    everything = {"rootfs": f"ceph:vm-{vmid}-disk-0,size=1G", "ostype": "debian", **config}
    body = {"node": "pve2", "running": running, "config": everything}
    simulator.ask("POST", f"/containers/{vmid}", body)


def vmids(found: Listed) -> set[int]:
    return {one["proxmox_vmid"] for one in found.hosts.values()}


class TestKinds:
    def test_one_request_lists_both_kinds(self, listed: Lister, simulator: Simulator) -> None:
        found = listed()
        assert simulator.counts() == {LISTING: 1}
        assert len(found.hosts) == VMS + 3
        one = found.hosts["proxy1"]
        exact = {
            "proxmox_kind": "container",
            "proxmox_vmid": 710,
            "proxmox_status": "running",
            "proxmox_node": "pve2",
            "proxmox_tags": ["tenant_acme", "web"],
            "proxmox_tenant": "acme",
            "proxmox_template": False,
        }
        assert {name: one[name] for name in exact} == exact
        assert found.group("kind_container") == ["base", "proxy1", "proxy2"]
        assert len(found.group("kind_vm")) == VMS
        for group in ("tenant_acme", "tag_web", "node_pve2", "status_running"):
            assert "proxy1" in found.group(group)
        assert "base" in found.group("template")
        assert not {"ansible_connection", "ansible_host"} & one.keys()

    @pytest.mark.parametrize(
        ("kinds", "number"), [(["vm"], VMS), (["container"], 3), ("vm,container", VMS + 3)]
    )
    def test_the_kinds_are_chosen(self, listed: Lister, kinds: Any, number: int) -> None:
        assert len(listed(kinds=kinds).hosts) == number

    def test_from_the_environment(self, listed: Lister) -> None:
        found = listed(environ={"PROXMOX_INVENTORY_KINDS": "container,node"})
        assert set(found.hosts) == {"proxy1", "proxy2", "base", *NODES}

    @pytest.mark.parametrize("kinds", [[], ["ct"]], ids=str)
    def test_other_lists_of_kinds_are_refused(
        self, listed: Lister, simulator: Simulator, kinds: list[str]
    ) -> None:
        found = listed(kinds=kinds)
        assert found.code != 0
        assert "kinds" in one_line(found.errors)
        assert simulator.counts() == {}

    def test_a_tenant_has_guests_of_both_kinds(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, tags="tenant_acme")
        found = listed(tenant="acme", kinds=["vm", "container", "node"])
        assert vmids(found) == {710, 711, 10000}

    def test_a_container_that_is_being_created(self, listed: Lister, simulator: Simulator) -> None:
        """The listing may have its name from a removed guest (pve-manager, API2Tools.pm,
        extract_vm_stats): its node is asked.
        """
        add(simulator, 720, hostname="fresh", lock="create")
        found = listed()
        assert found.by_vmid(720)["proxmox_lock"] == "create"
        assert simulator.counts() == {LISTING: 1, "GET /nodes/{node}/lxc": 1}
        listed(kinds=["vm"])
        assert simulator.counts() == {LISTING: 1}


class TestNames:
    def test_a_vm_and_a_container_of_one_name_are_two_hosts(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        configure(simulator, 10000, name="proxy1", tags="tenant_acme")
        found = listed()
        assert found.host_of(10000) == "proxy1_10000"
        assert found.host_of(710) == "proxy1_710"
        assert "'proxy1' is not the name of one host only" in one_line(found.errors)
        assert len(found.hosts) == VMS + 3

    def test_a_container_without_a_name(self, listed: Lister, simulator: Simulator) -> None:
        add(simulator, 721)
        found = listed()
        assert found.host_of(721) == "ct-721"
        assert found.by_vmid(721)["proxmox_name"] is None

    def test_a_guest_that_is_named_like_a_node(self, listed: Lister, simulator: Simulator) -> None:
        add(simulator, 722, hostname="pve1")
        found = listed(kinds=["vm", "container", "node"])
        assert found.host_of(722) == "pve1_722"
        assert found.hosts["pve1_node"]["proxmox_kind"] == "node"
        assert "pve1" not in found.hosts


class TestNodes:
    def test_they_are_hosts_from_the_same_request(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.steer("/nodes/pve3", {"online": False})
        found = listed(kinds=["vm", "container", "node"])
        assert simulator.counts() == {LISTING: 1}
        assert set(found.group("kind_node")) == NODES
        assert found.group("status_offline") == ["pve3"]
        one = found.hosts["pve1"]
        assert (one["proxmox_vmid"], one["proxmox_tenant"]) == (None, None)
        assert one["proxmox_memory_bytes"] > 0
        assert "proxmox_tenant_unknown" not in one

    def test_a_group_of_guests_has_no_node(self, listed: Lister) -> None:
        found = listed(kinds=["vm", "container", "node"])
        with_nodes = {name for name in found.groups if NODES & set(found.group(name))}
        assert with_nodes == {"kind_node", "status_online"}

    def test_their_addresses_take_one_request(self, listed: Lister, simulator: Simulator) -> None:
        found = listed(kinds=["node"], fetch=["addresses", "config", "snapshots"])
        assert simulator.counts() == {LISTING: 1, STATUS: 1}
        for name in NODES:
            one = found.hosts[name]
            assert one["ansible_host"] == one["proxmox_address"]
            assert one["proxmox_address_source"] == "cluster"
            assert "proxmox_config" not in one
        assert len({one["ansible_host"] for one in found.hosts.values()}) == 3

    def test_a_refused_request_costs_only_their_addresses(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.fault(path="/cluster/status", status=403, times=None)
        found = listed(kinds=["container", "node"], fetch=["addresses"])
        assert "addresses" in found.hosts["pve1"]["proxmox_errors"]
        assert "ansible_host" not in found.hosts["pve1"]
        assert found.hosts["proxy1"]["ansible_host"] == "10.99.0.77"


class TestAddresses:
    def test_running_containers_are_asked(self, listed: Lister, simulator: Simulator) -> None:
        found = listed(kinds=["container"], fetch=["addresses"])
        assert simulator.counts() == {LISTING: 1, INTERFACES: 1}
        one = found.hosts["proxy1"]
        assert one["ansible_host"] == one["proxmox_address"] == "10.99.0.77"
        assert one["proxmox_address_source"] == "interfaces"
        assert one["proxmox_addresses"] == ["10.99.0.77", "172.20.0.7"]
        assert found.hosts["proxy2"]["proxmox_address"] is None
        assert "proxmox_errors" not in found.hosts["proxy2"]

    def test_a_stopped_container_has_its_static_address(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        found = listed(kinds=["container"], fetch=["addresses", "config"], templates=False)
        one = found.hosts["proxy2"]
        assert (one["ansible_host"], one["proxmox_address_source"]) == ("10.99.0.77", "config")
        assert found.group("os_debian") == ["proxy1", "proxy2"]
        assert simulator.counts() == {LISTING: 1, INTERFACES: 1, CT_CONFIG: 2}

    @pytest.mark.parametrize(
        ("options", "address"),
        [
            ({"address_nics": ["eth1"]}, "172.20.0.7"),
            ({"address_nics": ["net1"], "fetch": ["addresses", "config"]}, "172.20.0.7"),
            ({"address_subnets": ["172.16.0.0/12"]}, "172.20.0.7"),
            ({"address_family": "ipv6"}, None),
        ],
        ids=str,
    )
    def test_the_choice_is_that_of_vms(
        self, listed: Lister, options: dict[str, Any], address: str | None
    ) -> None:
        found = listed(**{"kinds": ["container"], "fetch": ["addresses"], **options})
        assert found.hosts["proxy1"].get("ansible_host") == address

    @pytest.mark.parametrize("is_error", [False, True])
    def test_a_container_that_has_just_stopped(
        self, listed: Lister, simulator: Simulator, is_error: bool
    ) -> None:
        """The listing lags: its node answers null, or an error while the container stops
        (pve-container: LXC.pm, get_interfaces; around/containers-1.jsonl, 225).
        """
        assert listed().hosts["proxy1"]["proxmox_status"] == "running"
        simulator.steer("/settings", {"lag_s": 60})
        simulator.steer("/containers/710", {"running": False})
        if is_error:
            text = "command 'nsenter -t 99 --net -- ip --json a' failed: exit code 1"
            simulator.fault(method="GET", path="/710/interfaces$", status=500, message=text)
        found = listed(fetch=["addresses", "config"])
        one = found.hosts["proxy1"]
        assert one["proxmox_status"] == "running"
        assert "proxmox_errors" not in one
        assert (one["proxmox_address"], one["proxmox_address_source"]) == ("10.99.0.77", "config")
        assert "proxy1" not in found.errors

    def test_a_failure_costs_only_its_own_address(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.fault(path="/lxc/710/interfaces", status=500, times=None)
        found = listed(fetch=["addresses"])
        assert list(found.hosts["proxy1"]["proxmox_errors"]) == ["addresses"]
        assert found.by_vmid(10000)["ansible_host"]


class TestCompatible:
    def test_containers_have_the_groups_and_facts_of_the_other_plugin(self, listed: Lister) -> None:
        """As its code has it (community.proxmox, plugins/inventory/proxmox.py, _handle_item)."""
        found = listed(
            compatible_with="community.proxmox", fetch=["config", "addresses", "snapshots"]
        )
        assert found.group("proxmox_all_lxc") == ["proxy1", "proxy2"]
        assert found.group("proxmox_pve2_lxc") == ["proxy1", "proxy2"]
        assert "base" in found.group("proxmox_all_templates")
        assert "proxy1" in found.group("proxmox_all_running")
        assert not set(found.group("proxmox_all_qemu")) & set(found.group("kind_container"))
        one = found.hosts["proxy1"]
        exact = {
            "proxmox_vmtype": "lxc",
            "proxmox_tags": "tenant_acme;web",
            "proxmox_tags_parsed": ["tenant_acme", "web"],
            "proxmox_rootfs": {"disk_image": "ceph:vm-710-disk-0", "size": "1G"},
            "proxmox_snapshots": [],
            "proxmox_lxc_interfaces": [
                {"name": "eth0", "hwaddr": "bc:24:11:00:07:01", "inet": "10.99.0.77/24"},
                {"name": "eth1", "hwaddr": "bc:24:11:00:07:02", "inet": "172.20.0.7/24"},
            ],
        }
        assert {name: one.get(name) for name in exact} == exact
        assert one["proxmox_net0"]["bridge"] == "vmbr0"
        assert not {"proxmox_qmpstatus", "proxmox_agent_interfaces"} & one.keys()
        assert "proxmox_nodes" not in found.data

    def test_nodes_are_in_its_group(self, listed: Lister) -> None:
        found = listed(compatible_with="community.proxmox", kinds=["vm", "node"])
        assert set(found.group("proxmox_nodes")) == NODES
        assert not NODES & set(found.group("proxmox_all_running"))


class TestConnections:
    def test_each_kind_gets_its_plugin(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, tags="web")
        found = listed(guest_connections=True, kinds=["vm", "container", "node"])
        assert simulator.counts() == {LISTING: 1}
        container, vm, node = (found.hosts["proxy1"], found.by_vmid(10000), found.hosts["pve1"])
        assert container["ansible_connection"] == "pve.fleet.pct"
        assert vm["ansible_connection"] == "pve.fleet.agent"
        assert "ansible_connection" not in node
        assert container["ansible_pve_host"] == vm["ansible_pve_host"] == simulator.url
        assert container["ansible_pve_ca_path"] == simulator.ca
        assert container["ansible_pve_tenant"] == "acme"
        assert "ansible_pve_tenant" not in vm

    def test_no_credentials_are_among_the_variables(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        site = {**listed.connection, "name": "north"}
        cases: tuple[dict[str, Any], ...] = ({}, {"connect": False, "sites": [site]})
        for options in cases:
            found = listed(guest_connections=True, **options)
            assert len(found.hosts) == VMS + 3
            assert TOKEN_SECRET not in str(found.data)
            one = next(iter(found.hosts.values()))
            assert one["ansible_pve_host"] == simulator.url
            assert "ansible_pve_site" not in one
            assert not [name for name in one if "token" in name or "password" in name]

    def test_a_site_of_a_file_is_named(self, listed: Lister) -> None:
        file = listed.directory / "sites.json"
        site = {**listed.connection, "name": "north"}
        file.write_text(str([site]).replace("'", '"'))
        found = listed(guest_connections=True, connect=False, sites_file=str(file))
        one = found.hosts["proxy1"]
        assert (one["ansible_pve_site"], one["ansible_pve_sites_file"]) == ("north", str(file))
        assert "ansible_pve_host" not in one

    def test_another_prefix_is_passed_on(self, listed: Lister, simulator: Simulator) -> None:
        add(simulator, 723, hostname="other", tags="c-acme")
        found = listed(guest_connections=True, tenant_prefix="c-")
        assert found.hosts["other"]["ansible_pve_tenant"] == "acme"
        assert found.hosts["other"]["ansible_pve_tenant_prefix"] == "c-"

    def test_a_host_of_one_kind_only_needs_no_configuration(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        listed(guest_connections=True, kinds=["container"])
        assert CONFIG not in simulator.counts()
