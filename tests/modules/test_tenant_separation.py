# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests of two tenants never reach each other, unless that is declared.

Each pair of guests is judged by an evaluator that was written from the source of pve-firewall
(`tests/iptables_oracle.py`) and reads the cluster as it is: it imports nothing of the collection.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.tenant import vnet_id
from ansible_collections.pve.fleet.plugins.plugin_utils._report.page import page_of
from tests import iptables_oracle
from tests.iptables_oracle import Oracle, Packet, Tap, read_cluster, read_taps
from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.report_lab import gathered
from tests.modules.tenant_lab import RIGHTS

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
NETS = {"initech": "10.1.0", "hooli": "10.2.0", "globex2": "10.3.0"}
KINDS = (("tcp", 22), ("tcp", 443), ("udp", 53), ("icmp", 8))


def tenant(lab: Lab, name: str, **options: Any) -> dict[str, Any]:
    network = {"zone": "teams", "tag_range": [100, 199], "subnet": f"{NETS[name]}.0/24"}
    rights = {**RIGHTS, "storages": ["ceph", "local"]}
    return do(lab, "tenant", name=name, **rights, networks={"front": network}, **options)


def populate(lab: Lab, name: str, **options: Any) -> None:
    """Create a tenant, and with its own token a VM with DHCP, one with an address, a container."""
    (site,) = tenant(lab, name, **options)["credentials"]["sites"]
    login = {key: site[key] for key in ("host", "ca_path", "token_id", "token_secret")}
    own: dict[str, Any] = {"tenant": name, "pool": name, **login}
    dhcp, static = [{"network": "front", "ip": "dhcp"}], f"{NETS[name]}.20/24"
    do(lab, "vm", **own, name=f"{name}-vm1", source="debian-13", nics=dhcp)
    fixed = [{"network": "front", "ip": static}]
    do(lab, "vm", **own, name=f"{name}-vm2", source="debian-13", nics=fixed)
    container: dict[str, Any] = {"source": TEMPLATE, "default_storage": "ceph"}
    nics = [{"network": "front", "ip": f"{NETS[name]}.30/24"}]
    do(lab, "container", **own, **container, name=f"{name}-ct1", nics=nics)


