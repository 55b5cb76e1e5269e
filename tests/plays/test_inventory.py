# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin through the real `ansible-inventory`, against the simulator."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.plays.inventory_helpers import Lister, run
from tests.simulator.process import Simulator

LISTING = "GET /cluster/resources"
AGENT = "GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces"


@pytest.fixture(scope="module")
def running() -> Iterator[Simulator]:
    """A cluster of three nodes with twelve VMs (VMIDs from 10000) and a template."""
    arguments = "--nodes 3 --vms 12 --lag-s 0 --auth-delay-s 0 --proxy-delay-s 0 --control"
    with Simulator(*arguments.split()) as simulator:
        yield simulator


@pytest.fixture
def simulator(running: Simulator) -> Iterator[Simulator]:
    """The cluster in its first state."""
    yield running
    running.reset()


@pytest.fixture
def listed(simulator: Simulator, tmp_path: Path) -> Lister:
    """Lists an inventory file that is made of the given options."""
    return Lister(simulator, tmp_path)


def configure(simulator: Simulator, vmid: int, **changes: Any) -> None:
    """Change a VM's configuration behind the API."""
    simulator.steer(f"/vms/{vmid}", {"config": changes})


def one_line(errors: str) -> str:
    """Return what is said about the failure, as one line."""
    return " ".join(errors.split())


class TestListing:
    def test_one_request_gives_hosts_variables_and_groups(self, listed: Lister, simulator: Simulator) -> None:
        found = listed()
        assert simulator.counts() == {LISTING: 1}
        assert len(found.hosts) == 13
        for name, variables in found.hosts.items():
            assert variables["proxmox_name"] == name
            assert isinstance(variables["proxmox_tags"], list)
            assert name in found.group(f"node_{variables['proxmox_node']}")
            assert name in found.group(f"status_{variables['proxmox_status']}")
            for tag in variables["proxmox_tags"]:
                assert name in found.group(f"tag_{tag}")
            if variables["proxmox_tenant"]:
                assert name in found.group(f"tenant_{variables['proxmox_tenant']}")
            if variables["proxmox_pool"]:
                assert name in found.group(f"pool_{variables['proxmox_pool']}")
        assert found.group("template") == [name for name, one in found.hosts.items() if one["proxmox_template"]]
        assert "ansible_host" not in found.by_vmid(10000)

    def test_choice_of_groups(self, listed: Lister) -> None:
        assert all(name.startswith("tenant_") for name in listed(group_by=["tenant"]).groups)
        assert listed(group_by=[]).groups == set()

    def test_constructed_options(self, listed: Lister) -> None:
        found = listed(
            group_by=[],
            compose={"gib": "proxmox_memory_bytes / 1024 ** 3"},
            groups={"big": "proxmox_cpus >= 8"},
            keyed_groups=[{"key": "proxmox_node", "prefix": "on"}],
        )
        one = found.by_vmid(10000)
        assert float(one["gib"]) == one["proxmox_memory_bytes"] / 1024**3  # a text before ansible-core 2.19
        assert found.host_of(10000) in found.group(f"on_{one['proxmox_node']}")
        assert found.group("big") == sorted(name for name, two in found.hosts.items() if two["proxmox_cpus"] >= 8)

    def test_strict_makes_a_wrong_expression_fatal(self, listed: Lister) -> None:
        assert listed(compose={"x": "nonsense.y"}).code == 0
        assert listed(compose={"x": "nonsense.y"}, strict=True).code != 0

    def test_a_node_that_is_down_hides_nothing(self, listed: Lister, simulator: Simulator) -> None:
        simulator.steer("/nodes/pve3", {"online": False})
        assert len(listed(fetch=["addresses"]).hosts) == 13

    @pytest.mark.parametrize("name", ["a.proxmox.yml", "a.proxmox.yaml", "a.pve.yml", "a.pve.yaml", "proxmox.yml"])
    def test_file_names(self, listed: Lister, name: str) -> None:
        assert len(listed(name=name).hosts) == 13

    @pytest.mark.parametrize("name", ["fleet.yml", "notproxmox.yml", "a.pve.txt"])
    def test_other_file_names(self, listed: Lister, simulator: Simulator, name: str) -> None:
        assert listed(name=name).hosts == {}
        assert simulator.counts() == {}


