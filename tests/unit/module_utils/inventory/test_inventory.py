# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory's pure parts in tables: hosts, names, groups, addresses, options, cache."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from ansible_collections.pve.fleet.plugins.doc_fragments.connection import (
    ModuleDocFragment as ConnectionFragment,
)
from ansible_collections.pve.fleet.plugins.doc_fragments.inventory import ModuleDocFragment
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.connection import (
    connection_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.addresses import (
    AddressRule,
    GuestAddress,
    agent_addresses,
    choose_address,
    cloud_init_addresses,
    parse_subnets,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.details import (
    detail_variables,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.hosts import (
    GROUP_KINDS,
    GuestFilter,
    InventoryGuest,
    group_names,
    is_harmless,
    plain_name,
    read_guests,
    unique_names,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.options import (
    ADDRESS,
    ENVIRONMENT,
    read_options,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sites import (
    SiteListing,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.sync import (
    FORM,
    InventorySync,
    choose,
    fingerprint,
)


def row(vmid: int, **more: Any) -> dict[str, Any]:
    return {
        "type": "qemu",
        "vmid": vmid,
        "name": f"vm{vmid}",
        "node": "pve1",
        "status": "running",
        **more,
    }


def guest(vmid: int, **more: Any) -> InventoryGuest:
    return read_guests([row(vmid, **more)], more.pop("site", ""))[0]


def moving(
    site: str, vmid: int, state: str, tenant: str = "acme", to_vmid: int = 8
) -> InventoryGuest:
    """Return one copy of a guest that moves from VMID 7 of site n to site s."""
    places = {"from_site": "n", "from_vmid": 7, "to_site": "s", "to_vmid": to_vmid}
    variables = {"proxmox_move": {**places, "state": state}}
    return InventoryGuest(site, vmid, "a", "", "", tenant=tenant, variables=variables)


def sanitize(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter == "_" else "_" for letter in name)


class TestGuests:
    def test_everything_the_listing_says(self) -> None:
        (found,) = read_guests(
            [
                {
                    **row(
                        100,
                        tags="web;tenant_acme",
                        pool="p1",
                        template=1,
                        lock="backup",
                        hastate="started",
                    ),
                    "maxcpu": 2,
                    "cpu": 0.5,
                    "maxmem": 4096,
                    "mem": 1024,
                    "memhost": 1030,
                    "maxdisk": 10,
                    "diskread": 11,
                    "diskwrite": 12,
                    "netin": 13,
                    "netout": 14,
                    "uptime": 7,
                }
            ],
            "north",
        )
        assert found.variables == {
            "proxmox_kind": "vm",
            "proxmox_vmid": 100,
            "proxmox_name": "vm100",
            "proxmox_node": "pve1",
            "proxmox_status": "running",
            "proxmox_tags": ["web", "tenant_acme"],
            "proxmox_tenant": "acme",
            "proxmox_pool": "p1",
            "proxmox_template": True,
            "proxmox_lock": "backup",
            "proxmox_ha_state": "started",
            "proxmox_uptime": 7,
            "proxmox_cpus": 2,
            "proxmox_cpu_usage": 0.5,
            "proxmox_memory_bytes": 4096,
            "proxmox_memory_used_bytes": 1024,
            "proxmox_memory_host_bytes": 1030,
            "proxmox_disk_bytes": 10,
            "proxmox_disk_read_bytes": 11,
            "proxmox_disk_written_bytes": 12,
            "proxmox_net_in_bytes": 13,
            "proxmox_net_out_bytes": 14,
            "proxmox_site": "north",
        }

    def test_a_vm_made_a_moment_ago_has_hardly_anything(self) -> None:
        (found,) = read_guests([{"type": "qemu", "vmid": 100, "node": "pve1", "status": "unknown"}])
        assert (found.name, found.tenant, found.tags) == ("", None, ())
        assert found.variables["proxmox_tenant_unknown"] == "no tenant tag"

    def test_the_name_that_pve_makes_up_is_none(self) -> None:
        assert read_guests([row(100, name="VM 100")])[0].name == ""

    def test_other_rows_are_not_hosts(self) -> None:
        rows: list[dict[str, Any]] = [
            {"type": "lxc"},
            {"type": "node", "node": "pve1"},
            {"type": "qemu"},
            {"type": "storage", "node": "pve1", "storage": "local"},
        ]
        assert read_guests(rows) == []


class TestChoice:
    @pytest.mark.parametrize(
        ("tags", "taken"),
        [
            ("tenant_acme", True),
            ("web;tenant_acme", True),
            ("tenant_acme2", False),
            ("tenant_acm", False),
            ("xtenant_acme", False),
            ("tenant_acme;tenant_globex", False),
            ("acme", False),
            ("tenant_", False),
            ("", False),
        ],
    )
    def test_a_tenant_matches_exactly(self, tags: str, taken: bool) -> None:
        assert GuestFilter(tenants=["acme"]).accepts(guest(100, tags=tags)) is taken

    @pytest.mark.parametrize(
        ("choice", "taken"),
        [
            (GuestFilter(), True),
            (GuestFilter(nodes=["pve1"]), True),
            (GuestFilter(nodes=["pve2"]), False),
            (GuestFilter(pools=["p1"]), True),
            (GuestFilter(pools=["p"]), False),
            (GuestFilter(pools=[]), False),
            (GuestFilter(statuses=["stopped"]), False),
            (GuestFilter(tags=["db", "web"]), True),
            (GuestFilter(tags=["we"]), False),
            (GuestFilter(templates=False), True),
        ],
    )
    def test_the_other_choices(self, choice: GuestFilter, taken: bool) -> None:
        assert choice.accepts(guest(100, tags="web", pool="p1")) is taken

    def test_templates(self) -> None:
        assert not GuestFilter(templates=False).accepts(guest(100, template=1))


class TestNames:
    @pytest.mark.parametrize(
        ("kind", "name"),
        [
            ("name", "vm7"),
            ("vmid", "vm-7"),
            ("name_vmid", "vm7_7"),
            ("site_name", "n_vm7"),
            ("other", ""),
        ],
    )
    def test_kinds(self, kind: str, name: str) -> None:
        assert plain_name(InventoryGuest("n", 7, "vm7", "pve1", "running"), kind) == name

    @pytest.mark.parametrize(
        ("wanted", "expected", "warned"),
        [
            (["a", "b"], ["a", "b"], 0),
            (["", "b"], ["vm-1", "b"], 0),
            (["a", "a"], ["a_1", "a_2"], 1),
            (["a", "a", "b"], ["a_1", "a_2", "b"], 1),
            (["localhost", "x"], ["localhost_1", "x"], 1),
            (["ALL", "x"], ["ALL_1", "x"], 1),
            (["{{ 1+1 }}", "x y"], ["vm-1", "vm-2"], 2),
            (["a:b", "web[1:3]"], ["a:b", "vm-2"], 1),
        ],
    )
    def test_unique(self, wanted: list[str], expected: list[str], warned: int) -> None:
        names, warnings = unique_names(
            [guest(number) for number, _unused in enumerate(wanted, 1)], wanted
        )
        assert len(set(names)) == len(names)
        assert names == expected
        assert len(warnings) == warned

    @pytest.mark.parametrize(
        "name",
        [
            "Localhost",
            "localhost.localdomain",
            "localhost4",
            "ip6-loopback",
            "a.localhost",
            "127.0.0.1",
            "127.1",
            "127.9",
        ]
        + [
            "2130706433",
            "0x7f000001",
            "017700000001",
            "0",
            "0.0.0.0",
            "all",
            "Template",
            "0:0:0:0:0:0:0:1",
        ],
    )
    def test_one_that_means_something_else(self, name: str) -> None:
        names, warnings = unique_names([guest(1)], [name])
        assert names == [f"{name}_1"]
        assert "means something else to Ansible" in warnings[0]

    @pytest.mark.parametrize(
        "name", ["128.1", "10.0.0.7", "local", "1", "7up", "localhosting", "web.localhost.example"]
    )
    def test_one_that_does_not(self, name: str) -> None:
        assert unique_names([guest(1)], [name]) == ([name], [])

    def test_a_vm_that_is_called_what_another_one_becomes(self) -> None:
        names, warnings = unique_names([guest(1), guest(2), guest(3)], ["a", "a", "a_1"])
        assert len(set(names)) == 3
        assert names[1] == "a_2"
        assert warnings

    def test_one_name_and_vmid_on_two_sites(self) -> None:
        guests = [InventoryGuest("n", 7, "a", "", ""), InventoryGuest("s", 7, "a", "", "")]
        assert unique_names(guests, ["a", "a"])[0] == ["a_7_n", "a_7_s"]

    @pytest.mark.parametrize(
        ("state", "expected"),
        [("moving", ["a", "a_8"]), ("returned", ["a", "a_8"]), ("proven", ["a_7", "a"])],
    )
    def test_a_guest_that_moves_keeps_its_name(self, state: str, expected: list[str]) -> None:
        """From the start of a move to its end there is one host of the guest's name, at the site
        where the guest runs or is to run. The record of the source stays C(moving).
        """
        source, target = moving("n", 7, "moving"), moving("s", 8, state)
        assert unique_names([source], ["a"])[0] == ["a"]
        assert unique_names([source, target], ["a", "a"])[0] == expected
        assert unique_names([target, source], ["a", "a"])[0] == expected[::-1]

    def test_an_incomplete_copy_of_a_guest_has_no_name(self) -> None:
        source, target = moving("n", 7, "void"), moving("s", 8, "moving")
        assert unique_names([source, target], ["a", "a"])[0] == ["a", "a_8"]

    def test_a_guest_that_moves_has_the_vmid_of_its_copy(self) -> None:
        copies = [moving("n", 7, "moving", to_vmid=7), moving("s", 7, "proven", to_vmid=7)]
        assert unique_names(copies, ["a", "a"])[0] == ["a_7", "a"]

    def test_a_third_guest_of_the_name_of_a_move(self) -> None:
        guests = [moving("n", 7, "proven"), moving("s", 8, "proven"), guest(9, site="s")]
        assert unique_names(guests, ["a", "a", "a"])[0] == ["a_7", "a_8", "a_9"]

    def test_notes_of_another_tenant_do_not_change_a_name(self) -> None:
        """A tenant can write any notes."""
        guests = [moving("n", 7, "moving"), moving("s", 8, "moving", tenant="evil")]
        assert unique_names(guests, ["a", "a"])[0] == ["a_7", "a_8"]


class TestGroups:
    def test_all_kinds(self) -> None:
        one = read_guests([row(100, tags="tenant_acme;web", pool="p-1", template=1)], "north")[0]
        one = one.with_variables({"proxmox_config": {"ostype": "l26"}})
        (found,), warnings = group_names([one], GROUP_KINDS, sanitize)
        assert found == [
            "tenant_acme",
            "tag_web",
            "node_pve1",
            "status_running",
            "pool_p_1",
            "site_north",
            "kind_vm",
            "template",
            "os_l26",
        ]
        assert warnings == []

    @pytest.mark.parametrize(
        ("tags", "prefix", "kinds", "expected"),
        [
            ("tenant_acme;web", "tenant_", ["tenant", "tag"], ["tenant_acme", "tag_web"]),
            ("Tenant_Acme;web", "tenant_", ["tenant", "tag"], ["tenant_acme", "tag_web"]),
            ("tenant_acme;web", "tenant_", ["tag"], ["tag_tenant_acme", "tag_web"]),
            ("c-acme;tenant_acme", "c-", ["tenant", "tag"], ["tenant_acme", "tag_tenant_acme"]),
            ("tenant_a;tenant_b", "tenant_", ["tenant", "tag"], ["tag_tenant_a", "tag_tenant_b"]),
        ],
        ids=str,
    )
    def test_the_tag_of_a_tenant_makes_no_second_group(
        self, tags: str, prefix: str, kinds: list[str], expected: list[str]
    ) -> None:
        guests = read_guests([row(100, tags=tags)], "", prefix)
        (found,), _unused = group_names(guests, kinds, sanitize, prefix)
        assert found == expected

    def test_no_tenant_no_group(self) -> None:
        (found,), _unused = group_names([guest(1, tags="tenant_a;tenant_b")], ["tenant"], sanitize)
        assert found == []

    def test_tenants_never_share_a_group(self) -> None:
        guests = [
            guest(1, tags="tenant_a-b"),
            guest(2, tags="tenant_a_b"),
            guest(3, tags="tenant_a.b"),
        ]
        found, warnings = group_names(guests, ["tenant"], sanitize)
        assert found[1] == ["tenant_a_b"]
        assert len({name for (name,) in found}) == 3
        assert len(warnings) == 2


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("web1", True),
        ("a.b:/c+d", True),
        ("", True),
        ("{{ 1 }}", False),
        ("{", False),
        ("f()", False),
        ("a|b", False),
    ],
)
def test_harmless_texts(text: str, harmless: bool) -> None:
    assert is_harmless(text) is harmless


AGENT = {
    "result": [
        {
            "name": "lo",
            "ip-addresses": [{"ip-address": "127.0.0.1", "prefix": 8}, {"ip-address": "::1"}],
        },
        {
            "name": "eth0",
            "hardware-address": "BC:24:11:00:00:01",
            "ip-addresses": [
                {"ip-address": "fe80::1%eth0", "prefix": 64},
                {"ip-address": "::ffff:127.0.0.1", "prefix": 96},
                {"ip-address": "fd00::5", "prefix": 64},
                {"ip-address": "10.0.0.5", "prefix": 24},
            ],
        },
        {"name": "docker0"},
        {
            "name": "eth1",
            "hardware-address": "bc:24:11:00:00:02",
            "ip-addresses": [{"ip-address": "192.168.7.5", "prefix": 24}],
        },
    ]
}
CONFIG = {
    "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0",
    "net1": "virtio=BC:24:11:00:00:02,bridge=vmbr1",
    "ipconfig0": "ip=10.0.0.9/24,gw=10.0.0.1,ip6=auto",
    "ipconfig1": "ip=dhcp",
    "agent": "1",
    "cipassword": "**********",
}


class TestAddresses:
    def test_what_the_agent_says(self) -> None:
        assert [one.address for one in agent_addresses(AGENT)] == [
            "fd00::5",
            "10.0.0.5",
            "192.168.7.5",
        ]

    @pytest.mark.parametrize(
        "answer", [None, {}, {"result": None}, {"result": ["x"]}, "x", {"result": {"error": 1}}]
    )
    def test_odd_answers(self, answer: Any) -> None:
        assert agent_addresses(answer) == []

    def test_what_cloud_init_says(self) -> None:
        assert cloud_init_addresses(CONFIG) == [
            GuestAddress("10.0.0.9", 24, "net0", "bc:24:11:00:00:01", "cloud-init")
        ]

    @pytest.mark.parametrize(
        ("rule", "chosen"),
        [
            (AddressRule(), "10.0.0.5"),
            (AddressRule("ipv6"), "fd00::5"),
            (AddressRule("any"), "fd00::5"),
            (AddressRule(nics=("eth1",)), "192.168.7.5"),
            (AddressRule(nics=("net1",)), "192.168.7.5"),
            (AddressRule(nics=("BC:24:11:00:00:02",)), "192.168.7.5"),
            (AddressRule(nics=("eth9", "eth1", "eth0")), "192.168.7.5"),
            (AddressRule(nics=("eth9",)), None),
            (AddressRule(subnets=parse_subnets(["192.168.0.0/16", "10.0.0.0/8"])), "192.168.7.5"),
            (AddressRule(subnets=parse_subnets(["172.16.0.0/12"])), None),
        ],
    )
    def test_choice(self, rule: AddressRule, chosen: str | None) -> None:
        macs = {"net0": "bc:24:11:00:00:01", "net1": "bc:24:11:00:00:02"}
        found = choose_address(agent_addresses(AGENT), rule, macs)
        assert (found.address if found else None) == chosen

    def test_a_malformed_subnet(self) -> None:
        with pytest.raises(ConfigurationError, match="address_subnets"):
            parse_subnets(["10.0.0.0/99"])


class TestDetails:
    def test_the_agent_comes_first(self) -> None:
        known = [one.as_list() for one in agent_addresses(AGENT)]
        found = detail_variables(
            "vm", {"addresses": known, "config": CONFIG}, ["addresses", "config"], AddressRule()
        )
        assert (found["proxmox_address"], found["proxmox_address_source"]) == ("10.0.0.5", "agent")
        assert found["proxmox_addresses"] == ["fd00::5", "10.0.0.5", "192.168.7.5"]
        assert found["proxmox_interfaces"][1] == {
            "name": "eth0",
            "mac": "bc:24:11:00:00:01",
            "address": "10.0.0.5",
            "prefix": 24,
        }

    def test_cloud_init_is_the_fallback(self) -> None:
        details = {"config": CONFIG, "errors": {"addresses": "agent not running"}}
        found = detail_variables("vm", details, ["addresses"], AddressRule())
        assert (found["proxmox_address"], found["proxmox_address_source"]) == (
            "10.0.0.9",
            "cloud-init",
        )
        assert found["proxmox_errors"] == {"addresses": "agent not running"}
        assert "proxmox_config" not in found

    def test_snapshots(self) -> None:
        details = {
            "snapshots": [{"name": "s1", "description": None, "snaptime": 5, "parent": None}]
        }
        found = detail_variables("vm", details, ["snapshots"], AddressRule())
        assert found["proxmox_snapshots"] == details["snapshots"]
        assert detail_variables("vm", {}, ["snapshots"], AddressRule())["proxmox_snapshots"] == []


class TestOptions:
    @pytest.mark.parametrize("blank", ["", "  "])
    @pytest.mark.parametrize("name", ["tenant", "tenants", "tenant_prefix"])
    def test_whose_vms_are_shown_is_never_blank(self, name: str, blank: str) -> None:
        variable = ENVIRONMENT[name]
        for options, environ, place in (
            ({name: blank}, {}, name),
            ({}, {variable: blank}, variable),
        ):
            with pytest.raises(
                ValidationFailed, match=f"^{place} was refused: it is given without a value"
            ) as caught:
                read_options(options.get, environ)
            assert caught.value.reason == name

    @pytest.mark.parametrize(
        ("options", "environ", "path", "expected"),
        [
            ({}, {}, "choice.tenants", None),
            ({"tenant": "acme"}, {}, "choice.tenants", ("acme",)),
            ({"tenant": "acme"}, {"PROXMOX_TENANT": ""}, "choice.tenants", ("acme",)),
            ({}, {"PROXMOX_TENANT": "acme"}, "choice.tenants", ("acme",)),
            ({}, {"PROXMOX_TENANTS": "acme, globex"}, "choice.tenants", ("acme", "globex")),
            ({"tenants": ["globex"]}, {"PROXMOX_TENANTS": "acme"}, "choice.tenants", ("globex",)),
            ({}, {"PROXMOX_INVENTORY_FETCH": "addresses,config"}, "fetch", ("addresses", "config")),
            ({}, {"PROXMOX_INVENTORY_FETCH_WORKERS": ""}, "limits.workers", 10),
            ({"fetch_workers": 4}, {}, "limits.workers", 4),
            ({}, {}, "group_by", GROUP_KINDS),
            ({"group_by": []}, {}, "group_by", ()),
            ({"group_by": ["tenant"]}, {}, "group_by", ("tenant",)),
            ({}, {"PROXMOX_INVENTORY_TEMPLATES": "no"}, "choice.templates", False),
            ({"templates": False}, {}, "choice.templates", False),
            ({}, {"PROXMOX_TENANT_PREFIX": "cust-"}, "tenant_prefix", "cust-"),
            ({}, {}, "limits.max_age", 3600.0),
            ({}, {"PROXMOX_INVENTORY_FETCH_MAX_AGE": "60"}, "limits.max_age", 60.0),
            ({}, {"PROXMOX_INVENTORY_HOSTNAMES": "vmid, name"}, "hostnames", ("vmid", "name")),
            ({}, {"PROXMOX_INVENTORY_HOSTNAMES": '["f(a, b)"]'}, "hostnames", ("f(a, b)",)),
            (
                {},
                {"PROXMOX_INVENTORY_FILTERS": "a in [1, 2]"},
                "expressions.filters",
                ("a in [1, 2]",),
            ),
            (
                {},
                {"PROXMOX_INVENTORY_FILTERS": '["a", "b, c"]'},
                "expressions.filters",
                ("a", "b, c"),
            ),
            ({"filters": ["a", "", None, True]}, {}, "expressions.filters", ("a", "True")),
            ({"filters": ""}, {"PROXMOX_INVENTORY_FILTERS": ""}, "expressions.filters", ()),
            ({}, {}, "expressions.ansible_host", ADDRESS),
            (
                {"ansible_host": ""},
                {"PROXMOX_INVENTORY_ANSIBLE_HOST": "x"},
                "expressions.ansible_host",
                "",
            ),
            ({}, {"PROXMOX_INVENTORY_ANSIBLE_HOST": "x"}, "expressions.ansible_host", "x"),
            ({}, {"PROXMOX_INVENTORY_ANSIBLE_HOST": ""}, "expressions.ansible_host", ADDRESS),
            ({}, {"PROXMOX_INVENTORY_STRICT": "yes"}, "expressions.strict", True),
            (
                {},
                {"PROXMOX_INVENTORY_LEADING_SEPARATOR": "no"},
                "expressions.leading_separator",
                False,
            ),
            (
                {},
                {"PROXMOX_INVENTORY_LEADING_SEPARATOR": ""},
                "expressions.leading_separator",
                True,
            ),
            (
                {"compose": {"a": "b"}},
                {"PROXMOX_INVENTORY_COMPOSE": "{}"},
                "expressions.compose",
                {"a": "b"},
            ),
            ({"compose": '{"a": "b"}'}, {}, "expressions.compose", {"a": "b"}),
            ({}, {"PROXMOX_INVENTORY_GROUPS": '{"a": "b"}'}, "expressions.groups", {"a": "b"}),
            (
                {},
                {"PROXMOX_INVENTORY_KEYED_GROUPS": '[{"key": "a"}]'},
                "expressions.keyed_groups",
                [{"key": "a"}],
            ),
        ],
    )
    def test_values(
        self, options: dict[str, Any], environ: dict[str, str], path: str, expected: Any
    ) -> None:
        found: Any = read_options(options.get, environ)
        for name in path.split("."):
            found = getattr(found, name)
        assert found == expected

    @pytest.mark.parametrize(
        ("options", "text"),
        [
            ({"tenants": []}, "empty list"),
            ({"tenant": "a", "tenants": ["b"]}, "both"),
            ({"tenant": "Acme"}, "'Acme'"),
            ({"fetch": ["adresses"]}, "adresses"),
            ({"group_by": ["colour"]}, "colour"),
            ({"fetch_workers": 0}, "fetch_workers"),
            ({"address_family": "ipv5"}, "ipv5"),
            ({"dead_site": "ignore"}, "ignore"),
            ({"templates": "perhaps"}, "perhaps"),
            ({"tenant_prefix": "a b"}, "tenant_prefix"),
            ({"fetch_max_age": -1}, "fetch_max_age"),
            ({"compose": ["a"]}, "compose is not a dictionary"),
            ({"compose": "{a"}, "compose is not JSON"),
            ({"groups": "[]"}, "groups is not a dictionary"),
            ({"keyed_groups": {"key": "a"}}, "keyed_groups is not a list"),
        ],
    )
    def test_refusals(self, options: dict[str, Any], text: str) -> None:
        with pytest.raises(ConfigurationError, match=text) as caught:
            read_options(options.get, {})
        assert caught.value.next_step


class TestSync:
    OPTIONS = read_options({"tenant": "acme"}.get, {})
    LISTING = SiteListing("", tuple(row(number, tags="tenant_acme") for number in range(100, 108)))

    def test_a_filter_that_cannot_be_decided_leaves_out(self) -> None:
        def is_wanted(one: InventoryGuest) -> tuple[bool, str]:
            return (False, "boom") if one.vmid % 2 else (one.vmid < 105, "")

        chosen, warnings = choose([self.LISTING], self.OPTIONS, is_wanted)
        assert [one.vmid for one in chosen] == [100, 102, 104]
        assert len(warnings) == 1
        assert "left out 4 hosts" in warnings[0]
        assert "boom" in warnings[0]

    def test_the_cache_gives_the_same_back(self) -> None:
        guests = tuple(read_guests(self.LISTING.rows, "n"))
        said: dict[str, Any] = {
            "warnings": ["w"],
            "is_complete": False,
            "read": {"n": 4.0},
            "hidden": guests[:1],
        }
        sync = InventorySync(guests[1:], {"n/100": {"config": {"a": 1}}}, taken=5.0, **said)
        again = InventorySync.from_cache(sync.for_cache(), 6.0)
        assert again is not None
        assert again == sync
        assert sorted(again.known, key=lambda one: one.vmid) == list(guests)
        assert [one.variables for one in again.guests] == [one.variables for one in guests[1:]]

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", "{}", "null", '"x"', '{"form": 0}', f'{{"form": {FORM}}}']
    )
    def test_a_cache_of_another_form_is_nothing(self, text: str) -> None:
        assert InventorySync.from_cache(text, 100.0) is None

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("guests", [{"x": 1}]),
            ("guests", None),
            ("hidden", [None]),
            ("details", {"/1": None}),
            ("details", []),
        ]
        + [
            ("taken", "x"),
            ("read", {"": "x"}),
            ("read", []),
            ("warnings", None),
            ("form", FORM - 1),
        ],
    )
    def test_a_cache_with_something_else_in_it_is_nothing(self, key: str, value: Any) -> None:
        data = json.loads(InventorySync((), taken=5.0).for_cache())
        assert InventorySync.from_cache(json.dumps(data), 100.0) is not None
        assert InventorySync.from_cache(json.dumps({**data, key: value}), 100.0) is None

    def test_a_cache_from_the_future_is_nothing(self) -> None:
        """It was written before the clock was set right, and would be shown until that time
        comes.
        """
        text = InventorySync((), taken=5000.0).for_cache()
        assert InventorySync.from_cache(text, 4990.0) is not None
        assert InventorySync.from_cache(text, 4000.0) is None

    def test_the_fingerprint_follows_the_options_and_holds_no_secret(self) -> None:
        def of(
            connection: dict[str, Any], environ: dict[str, str] | None = None, **options: Any
        ) -> str:
            return fingerprint(
                connection, environ or {}, read_options({"tenant": "acme", **options}.get, {})
            )

        plain = of({"host": "a", "password": "x"})
        assert plain == of({"host": "a", "password": "y"}, {"PROXMOX_PASSWORD": "z"})
        assert plain == of({"host": "a", "retries": 1}, {"PROXMOX_TIMEOUT": "5"})
        assert plain == of({"host": "a"}, stale="allow", fetch_max_age=5, compose={"a": "b"})
        assert plain != of({"host": "b"})
        assert plain != of({"host": "a"}, {"PROXMOX_USER": "u"})
        assert plain != of({"host": "a"}, tenant="b")
        assert plain != of({"host": "a"}, filters=["x"])
        assert plain != of({"host": "a"}, fetch=["config"])

    def test_the_fingerprint_follows_what_else_decides(self) -> None:
        def of(
            wanted: str,
            site: str = "n",
            secret: str = "x",
            filters: str = "proxmox_tenant == wanted",
        ) -> str:
            options = read_options({"filters": filters}.get, {})
            sites = [{"name": site, "token_secret": secret}]
            return fingerprint(
                {"sites_file": "f"}, {}, options, lambda path: sites, {"wanted": wanted}
            )

        plain = of("acme")
        assert plain == of("acme", secret="y")
        assert plain != of("globex")
        assert plain != of("acme", site="s")
        assert of("acme", filters="") == of("globex", filters="")


def test_the_documentation_names_every_option_and_variable() -> None:
    documented = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    for option, variable in ENVIRONMENT.items():
        assert any(f"E({variable})" in line for line in documented[option]["description"]), option
    for option, more in documented.items():
        assert more["ini"] == [{"section": "inventory_proxmox", "key": option}]


def test_a_plugin_can_take_every_option_of_the_connection_from_ansible_cfg() -> None:
    of_modules = yaml.safe_load(ConnectionFragment.DOCUMENTATION)["options"]
    places = yaml.safe_load(ConnectionFragment.PLUGIN)["options"]
    assert set(of_modules) == set(connection_spec())
    assert set(of_modules) - set(places) == {"sites"}
    assert all(list(option) == ["ini"] for option in places.values())
