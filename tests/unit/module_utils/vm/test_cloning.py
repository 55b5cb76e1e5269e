"""What can be cloned, linked or full, where to and in which format: tables of storages and
desired VMs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.request import Request
from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.core.errors import (
    FleetError,
    PermissionDenied,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.clone import clone_spec
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.vm import vm_spec
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.clone.options import (
    read_clone_as,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.flow.reads import GuestReads
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.creation import (
    plan_creation,
    spread_storage,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.intent import Source
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.registry import VMS
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.cloning import (
    decide_full,
    nodes_for,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.update import (
    VM_PLANNER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.run import chained_stores
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.hardware import DesiredVm
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.model import Actual
from tests.fake_api import FakeApi
from tests.unit.module_utils.vm.vm_cases import new_vm, template


def clone(**options: Any) -> DesiredVm:
    return read_clone_as(VMS, {"name": "web1", "source": "9000", **options}).desired


def picture(kind: str = "rbd", *, shared: bool = True) -> ClusterState:
    """Return three nodes with one storage `ceph` of that kind and local ones beside it."""
    rows: list[dict[str, Any]] = [
        {"type": "node", "node": f"pve{number}", "status": "online"} for number in (1, 2, 3)
    ]
    stores = {"ceph": (kind, shared), "local-lvm": ("lvmthin", False), "nas": ("nfs", True)}
    for store, (plugin, is_shared) in stores.items():
        for node in ("pve1", "pve2", "pve3"):
            row = {
                "type": "storage",
                "storage": store,
                "node": node,
                "status": "available",
                "content": "images",
            }
            rows.append({**row, "plugintype": plugin, "shared": int(is_shared)})
    return cluster_state_of(rows, {"qemu"})


def source(volume: str = "ceph:base-9000-disk-0", *, is_template: bool = True) -> Actual:
    found = template()
    target = {
        **found.target,
        "scsi0": f"{volume},size=3G",
        "ide2": f"{volume.partition(':')[0]}:vm-9000-cloudinit",
    }
    target = (
        target if is_template else {key: text for key, text in target.items() if key != "template"}
    )
    return replace(found, live=target, target=target)


FULL: list[tuple[dict[str, Any], str, dict[str, Any], bool | str]] = [
    # options of the clone, kind of storage, source, full or why not
    ({}, "rbd", {}, False),
    ({"full": True}, "rbd", {}, True),
    ({}, "lvm", {}, True),
    ({"full": False}, "lvm", {}, "no linked clones"),
    ({}, "rbd", {"is_template": False}, True),
    ({"full": False}, "rbd", {"is_template": False}, "not a template"),
    ({"storage": "nas"}, "rbd", {}, True),
    ({"storage": "nas", "full": False}, "rbd", {}, "storage is for full clones"),
    ({"format": "raw", "full": False}, "rbd", {}, "format is for full clones"),
    ({"storage": "nas", "format": "qcow2"}, "rbd", {}, True),
    ({"storage": "nosuch"}, "rbd", {}, "nosuch"),
    ({"format": "qcow2", "full": True}, "rbd", {}, "raw only"),
    ({"format": "raw", "full": True}, "rbd", {}, True),
    ({"format": "qcow2", "full": True}, "btrfs", {}, "raw only"),
    ({"format": "qcow2", "full": True}, "lvm", {}, "raw only"),
    ({"format": "vmdk", "full": True}, "lvm", {}, "raw only"),
    ({"snapshot": "s1", "full": False}, "rbd", {"is_template": False}, False),
    ({"snapshot": "s1", "full": False}, "zfspool", {"is_template": False}, "no linked clones"),
    ({"snapshot": "s1"}, "rbd", {"is_template": False}, True),
    ({"snapshot": "s1"}, "zfspool", {"is_template": False}, "cannot copy a snapshot"),
    (
        {"snapshot": "s1"},
        "dir",
        {"volume": "ceph:9000/vm-9000-disk-0.qcow2", "is_template": False},
        True,
    ),
    (
        {"snapshot": "s1"},
        "dir",
        {"volume": "ceph:9000/vm-9000-disk-0.raw", "is_template": False},
        "cannot copy",
    ),
    ({"node": "pve2"}, "rbd", {}, False),
    ({"node": "pve2"}, "lvmthin", {"volume": "local-lvm:base-9000-disk-0"}, False),
    (
        {"node": "pve2", "migrate": False},
        "lvmthin",
        {"volume": "local-lvm:base-9000-disk-0"},
        "migrate=true",
    ),
    (
        {"node": "pve1", "migrate": False},
        "lvmthin",
        {"volume": "local-lvm:base-9000-disk-0"},
        False,
    ),
]


@pytest.mark.parametrize(
    ("options", "kind", "of", "expected"), FULL, ids=lambda value: str(value)[:60]
)
def test_linked_or_full(
    options: dict[str, Any], kind: str, of: dict[str, Any], expected: bool | str
) -> None:
    made = source(**of)
    goal = spread_storage(clone(**options), made)
    if isinstance(expected, bool):
        assert decide_full(goal, made, picture(kind)) is expected
        return
    with pytest.raises(FleetError, match=expected) as caught:
        decide_full(goal, made, picture(kind))
    assert caught.value.category in ("NotSupported", "ConfigurationError")
    assert caught.value.next_step


@pytest.mark.parametrize(
    ("configured", "wanted"),
    [
        ([{"storage": "ceph", "type": "lvm", "snapshot-as-volume-chain": 1}], True),
        ([{"storage": "ceph", "type": "lvm"}], False),
        (None, True),  # the caller may not see it, so PVE decides
    ],
)
def test_lvm_takes_qcow2_where_it_keeps_chains(
    configured: list[dict[str, Any]] | None, wanted: bool
) -> None:
    def storages(request: Request) -> Any:
        assert request.segments == ("storage",)
        return PermissionDenied(answer="no") if configured is None else configured

    goal, reads = clone(format="qcow2", full=True), GuestReads(FakeApi(storages).client())
    chained = chained_stores(reads, goal, picture("lvm"))
    assert chained == ({"ceph"} if wanted else set())
    if wanted:
        assert decide_full(goal, source(), picture("lvm"), chained) is True
    assert chained_stores(reads, goal, picture("rbd")) == set()
    assert chained_stores(GuestReads(cast(Client, None)), clone(full=True), picture("lvm")) == set()


@pytest.mark.parametrize("kind", ["zfspool", "dir"])
def test_a_linked_clone_cannot_leave_its_template(kind: str) -> None:
    local = picture(kind, shared=False)
    assert decide_full(clone(node="pve1"), source(), local) is False
    assert decide_full(clone(node="pve2"), source(), local) is True
    with pytest.raises(FleetError, match="cannot leave"):
        decide_full(clone(node="pve2", full=False), source(), local)


@pytest.mark.parametrize(
    ("options", "nodes"),
    [
        ({}, None),
        ({"storage": "nas"}, None),
        ({"storage": "local-lvm"}, frozenset({"pve1"})),
        ({"storage": "local-lvm", "node": "pve3"}, None),
    ],
)
def test_where_a_clone_without_a_node_can_go(
    options: dict[str, Any], nodes: frozenset[str] | None
) -> None:
    assert nodes_for(clone(**options), source(), picture()) == nodes


CALLS: list[tuple[dict[str, Any], str, dict[str, Any], list[str]]] = [
    ({"storage": "nas"}, "pve1", {"storage": "nas", "target": None}, ["clone", "config"]),
    ({"storage": "nas"}, "pve2", {"storage": "nas", "target": "pve2"}, ["clone", "config"]),
    # Not shared: the disks are moved once they are on that node.
    (
        {"storage": "local-lvm"},
        "pve2",
        {"storage": None, "target": "pve2"},
        ["clone", "config", "move_disk", "config"],
    ),
    (
        {"storage": "nas", "disks": [{"name": "scsi0", "storage": "local-lvm"}]},
        "pve1",
        {"storage": "nas"},
        ["clone", "config", "move_disk", "config"],
    ),
    (
        {"snapshot": "s1", "format": "raw"},
        "pve1",
        {"snapname": "s1", "format": "raw"},
        ["clone", "config"],
    ),
]


@pytest.mark.parametrize(
    ("options", "node", "data", "actions"), CALLS, ids=lambda value: str(value)[:60]
)
def test_what_pve_is_asked_for(
    options: dict[str, Any], node: str, data: dict[str, Any], actions: list[str]
) -> None:
    goal = spread_storage(clone(**options), source())
    intent = new_vm(goal, Source(source()), node=node)
    plan = plan_creation(VM_PLANNER, intent, shared={"ceph", "nas"})
    assert {key: plan.steps[0].data.get(key) for key in data} == data
    assert [step.action for step in plan.steps] == actions


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"name": None}, "name or vmid"),
        ({"source": "local:iso/x.iso"}, "source"),
        ({"vmid": 9000}, "vmid"),
        ({"storage": "no space"}, "storage"),
        ({"name": "bad_name"}, "name"),
    ],
)
def test_what_is_refused_names_the_option(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(FleetError) as caught:
        clone(**options)
    assert (caught.value.category, caught.value.reason) == ("ValidationFailed", reason)


def test_a_clone_takes_every_option_of_a_vm() -> None:
    """Except options for VMs that exist: a finished clone is not changed."""
    own = {"source", "state", "storage", "format", "snapshot", "allow_privileged"}
    assert (
        clone_spec().keys()
        == (vm_spec().keys() - {"adopt", "blank", "create", "replace_image"}) | own
    )
    for name in clone_spec().keys() - own:
        assert clone_spec()[name] == vm_spec()[name]