class TestTenants:
    @pytest.fixture(autouse=True)
    def tagged(self, simulator: Simulator) -> None:
        """VMs that are nearly a tenant's."""
        for vmid, tags in {
            10000: "tenant_acme",
            10001: "web;tenant_acme",
            10002: "tenant_acme2",
            10003: "tenant_acme;tenant_globex",
            10004: "tenant_globex",
            10005: "acme",
            10006: None,
            10007: "xtenant_acme",
        }.items():
            configure(simulator, vmid, tags=tags)

    def test_exactly_its_vms(self, listed: Lister) -> None:
        found = listed(tenant="acme")
        assert sorted(one["proxmox_vmid"] for one in found.hosts.values()) == [10000, 10001]
        assert found.group("tenant_acme") == sorted(found.hosts)
        assert "tenant_acme2" not in found.groups

    def test_several(self, listed: Lister) -> None:
        found = listed(tenants=["acme", "globex"])
        assert sorted(one["proxmox_vmid"] for one in found.hosts.values()) == [10000, 10001, 10004]

    def test_of_nobody(self, listed: Lister) -> None:
        found = listed()
        assert found.by_vmid(10003)["proxmox_tenant"] is None
        assert "several" in found.by_vmid(10003)["proxmox_tenant_unknown"]
        assert found.by_vmid(10006)["proxmox_tenant_unknown"] == "no tenant tag"
        assert len(found.group("tenant_acme")) == 2

    def test_an_unknown_tenant_has_nothing(self, listed: Lister) -> None:
        assert listed(tenant="initech").hosts == {}

    def test_only_its_vms_are_asked(self, listed: Lister, simulator: Simulator) -> None:
        listed(tenant="acme", fetch=["addresses"])
        assert simulator.counts() == {LISTING: 1, AGENT: 2}

    @pytest.mark.parametrize("options", [{"tenants": []}, {"tenant": "a", "tenants": ["b"]}, {"tenant": "A b"}])
    def test_what_could_mean_everything_is_refused(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any]
    ) -> None:
        found = listed(**options)
        assert found.code != 0
        assert "ConfigurationError" in found.errors
        assert simulator.counts() == {}

    def test_from_the_environment(self, listed: Lister) -> None:
        assert len(listed(environ={"PROXMOX_TENANT": "acme"}).hosts) == 2
        assert len(listed(environ={"PROXMOX_TENANT": ""}).hosts) == 13

    def test_alike_names_do_not_share_a_group(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, tags="tenant_a-b")
        configure(simulator, 10001, tags="tenant_a_b")
        found = listed(group_by=["tenant"])
        assert found.group("tenant_a_b") == [found.host_of(10001)]
        assert "is another's" in one_line(found.errors)


class TestFilters:
    def test_they_are_decided_before_anything_is_fetched(self, listed: Lister, simulator: Simulator) -> None:
        found = listed(filters=["proxmox_vmid < 10003", "proxmox_status == 'running'"], fetch=["addresses"])
        assert len(found.hosts) == 3
        assert simulator.counts() == {LISTING: 1, AGENT: 3}

    @pytest.mark.parametrize("expression", ["proxmox_nonsense", "proxmox_vmid.x.y", "proxmox_name", "1 +"])
    def test_they_fail_closed(self, listed: Lister, expression: str) -> None:
        found = listed(filters=[expression])
        assert found.hosts == {}
        assert "could not be decided" in one_line(found.errors)

    def test_plain_choices(self, listed: Lister) -> None:
        everything = listed()
        node = everything.by_vmid(10000)["proxmox_node"]
        assert set(listed(nodes=[node]).hosts) == set(everything.group(f"node_{node}"))
        assert set(listed(tags=["web"]).hosts) == set(everything.group("tag_web"))
        assert set(listed(statuses=["stopped"]).hosts) == set(everything.group("status_stopped"))
        assert set(everything.hosts) - set(listed(templates=False).hosts) == set(everything.group("template"))


