# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests of a tenant on its networks: their VNets, security group and filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import (
    group_name,
    vnet_id,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.firewall.resource import (
    FirewallOfScope,
)
from tests.modules.access_lab import do, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, made

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
FRONT = vnet_id("tenant_initech", "front")
GROUP = group_name("tenant_initech")


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """A cluster with a VNet and a security group of a tenant that were made by hand."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    zone = {"name": "teams", "type": "vlan", "bridge": "vmbr0"}
    subnet = {"cidr": "10.50.0.0/24", "vnet": FRONT}
    do(unused, "sdn", zones=[zone], vnets=[{"name": FRONT, "zone": "teams", "tag": 5}])
    do(unused, "sdn", subnets=[subnet])
    aliases = [{"name": FRONT, "cidr": "10.50.0.0/24"}]
    do(unused, "firewall", scope="cluster", aliases=aliases)
    do(unused, "firewall", scope="group", group=GROUP, rules=[])
    return unused


def token(lab: Lab, **options: Any) -> dict[str, Any]:
    """Create the tenant and return the options of its own token."""
    bridges = [*RIGHTS["bridges"], f"teams/{FRONT}"]
    login = made(lab, "initech", bridges=bridges, **options)
    return {"tenant": "initech", "pool": "initech", **login}


def firewall_of(lab: Lab, kind: str, name: str) -> dict[str, Any]:
    rows = lab.client.get("cluster", "resources")
    row = next(row for row in rows if row["type"] == kind and row.get("name") == name)
    base = ("nodes", row["node"], kind, row["vmid"], "firewall")
    sets = [one["name"] for one in lab.client.get(*base, "ipset")]
    return {
        "options": lab.client.get(*base, "options"),
        "rules": [
            (one["type"], one["action"], one["enable"]) for one in lab.client.get(*base, "rules")
        ],
        "sets": {
            one: [member["cidr"] for member in lab.client.get(*base, "ipset", one)] for one in sets
        },
        "config": lab.client.get("nodes", row["node"], kind, row["vmid"], "config"),
    }


def test_a_vm_is_filtered_before_it_starts(lab: Lab) -> None:
    options: dict[str, Any] = {
        **token(lab),
        "name": "app1",
        "source": "debian-13",
        "state": "started",
        "nics": [{"network": "front", "ip": "dhcp"}],
    }
    lab.simulator.reset_log()
    foreseen = do(lab, "vm", check=True, **options)
    assert lab.simulator.writes() == []
    result = do(lab, "vm", **options)
    assert result["plan"] == foreseen["plan"]
    isolated = next(one for one in result["done"] if one.startswith("Isolate net0"))
    start = next(one for one in result["done"] if one.startswith("Start"))
    assert result["done"].index(isolated) < result["done"].index(start)
    found = firewall_of(lab, "qemu", "app1")
    assert found["rules"] == [("group", GROUP, 1)]
    expected = {"enable": 1, "policy_in": "DROP", "macfilter": 1, "ipfilter": 1}
    assert {key: found["options"][key] for key in expected} == expected
    assert found["sets"] == {"ipfilter-net0": [f"dc/{FRONT}"]}
    assert f"bridge={FRONT}" in found["config"]["net0"]
    assert "firewall=1" in found["config"]["net0"]
    lab.simulator.reset_log()
    assert not do(lab, "vm", **options)["changed"]
    assert lab.simulator.writes() == []


def test_an_approved_plan_isolates_its_guest_and_nothing_else(lab: Lab, tmp_path: Path) -> None:
    """The requests of the isolation are planned from the firewall that the new guest has."""
    login = token(lab)
    place = str(tmp_path / "plan.json")

    def options(address: str) -> dict[str, Any]:
        nics = [{"network": "front", "ip": f"10.50.0.{address}/24"}]
        return {**login, "source": "debian-13", "vms": [{"name": "app1", "nics": nics}]}

    do(lab, "vms", check=True, plan_file=place, **options("7"))
    other = lab.run("vms", apply_plan=place, **options("8"))
    assert other["failed"]
    result = do(lab, "vms", apply_plan=place, **options("7"))
    assert result["changed"]
    found = firewall_of(lab, "qemu", "app1")
    assert found["sets"] == {"ipfilter-net0": ["10.50.0.7"]}
    assert found["rules"] == [("group", GROUP, 1)]
    do(lab, "firewall", scope="guest", name="app1", options={"enable": False})
    lab.simulator.reset_log()
    again = do(lab, "vms", apply_plan=place, **options("7"))
    assert again["changed"]
    assert {row["path"].rpartition("/")[2] for row in lab.simulator.writes()} == {"options"}


def test_a_changed_address_and_a_disabled_firewall_are_repaired(lab: Lab) -> None:
    own = {**token(lab), "name": "app1"}
    nics = [{"network": "front", "ip": "10.50.0.7/24"}]
    do(lab, "vm", **own, source="debian-13", nics=nics)
    assert firewall_of(lab, "qemu", "app1")["sets"] == {"ipfilter-net0": ["10.50.0.7"]}
    rule = {"type": "in", "action": "ACCEPT", "comment": "of the tenant"}
    do(lab, "firewall", scope="guest", name="app1", rules=[rule], options={"enable": False})
    result = do(lab, "vm", **own, nics=[{"network": "front", "ip": "10.50.0.8/24"}])
    assert any(one.startswith("Isolate net0 of VM 'app1'") for one in result["done"])
    found = firewall_of(lab, "qemu", "app1")
    assert found["sets"] == {"ipfilter-net0": ["10.50.0.8"]}
    assert found["rules"] == [("group", GROUP, 1), ("in", "ACCEPT", 1)]
    assert found["options"]["enable"] == 1


def test_a_container_is_filtered_too(lab: Lab) -> None:
    storages = ["ceph", TEMPLATE.partition(":")[0]]
    options: dict[str, Any] = {
        **token(lab, storages=storages),
        "name": "ct1",
        "source": TEMPLATE,
        "default_storage": "ceph",
        "nics": [{"network": "front", "ip": "dhcp"}],
        "state": "started",
    }
    result = do(lab, "container", **options)
    assert any(one.startswith("Isolate net0 of container 'ct1'") for one in result["done"])
    found = firewall_of(lab, "lxc", "ct1")
    assert found["rules"] == [("group", GROUP, 1)]
    assert "firewall=1" in found["config"]["net0"]
    assert not do(lab, "container", **options)["changed"]


@pytest.mark.parametrize(("module", "kind"), [("vm", "qemu"), ("container", "lxc")])
def test_the_guest_is_read_right_before_each_write_of_its_isolation(
    lab: Lab, module: str, kind: str
) -> None:
    """Its VMID can have a new owner by then."""
    login = token(lab, storages=["ceph", TEMPLATE.partition(":")[0]])
    source = TEMPLATE if module == "container" else "debian-13"
    options: dict[str, Any] = {**login, "name": "app1", "source": source}
    options["default_storage"] = "ceph"
    lab.simulator.reset_log()
    nic = {"network": "front", "ip": "10.50.0.5/24"}
    do(lab, module, **options, nics=[nic])
    log = [(row["method"], row["path"]) for row in lab.simulator.log()]
    places = [
        place for place, (method, path) in enumerate(log) if method != "GET" and "/firewall" in path
    ]
    assert places
    for place in places:
        method, path = log[place - 1]
        assert method == "GET"
        assert path.endswith("/config")
        assert f"/{kind}/" in path


def test_an_isolation_stops_if_the_guest_was_given_away(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The guest gets another tenant after the first write of the isolation."""
    nics = [{"network": "front", "ip": "10.50.0.5/24"}]
    options: dict[str, Any] = {**token(lab), "name": "app1", "source": "debian-13"}
    look = FirewallOfScope.send
    sent: list[str] = []

    def give_away(resource: FirewallOfScope, step: Any) -> Any:
        sent.append(step.summary)
        if len(sent) == 2:
            path = resource.scope.path[:-1]
            lab.client.write("PUT", *path, "config", data={"tags": "tenant_globex"})
        return look(resource, step)

    monkeypatch.setattr(FirewallOfScope, "send", give_away)
    lab.simulator.reset_log()
    result = lab.run("vm", **options, nics=nics)
    assert result["error"]["reason"] == "foreign tenant", result
    writes = [row["path"] for row in lab.simulator.writes() if "/firewall" in row["path"]]
    assert len(writes) == 1


