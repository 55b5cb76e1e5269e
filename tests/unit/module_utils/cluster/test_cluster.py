"""Looking up, guarding, placing and numbering: pure, in tables."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.answers.generated.answers import (
    READS,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.find.lookup import (
    find_template,
    find_vm,
    require_own_guest,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.placement import (
    PlacementNeeds,
    choose_node,
    require_node,
    require_storage,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.vmids import (
    VmidAllocator,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    NodeUnhealthy,
    QuotaExceeded,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.cluster_info import (
    storages_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.nodes import guests
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.facts.partial_read import (
    node_states,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.hosts import (
    read_guests,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.kinds import KINDS

GIB = 1 << 30

# Rows of networks (pve-manager 9.2.11: API2/Cluster.pm, resources), and of an unknown type.
OTHER_ROWS: list[dict[str, Any]] = [
    {
        "id": "network/pve1/zone/localnetwork",
        "type": "network",
        "network-type": "zone",
        "network": "localnetwork",
        "node": "pve1",
        "status": "ok",
    },
    {
        "id": "network/pve9/fabric/one",
        "type": "network",
        "network-type": "fabric",
        "network": "one",
        "protocol": "ospf",
        "node": "pve9",
        "status": "not ok",
        "hastate": "maintenance",
    },
    {"id": "sdn/pve1/z1", "type": "sdn", "sdn": "z1", "node": "pve1", "status": "available"},
    {"id": "gadget/pve1", "type": "gadget", "node": "pve1", "storage": "ceph", "pool": "acme"},
]


def vm(
    vmid: int, name: str, *, node: str = "pve1", tags: str = "", memory: int = 2, **more: Any
) -> dict[str, Any]:
    row = {
        "type": "qemu",
        "vmid": vmid,
        "name": name,
        "node": node,
        "status": "running",
        "tags": tags,
    }
    return {**row, "maxmem": memory * GIB, "template": 0, **more}


def node(name: str, *, status: str = "online", memory: int = 64) -> dict[str, Any]:
    return {
        "type": "node",
        "node": name,
        "status": status,
        "maxcpu": 8,
        "maxmem": memory * GIB,
        "mem": GIB,
        "cpu": 0.1,
    }


def storage(
    name: str, on: str, *, content: str = "images", shared: int = 0, status: str = "available"
) -> dict[str, Any]:
    return {
        "type": "storage",
        "storage": name,
        "node": on,
        "content": content,
        "shared": shared,
        "status": status,
        "plugintype": "dir",
        "disk": 0,
        "maxdisk": 1,
    }


def picture(*rows: dict[str, Any]) -> ClusterState:
    return cluster_state_of(rows, {"qemu"})


ROWS = [
    node("pve1"),
    node("pve2"),
    node("pve3", status="offline"),
    storage("local", "pve1", content="iso,import"),
    storage("ceph", "pve1", shared=1),
    storage("ceph", "pve2", shared=1),
    storage("dead", "pve1", status="unknown"),
    vm(100, "web", tags="tenant_acme"),
    vm(101, "web", tags="tenant_globex"),
    vm(102, "db", tags="tenant_acme2"),
    vm(103, "alone"),
    vm(9000, "debian", template=1),
    vm(9001, "twice", template=1),
    vm(9002, "twice", template=1),
    {"type": "lxc", "vmid": 104, "node": "pve1"},
    {"type": "qemu", "vmid": 105, "node": "pve1", "status": "unknown"},
    {"type": "pool", "pool": "acme", "id": "/pool/acme"},
    {"type": "network", "id": "network/x"},
]


def test_the_picture_holds_what_the_listing_says() -> None:
    seen = picture(*ROWS)
    assert seen.taken == {100, 101, 102, 103, 104, 105, 9000, 9001, 9002}
    assert 104 not in seen.vms
    assert seen.vms[105].name == ""
    assert seen.pools == {"acme"}
    assert seen.shared_storages == {"ceph"}
    assert not seen.nodes["pve3"].online


@pytest.mark.parametrize(
    ("wanted", "vmid"),
    [
        ({"vmid": 101, "name": None}, 101),
        ({"vmid": 101, "name": "renamed"}, 101),
        ({"vmid": 999, "name": "web"}, None),
        ({"vmid": None, "name": "db"}, 102),
        ({"vmid": None, "name": "d"}, None),
        ({"vmid": None, "name": "debian"}, 9000),
        ({"vmid": None, "name": "web", "tenant_tag": "tenant_acme"}, 100),
        ({"vmid": None, "name": "web", "tenant_tag": "tenant_globex"}, 101),
    ],
)
def test_which_vm_is_meant(wanted: dict[str, Any], vmid: int | None) -> None:
    found = find_vm(picture(*ROWS), **wanted)
    assert (found.vmid if found else None) == vmid


def test_a_name_that_means_two_is_refused_with_both() -> None:
    with pytest.raises(Conflict, match="100 on pve1, 101 on pve1"):
        find_vm(picture(*ROWS), vmid=None, name="web")


def test_vms_of_other_tenants_neither_match_nor_conflict() -> None:
    assert find_vm(picture(*ROWS), vmid=None, name="web", tenant_tag="tenant_other") is None
    untagged = vm(105, "web")
    found = find_vm(picture(*ROWS, untagged), vmid=None, name="web", tenant_tag="tenant_other")
    assert found is not None
    assert found.vmid == 105
    with pytest.raises(Conflict) as failure:
        find_vm(
            picture(*ROWS, untagged, vm(106, "web")),
            vmid=None,
            name="web",
            tenant_tag="tenant_other",
        )
    assert "100" not in failure.value.message
    assert "105 on pve1, 106 on pve1" in failure.value.message


def test_templates_by_number_and_exact_name() -> None:
    seen = picture(*ROWS)
    assert find_template(seen, vmid=103).vmid == 103  # type: ignore[union-attr]
    assert find_template(seen, name="debian").vmid == 9000  # type: ignore[union-attr]
    assert find_template(seen, name="debi") is None
    with pytest.raises(Conflict, match="9001 on pve1, 9002 on pve1"):
        find_template(seen, name="twice")


@pytest.mark.parametrize(
    ("tags", "adopt", "allowed"),
    [
        (["tenant_acme"], False, True),
        (["x", "TENANT_ACME"], False, True),
        (["tenant_acme2"], False, False),
        (["tenant_acm"], False, False),
        (["xtenant_acme"], False, False),
        (["tenant_globex"], False, False),
        (["tenant_globex"], True, False),
        (["tenant_acme", "tenant_globex"], False, False),
        (["tenant_acme", "tenant_globex"], True, False),
        ([], False, False),
        ([], True, True),
        (["web"], True, True),
    ],
)
def test_the_guard_matches_the_tenants_tag_exactly(
    tags: list[str], adopt: bool, allowed: bool
) -> None:
    if allowed:
        require_own_guest("VM 1", tags, "tenant_acme", "tenant_", adopt=adopt, unnamed="VM 1")
        return
    with pytest.raises(Conflict) as failure:
        require_own_guest("VM 1", tags, "tenant_acme", "tenant_", adopt=adopt, unnamed="VM 1")
    assert failure.value.next_step


def test_without_a_tenant_nothing_is_guarded() -> None:
    require_own_guest("VM 1", ["tenant_acme"], None, "tenant_", unnamed="VM 1")


def test_the_lowest_free_number_is_taken() -> None:
    assert VmidAllocator((100, 110), None, "web1", by_name=False).free({100, 101, 103}) == 102
    with pytest.raises(QuotaExceeded, match="100 to 101"):
        VmidAllocator((100, 101), None, "web1", by_name=False).free({100, 101})


def test_the_node_with_the_smallest_share_given_away_is_chosen() -> None:
    seen = picture(
        node("a", memory=64),
        node("b", memory=32),
        vm(1, "x", node="a", memory=8),
        vm(2, "y", node="b", memory=1),
    )
    assert choose_node(seen, PlacementNeeds()).node == "b"
    assert (
        "13%" in choose_node(seen, PlacementNeeds()).refused["a"]
        or "12%" in choose_node(seen, PlacementNeeds()).refused["a"]
    )
    assert choose_node(seen, PlacementNeeds(memory=16 * GIB)).node == "a"


def test_every_refused_node_has_its_reason() -> None:
    with pytest.raises(NodeUnhealthy) as failure:
        choose_node(picture(*ROWS), PlacementNeeds(storages={"local": "images"}))
    assert failure.value.details["nodes"] == {
        "pve1": "storage local does not take images",
        "pve2": "storage local is not there",
        "pve3": "offline",
    }


def test_named_nodes_and_storages_are_checked() -> None:
    seen = picture(*ROWS)
    require_node(seen, "pve1")
    require_storage(seen, "ceph", "pve2", "images")
    with pytest.raises(ConfigurationError, match="pve1, pve2, pve3"):
        require_node(seen, "pve9")
    with pytest.raises(NodeUnhealthy):
        require_node(seen, "pve3")
    for name, on, content in (
        ("nosuch", "pve1", "images"),
        ("local", "pve1", "images"),
        ("dead", "pve1", "images"),
    ):
        with pytest.raises(ConfigurationError) as failure:
            require_storage(seen, name, on, content)
        assert failure.value.next_step


def test_rows_of_other_types_are_ignored() -> None:
    """A zone or fabric has a node and a status, and is neither a node nor a guest."""
    known = [
        vm(100, "web"),
        {"type": "node", "node": "pve1", "status": "online", "maxcpu": 4, "maxmem": GIB},
    ]
    rows = READS["cluster/resources"]([*known, *OTHER_ROWS])
    assert cluster_state_of(rows, ("qemu", "lxc")) == cluster_state_of(known, ("qemu", "lxc"))
    assert [host.name for host in read_guests(rows, kinds=KINDS)] == ["pve1", "web"]
    assert guests(rows) == [vm(100, "web")]
    assert storages_of(rows) == []
    assert node_states(None, rows) == {}