class TestNames:
    def test_a_vm_without_a_name(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, name=None)
        found = listed()
        assert found.host_of(10000) == "vm-10000"
        assert len(found.hosts) == 13

    def test_two_vms_of_one_name(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, name="twin")
        configure(simulator, 10001, name="twin")
        found = listed()
        assert {found.host_of(10000), found.host_of(10001)} == {"twin_10000", "twin_10001"}
        assert "twin_10000" in one_line(found.errors)

    def test_a_vm_cannot_pose_as_the_controller(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, name="localhost")
        assert listed().host_of(10000) == "localhost_10000"

    @pytest.mark.parametrize(
        ("hostnames", "expected"),
        [
            (["vmid"], "vm-10000"),
            (["name_vmid"], "web_10000"),
            (["site_name", "name"], "web"),
            (["'x-' ~ proxmox_vmid"], "x-10000"),
            (["proxmox_nonsense", "vmid"], "vm-10000"),
        ],
    )
    def test_preferences(self, listed: Lister, simulator: Simulator, hostnames: list[str], expected: str) -> None:
        configure(simulator, 10000, name="web")
        assert listed(hostnames=hostnames).host_of(10000) == expected

    def test_by_address(self, listed: Lister) -> None:
        found = listed(hostnames=["address", "name"], fetch=["addresses"])
        assert found.host_of(10000) == found.by_vmid(10000)["ansible_host"]


