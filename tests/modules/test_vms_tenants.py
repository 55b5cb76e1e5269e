# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module vms: what an estate says once for a tenant, and an estate over several sites."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.modules.vms import ENTRY
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module

ACME: dict[str, Any] = {
    "pool": "acme",
    "tags": ["prod"],
    "quota": {"vms": 2},
    "placement": {"nodes": ["pve2"]},
    "networks": {"lan": {"bridge": "vmbr1"}},
    "classes": {"big": {"cores": 4, "memory": "4G"}},
    "defaults": {"memory": "1G", "cores": 2, "disks": [{"size": 1, "storage": "ceph"}]},
}
GLOBEX: dict[str, Any] = {
    "pool": "globex",
    "networks": {"lan": {"bridge": "vmbr2"}},
    "defaults": {"memory": "768M", "disks": [{"size": 1, "storage": "ceph"}]},
}
SETTINGS = {"acme": ACME, "globex": GLOBEX}
LAN = [{"network": "lan"}]


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Lab, Lab]]:
    with open_lab("--lag-s", "0") as berlin, open_lab("--lag-s", "0") as munich:
        yield berlin, munich


@pytest.fixture
def berlin(clusters: tuple[Lab, Lab]) -> Lab:
    clusters[0].simulator.reset()
    return clusters[0]


@pytest.fixture
def munich(clusters: tuple[Lab, Lab]) -> Lab:
    clusters[1].simulator.reset()
    return clusters[1]


def rows(result: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in result["vms"]}


def test_vms_inherit_what_holds_for_their_tenant(berlin: Lab) -> None:
    options: dict[str, Any] = {
        "cores": 1,
        "networks": {"wan": {"bridge": "vmbr0"}},
        "tenant_settings": SETTINGS,
        "vms": [
            {"name": "web1", "tenant": "acme", "nics": [{"network": "lan"}, {"network": "wan"}]},
            {"name": "db1", "tenant": "acme", "class": "big", "memory": "2G"},
            {"name": "web1", "tenant": "globex", "nics": LAN, "tags": ["own"]},
            {"name": "other", "memory": "256M"},
        ],
    }
    foreseen = berlin.run("vms", check=True, **options)
    assert berlin.simulator.writes() == []
    made = berlin.run("vms", **options)
    assert not made.get("failed"), made
    assert made["diff"] == foreseen["diff"]
    web, big, globex, other = (row["vm"] for row in made["vms"])
    assert [web["pool"], big["pool"], globex["pool"], other["pool"]] == [
        "acme",
        "acme",
        "globex",
        None,
    ]
    assert (web["node"], big["node"]) == ("pve2", "pve2")
    assert set(web["tags"]) == {"tenant_acme", "prod"}
    assert set(globex["tags"]) == {"tenant_globex", "own"}
    config = berlin.config(web)
    assert "bridge=vmbr1" in config["net0"]
    assert "bridge=vmbr0" in config["net1"]
    assert (config["cores"], config["memory"]) == (2, "1024")
    config = berlin.config(big)
    assert (config["cores"], config["memory"]) == (4, "2048")
    config = berlin.config(globex)
    assert "bridge=vmbr2" in config["net0"]
    assert (config.get("cores", 1), config["memory"]) == (1, "768")
    assert berlin.config(other)["memory"] == "256"
    berlin.simulator.reset_log()
    again = berlin.run("vms", **options)
    assert not again["changed"]
    assert berlin.simulator.writes() == []


def test_quota_of_a_tenant_counts_for_its_vms_only(berlin: Lab) -> None:
    listed = [{"name": f"a{n}", "tenant": "acme"} for n in range(3)]
    others = [{"name": f"g{n}", "tenant": "globex"} for n in range(3)]
    made = berlin.run("vms", tenant_settings=SETTINGS, vms=[*listed, *others])
    failed = {row["name"]: row["error"]["category"] for row in made["vms"] if row["failed"]}
    assert failed == {"a2": "QuotaExceeded"}


