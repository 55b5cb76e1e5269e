# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Networks of a tenant: VNets, tags, isolation, and their removal."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.http.backend import (
    ProxmoxerTransport,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import (
    group_name,
    vnet_id,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.clock import Clock
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn import run as sdn_run
from ansible_collections.pve.fleet.plugins.module_utils._tenants.tenant.run import run
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, options_of, state_of
from tests.modules.test_estate_info import options_of as options_of_estate
from tests.modules.test_tenant import foreseen_and_done

ZONE = {"name": "teams", "type": "vlan", "bridge": "vmbr0"}
FRONT = {"zone": "teams", "tag_range": [100, 199], "subnet": "10.1.0.0/24"}
INITECH: dict[str, Any] = {"name": "initech", **RIGHTS, "networks": {"front": FRONT}}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}
VNET = vnet_id("tenant_initech", "front")
GROUP = group_name("tenant_initech")


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster with a zone, and with its firewall on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    do(unused, "sdn", zones=[ZONE])
    do(unused, "firewall", scope="cluster", options={"enable": True})
    return unused


def networks_of(lab: Lab) -> dict[str, Any]:
    """Return SDN as it runs and the firewall of the cluster."""
    sdn = do(lab, "sdn_info")
    firewall = do(lab, "firewall_info", scope="cluster")
    return {"sdn": sdn["sdn"], "firewall": firewall["firewall"], "groups": firewall["groups"]}


def test_created_as_foreseen_and_removed_without_a_trace(lab: Lab) -> None:
    before, networks = state_of(lab), networks_of(lab)
    result = foreseen_and_done(lab, **INITECH)
    assert result["tenant"]["networks"] == [
        {"name": "front", "vnet": VNET, "zone": "teams", "tag": 100, "subnet": "10.1.0.0/24"}
    ]
    assert result["tenant"]["isolation"] == "own"
    assert result["tenant"]["security_group"] == GROUP
    assert f"/sdn/zones/teams/{VNET}" in result["tenant"]["rights"]
    rules = lab.client.get("cluster", "firewall", "groups", GROUP)
    assert [(rule["action"], rule["source"]) for rule in rules] == [
        ("ACCEPT", f"+dc/{GROUP}"),
        ("DROP", "+dc/fleet-tenants"),
    ]
    (site,) = result["credentials"]["sites"]
    login = {key: site[key] for key in ("host", "ca_path", "token_id", "token_secret")}
    own = {"tenant": "initech", "pool": "initech", **login}
    nics = [{"network": "front", "ip": "dhcp"}]
    made = do(lab, "vm", **own, name="app1", source="debian-13", state="started", nics=nics)
    assert any(line.startswith("Isolate net0") for line in made["done"])
    removal = foreseen_and_done(lab, **GONE)
    steps = removal["plan"]
    order = [
        next(place for place, step in enumerate(steps) if step.startswith(start))
        for start in (
            "Stop VM",
            f"Remove security group '{GROUP}'",
            f"Remove IP set '{GROUP}'",
            "Remove subnet",
            f"Remove VNet '{VNET}'",
            "Delete pool",
        )
    ]
    assert order == sorted(order)
    assert state_of(lab) == before
    after = networks_of(lab)
    every = [one for one in after["firewall"]["ip_sets"] if one["name"] == "fleet-tenants"]
    assert every[0]["members"] == []
    after["firewall"]["ip_sets"] = networks["firewall"]["ip_sets"]
    assert after == networks


def test_each_tenant_gets_another_tag(lab: Lab) -> None:
    do(lab, "tenant", **INITECH)
    other = {**INITECH, "name": "hooli", "networks": {"front": {**FRONT, "subnet": "10.2.0.0/24"}}}
    result = do(lab, "tenant", **other)
    assert result["tenant"]["networks"][0]["tag"] == 101
    assert not do(lab, "tenant", **other)["changed"]


