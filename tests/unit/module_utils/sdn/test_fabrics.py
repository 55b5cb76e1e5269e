# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabrics: their forms, their plan, and the refusals before the first write.

The rules are proxmox-ve-rs: proxmox-ve-config, src/sdn/fabric/mod.rs, validate.
"""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    NotSupported,
    ValidationFailed,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.fabric_rules import (
    require_fabrics,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.forms import (
    pending_of,
    read_desired,
    running_of,
    view_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.model import SdnContext
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.plan import (
    after_plan,
    object_steps,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.sdn.preconditions import (
    require_valid,
)

EMPTY: dict[str, dict[str, Any]] = {
    "zones": {},
    "vnets": {},
    "subnets": {},
    "controllers": {},
    "fabrics": {},
    "fabric_nodes": {},
}
UNDER = {"id": "under", "protocol": "openfabric", "ip_prefix": "10.9.0.0/24"}
FIRST = {
    "fabric_id": "under",
    "node_id": "pve1",
    "protocol": "openfabric",
    "ip": "10.9.0.1",
    "interfaces": ["name=ens19,hello_multiplier=5", "name=ens20"],
}
RUNNING = {
    **EMPTY,
    "fabrics": running_of("fabrics", [UNDER, {"id": "edge", "protocol": "bgp"}]),
    "fabric_nodes": running_of("fabric_nodes", [FIRST]),
}
AROUND = SdnContext(
    nodes=frozenset(("pve1", "pve2")), interfaces={"pve1": frozenset(("ens19", "ens20"))}
)
NODE: dict[str, Any] = {"fabric": "under", "node": "pve1", "ip": "10.9.0.1"}


def after(running: dict[str, Any], **params: Any) -> dict[str, Any]:
    found: dict[str, Any] = after_plan(running, read_desired(params, running))
    return found


def steps(running: dict[str, Any], **params: Any) -> list[str]:
    return [step.summary for step in object_steps(running, after(running, **params))]


def test_the_view_of_running_fabrics_changes_nothing() -> None:
    view = view_of(RUNNING)
    assert view["fabric_nodes"] == [
        {**NODE, "interfaces": [{"name": "ens19", "hello_multiplier": 5}, {"name": "ens20"}]}
    ]
    params = {key: view[key] for key in ("fabrics", "fabric_nodes")}
    assert steps(RUNNING, **params, exact=["fabrics", "fabric_nodes"]) == []


def test_addresses_are_compared_as_addresses() -> None:
    prefix = {"name": "under", "ip_prefix": "10.9.0.77/24"}
    assert steps(RUNNING, fabrics=[prefix]) == []


def test_exact_keeps_fabrics_with_other_protocols() -> None:
    left = after(RUNNING, fabrics=[], exact=["fabrics"])
    assert (list(left["fabrics"]), left["fabric_nodes"]) == (["edge"], {})


def test_the_nodes_of_a_fabric_are_removed_before_it() -> None:
    gone = steps(RUNNING, fabrics=[{"name": "under", "state": "absent"}])
    assert gone == ["Remove fabric node 'under_pve1'", "Remove fabric 'under'"]


def test_the_nodes_are_created_again_with_another_prefix() -> None:
    params = {
        "fabrics": [{"name": "under", "ip_prefix": "10.8.0.0/24"}],
        "fabric_nodes": [{**NODE, "ip": "10.8.0.1"}],
    }
    assert [text.split(":")[0] for text in steps(RUNNING, **params)] == [
        "Remove fabric node 'under_pve1'",
        "Change fabric 'under'",
        "Create fabric node 'under_pve1'",
    ]


def test_each_write_has_the_protocol() -> None:
    """The schema requires it (pve-network: SDN/Fabrics.pm, node_properties)."""
    changed = after(RUNNING, fabric_nodes=[{**NODE, "interfaces": []}])
    (step,) = object_steps(RUNNING, changed)
    assert step.path[-3:] == ("node", "under", "pve1")
    assert step.data == {"protocol": "openfabric", "delete": ["interfaces"]}


def test_a_new_fabric_is_pending_by_its_name() -> None:
    """PVE has the ID among the pending properties (pve-network: SDN.pm, pending_config)."""
    row = {"state": "new", "pending": {"fabric_id": "under", "node_id": "pve2"}}
    assert pending_of("fabric_nodes", [row]) == ["fabric node under_pve2 (new)"]


@pytest.mark.parametrize(
    ("params", "text"),
    [
        ({"fabrics": [{"name": "under", "protocol": "ospf"}]}, "cannot change it to ospf"),
        ({"fabrics": [{"name": "new"}]}, "has no protocol"),
        ({"fabrics": [{"name": "new", "protocol": "openfabric"}]}, "no prefix of addresses"),
        ({"fabrics": [{"name": "under", "area": "0"}]}, "openfabric has no area"),
        ({"fabrics": [{"name": "under", "hello_interval": 601}]}, "between 1 and 600"),
        (
            {"fabrics": [{"name": "new", "protocol": "openfabric", "ip_prefix": "10.9.0.64/26"}]},
            "overlaps 10.9.0.0/24 of fabric 'under'",
        ),
        (
            {"fabrics": [{"name": "new", "protocol": "ospf", "ip_prefix": "10.7.0.0/24"}]},
            "neither a number nor an IPv4 address",
        ),
        ({"fabrics": [{"name": "edge", "ip_prefix": "10.6.0.0/24"}]}, "bgp is not managed"),
        ({"fabric_nodes": [{**NODE, "node": "pve9", "ip": "10.9.0.9"}]}, "no node 'pve9'"),
        ({"fabric_nodes": [{**NODE, "ip": "10.5.0.1"}]}, "ip 10.5.0.1 is not in 10.9.0.0/24"),
        ({"fabric_nodes": [{**NODE, "ip": ""}]}, "its fabric has ip_prefix 10.9.0.0/24"),
        ({"fabric_nodes": [{**NODE, "ip6": "fd00::1"}]}, "its fabric has no ip6_prefix"),
        ({"fabric_nodes": [{**NODE, "node": "pve2"}]}, "'under_pve1' has 10.9.0.1 too"),
        ({"fabric_nodes": [{**NODE, "fabric": "gone"}]}, "there is no fabric 'gone'"),
        ({"fabric_nodes": [{**NODE, "interfaces": [{"name": "x"}]}]}, "no interface 'x'"),
        (
            {"zones": [{"name": "over", "type": "vxlan", "fabric": "gone"}]},
            "there is no fabric 'gone'",
        ),
        (
            {"zones": [{"name": "over", "type": "vxlan", "fabric": "under", "peers": ["1.1.1.1"]}]},
            "either peers or a fabric",
        ),
        ({"controllers": [{"name": "ctl", "type": "evpn", "asn": 1}]}, "either peers or a fabric"),
        (
            {"zones": [{"name": "over", "type": "vxlan", "fabric": "under"}]},
            "node pve2 is not in fabric 'under'",
        ),
        (
            {
                "controllers": [{"name": "ctl", "type": "evpn", "asn": 1, "fabric": "under"}],
                "zones": [{"name": "deep", "type": "evpn", "controller": "ctl", "vrf_vxlan": 9}],
            },
            "node pve2 is not in fabric 'under'",
        ),
    ],
)
def test_mistakes_are_refused(params: dict[str, Any], text: str) -> None:
    with pytest.raises(Exception, match=".") as caught:
        require_valid(RUNNING, after(RUNNING, **params), AROUND)
    assert text in str(caught.value)


def test_a_node_of_a_zone_stays_in_its_fabric() -> None:
    zone = {"type": "vxlan", "fabric": "under", "nodes": "pve1"}
    running = {**RUNNING, "zones": {"over": zone}}
    require_valid(running, after(running), AROUND)
    removed = after(running, fabric_nodes=[{**NODE, "state": "absent"}])
    with pytest.raises(Exception, match="node pve1 is not in fabric 'under'"):
        require_valid(running, removed, AROUND)


def test_areas_are_compared_as_numbers() -> None:
    one = {"protocol": "ospf", "ip_prefix": "10.1.0.0/24", "area": "1"}
    two = {"name": "two", "protocol": "ospf", "ip_prefix": "10.2.0.0/24", "area": "0.0.0.1"}
    running = {**EMPTY, "fabrics": {"one": one}}
    with pytest.raises(Exception, match="fabric 'one' has area 0.0.0.1 too"):
        require_valid(running, after(running, fabrics=[two]), AROUND)


@pytest.mark.parametrize(
    ("area", "is_valid"),
    [("4294967295", True), ("255.255.255.255", True), ("4294967296", False), ("-1", False)],
)
def test_an_area_has_32_bits(area: str, is_valid: bool) -> None:
    """The schema says so, and a part in Rust checks it (pve-network: SDN/Fabrics.pm, area)."""
    fabric = {"name": "one", "protocol": "ospf", "ip_prefix": "10.1.0.0/24", "area": area}
    work = after(EMPTY, fabrics=[fabric])
    if is_valid:
        require_valid(EMPTY, work, AROUND)
    else:
        with pytest.raises(ValidationFailed, match=f"area '{area}' is neither a number nor"):
            require_valid(EMPTY, work, AROUND)


@pytest.mark.parametrize("kind", ["zones", "controllers"])
def test_a_fabric_in_use_stays(kind: str) -> None:
    users = {
        "zones": {"over": {"type": "vxlan", "fabric": "under"}},
        "controllers": {"ctl": {"type": "evpn", "fabric": "under"}},
    }
    running = {**RUNNING, kind: users[kind]}
    removed = after(running, fabrics=[{"name": "under", "state": "absent"}])
    with pytest.raises(Exception, match=f"{kind[:-1]} '(over|ctl)' uses it"):
        require_valid(running, removed, AROUND)


@pytest.mark.parametrize(
    "params",
    [
        {"fabrics": [{"name": "under"}]},
        {"fabric_nodes": [NODE]},
        {"zones": [{"name": "over", "fabric": "under"}]},
        {"controllers": [{"name": "ctl", "fabric": "under"}]},
    ],
)
def test_an_older_version_has_no_fabrics(params: dict[str, Any]) -> None:
    running = {key: one for key, one in EMPTY.items() if "fabric" not in key}
    with pytest.raises(NotSupported, match=r"PVE 8.4 has no fabrics, they came with 9.0"):
        require_fabrics(params, running, "8.4")
    require_fabrics({"fabrics": []}, running, "8.4")