def test_texts_of_tenants_are_never_templates(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, tags="{{7*6}};x", name="web", description="{{ lookup('pipe', 'id') }}")
    found = listed(fetch=["config"], compose={"copy": "proxmox_tags"})
    assert "{{7*6}}" in json.dumps(found.by_vmid(10000)["proxmox_tags"])
    play = tmp_path / "play.yml"
    play.write_text(
        json.dumps(
            [
                {
                    "hosts": "web",
                    "gather_facts": False,
                    "tasks": [
                        {
                            "ansible.builtin.debug": {
                                "msg": "{{ proxmox_tags }} {{ copy }} {{ proxmox_config.description }}"
                            }
                        }
                    ],
                }
            ]
        )
    )
    done = run("ansible-playbook", "-i", str(tmp_path / "fleet.proxmox.yml"), str(play), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "{{7*6}}" in done.stdout
    assert "42" not in done.stdout.replace("10042", "")
    assert "uid=" not in done.stdout


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


class TestFailures:
    @pytest.mark.parametrize(
        ("options", "category"),
        [
            ({"token_id": "", "token_secret": "", "user": "root@pam", "password": "wrong-one"}, "AuthenticationError"),
            ({"token_secret": "11111111-0000-4000-8000-000000000000"}, "AuthenticationError"),
            ({"host": "http://127.0.0.1"}, "ConfigurationError"),
            ({"host": ""}, "ConfigurationError"),
            ({"token_id": "", "token_secret": ""}, "ConfigurationError"),
            ({"host": "127.0.0.1:1", "retries": 1}, "NetworkError"),
            ({"ca_path": "/nowhere/ca.pem"}, "ConfigurationError"),
            ({"ca_path": ""}, "NetworkError"),
            ({"site": "west"}, "ConfigurationError"),
        ],
    )
    def test_one_line_with_a_category(self, listed: Lister, options: dict[str, Any], category: str) -> None:
        found = listed(**options)
        assert found.code != 0
        assert f"({category})" in one_line(found.errors)
        assert "Traceback" not in found.errors
        assert "wrong-one" not in found.errors
        assert "11111111-0000" not in found.errors

    def test_a_listing_that_fails_once(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", status=596)
        assert len(listed().hosts) == 13

    def test_a_dropped_connection(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", drop="after")
        assert len(listed().hosts) == 13

    def test_a_listing_that_keeps_failing(self, listed: Lister, simulator: Simulator) -> None:
        simulator.fault(path="/cluster/resources", status=596, times=None)
        found = listed(retries=2)
        assert found.code != 0
        assert "(NetworkError)" in one_line(found.errors)
        assert simulator.counts() == {LISTING: 2}

    def test_nothing_in_the_environment_that_is_empty_counts(self, listed: Lister) -> None:
        empty = dict.fromkeys(("PROXMOX_HOST", "PROXMOX_PORT", "PROXMOX_TOKEN_ID", "PROXMOX_TIMEOUT"), "")
        assert len(listed(environ=empty).hosts) == 13

    def test_everything_from_the_environment(self, listed: Lister) -> None:
        of = listed.connection
        environ = {
            "PROXMOX_HOST": of["host"],
            "PROXMOX_TOKEN_ID": of["token_id"],
            "PROXMOX_TOKEN_SECRET": of["token_secret"],
            "PROXMOX_CA_PATH": of["ca_path"],
            "PROXMOX_INVENTORY_TEMPLATES": "no",
        }
        assert len(listed(connect=False, environ=environ).hosts) == 12

    def test_everything_from_ansible_cfg(self, listed: Lister, tmp_path: Path) -> None:
        lines = [f"{key} = {value}" for key, value in {**listed.connection, "templates": "no"}.items()]
        (tmp_path / "own.cfg").write_text("[inventory_proxmox]\n" + "\n".join(lines) + "\n")
        found = listed(connect=False, environ={"ANSIBLE_CONFIG": str(tmp_path / "own.cfg")})
        assert len(found.hosts) == 12

    def test_no_secret_is_in_the_variables(self, listed: Lister) -> None:
        found = listed(fetch=["config"])
        assert listed.connection["token_secret"] not in json.dumps(found.data)


class TestSites:
    @pytest.fixture
    def sites(self, listed: Lister) -> list[dict[str, Any]]:
        """Two sites that are the same cluster, so that every VM is there twice."""
        return [{"name": name, **listed.connection} for name in ("north", "south")]

    def test_both_are_read(self, listed: Lister, simulator: Simulator, sites: list[dict[str, Any]]) -> None:
        found = listed(connect=False, sites=sites)
        assert simulator.counts() == {LISTING: 2}
        assert len(found.hosts) == 26
        assert len(found.group("site_north")) == len(found.group("site_south")) == 13
        assert all(name.endswith(("_north", "_south")) for name in found.hosts)

    def test_one_is_named(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        found = listed(connect=False, sites=sites, site="south")
        assert len(found.hosts) == 13
        assert {one["proxmox_site"] for one in found.hosts.values()} == {"south"}
        assert len(listed(connect=False, sites=sites, environ={"PROXMOX_SITE": "north"}).hosts) == 13

    def test_from_a_file(self, listed: Lister, sites: list[dict[str, Any]], tmp_path: Path) -> None:
        (tmp_path / "sites.yml").write_text(json.dumps(sites))
        assert len(listed(connect=False, sites_file=str(tmp_path / "sites.yml")).hosts) == 26

    def test_a_dead_site(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        sites[1].update(host="127.0.0.1:1", retries=1)
        found = listed(connect=False, sites=sites)
        assert found.code != 0
        assert "site south" in one_line(found.errors)
        found = listed(connect=False, sites=sites, dead_site="report")
        assert found.code == 0
        assert len(found.hosts) == 13
        assert "site south cannot be read" in one_line(found.errors)

    def test_no_site_can_be_read(self, listed: Lister, sites: list[dict[str, Any]]) -> None:
        for site in sites:
            site.update(host="127.0.0.1:1", retries=1)
        assert listed(connect=False, sites=sites, dead_site="report").code != 0


class TestCache:
    @pytest.fixture
    def cache(self, tmp_path: Path) -> dict[str, Any]:
        """Options of a cache in files."""
        return {
            "cache": True,
            "cache_plugin": "ansible.builtin.jsonfile",
            "cache_connection": str(tmp_path / "cache"),
            "fetch": ["addresses"],
        }

    def test_it_is_looked_at_before_any_request(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        first = listed(**cache)
        second = listed(**cache)
        assert simulator.counts() == {}
        assert second.data == first.data

    def test_other_options_are_another_inventory(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        listed(**cache)
        assert len(listed(**cache, statuses=["stopped"]).hosts) == 1
        assert simulator.counts() == {LISTING: 1}

    def test_only_what_changed_is_fetched_again(
        self, listed: Lister, simulator: Simulator, cache: dict[str, Any]
    ) -> None:
        simulator.steer("/vms/10003", {"agent": "silent"})
        first = listed(**cache)
        configure(simulator, 10000, tags="web")
        simulator.steer("/vms/10001", {"running": False})
        simulator.steer("/vms/10001", {"running": True})
        time.sleep(1.1)
        second = listed(**cache, cache_timeout=1)
        assert simulator.counts() == {LISTING: 1, AGENT: 3}
        assert second.by_vmid(10000)["proxmox_tags"] == ["web"]
        assert second.by_vmid(10002)["ansible_host"] == first.by_vmid(10002)["ansible_host"]

    def test_it_expires(self, listed: Lister, simulator: Simulator, cache: dict[str, Any]) -> None:
        listed(**cache, cache_timeout=1)
        time.sleep(1.1)
        listed(**cache, cache_timeout=1)
        assert simulator.counts() == {LISTING: 1}

    def test_a_dead_api(self, listed: Lister, simulator: Simulator, cache: dict[str, Any]) -> None:
        first = listed(**cache)
        simulator.fault(path="/cluster/resources", status=596, times=None)
        time.sleep(1.1)
        refused = listed(**cache, cache_timeout=1, retries=1)
        assert refused.code != 0
        found = listed(**cache, cache_timeout=1, retries=1, stale="allow")
        assert found.code == 0
        assert found.hosts.keys() == first.hosts.keys()
        assert "last good inventory" in one_line(found.errors)

    def test_an_unreadable_cache(self, listed: Lister, simulator: Simulator, cache: dict[str, Any]) -> None:
        listed(**cache)
        for file in (listed.directory / "cache").iterdir():
            file.write_text("{broken")
        found = listed(**cache)
        assert len(found.hosts) == 13
        assert simulator.counts()[LISTING] == 1
        assert "cache cannot be" in one_line(found.errors)

    def test_a_cache_that_cannot_be_made(self, listed: Lister, cache: dict[str, Any], tmp_path: Path) -> None:
        (tmp_path / "cache").write_text("a file")
        found = listed(**cache)
        assert len(found.hosts) == 13
        assert "cache cannot be used" in one_line(found.errors)

    def test_no_secret_is_in_it(self, listed: Lister, cache: dict[str, Any]) -> None:
        listed(**cache)
        texts = [file.read_text() for file in (listed.directory / "cache").iterdir()]
        assert texts
        assert not [text for text in texts if listed.connection["token_secret"] in text]


def test_lookup(listed: Lister, simulator: Simulator, tmp_path: Path) -> None:
    configure(simulator, 10000, name="web", tags="tenant_acme")
    configure(simulator, 10001, name="web", tags="tenant_globex")
    of = {**listed.connection}
    lookup = "lookup('pve.fleet.vm', {}, **of).{}"
    tasks = [
        {"ansible.builtin.debug": {"msg": "one={{ " + lookup.format("'10002'", "vmid") + " }}"}},
        {"ansible.builtin.debug": {"msg": "two={{ " + lookup.format("'web', tenant='globex'", "vmid") + " }}"}},
        {"ansible.builtin.debug": {"msg": "{{ " + lookup.format("'web'", "vmid") + " }}"}},
    ]
    play = tmp_path / "play.yml"
    play.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "vars": {"of": of}, "tasks": tasks}]))
    simulator.reset_log()
    done = run("ansible-playbook", str(play), cwd=tmp_path)
    assert "one=10002" in done.stdout
    assert "two=10001" in done.stdout
    assert done.returncode != 0
    assert "several VMs bear the name" in done.stdout + done.stderr
    assert "(Conflict)" in done.stdout + done.stderr
    assert simulator.counts() == {LISTING: 1}