def test_protection_that_the_settings_lift_is_lifted_for_the_removal(berlin: Lab) -> None:
    settings = {"acme": {**ACME, "defaults": {**ACME["defaults"], "protection": True}}}
    listed = [{"name": "safe", "tenant": "acme"}]
    assert not berlin.run("vms", tenant_settings=settings, vms=listed).get("failed")
    kept = berlin.run("vms", tenant_settings=settings, vms=listed, remove=True)
    assert kept["failed"]
    lifted = {"acme": {"defaults": {"protection": False}}}
    gone = berlin.run("vms", tenant_settings=lifted, vms=listed, remove=True)
    assert gone["vms"][0]["action"] == "removed"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"acmee": {}}, "did you mean 'acmee'"),
        ({"acme": {"poool": "x"}}, "settings of tenant acme were refused: unknown option 'poool'"),
        ({"acme": {"defaults": {"coers": 2}}}, "'defaults.coers'"),
        ({"acme": {"defaults": {"tenant": "globex"}}}, "defaults has the option tenant"),
        ({"acme": ["x"]}, "settings of tenant acme were refused"),
        ({"acme": {"quota": {"vms": "many"}}}, "quota"),
    ],
    ids=str,
)
def test_mistakes_in_settings_are_found_before_any_request(
    berlin: Lab, settings: dict[str, Any], words: str
) -> None:
    berlin.simulator.reset_log()
    result = berlin.run("vms", tenant_settings=settings, vms=[{"name": "a", "tenant": "acme"}])
    assert result["failed"]
    assert result["refused"]
    assert words in result["msg"]
    assert berlin.simulator.log() == []


def test_secrets_in_settings_are_hidden() -> None:
    secret = {"cloud_init": {"password": "hush-hush"}}
    for settings in ({"defaults": secret}, {"classes": {"a": secret}}):
        assert "hush-hush" in ENTRY.hidden({"tenant_settings": {"acme": settings}, "vms": []})


# -- several sites -----------------------------------------------------------------------------


def at_sites(labs: dict[str, Lab], *, check: bool = False, **options: Any) -> dict[str, Any]:
    """Run module vms with these clusters as its sites; the first one is the default."""
    sites = [{"name": name, **lab.connection} for name, lab in labs.items()]
    sites[0]["default"] = True
    return run_module("vms", {"sites": sites, "retries": 1, **options}, check=check)


ESTATE: dict[str, Any] = {
    "tenant_settings": {"acme": {**ACME, "site": "berlin"}, "globex": {**GLOBEX, "site": "munich"}},
    "vms": [
        {"name": "web1", "tenant": "acme", "vmid": 500},
        {"name": "web1", "tenant": "globex", "vmid": 500},
        {"name": "dr1", "tenant": "acme", "site": "munich"},
        {"name": "plain", "memory": "256M", "blank": True},
    ],
}


def vm_names(lab: Lab) -> set[str]:
    listed = lab.client.get("cluster", "resources", type="vm")
    return {f"{row['vmid']} {row['name']}" for row in listed if not row.get("template")}


def test_one_run_works_on_several_sites(berlin: Lab, munich: Lab) -> None:
    labs = {"berlin": berlin, "munich": munich}
    foreseen = at_sites(labs, check=True, **ESTATE)
    assert berlin.simulator.writes() == munich.simulator.writes() == []
    made = at_sites(labs, **ESTATE)
    assert not made.get("failed"), made
    assert made["diff"] == foreseen["diff"]
    assert [row.get("site") for row in made["vms"]] == ["berlin", "munich", "munich", None]
    assert [row["vmid"] for row in made["vms"]][:2] == [500, 500]
    assert made["report"][0].startswith("+ acme/web1 (site berlin) ")
    number = {row["name"]: row["vmid"] for row in made["vms"]}
    assert vm_names(berlin) == {"500 web1", f"{number['plain']} plain"}
    assert vm_names(munich) == {"500 web1", f"{number['dr1']} dr1"}
    for lab in labs.values():
        lab.simulator.reset_log()
    again = at_sites(labs, details=False, **ESTATE)
    assert not again["changed"]
    assert [row.get("site") for row in again["vms"]] == ["berlin", "munich", "munich", None]
    for lab in labs.values():
        assert lab.simulator.writes() == []
        assert lab.simulator.counts()["GET /cluster/resources"] == 1


