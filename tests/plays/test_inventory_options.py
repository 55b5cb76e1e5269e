# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the inventory from the environment and ansible.cfg, through the real
`ansible-inventory`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.settings import (
    ENVIRONMENT as CONNECTION,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.options import (
    ENVIRONMENT,
)
from tests.cases import repeated
from tests.plays.inventory_helpers import Listed, Lister, one_line
from tests.simulator.process import Simulator

# What an option does to the list: a value for the environment and ansible.cfg, and what must be
# true then.
EFFECTS: dict[str, tuple[str, Any]] = {
    "tenant": ("t1", lambda found: set(values(found, "tenant")) == {"t1"}),
    "tenants": ("t1,t2", lambda found: set(values(found, "tenant")) == {"t1", "t2"}),
    "tenant_prefix": ("ten", lambda found: not found.groups & {"tenant_t1"}),
    "nodes": ("pve1,pve2", lambda found: set(values(found, "node")) == {"pve1", "pve2"}),
    "pools": ("t1,t2", lambda found: set(values(found, "pool")) == {"t1", "t2"}),
    "statuses": ("stopped", lambda found: set(values(found, "status")) == {"stopped"}),
    "tags": (
        "image,web",
        lambda found: all({"image", "web"} & set(tags) for tags in values(found, "tags")),
    ),
    "templates": ("no", lambda found: len(found.hosts) == 12),
    "filters": ("proxmox_vmid == 10000", lambda found: values(found, "vmid") == [10000]),
    "group_by": (
        "node,status",
        lambda found: all(name.startswith(("node_", "status_")) for name in found.groups),
    ),
    "compatible_with": ("community.proxmox", lambda found: "proxmox_all_qemu" in found.groups),
    "hostnames": ("vmid,name", lambda found: "vm-10000" in found.hosts),
    "fetch": (
        "config,snapshots",
        lambda found: all("proxmox_snapshots" in one for one in found.hosts.values()),
    ),
    "ansible_host": (
        "proxmox_vmid ~ '.lan'",
        lambda found: found.by_vmid(10000).get("ansible_host") == "10000.lan",
    ),
    "compose": (
        '{"a": "proxmox_vmid + 1"}',
        lambda found: int(found.by_vmid(10000).get("a", 0)) == 10001,
    ),
    "groups": (
        '{"a": "proxmox_vmid == 10000"}',
        lambda found: found.group("a") == [found.host_of(10000)],
    ),
    "keyed_groups": (
        '[{"key": "proxmox_node", "prefix": "on"}]',
        lambda found: "on_pve1" in found.groups,
    ),
}


def values(found: Listed, name: str) -> list[Any]:
    return [one[f"proxmox_{name}"] for one in found.hosts.values()]


def without_host(listed: Lister) -> dict[str, Any]:
    return {key: value for key, value in listed.connection.items() if key != "host"}


def by_environment(listed: Lister) -> dict[str, str]:
    """The connection, as a credential of AWX sets it."""
    return {CONNECTION[name][0]: str(value) for name, value in listed.connection.items()}


@pytest.mark.parametrize("option", EFFECTS)
def test_from_the_environment(listed: Lister, option: str) -> None:
    value, has_effect = EFFECTS[option]
    found = listed(connect=False, environ={**by_environment(listed), ENVIRONMENT[option]: value})
    assert found.hosts, found.errors
    assert has_effect(found)
    assert not has_effect(listed())


# Each file of settings needs a command of its own.
@pytest.mark.parametrize("option", repeated(EFFECTS))
def test_from_ansible_cfg(listed: Lister, tmp_path: Path, option: str) -> None:
    value, has_effect = EFFECTS[option]
    lines = [f"{key} = {one}" for key, one in {**listed.connection, option: value}.items()]
    (tmp_path / "own.cfg").write_text("[inventory_proxmox]\n" + "\n".join(lines) + "\n")
    found = listed(connect=False, environ={"ANSIBLE_CONFIG": str(tmp_path / "own.cfg")})
    assert found.hosts, found.errors
    assert has_effect(found)


def test_lists_as_json(listed: Lister) -> None:
    """An extra variable or a survey of AWX gives a list so.

    Read otherwise it would match no VM and say nothing.
    """
    given = {"PROXMOX_INVENTORY_NODES": '["pve1", "pve2"]', "PROXMOX_TENANTS": ' ["t1", "t2"]'}
    found = listed(connect=False, environ={**by_environment(listed), **given})
    assert {*values(found, "node")} == {"pve1", "pve2"}
    assert {*values(found, "tenant")} == {"t1", "t2"}
    found = listed(environ={"PROXMOX_TENANTS": '["t1"'})
    assert found.code != 0
    assert "PROXMOX_TENANTS is not JSON" in one_line(found.errors)


def test_the_file_wins_over_the_environment(listed: Lister) -> None:
    found = listed(
        templates=True, environ={"PROXMOX_INVENTORY_TEMPLATES": "no", "PROXMOX_HOST": "nowhere"}
    )
    assert len(found.hosts) == 13


def test_an_empty_value_means_unset(listed: Lister, tmp_path: Path) -> None:
    names = [name for several in CONNECTION.values() for name in several] + list(
        ENVIRONMENT.values()
    )
    # Without a tenant, the VMs of all tenants are listed: an empty one is an error.
    of_tenants = {name for name in names if name.startswith("PROXMOX_TENANT")}
    names = [name for name in names if name not in of_tenants]
    assert len(of_tenants) == 3
    assert len(names) > 40
    plain = listed()
    assert listed(environ=dict.fromkeys(names, "")).hosts.keys() == plain.hosts.keys()
    assert listed(environ=dict.fromkeys(names, " ")).groups == plain.groups
    lists = [
        "nodes",
        "pools",
        "statuses",
        "tags",
        "group_by",
        "hostnames",
        "fetch",
        "address_nics",
        "address_subnets",
    ]
    others = [
        "filters",
        "compose",
        "groups",
        "keyed_groups",
        "site",
        "sites",
        "sites_file",
        "client_cert",
    ]
    in_file: dict[str, Any] = dict.fromkeys([*lists, *others], "")
    assert listed(**in_file).groups == plain.groups
    empty = "\n".join(f"{name} =" for name in in_file)
    (tmp_path / "own.cfg").write_text(f"[inventory_proxmox]\n{empty}\n")
    in_ini = listed(environ={"ANSIBLE_CONFIG": str(tmp_path / "own.cfg")})
    assert in_ini.groups == plain.groups, in_ini.errors
    assert listed(tenants="").code != 0  # which could mean no tenant's as well as every tenant's


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PROXMOX_INVENTORY_FETCH", "adresses", "PROXMOX_INVENTORY_FETCH holds 'adresses'"),
        ("PROXMOX_INVENTORY_GROUP_BY", "colour", "Use tenant, tag, node"),
        ("PROXMOX_INVENTORY_TEMPLATES", "perhaps", "neither true nor false"),
        ("PROXMOX_INVENTORY_FETCH_WORKERS", "many", "not a number from 1 to 100"),
        ("PROXMOX_INVENTORY_ADDRESS_SUBNETS", "10.0.0.0/99", "address_subnets"),
        ("PROXMOX_INVENTORY_COMPOSE", "{a: b}", "PROXMOX_INVENTORY_COMPOSE is not JSON"),
        ("PROXMOX_INVENTORY_KEYED_GROUPS", "{}", "not a list"),
        ("PROXMOX_TENANT", "A b", "cannot be a tenant"),
        ("PROXMOX_TIMEOUT", "soon", "PROXMOX_TIMEOUT is 'soon'"),
        ("PROXMOX_SITES_FILE", "/nowhere/sites.yml", "/nowhere/sites.yml"),
        ("PROXMOX_SITE", "west", "no sites are defined"),
    ],
)
def test_a_wrong_value_is_named(
    listed: Lister, simulator: Simulator, name: str, value: str, said: str
) -> None:
    given = by_environment(listed)
    given[name] = value
    found = listed(connect=False, environ=given)
    assert found.code != 0
    assert said in one_line(found.errors)
    assert "(ConfigurationError)" in one_line(found.errors)
    assert "Traceback" not in found.errors
    assert simulator.counts() == {}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fetch": "adresses"}, "adresses"),
        ({"filters": {"a": 1}}, "filters"),
        ({"compose": ["a"]}, "compose is not a dictionary"),
        ({"groups": "x"}, "groups is not JSON"),
        ({"keyed_groups": ["proxmox_node"]}, "keyed"),
        ({"hostnames": {"a": 1}}, "hostnames"),
        ({"sites": "north"}, "sites"),
        ({"sites": [{"host": "a"}]}, "name"),
        ({"sites": [{"name": "a"}, {"name": "a"}]}, "twice"),
        ({"port": "eight"}, "port"),
        ({"hosts": "a"}, "there is no option 'hosts'"),
    ],
)
def test_a_wrong_option_is_named(listed: Lister, options: dict[str, Any], said: str) -> None:
    of = {
        key: value
        for key, value in listed.connection.items()
        if "sites" not in options or key != "host"
    }
    found = listed(connect=False, **{**of, **options})
    assert found.code != 0
    assert said in one_line(found.errors)
    assert "Traceback" not in found.errors


def test_an_option_that_does_not_exist(listed: Lister) -> None:
    """Ansible itself ignores unknown options of an inventory.

    Here a misspelt tenant would show every VM.
    """
    found = listed(tennant="acme")
    assert found.code != 0
    assert "there is no option 'tennant'. Did you mean 'tenant'?" in one_line(found.errors)
    assert (
        len(
            listed(
                connect=False, **{"api_host": listed.connection["host"], **without_host(listed)}
            ).hosts
        )
        == 13
    )
