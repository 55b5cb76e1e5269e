"""Plans for VMs that do not exist: created in one request, or cloned and then changed to what they
be.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    ClusterState,
    StorageRow,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.plan import Plan
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.creation import (
    plan_creation,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.intent import Source
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.plan.steps import (
    writes_notes_only,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.cloning import (
    why_not_linked,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.guest.vm.plan.update import (
    VM_PLANNER,
)
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.hardware import DesiredVm
from ansible_collections.pve.fleet.plugins.module_utils._guests.kinds.marker import (
    Marker,
    join_notes,
    split_notes,
)
from tests.unit.module_utils.vm.vm_cases import desired_vm, new_vm, template

UUID = "4a2e5b0c-0000-4000-8000-000000000001"


def contested_vm(**options: Any) -> DesiredVm:
    return desired_vm(**options).with_guest(limits={"vms": 9})


def created(*, contested: bool = False, **options: Any) -> Plan:
    desired = contested_vm(**options) if contested else desired_vm(**options)
    change = VM_PLANNER.changes(desired, {}, new=True)
    intent = new_vm(desired, change=change, identity=UUID)
    return plan_creation(VM_PLANNER, intent, shared=())


def cloned(
    *,
    full: bool = False,
    node: str = "pve1",
    shared: tuple[str, ...] = ("ceph",),
    contested: bool = False,
    **options: Any,
) -> Plan:
    desired = contested_vm(**options) if contested else desired_vm(**options)
    intent = new_vm(desired, Source(template(), full=full), node=node)
    return plan_creation(VM_PLANNER, intent, shared=shared)


@pytest.mark.parametrize(
    ("options", "actions", "last"),
    [
        ({}, ["create", "config"], {"delete": "description", "tags": "tenant_acme;web"}),
        (
            {"description": "notes"},
            ["create", "config"],
            {"description": "notes", "tags": "tenant_acme;web"},
        ),
        ({"state": "started"}, ["create", "config", "start", "config"], {"delete": "description"}),
    ],
    ids=str,
)
def test_tags_of_a_vm_in_a_pool_follow_its_creation(
    options: dict[str, Any], actions: list[str], last: dict[str, Any]
) -> None:
    plan = created(tenant="acme", tags=["web"], pool="acme", **options)
    assert [step.action for step in plan.steps] == actions
    assert "tags" not in plan.steps[0].data
    assert "acme" in plan.steps[0].data["description"]
    assert plan.steps[-1].data == last
    assert any("tags" in step.data for step in plan.steps[1:])


def test_a_blank_vm_is_one_request_with_everything() -> None:
    plan = created(
        tenant="acme",
        tags=["web"],
        memory="1G",
        disks=[{"size": 10, "ssd": True}],
        nics=[{"vlan": 7}],
    )
    assert [step.action for step in plan.steps] == ["create"]
    assert plan.steps[0].data == {
        "vmid": 10000,
        "name": "web1",
        "agent": "1",
        "cores": "2",
        "ostype": "l26",
        "scsihw": "virtio-scsi-single",
        "memory": "1024",
        "tags": "tenant_acme;web",
        "scsi0": "local-lvm:10,ssd=1",
        "net0": "virtio,bridge=vmbr0,tag=7",
        "boot": "order=scsi0;net0",
        "smbios1": f"uuid={UUID}",
    }
    assert plan.before == {}
    assert plan.after["scsi0"] == {"storage": "local-lvm", "size": "10G", "ssd": True}
    assert plan.after["status"] == "stopped"


def test_a_started_vm_is_started_last() -> None:
    steps = created(state="started", tenant="acme", description="A web server").steps
    assert [step.action for step in steps] == ["create", "start", "config"]
    notes = split_notes(steps[0].data["description"])
    assert notes == ("A web server", Marker(run="r1", tenant="tenant_acme"))
    assert steps[2].data == {"description": "A web server"}


def test_a_vm_that_one_request_makes_needs_no_marker() -> None:
    steps = created(description="A web server").steps
    assert [step.action for step in steps] == ["create"]
    assert steps[0].data["description"] == "A web server"


@pytest.mark.parametrize("make", [created, cloned])
@pytest.mark.parametrize("options", [{}, {"pool": "acme"}, {"state": "started"}], ids=str)
def test_the_last_step_of_a_contested_vm_removes_its_marker_and_does_nothing_else(
    make: Callable[..., Plan], options: dict[str, Any]
) -> None:
    """Its quota and its place are checked before that step, when it has its tags."""
    plan = make(tenant="acme", contested=True, **options)
    assert split_notes(plan.steps[0].data["description"])[1].run == "r1"
    *others, last = plan.steps
    assert writes_notes_only(last)
    assert not any(map(writes_notes_only, others))
    if make is cloned:
        assert split_notes(last.data["description"]) == ("Debian 13", Marker(origin=9000))
    else:
        assert last.data == {"delete": "description"}
    assert any("tenant_acme" in str(step.data.get("tags")) for step in others)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"cores": 8, "ostype": "windows"}, {"cores": "8", "ostype": "win11"}),
        (
            {"bios": "uefi"},
            {"bios": "ovmf", "efidisk0": "local-lvm:1,efitype=4m,pre-enrolled-keys=1"},
        ),
        (
            {"bios": "uefi", "disks": [{"size": 9, "storage": "ceph"}]},
            {"efidisk0": "ceph:1,efitype=4m,pre-enrolled-keys=1"},
        ),
        (
            {"disks": [{"import_from": "local:import/x.qcow2", "storage": "ceph"}]},
            {"scsi0": "ceph:0,import-from=local:import/x.qcow2"},
        ),
        (
            {"disks": [{"size": 4, "format": "qcow2", "storage": "nas"}]},
            {"scsi0": "nas:4,format=qcow2"},
        ),
        (
            {"disks": [{"size": 4}, {"size": 5, "bus": "virtio"}, {"size": 6}]},
            {"scsi0": "local-lvm:4", "virtio0": "local-lvm:5", "scsi1": "local-lvm:6"},
        ),
        (
            {"disks": [{"size": 4, "storage": "ceph"}], "cloud_init": {"user": "ops"}},
            {"ide2": "ceph:cloudinit"},
        ),
        ({"cloud_init": {"drive": "scsi1", "storage": "nas"}}, {"scsi1": "nas:cloudinit"}),
        (
            {"nics": [{"network": "dmz"}, {"network": "mgmt"}, {"bridge": "br9"}]},
            {
                "net0": "virtio,bridge=vmbr1",
                "net1": "virtio,bridge=vmbr2",
                "net2": "virtio,bridge=br9",
            },
        ),
    ],
    ids=str,
)
def test_what_a_new_vm_is_created_with(options: dict[str, Any], expected: dict[str, str]) -> None:
    data = created(**options).steps[0].data
    assert {key: data.get(key) for key in expected} == expected


def test_a_clone_is_cloned_configured_grown_and_started() -> None:
    plan = cloned(tenant="acme", cores=4, disks=[{"size": 20}], state="started", pool="acme")
    assert [step.action for step in plan.steps] == ["clone", "config", "resize", "start", "config"]
    assert "description" not in plan.steps[1].data
    data = dict(plan.steps[0].data)
    assert split_notes(data.pop("description")) == (
        "Debian 13",
        Marker(origin=9000, run="r1", tenant="tenant_acme", inherited_tags=("linux",)),
    )
    assert data == {"newid": 10000, "full": 0, "name": "web1", "pool": "acme"}
    assert plan.steps[1].data["tags"] == "tenant_acme"
    assert split_notes(plan.steps[4].data["description"]) == ("Debian 13", Marker(origin=9000))
    assert plan.after["description"] == "Debian 13"
    assert plan.after["net0"] == {"model": "virtio", "bridge": "vmbr0"}
    assert plan.after["scsi0"] == {"storage": "ceph", "size": "20G"}


def test_a_clone_from_shared_storage_is_made_on_its_node() -> None:
    plan = cloned(node="pve2")
    assert plan.steps[0].data["target"] == "pve2"
    assert plan.after["node"] == "pve2"
    assert not any(step.action == "migrate" for step in plan.steps)


def test_a_clone_with_local_disks_is_made_beside_its_template_and_moved_after() -> None:
    plan = cloned(node="pve2", shared=(), state="started")
    assert "target" not in plan.steps[0].data
    assert [step.action for step in plan.steps] == ["clone", "config", "migrate", "start", "config"]
    assert plan.steps[1].data["delete"] == "tags"
    assert plan.steps[4].summary == "Remove the creation marker from VM 'web1' (10000) on node pve2"


def test_a_full_clone_goes_to_the_storage_that_is_asked_for() -> None:
    plan = cloned(full=True, disks=[{"name": "scsi0", "storage": "local-lvm"}])
    assert plan.steps[0].data["storage"] == "local-lvm"
    assert plan.steps[0].data["full"] == 1
    assert not any(step.action == "move_disk" for step in plan.steps)


def test_a_clone_never_keeps_the_tenant_of_its_template() -> None:
    source = template()
    source.live["tags"] = source.target["tags"] = "linux;tenant_shared"  # type: ignore[index]
    intent = new_vm(desired_vm(tenant="acme"), Source(source, full=False))
    plan = plan_creation(VM_PLANNER, intent, shared={"ceph"})
    assert plan.after["tags"] == ["tenant_acme"]


@pytest.mark.parametrize(
    ("kind", "volume", "options", "reason"),
    [
        ("rbd", "ceph:base-9000-disk-0", {}, None),
        ("lvmthin", "ceph:base-9000-disk-0", {}, None),
        ("dir", "ceph:9000/base-9000-disk-0.qcow2", {}, None),
        ("dir", "ceph:9000/base-9000-disk-0.raw", {}, None),
        ("lvm", "ceph:base-9000-disk-0", {}, "no linked clones"),
        (
            "rbd",
            "ceph:base-9000-disk-0",
            {"disks": [{"name": "scsi0", "storage": "nas"}]},
            "would be on storage nas",
        ),
    ],
)
def test_what_can_be_cloned_linked(
    kind: str, volume: str, options: dict[str, Any], reason: str | None
) -> None:
    source = template()
    source.target["scsi0"] = f"{volume},size=3G"  # type: ignore[index]
    row = StorageRow("ceph", "pve1", True, True, kind, frozenset(["images"]), 0, 1)
    picture = ClusterState({}, {}, (row,), frozenset(), frozenset())
    found = why_not_linked(desired_vm(**options), source, picture)
    assert (found is None) if reason is None else (reason in (found or ""))


@pytest.mark.parametrize("notes", ["", "one line", "two\nlines", "<!-- mine -->", "ends\n\n"])
def test_notes_and_marker_come_apart_again(notes: str) -> None:
    marker = Marker(origin=9000, run="abc", tenant="tenant_a-b.c+1")
    assert split_notes(join_notes(notes.rstrip("\n"), marker)) == (notes.rstrip("\n"), marker)
    assert split_notes(notes) == (notes.rstrip("\n"), Marker())
