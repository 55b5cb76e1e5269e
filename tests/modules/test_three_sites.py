# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant at three sites: the same limits, networks, rights and groups at each of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader

from tests.labs.sites import SITES, Labs, sites_of
from tests.modules.access_lab import do
from tests.modules.module_runner import run_module

ALLOWED: dict[str, Any] = {
    "storages": ["ceph"],
    "networks": ["vmbr0"],
    "cpu_types": ["kvm64"],
    "classes": ["small"],
}
CLASSES: dict[str, Any] = {"small": {"memory": "256M"}, "large": {"memory": "2G"}}
BLANK: dict[str, Any] = {"tenant": "acme", "blank": True, "memory": "256M", "cpu": "kvm64"}


def guests(**more: Any) -> list[dict[str, Any]]:
    return [{"name": f"app-{site}", "site": site, **BLANK, **more} for site in SITES]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"cpu": "host"}, "host is none of the cpu_types"),
        ({"nics": [{"bridge": "vmbr1"}]}, "vmbr1 is none of the networks"),
        ({"disks": [{"name": "scsi1", "size": 1, "storage": "local-lvm"}]}, "local-lvm is none"),
        ({"class": "large"}, "Class 'large' was refused"),
    ],
    ids=str,
)
def test_limits_hold_at_each_site(labs: Labs, more: dict[str, Any], words: str) -> None:
    given = {
        "sites": sites_of(labs),
        "classes": CLASSES,
        "tenant_settings": {"acme": {"sites": list(SITES), "allowed": ALLOWED}},
    }
    result = run_module("vms", {**given, "vms": guests(**more)})
    assert [row["action"] for row in result["vms"]] == ["failed"] * len(SITES)
    assert all(words in row["msg"] for row in result["vms"]), result["msg"]
    assert [lab.simulator.writes() for lab in labs.values()] == [[], [], []]
    assert not run_module("vms", {**given, "vms": guests()}).get("failed")


def test_a_site_has_its_state(labs: Labs) -> None:
    """Berlin is active, munich is draining, and paris is closed."""
    sites = sites_of(labs)
    assert not run_module("vms", {"sites": sites, "vms": guests()[1:]}).get("failed")
    sites[1]["state"], sites[2]["state"] = "draining", "closed"
    labs["paris"].simulator.reset_log()
    new = [*guests()[:1], *({**guest, "name": "new"} for guest in guests()[1:2])]
    result = run_module("vms", {"sites": sites, "vms": new})
    assert [row["action"] for row in result["vms"]] == ["created", "failed"]
    assert "site munich is draining, so it gets no new guest" in result["vms"][1]["msg"]
    grown = run_module("vms", {"sites": sites, "vms": guests(memory="512M")[1:2]})
    assert [row["action"] for row in grown["vms"]] == ["changed"]
    refused = run_module("vms", {"sites": sites, "vms": guests()})
    assert "site paris is closed, so nothing is written there" in refused["msg"]
    report = run_module("report_info", {"sites": sites})["report"]
    assert [row["site"] for row in report["sites"]] == ["berlin", "munich"]
    assert labs["paris"].simulator.log() == []


def test_networks_and_rights_are_the_same_at_each_site(labs: Labs) -> None:
    networks = {"front": {"zone": "teams", "subnet": "10.50.0.0/24"}}
    settings = {"networks": networks, "isolation": "none"}
    rights = []
    for site, lab in labs.items():
        do(lab, "sdn", zones=[{"name": "teams", "type": "simple"}])
        own = {**settings, "storages": ["ceph"]}
        made = run_module("tenant", {"sites": sites_of(labs), "site": site, "name": "acme", **own})
        assert made["changed"], made["msg"]
        acl = lab.client.get("access", "acl")
        rights.append(
            sorted(
                (row["path"], row["ugid"], row["roleid"]) for row in acl if "acme" in row["ugid"]
            )
        )
    assert rights[0]
    assert rights[0] == rights[1] == rights[2]
    settings["sites"] = list(SITES)
    given = {"sites": sites_of(labs), "tenant_settings": {"acme": settings}, "vms": guests()}
    for subnet, status in (("10.50.0.0/24", "in_sync"), ("10.51.0.0/24", "drifted")):
        settings["networks"] = {"front": {"zone": "teams", "subnet": subnet}}
        drift = run_module("drift_info", given)["drift"]["cluster"]
        assert [(row["site"], row["name"], row["status"]) for row in drift] == [
            (site, "acme", status) for site in SITES
        ]