def test_a_tenant_without_a_group_is_not_isolated(lab: Lab) -> None:
    do(lab, "firewall", scope="group", group=GROUP, state="absent")
    nics = [{"network": "front", "ip": "dhcp"}]
    result = do(lab, "vm", **token(lab), name="app1", source="debian-13", nics=nics)
    assert not any(one.startswith("Isolate") for one in result["done"])


def test_a_firewall_that_is_switched_off_is_refused(lab: Lab) -> None:
    nics = [{"network": "front", "firewall": False}]
    error = refused(lab, "vm", **token(lab), name="app1", source="debian-13", nics=nics)
    assert "network 'front' is isolated, and firewall is false" in str(error)


@pytest.mark.parametrize("node", [{}, {"node": "pve1"}])
def test_a_misspelt_network_is_named_as_the_tenant_wrote_it(lab: Lab, node: dict[str, str]) -> None:
    nics = [{"network": "fornt", "ip": "dhcp"}]
    options = {**token(lab), **node, "name": "app1", "source": "debian-13", "nics": nics}
    result = refused(lab, "vm", **options)
    assert result["error"]["reason"] == "unknown network"
    assert "'fornt'" in result["msg"]
    assert "create the network with playbook pve.fleet.tenant" in result["msg"]
    if not node:
        assert vnet_id("tenant_initech", "fornt") not in result["msg"]


def test_a_guest_that_a_login_may_not_see_is_not_taken_for_removed(lab: Lab) -> None:
    """The token of another tenant sees neither the guests nor the pool of the estate."""
    estate: dict[str, Any] = {"vms": [{"name": "app1", "tenant": "initech", "source": "debian-13"}]}
    estate["tenant_settings"] = {"initech": {"pool": "initech"}}
    own = made(lab, "initech")
    do(lab, "vms", **estate, **own)
    foreign = made(lab, "hooli")
    result = refused(lab, "vms", **estate, **foreign, remove=True)
    hidden = "hides it from a login without VM.Audit on /vms, or VM.Audit on /pool/initech"
    assert hidden in result["msg"]
    assert result["summary"]["failed"] == 1
    assert do(lab, "vms", **estate, **own, remove=True)["changed"]
    assert not do(lab, "vms", **estate, **own, remove=True)["changed"]
    assert not do(lab, "vms", vms=estate["vms"], **own, remove=True)["changed"]