def test_dead_site_fails_alone(berlin: Lab, munich: Lab) -> None:
    dead = {"host": "https://127.0.0.1:9", "token_id": "ops@pve!auto", "token_secret": "x"}
    sites = [{"name": "berlin", "default": True, **berlin.connection}, {"name": "munich", **dead}]
    made = run_module("vms", {"sites": sites, "retries": 1, "details": False, **ESTATE})
    assert made["failed"]
    assert not made["refused"]
    assert [row["action"] for row in made["vms"]] == ["created", "failed", "failed", "created"]
    assert {row["error"]["category"] for row in made["vms"] if row["failed"]} == {"NetworkError"}
    assert made["msg"].startswith("2 of 4 VMs failed")
    assert made["changed"]
    sites[1] = {"name": "munich", **munich.connection}
    later = run_module("vms", {"sites": sites, "details": False, **ESTATE})
    actions = [row["action"] for row in later["vms"]]
    assert actions == ["unchanged", "created", "created", "unchanged"]


def test_each_site_is_pruned_by_its_own_part_of_the_list(berlin: Lab, munich: Lab) -> None:
    labs = {"berlin": berlin, "munich": munich}
    for lab in labs.values():
        assert not lab.run("vms", vms=[{"name": "old", "tenant": "acme"}], memory="1G").get(
            "failed"
        )
    named = [one for one in ESTATE["vms"] if one.get("tenant") == "acme"]
    settings = ESTATE["tenant_settings"]
    made = at_sites(labs, tenant="acme", prune=True, tenant_settings=settings, vms=named)
    assert not made.get("failed"), made
    pruned = [(row["name"], row["site"]) for row in made["vms"] if row["pruned"]]
    assert sorted(pruned) == [("old", "berlin"), ("old", "munich")]


@pytest.mark.parametrize(
    ("vms", "words"),
    [
        ([{"name": "a", "site": "paris"}], "there is no site 'paris'"),
        ([{"name": "a", "site": "munich", "tenant": "hooli"}], "tenant 'hooli' was refused"),
        ([{"name": "a", "site": "munich"}, {"name": "b", "coers": 1}], "vms[1] (b)"),
        ([{"name": "a", "site": "munich"}, {"name": "A", "site": "munich"}], "both are VM 'A'"),
    ],
    ids=str,
)
def test_mistake_refuses_the_list_at_all_sites(
    berlin: Lab, munich: Lab, vms: list[dict[str, Any]], words: str
) -> None:
    labs = {"berlin": berlin, "munich": munich}
    for lab in labs.values():
        lab.simulator.reset_log()
    made = at_sites(labs, tenant_settings=ESTATE["tenant_settings"], vms=vms)
    assert made["refused"]
    assert words in made["msg"]
    assert berlin.simulator.log() == munich.simulator.log() == []


def test_site_needs_to_be_defined(berlin: Lab) -> None:
    made = berlin.run("vms", vms=[{"name": "a", "site": "berlin"}])
    assert made["refused"]
    assert "both host and site are given" in made["msg"]


def test_a_choice_without_a_vm_is_refused(berlin: Lab) -> None:
    made = berlin.run("vms", tenants=["acm"], vms=[{"name": "a", "tenant": "acme"}])
    assert made["refused"]
    assert "tenants names acm" in made["msg"]
    assert (made["report"], made["vms"]) == (["Plan: nothing to do"], [])