def test_two_runs_never_take_one_tag(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another run creates a VNet with the tag that this one chose, before this one has the lock."""
    original = sdn_run.plan_transaction
    taken: list[bool] = []

    def planned_late(work: Any) -> Any:
        transaction = original(work)
        if work.wait and not taken:
            taken.append(True)
            vnet = {"vnet": "other", "zone": "teams", "tag": 100}
            lab.client.write("POST", "cluster", "sdn", "vnets", data=vnet)
            lab.client.task("PUT", "cluster", "sdn")
        return transaction

    monkeypatch.setattr(sdn_run, "plan_transaction", planned_late)
    do(lab, "tenant", **INITECH)
    rows = lab.client.get("cluster", "sdn", "vnets")
    assert {row["vnet"]: row["tag"] for row in rows} == {"other": 100, VNET: 101}


def test_peers_and_isolation_are_changed(lab: Lab) -> None:
    do(lab, "tenant", **INITECH)
    result = foreseen_and_done(lab, **INITECH, peers=["hooli"])
    assert "Peer tenant_hooli has no networks yet: nothing is opened to it" in result["warnings"]
    rules = lab.client.get("cluster", "firewall", "groups", GROUP)
    assert rules[1]["source"] == "+dc/tenant_hooli"
    foreseen_and_done(lab, **INITECH, isolation="shared")
    rules = lab.client.get("cluster", "firewall", "groups", GROUP)
    assert [(rule["action"], rule["source"]) for rule in rules] == [("ACCEPT", "+dc/fleet-tenants")]
    foreseen_and_done(lab, **INITECH, isolation="none")
    assert GROUP not in [row["group"] for row in lab.client.get("cluster", "firewall", "groups")]


def test_another_subnet_and_a_removed_network(lab: Lab) -> None:
    do(lab, "tenant", **INITECH)
    moved = {"front": {**FRONT, "subnet": "10.9.0.0/24"}}
    foreseen_and_done(lab, **{**INITECH, "networks": moved})
    members = lab.client.get("cluster", "firewall", "ipset", GROUP)
    assert [row["cidr"] for row in members] == ["10.9.0.0/24"]
    assert [row["cidr"] for row in do(lab, "sdn_info")["sdn"]["subnets"]] == ["10.9.0.0/24"]
    gone = {"front": {**FRONT, "state": "absent"}}
    result = foreseen_and_done(lab, **{**INITECH, "networks": gone})
    assert f"/sdn/zones/teams/{VNET}" not in result["tenant"]["rights"]
    assert do(lab, "sdn_info")["sdn"]["vnets"] == []


@pytest.mark.parametrize(
    ("networks", "more", "message"),
    [
        ({"front": {"zone": "nope", "subnet": "10.1.0.0/24"}}, {}, "there is no zone 'nope'"),
        ({"front": {"zone": "teams", "subnet": "10.1.0.0/24"}}, {}, "needs a tag"),
        ({"front": {"zone": "teams", "tag": 5}}, {}, "it has no subnet"),
        ({"lan": FRONT}, {}, "the name means a bridge"),
        ({"front": {**FRONT, "subnet": "10.1.0.5/24"}}, {}, "is not a network"),
        ({"front": {**FRONT, "tag_range": [9]}}, {}, "is not a range"),
        ({}, {"isolation": "own"}, "the tenant has no network with a zone"),
        ({"front": FRONT}, {"peers": ["initech"]}, "it names the tenant itself"),
    ],
)
def test_refused_before_any_write(
    lab: Lab, networks: Any, more: dict[str, Any], message: str
) -> None:
    lab.simulator.reset_log()
    error = refused(lab, "tenant", **{**INITECH, "networks": networks, **more})
    assert message in str(error)
    assert lab.simulator.writes() == []


def test_overlaps_with_another_tenant_are_refused(lab: Lab) -> None:
    do(lab, "sdn", zones=[{"name": "others", "type": "vlan", "bridge": "vmbr1"}])
    do(lab, "tenant", **INITECH)
    other = {"front": {**FRONT, "zone": "others", "subnet": "10.1.0.128/25"}}
    error = refused(lab, "tenant", **{**INITECH, "name": "hooli", "networks": other})
    assert "it overlaps 10.1.0.0/24 of another tenant" in str(error)


def test_overlaps_of_runs_at_the_same_moment_are_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run creates a VNet with the subnet in another zone, before this one has the lock."""
    do(lab, "sdn", zones=[{"name": "others", "type": "vlan", "bridge": "vmbr1"}])
    original = sdn_run.plan_transaction
    faster: list[bool] = []

    def planned_late(work: Any) -> Any:
        transaction = original(work)
        if work.wait and not faster:
            faster.append(True)
            mark = "front [pve.fleet: tenant=tenant_hooli]"
            vnet = {"vnet": "hooli", "zone": "others", "tag": 7, "alias": mark}
            lab.client.write("POST", "cluster", "sdn", "vnets", data=vnet)
            subnet = {"subnet": "10.1.0.0/25", "type": "subnet"}
            lab.client.write("POST", "cluster", "sdn", "vnets", "hooli", "subnets", data=subnet)
            lab.client.task("PUT", "cluster", "sdn")
        return transaction

    monkeypatch.setattr(sdn_run, "plan_transaction", planned_late)
    error = lab.run("tenant", **INITECH)
    assert "it overlaps 10.1.0.0/25 of another tenant" in str(error)
    assert [row["vnet"] for row in lab.client.get("cluster", "sdn", "vnets")] == ["hooli"]
    token = lab.client.write("POST", "cluster", "sdn", "lock")
    lab.client.write("DELETE", "cluster", "sdn", "lock", data={"lock-token": token})


def test_a_firewall_that_is_off_is_refused(lab: Lab) -> None:
    do(lab, "firewall", scope="cluster", options={"enable": False})
    error = refused(lab, "tenant", **INITECH)
    assert "the firewall of the cluster is off" in str(error)
    do(lab, "tenant", **INITECH, isolation="none")


def test_a_vnet_of_others_is_refused(lab: Lab) -> None:
    do(lab, "sdn", vnets=[{"name": VNET, "zone": "teams", "tag": 7}])
    assert "exists without the mark of the tenant" in str(refused(lab, "tenant", **INITECH))


def test_a_long_name_makes_a_valid_and_stable_id(lab: Lab) -> None:
    name = "the-department-of-further-tests"
    result = do(lab, "tenant", **{**INITECH, "name": name})
    vnet = result["tenant"]["networks"][0]["vnet"]
    assert vnet == vnet_id(f"tenant_{name}", "front")
    assert len(vnet) == 8
    assert len(result["tenant"]["security_group"]) == 18
    assert not do(lab, "tenant", **{**INITECH, "name": name})["changed"]


def test_an_estate_names_the_networks_of_its_tenants(lab: Lab) -> None:
    """The same settings create the networks with module tenant and the guests with module vms."""
    networks = {"front": {**FRONT, "gateway": "10.1.0.1"}, "backup": {"bridge": "vmbr1"}}
    do(lab, "tenant", **{**INITECH, "networks": networks})
    settings = {"initech": {"pool": "initech", "networks": networks, "isolation": "own"}}
    nics = [{"network": "front", "ip": "10.1.0.20/24"}, {"network": "backup", "ip": "dhcp"}]
    vm = {"name": "app1", "tenant": "initech", "source": "debian-13", "nics": nics}
    result = do(lab, "vms", vms=[vm], tenant_settings=settings)
    row = result["vms"][0]["vm"]["config"]
    assert row["net0"]["bridge"] == VNET
    assert row["net0"]["firewall"] is True
    assert row["net1"]["bridge"] == "vmbr1"
    assert row["ipconfig0"]["gw"] == "10.1.0.1"
    assert not do(lab, "vms", vms=[vm], tenant_settings=settings)["changed"]
    typo = {**vm, "name": "app2", "nics": [{"network": "fornt"}]}
    error = refused(lab, "vms", vms=[typo], tenant_settings=settings)
    assert "The network 'fornt' could not be resolved" in str(error)


def test_an_exported_estate_has_the_networks_of_its_tenants(lab: Lab) -> None:
    """Neither module tenant nor module vms changes anything with the exported estate."""
    front: dict[str, Any] = {**FRONT, "gateway": "10.1.0.1"}
    back: dict[str, Any] = {**FRONT, "subnet": "10.2.0.0/24"}
    options = {**INITECH, "networks": {"front": front, "back": back}, "peers": ["hooli"]}
    do(lab, "tenant", **options)
    other = {"zone": "teams", "tag": 300, "subnet": "10.3.0.0/24"}
    do(lab, "tenant", **{**INITECH, "name": "hooli", "networks": {"front": other}})
    nics = [{"network": "front", "ip": "10.1.0.20/24"}, {"network": "back", "ip": "dhcp"}]
    settings = {"initech": {"pool": "initech", "networks": options["networks"]}}
    vm = {"name": "app1", "tenant": "initech", "source": "debian-13", "nics": nics}
    do(lab, "vms", vms=[vm], tenant_settings=settings)
    estate = do(lab, "estate_info")["estate"]
    initech = estate["tenants"]["initech"]
    front["tag"], back["tag"] = 101, 100
    for one in (front, back):
        del one["tag_range"]
    assert {name: dict(one) for name, one in initech["networks"].items()} == {
        "front": front,
        "back": back,
    }
    assert (initech["isolation"], initech["peers"]) == ("own", ["hooli"])
    assert estate["tenants"]["hooli"] == {"networks": {"front": other}, "isolation": "own"}
    (app1,) = [one for one in estate["provision_vms"] if one.get("name") == "app1"]
    assert [nic["network"] for nic in app1["nics"]] == ["front", "back"]
    lab.simulator.reset_log()
    do(lab, "vms", **options_of_estate(estate))
    for name, one in estate["tenants"].items():
        networks = {key: one[key] for key in ("networks", "isolation", "peers") if key in one}
        assert not do(lab, "tenant", **{**INITECH, "name": name, **networks})["changed"]
    assert lab.simulator.writes() == []


def test_a_guest_that_existed_before_is_named_until_a_task_isolates_it(lab: Lab) -> None:
    """Module tenant warns, the export keeps its bridge, and a task with the network mends it."""
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech", "name": "app1"}
    assert do(lab, "tenant", **INITECH)["not_isolated"] == []
    made = do(lab, "vm", **own, source="debian-13", nics=[{"bridge": VNET, "firewall": True}])
    vmid = made["vm"]["vmid"]
    again = do(lab, "tenant", **INITECH)
    assert (again["changed"], again["not_isolated"]) == (False, [vmid])
    assert any(text.startswith("Not isolated yet: VM 'app1'") for text in again["warnings"])
    result = do(lab, "estate_info", tenant="initech")
    (app1,) = result["estate"]["provision_vms"]
    assert app1["nics"][0]["bridge"] == VNET
    assert [one["option"] for one in result["unexpressed"]] == ["isolation"]
    assert not do(lab, "vms", **options_of_estate(result["estate"]))["changed"]
    do(lab, "vm", **own, nics=[{"name": "net0", "network": "front"}])
    assert do(lab, "tenant", **INITECH)["not_isolated"] == []


def test_networks_of_a_tenant_on_version_8(
    old: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same plan without the lock, and its removal."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    do(old, "sdn", zones=[ZONE])
    do(old, "firewall", scope="cluster", options={"enable": True})
    result = foreseen_and_done(old, **INITECH)
    assert result["tenant"]["networks"][0]["tag"] == 100
    assert not any("lock" in step for step in result["plan"])
    nics = [{"network": "front", "ip": "dhcp"}]
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech"}
    made = do(old, "vm", **own, name="app1", source="debian-13", nics=nics)
    assert any(line.startswith("Isolate net0") for line in made["done"])
    assert not do(old, "tenant", **INITECH)["changed"]
    foreseen_and_done(old, **GONE)
    assert do(old, "sdn_info")["sdn"]["vnets"] == []


def test_many_runs_at_once_take_different_tags(lab: Lab) -> None:
    """Runs of one user on one computer: none takes the lock of another one that is active."""
    names = ["alpha", "bravo", "charlie", "delta"]

    def create(place: int) -> dict[str, Any]:
        network = {**FRONT, "subnet": f"10.{20 + place}.0.0/24"}
        options = {**INITECH, "name": names[place], "networks": {"front": network}}
        transport = ProxmoxerTransport(lab.client.connection, Clock())
        with Client(lab.client.connection, transport=transport) as client:
            return dict(run(options_of(**options), client).values)

    with ThreadPoolExecutor(len(names)) as pool:
        results = list(pool.map(create, range(len(names))))
    rows = lab.client.get("cluster", "sdn", "vnets", params={"running": 1})
    assert sorted(row["tag"] for row in rows) == [100, 101, 102, 103]
    networks = [result["tenant"]["networks"][0] for result in results]
    assert {one["vnet"]: one["tag"] for one in networks} == {
        row["vnet"]: row["tag"] for row in rows
    }
    members = lab.client.get("cluster", "firewall", "ipset", "fleet-tenants")
    assert len(members) == len(names)


PLACES: dict[str, dict[str, Any]] = {
    "guest": {"scope": "guest", "name": "other"},
    "node": {"scope": "node", "node": "pve3"},
    "group": {"scope": "group", "group": "shared"},
    "cluster": {"scope": "cluster"},
}


# The address in a rule, and the task that removes the alias or IP set.
REMOVED: list[tuple[str, dict[str, Any]]] = [
    (f"dc/{VNET}", GONE),
    (f"dc/{VNET}", {**INITECH, "networks": {"front": {**FRONT, "state": "absent"}}}),
    (f"+dc/{GROUP}", GONE),
    (f"+dc/{GROUP}", {**INITECH, "isolation": "none"}),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("address", "task"), REMOVED, ids=["alias", "network", "set", "isolation"])
def test_a_name_that_another_place_uses_is_not_removed(
    lab: Lab, place: str, address: str, task: dict[str, Any]
) -> None:
    """PVE removes an alias or an IP set in use, and ignores the rules that name it (pve-firewall:
    Firewall.pm, verify_rule).
    """
    do(lab, "tenant", **INITECH)
    do(lab, "vm", name="other", node="pve2", blank=True, nics=[{"bridge": "vmbr0"}])
    do(lab, "firewall", **PLACES[place], rules=[{"type": "in", "action": "DROP", "dest": address}])
    result = refused(lab, "tenant", **task)
    assert result["error"]["reason"] == "in use", result["msg"]
    do(lab, "firewall", **PLACES[place], rules=[])
    assert do(lab, "tenant", **task)["changed"]


def test_a_group_that_another_guest_uses_is_not_removed(lab: Lab) -> None:
    """PVE removes a group whose rules are gone, although a guest names it (pve-firewall:
    API2/Firewall/Groups.pm, delete_security_group).
    """
    do(lab, "tenant", **INITECH)
    do(lab, "vm", name="other", node="pve2", blank=True, nics=[{"bridge": "vmbr0"}])
    rules = [{"type": "group", "action": GROUP}]
    do(lab, "firewall", scope="guest", name="other", rules=rules)
    for task in (GONE, {**INITECH, "isolation": "none"}):
        result = refused(lab, "tenant", **task)
        assert f"Group '{GROUP}' was not removed" in result["msg"]
    do(lab, "firewall", scope="guest", name="other", rules=[])
    assert do(lab, "tenant", **GONE)["changed"]
