# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory plugin through the real `ansible-inventory`: hosts, groups, tenants, filters and
names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.inventory import ModuleDocFragment
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.hosts import (
    GROUP_KINDS,
)
from tests.modules.test_unknown_names import NAMING
from tests.plays.inventory_helpers import (
    AGENT,
    CONFIG,
    LISTING,
    NODE_VMS,
    Lister,
    call,
    configure,
    one_line,
    replaced,
    run,
    vmids_on,
    wait_until,
)
from tests.simulator.process import Simulator

NAMING_OPTIONS = [
    name
    for name in yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    if NAMING.search(name)
]
# An existing name of each of these options, and a misspelt one.
UNKNOWN_NAMES = {
    "tenant": ("t1", "tt1"),
    "tenants": ("acme", "acmme"),
    "pools": ("t1", "tt1"),
    "tags": ("WEB", "wbe"),
    "nodes": ("pve1", "pve11"),
}


class TestListing:
    def test_one_request_gives_hosts_variables_and_groups(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        found = listed()
        assert simulator.counts() == {LISTING: 1}
        assert len(found.hosts) == 13
        for name, variables in found.hosts.items():
            assert variables["proxmox_name"] == name
            assert isinstance(variables["proxmox_tags"], list)
            assert name in found.group(f"node_{variables['proxmox_node']}")
            assert name in found.group(f"status_{variables['proxmox_status']}")
            for tag in variables["proxmox_tags"]:
                doubled = tag == f"tenant_{variables['proxmox_tenant']}"
                assert (name in found.group(f"tag_{tag}")) is not doubled
            if variables["proxmox_tenant"]:
                assert name in found.group(f"tenant_{variables['proxmox_tenant']}")
            if variables["proxmox_pool"]:
                assert name in found.group(f"pool_{variables['proxmox_pool']}")
        assert found.group("template") == [
            name for name, one in found.hosts.items() if one["proxmox_template"]
        ]
        assert "ansible_host" not in found.by_vmid(10000)

    def test_a_vm_that_is_too_new_for_the_listing(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        """A new number has no statistics (pve-manager, API2Tools.pm, extract_vm_stats)."""
        simulator.steer("/settings", {"lag_s": 300, "task_ms": {"default": 0}})
        call(simulator, "POST", "/nodes/pve2/qemu", vmid=20000, name="fresh", memory=256)
        wait_until(lambda: 20000 in vmids_on(simulator, "pve2"))
        fresh = listed().hosts["fresh"]
        assert (fresh["proxmox_vmid"], fresh["proxmox_status"]) == (20000, "stopped")
        assert fresh["proxmox_memory_bytes"] == 256 << 20
        assert simulator.counts() == {LISTING: 1, NODE_VMS: 1}

    def test_a_name_that_only_the_listing_has_twice(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        for vmid in (10004, 10005):
            configure(simulator, vmid, name="web", tags="tenant_acme")
        replaced(simulator, 10004, name="new", tags="tenant_acme")
        found = listed()
        assert found.by_vmid(10004)["proxmox_name"] == found.host_of(10004) == "new"
        assert found.host_of(10005) == "web"
        assert "web" not in found.errors

    def test_namesakes_that_need_no_request(self, listed: Lister, simulator: Simulator) -> None:
        """VMs of two tenants, and a template that each node has."""
        configure(simulator, 10004, name="web", tags="tenant_acme")
        configure(simulator, 10005, name="web", tags="tenant_globex")
        for vmid in (10006, 10007):
            simulator.steer(f"/vms/{vmid}", {"config": {"name": "debian", "template": "1"}})
        assert listed().code == 0
        assert simulator.counts() == {LISTING: 1}

    def test_the_configuration_has_the_name(self, listed: Lister, simulator: Simulator) -> None:
        """Where it is fetched anyway, a name of a removed VM is never shown."""
        configure(simulator, 10004, name="old")
        replaced(simulator, 10004, name="new")
        found = listed(fetch=["config"])
        assert found.host_of(10004) == found.by_vmid(10004)["proxmox_name"] == "new"
        assert NODE_VMS not in simulator.counts()

    def test_container_is_not_a_host_without_its_kind(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        container = {"node": "pve1", "config": {"hostname": "ct", "tags": "tenant_umbrella"}}
        simulator.ask("POST", "/containers/110", container)
        found = listed(kinds=["vm"])
        assert len(found.hosts) == 13
        assert 110 not in {one["proxmox_vmid"] for one in found.hosts.values()}
        assert found.group("tenant_umbrella") == []
        assert simulator.counts() == {LISTING: 1}

    def test_as_ansible_finds_the_plugin_by_itself(self, listed: Lister) -> None:
        for enabled in ("auto", "host_list,script,auto,yaml,ini,toml"):
            found = listed(environ={"ANSIBLE_INVENTORY_ENABLED": enabled})
            assert found.code == 0
            assert len(found.hosts) == 13
            assert "WARNING" not in found.errors

    def test_everything_that_the_listing_says(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, name="web", tags="b;tenant_acme;a", cores=3, memory="1024")
        simulator.steer("/vms/10000", {"lock": "backup"})
        call(simulator, "POST", "/pools", poolid="front")
        call(simulator, "PUT", "/pools", poolid="front", vms=10000, **{"allow-move": 1})
        call(simulator, "POST", "/cluster/ha/resources", sid="vm:10000")
        one = listed().hosts["web"]
        assert simulator.counts() == {LISTING: 1}
        exact = {
            "proxmox_vmid": 10000,
            "proxmox_name": "web",
            "proxmox_status": "running",
            "proxmox_tags": ["b", "tenant_acme", "a"],
            "proxmox_tenant": "acme",
            "proxmox_pool": "front",
            "proxmox_template": False,
            "proxmox_lock": "backup",
            "proxmox_ha_state": "started",
            "proxmox_cpus": 3,
            "proxmox_memory_bytes": 1024**3,
            "proxmox_site": None,
        }
        assert {name: one[name] for name in exact} == exact
        assert one["proxmox_node"].startswith("pve")
        counters = ("disk_read_bytes", "disk_written_bytes", "net_in_bytes", "net_out_bytes")
        for name in (
            "uptime",
            "cpu_usage",
            "memory_used_bytes",
            "memory_host_bytes",
            "disk_bytes",
            *counters,
        ):
            assert one[f"proxmox_{name}"] > 0

    def test_os_groups_need_the_configuration(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, ostype="win11")
        found = listed(fetch=["config"], group_by=["os"])
        assert found.group("os_win11") == [found.host_of(10000)]
        assert listed(group_by=["os"]).groups == set()

    def test_extra_variables_and_leading_separators(self, listed: Lister) -> None:
        found = listed(
            "-e",
            "colour=red",
            use_extra_vars=True,
            compose={"paint": "colour"},
            group_by=[],
            keyed_groups=[{"key": "colour"}],
            leading_separator=False,
        )
        assert {one["paint"] for one in found.hosts.values()} == {"red"}
        assert found.groups == {"red"}

    def test_they_cost_no_template(self, listed: Lister, tmp_path: Path) -> None:
        """Jinja refuses to compile anything, so nothing of a host may be an expression."""
        (tmp_path / "python").mkdir()
        refuse = "import jinja2\ndef compile(*_all, **_more):\n    raise RuntimeError\n"
        (tmp_path / "python" / "sitecustomize.py").write_text(
            f"{refuse}jinja2.Environment.compile = compile\n"
        )
        without = {"PYTHONPATH": str(tmp_path / "python")}
        options: dict[str, Any] = {
            "fetch": ["addresses", "config"],
            "tags": ["web", "db", "image"],
            "templates": True,
        }
        plain, found = listed(**options), listed(**options, environ=without)
        assert found.hosts.keys() == plain.hosts.keys()
        assert found.groups == plain.groups
        assert {
            kind for kind in GROUP_KINDS if any(name.startswith(kind) for name in found.groups)
        } == {*GROUP_KINDS} - {"site"}
        # the refusal works
        assert not listed(**options, environ=without, filters=["proxmox_vmid > 0"]).hosts

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
        # a text before ansible-core 2.19
        assert float(one["gib"]) == one["proxmox_memory_bytes"] / 1024**3
        assert found.host_of(10000) in found.group(f"on_{one['proxmox_node']}")
        assert found.group("big") == sorted(
            name for name, two in found.hosts.items() if two["proxmox_cpus"] >= 8
        )

    def test_strict_makes_a_wrong_expression_fatal(self, listed: Lister) -> None:
        assert listed(compose={"x": "nonsense.y"}).code == 0
        for options in (
            {"compose": {"x": "nonsense.y"}},
            {"groups": {"x": "nonsense.y"}},
            {"keyed_groups": [{"key": "nonsense.y"}]},
            {"hostnames": ["nonsense.y"]},
            {"ansible_host": "nonsense.y"},
        ):
            assert len(listed(**options).hosts) == 13
            found = listed(**options, strict=True)
            assert found.code != 0
            assert "nonsense" in found.errors
            assert "Traceback" not in found.errors

    def test_a_node_that_is_down_hides_nothing_and_costs_nothing(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        simulator.steer("/nodes/pve3", {"online": False})
        found = listed(fetch=["addresses", "config"])
        assert len(found.hosts) == 13
        down = found.group("node_pve3")
        assert down
        for name in down:
            reasons = found.hosts[name]["proxmox_errors"]
            assert set(reasons.values()) == {"node pve3 is offline"}
            assert ("addresses" in reasons) is (found.hosts[name]["proxmox_status"] == "running")
        assert simulator.counts()[CONFIG] == 13 - len(down)
        assert not [entry for entry in simulator.log() if "/nodes/pve3/" in entry["path"]]

    @pytest.mark.parametrize(
        "name", ["a.proxmox.yml", "a.proxmox.yaml", "a.pve.yml", "a.pve.yaml", "proxmox.yml"]
    )
    def test_file_names(self, listed: Lister, name: str) -> None:
        assert len(listed(name=name).hosts) == 13

    @pytest.mark.parametrize("name", ["fleet.yml", "notproxmox.yml", "a.pve.txt"])
    def test_other_file_names(self, listed: Lister, simulator: Simulator, name: str) -> None:
        found = listed(name=name)
        assert found.hosts == {}
        assert simulator.counts() == {}
        # A file of another format that names the plugin only looks like a mistake when it is YAML.
        assert ("name does not end in .proxmox.yml" in one_line(found.errors)) is name.endswith(
            ".yml"
        )


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

    def test_without_a_tenant(self, listed: Lister) -> None:
        found = listed()
        assert found.by_vmid(10003)["proxmox_tenant"] is None
        assert "several" in found.by_vmid(10003)["proxmox_tenant_unknown"]
        assert found.by_vmid(10006)["proxmox_tenant_unknown"] == "no tenant tag"
        assert len(found.group("tenant_acme")) == 2

    def test_an_unknown_tenant_has_nothing(self, listed: Lister) -> None:
        found = listed(tenant="initech")
        assert found.hosts == {}
        assert "there is no tenant 'initech'" in one_line(found.errors)

    @pytest.mark.parametrize("option", NAMING_OPTIONS)
    def test_an_unknown_name(self, listed: Lister, option: str) -> None:
        """A playbook may create a tenant, a pool or a tag after the inventory is read."""
        known, unknown = UNKNOWN_NAMES[option]
        given: dict[str, Any] = {option: unknown if option == "tenant" else [known, unknown]}
        found = listed(**given)
        text = one_line(found.errors)
        similar = known.lower()
        assert f"'{unknown}' that this login can see (did you mean '{similar}'?)" in text
        assert f"'{known}' that" not in text
        assert (found.hosts == {}) == (option in ("nodes", "tenant"))
        assert (found.code != 0) == (option == "nodes")

    def test_a_name_that_one_of_two_sites_has(self, listed: Lister) -> None:
        sites = [{"name": name, **listed.connection} for name in ("north", "south")]
        assert "there is no" not in listed(connect=False, sites=sites, nodes=["pve1"]).errors
        sites[1]["host"] = "127.0.0.1:9"
        sites[1]["retries"] = 1
        found = listed(connect=False, sites=sites, nodes=["pve11"], dead_site="report")
        assert "there is no" not in found.errors  # the dead site may have it

    def test_only_its_vms_are_asked(self, listed: Lister, simulator: Simulator) -> None:
        listed(tenant="acme", fetch=["addresses"])
        assert simulator.counts() == {LISTING: 1, AGENT: 2}

    @pytest.mark.parametrize(
        "options", [{"tenants": []}, {"tenant": "a", "tenants": ["b"]}, {"tenant": "A b"}]
    )
    def test_what_could_mean_everything_is_refused(
        self, listed: Lister, simulator: Simulator, options: dict[str, Any]
    ) -> None:
        found = listed(**options)
        assert found.code != 0
        assert "ConfigurationError" in found.errors
        assert simulator.counts() == {}

    def test_from_the_environment(self, listed: Lister) -> None:
        assert len(listed(environ={"PROXMOX_TENANT": "acme"}).hosts) == 2

    @pytest.mark.parametrize("blank", ["", " ", None], ids=repr)
    @pytest.mark.parametrize("option", ["tenant", "tenants", "tenant_prefix"])
    def test_a_file_without_its_value_is_refused(
        self, listed: Lister, simulator: Simulator, option: str, blank: Any
    ) -> None:
        found = listed(**{option: blank})
        assert found.code != 0
        assert option in one_line(found.errors)
        assert simulator.counts() == {}

    def test_an_environment_without_its_value_is_refused(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        found = listed(environ={"PROXMOX_TENANT": ""})
        assert found.code != 0
        assert "PROXMOX_TENANT was refused: it is given without a value" in one_line(found.errors)
        assert simulator.counts() == {}

    def test_alike_names_do_not_share_a_group(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, tags="tenant_a-b")
        configure(simulator, 10001, tags="tenant_a_b")
        found = listed(group_by=["tenant"])
        assert found.group("tenant_a_b") == [found.host_of(10001)]
        assert "is another's" in one_line(found.errors)


class TestFilters:
    def test_they_are_decided_before_anything_is_fetched(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        found = listed(
            filters=["proxmox_vmid < 10003", "proxmox_status == 'running'"], fetch=["addresses"]
        )
        assert len(found.hosts) == 3
        assert simulator.counts() == {LISTING: 1, AGENT: 3}

    @pytest.mark.parametrize(
        "expression", ["proxmox_nonsense", "proxmox_vmid.x.y", "proxmox_name", "1 +"]
    )
    def test_they_fail_closed(self, listed: Lister, expression: str) -> None:
        found = listed(filters=[expression])
        assert found.hosts == {}
        assert "could not be decided" in one_line(found.errors)

    def test_strict_makes_them_fatal(self, listed: Lister) -> None:
        found = listed(filters=["proxmox_nonsense"], strict=True)
        assert found.code != 0
        assert "Could not decide the filter 'proxmox_nonsense' for the host" in one_line(
            found.errors
        )

    def test_plain_choices(self, listed: Lister) -> None:
        everything = listed()
        node = everything.by_vmid(10000)["proxmox_node"]
        assert set(listed(nodes=[node]).hosts) == set(everything.group(f"node_{node}"))
        assert set(listed(tags=["web"]).hosts) == set(everything.group("tag_web"))
        assert set(listed(statuses=["stopped"]).hosts) == set(everything.group("status_stopped"))
        assert set(everything.hosts) - set(listed(templates=False).hosts) == set(
            everything.group("template")
        )


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

    def test_thousands_of_them_are_reported_in_some_lines(
        self, listed: Lister, simulator: Simulator
    ) -> None:
        for vmid in range(10000, 10012):
            configure(simulator, vmid, name=f"no name {vmid}")
        found = listed()
        assert one_line(found.errors).count("cannot be the name of a host") == 10
        assert "and 2 more names like these" in one_line(found.errors)

    def test_a_vm_cannot_pose_as_the_controller(self, listed: Lister, simulator: Simulator) -> None:
        configure(simulator, 10000, name="localhost")
        configure(simulator, 10001, name="2130706433")  # which is 127.0.0.1 to a resolver
        found = listed()
        assert found.host_of(10000) == "localhost_10000"
        assert found.host_of(10001) == "2130706433_10001"
        assert one_line(found.errors).count("means something else to Ansible") == 2

    def test_a_vm_that_is_named_like_a_group(
        self, listed: Lister, simulator: Simulator, tmp_path: Path
    ) -> None:
        """It joins the groups itself; no other VM joins its tenant's group."""
        configure(simulator, 10000, name="web", tags="tenant_evil;web")
        configure(simulator, 10001, name="front", tags="tenant_acme;web")
        groups = {"web": "'web' in proxmox_tags"}
        keyed = [{"key": "proxmox_tags", "prefix": "", "separator": "", "parent_group": "by_tag"}]
        for order, vmid in enumerate((9000, 10005)):
            # Whether the group is there before its namesake or not makes a difference to Ansible.
            configure(simulator, vmid, tags="web")
            for options in (
                {"groups": groups},
                {"keyed_groups": keyed},
                {"groups": groups, "keyed_groups": keyed},
            ):
                found = listed(**options, strict=order == 0)
                assert found.code == 0, found.errors
                assert len(found.hosts) == 13
                assert {"web", "front"} <= set(found.group("web"))
                assert found.data["tenant_evil"] == {"hosts": ["web"]}
                assert found.group("tenant_acme") == ["front"]
        # The group may also come from another source.
        (tmp_path / "static.ini").write_text("[web]\nelsewhere\n")
        listed()
        sources = ["-i", "static.ini", "-i", "fleet.proxmox.yml"]
        both = {"ANSIBLE_INVENTORY_ENABLED": "pve.fleet.proxmox,ini"}
        data = json.loads(
            run("ansible-inventory", *sources, "--list", environ=both, cwd=tmp_path).stdout
        )
        assert data["web"] == {"hosts": ["elsewhere"]}
        assert data["tenant_evil"] == {"hosts": ["web"]}

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
    def test_preferences(
        self, listed: Lister, simulator: Simulator, hostnames: list[str], expected: str
    ) -> None:
        configure(simulator, 10000, name="web")
        assert listed(hostnames=hostnames).host_of(10000) == expected

    def test_by_address(self, listed: Lister) -> None:
        found = listed(hostnames=["address", "name"], fetch=["addresses"])
        assert found.host_of(10000) == found.by_vmid(10000)["ansible_host"]