@pytest.fixture
def lab(unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    do(unused, "sdn", zones=[{"name": "teams", "type": "vlan", "bridge": "vmbr0"}])
    do(unused, "firewall", scope="cluster", options={"enable": True})
    return unused


class World:
    """The guests of tenants in the cluster, with an address of each."""

    def __init__(self, lab: Lab) -> None:
        self.oracle = Oracle(read_cluster(lab.client.get))
        self.taps: dict[str, Tap] = {}
        for row in lab.client.get("cluster", "resources"):
            name = str(row.get("name") or "")
            if name.partition("-")[0] in NETS and row.get("type") in ("qemu", "lxc"):
                (self.taps[name],) = read_taps(lab.client.get, row)

    def address(self, name: str) -> str:
        last = {"vm1": 10, "vm2": 20, "ct1": 30}[name.partition("-")[2]]
        return f"{NETS[name.partition('-')[0]]}.{last}"

    def reaches(self, source: str, dest: str, spoofed: str = "", mac: str = "") -> Iterator[bool]:
        """Yield whether each kind of packet gets from one guest to another."""
        for proto, port in KINDS:
            packet = Packet(
                spoofed or self.address(source),
                self.address(dest),
                mac or self.taps[source].mac,
                proto,
                port,
            )
            yield self.oracle.reaches(self.taps[source], self.taps[dest], packet)

    def reachable(self) -> set[tuple[str, str]]:
        """Return the pairs of tenants of which any guest reaches any guest with any packet, also
        with the address or the MAC of another guest.
        """
        found = set()
        for source, dest in permutations(self.taps, 2):
            pair = (source.partition("-")[0], dest.partition("-")[0])
            attempts = [list(self.reaches(source, dest))]
            if pair[0] != pair[1]:
                for other in self.taps:
                    if other != source:
                        attempts.append(list(self.reaches(source, dest, self.address(other))))
                        mac = self.taps[other].mac
                        attempts.append(list(self.reaches(source, dest, mac=mac)))
            if any(any(answers) for answers in attempts):
                found.add(pair)
        return found


def test_the_evaluator_imports_nothing_of_the_collection() -> None:
    tree = ast.parse(Path(iptables_oracle.__file__).read_text(encoding="utf-8"))
    names = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert not any("ansible" in str(name) for name in names)


def test_no_guest_reaches_one_of_another_tenant(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    world = World(lab)
    assert len(world.taps) == 6
    pairs = list(permutations(world.taps, 2))
    assert len(pairs) == 30
    own = {("initech", "initech"), ("hooli", "hooli")}
    assert world.reachable() == own
    for source, dest in pairs:
        is_own = source.partition("-")[0] == dest.partition("-")[0]
        assert set(world.reaches(source, dest)) == {is_own}, (source, dest)
    # A peer is let in, and not the other way round.
    tenant(lab, "initech", peers=["hooli"])
    assert World(lab).reachable() == own | {("hooli", "initech")}


def test_shared_guests_are_reached_by_all_tenants(lab: Lab) -> None:
    populate(lab, "initech", isolation="shared")
    populate(lab, "hooli")
    expected = {("initech", "initech"), ("hooli", "hooli"), ("hooli", "initech")}
    assert World(lab).reachable() == expected


def test_a_rule_of_a_guest_does_not_open_it_to_another_tenant(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    rules = [
        {"type": "group", "action": "tenant_initech"},
        {"type": "in", "action": "ACCEPT", "comment": "open to the world"},
    ]
    do(lab, "firewall", scope="guest", name="initech-vm1", rules=rules)
    world = World(lab)
    assert ("hooli", "initech") not in world.reachable()
    # It is open to the world, and to the world only: before the group, it would be for all.
    do(lab, "firewall", scope="guest", name="initech-vm1", rules=rules[::-1])
    assert ("hooli", "initech") in World(lab).reachable()


def test_the_evaluator_sees_a_guest_without_filters(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    do(lab, "firewall", scope="guest", name="initech-vm1", options={"enable": False})
    assert ("hooli", "initech") in World(lab).reachable()


# -- the report ----------------------------------------------------------------------------------


def arrows(lab: Lab) -> dict[tuple[str, str], list[str]]:
    """Return the connections between networks of tenants in the report."""
    names = {vnet_id(f"tenant_{name}", "front"): name for name in NETS}
    (site,) = gathered(lab)["report"]["sites"]
    return {(names[one["source"]], names[one["dest"]]): one["connections"] for one in site["reach"]}


def test_the_report_shows_exactly_what_the_rules_allow(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    assert arrows(lab) == {}
    tenant(lab, "initech", peers=["hooli"])
    others = {pair for pair in World(lab).reachable() if pair[0] != pair[1]}
    assert arrows(lab).keys() == others == {("hooli", "initech")}
    assert arrows(lab)[("hooli", "initech")] == ["all"]
    ssh = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22"}
    from_initech = {**ssh, "source": f"{NETS['initech']}.0/24"}
    group = {"type": "group", "action": "tenant_hooli"}
    do(lab, "firewall", scope="guest", name="hooli-vm2", rules=[from_initech, group])
    assert arrows(lab) == {("hooli", "initech"): ["all"], ("initech", "hooli"): ["tcp 22"]}
    page = page_of(gathered(lab)["report"], "Reach")
    assert "initech front reaches hooli front: tcp 22; " not in page
    assert (
        "hooli front reaches initech front: all; initech front reaches hooli front: tcp 22" in page
    )
    do(lab, "firewall", scope="cluster", options={"enable": False})
    assert set(map(tuple, arrows(lab).values())) == {("all",)}


# -- the audit -----------------------------------------------------------------------------------


def findings(lab: Lab, **options: Any) -> set[tuple[str, str | None, str]]:
    lab.simulator.reset_log()
    result = do(lab, "audit_info", volumes=False, **options)
    assert lab.simulator.writes() == []
    kinds = ("foreign_vnet", "firewall_off", "unfiltered_nic", "open_rule")
    return {
        (one["kind"], one["tenant"], one["message"])
        for one in result["findings"]
        if one["kind"] in kinds
    }


def test_the_audit_reports_what_breaks_the_isolation(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    assert findings(lab) == set()
    vnet = vnet_id("tenant_hooli", "front")
    do(lab, "vm", name="initech-vm2", tenant="initech", nics=[{"bridge": vnet, "ip": "dhcp"}])
    do(lab, "firewall", scope="guest", name="initech-vm1", options={"macfilter": False})
    do(lab, "firewall", scope="guest", name="hooli-vm2", options={"enable": False})
    opened = {"type": "in", "action": "ACCEPT", "proto": "tcp", "dport": "22"}
    narrow = {**opened, "source": f"{NETS['initech']}.20"}
    group = {"type": "group", "action": "tenant_hooli"}
    do(lab, "firewall", scope="guest", name="hooli-vm1", rules=[narrow, group, opened])
    found = findings(lab)
    texts = {kind: text for kind, _tenant, text in found}
    assert {(kind, tenant) for kind, tenant, _text in found} == {
        ("foreign_vnet", "initech"),
        ("unfiltered_nic", "initech"),
        ("firewall_off", "hooli"),
        ("open_rule", "hooli"),
    }
    assert f"uses VNet {vnet} of tenant hooli as net0" in texts["foreign_vnet"]
    assert "has net0 without macfilter" in texts["unfiltered_nic"]
    assert "has its firewall switched off" in texts["firewall_off"]
    assert "is open to 10.1.0.0/24 of tenant initech by guest rule 0" in texts["open_rule"]
    assert findings(lab, networks=False) == set()
    do(lab, "firewall", scope="cluster", options={"enable": False})
    assert any("The firewall of the cluster is off" in text for _k, _t, text in findings(lab))


def test_the_audit_knows_the_peers_of_an_estate(lab: Lab) -> None:
    populate(lab, "initech")
    populate(lab, "hooli")
    tenant(lab, "initech", peers=["hooli"])
    networks = {"front": {"zone": "teams", "tag_range": [100, 199], "subnet": "10.1.0.0/24"}}
    described = {"initech": {"networks": networks, "peers": ["hooli"]}, "hooli": {}}
    assert findings(lab, tenants=described) == set()
    alone = {**described, "initech": {"networks": networks}}
    assert {kind for kind, _tenant, _text in findings(lab, tenants=alone)} == {"open_rule"}