def test_networks_and_addresses_are_the_same_at_each_site(labs: Labs) -> None:
    """A guest can have the address that a guest at another site has, on an equal VNet."""
    networks = {"front": {"zone": "teams", "subnet": "10.50.0.0/24"}}
    settings = {"networks": networks, "isolation": "none"}
    tables = []
    for site, lab in labs.items():
        do(lab, "sdn", zones=[{"name": "teams", "type": "simple"}])
        made = run_module(
            "tenant", {"sites": sites_of(labs), "site": site, "name": "acme", **settings}
        )
        assert made["changed"], made["msg"]
        vnets = lab.client.get("cluster", "sdn", "vnets")
        own = [row for row in vnets if row.get("zone") == "teams"]
        subnets = lab.client.get("cluster", "sdn", "vnets", own[0]["vnet"], "subnets")
        tables.append([(one["vnet"], one["alias"]) for one in own])
        tables[-1] += [(one["vnet"], one["cidr"]) for one in subnets]
    assert len(tables[0]) == 2
    assert tables[0] == tables[1] == tables[2]
    nic = {"network": "front", "ip": "10.50.0.11/24"}
    given = {"sites": sites_of(labs), "tenant_settings": {"acme": {**settings, "sites": SITES}}}
    result = run_module("vms", {**given, "vms": guests(nics=[nic])})
    assert [row["action"] for row in result["vms"]] == ["created"] * 3, result["msg"]
    configs = []
    for row, lab in zip(result["vms"], labs.values(), strict=True):
        config = lab.client.get("nodes", row["node"], "qemu", row["vmid"], "config")
        bridge = [part for part in config["net0"].split(",") if part.startswith("bridge=")]
        configs.append((config["ipconfig0"], bridge))
    vnet = tables[0][0][0]
    assert configs == [("ip=10.50.0.11/24", [f"bridge={vnet}"])] * 3


@pytest.mark.parametrize("module", ["report_info", "metrics"])
def test_a_site_of_a_tenant_that_the_registry_lacks_is_named(
    labs: Labs, tmp_path: Path, module: str
) -> None:
    given: dict[str, Any] = {"sites": sites_of(labs)}
    if module == "metrics":
        given["path"] = str(tmp_path / "pve.prom")
    tenants = {"acme": {"sites": [*SITES[:2], "pari"], "quota": {"vms": 2}}}
    (warning,) = run_module(module, {**given, "tenants": tenants})["warnings"]
    assert "Tenant acme has site pari, which is none of the sites berlin, munich, paris" in warning
    assert "(did you mean 'paris'?)" in warning
    right = {"acme": {"sites": list(SITES), "quota": {"vms": 2}}}
    assert not run_module(module, {**given, "tenants": right}).get("warnings")


def test_the_inventory_has_one_group_of_the_tenant(labs: Labs, tmp_path: Path) -> None:
    assert not run_module("vms", {"sites": sites_of(labs), "vms": guests()}).get("failed")
    file = tmp_path / "fleet.proxmox.yml"
    given = {"plugin": "pve.fleet.proxmox", "sites": sites_of(labs)}
    file.write_text(yaml.safe_dump(given))
    inventory = InventoryManager(loader=DataLoader(), sources=[str(file)])
    members = inventory.get_groups_dict()["tenant_acme"]
    assert sorted(members) == sorted(f"app-{site}" for site in SITES)
