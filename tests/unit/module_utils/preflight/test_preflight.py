# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which privileges tasks need, and how the checks read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.cluster.state import (
    cluster_state_of,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.preflight_info import (
    preflight_info_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.spec.generated.tenant import (
    tenant_spec,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.generated.tasks import (
    MODULES,
    TASKS,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.needs.needs import (
    OPERATIONS,
    PrivilegeCheck,
    TaskObjects,
    holds,
    operation_questions,
    questions,
)
from ansible_collections.pve.fleet.plugins.module_utils._tenants.preflight.checks import (
    bridge_rows,
    node_rows,
    privilege_rows,
    quorum_row,
    storage_rows,
    table,
    version_row,
)


def test_every_operation_of_a_tenant_can_be_checked() -> None:
    for spec in (tenant_spec(), preflight_info_spec()):
        assert tuple(spec["operations"]["choices"]) == tuple(OPERATIONS)
    own = TaskObjects(pool="acme", storages=("ceph",), image_storages=("local",))
    for operation in OPERATIONS:
        paths = {one.path for one in operation_questions([operation], own, (9, 2))}
        assert paths
        assert paths <= {"/pool/acme", "/storage/ceph", "/storage/local"}


# The calls that the tasks make: PVE's own permission check of each must be among what we look for.
CALLS: list[tuple[str, str, str]] = [
    ("vm_info", "GET", "/nodes/{node}/qemu/{vmid}/config"),
    ("vm_info", "GET", "/nodes/{node}/qemu/{vmid}/status/current"),
    ("vm_power", "POST", "/nodes/{node}/qemu/{vmid}/status/start"),
    ("vm_power", "POST", "/nodes/{node}/qemu/{vmid}/status/shutdown"),
    ("vm_delete", "DELETE", "/nodes/{node}/qemu/{vmid}"),
    ("vm_update", "PUT", "/nodes/{node}/qemu/{vmid}/config"),
    ("vm_update", "PUT", "/nodes/{node}/qemu/{vmid}/cloudinit"),
    ("vm_disks", "PUT", "/nodes/{node}/qemu/{vmid}/resize"),
    ("vm_disks", "POST", "/nodes/{node}/qemu/{vmid}/move_disk"),
    ("vm_migrate", "POST", "/nodes/{node}/qemu/{vmid}/migrate"),
    ("vm_template", "POST", "/nodes/{node}/qemu/{vmid}/template"),
    ("vm_agent", "GET", "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces"),
    ("vm_console", "POST", "/nodes/{node}/qemu/{vmid}/vncproxy"),
    ("snapshot", "GET", "/nodes/{node}/qemu/{vmid}/snapshot"),
    ("snapshot", "GET", "/nodes/{node}/qemu/{vmid}/feature"),
    ("snapshot", "POST", "/nodes/{node}/qemu/{vmid}/snapshot"),
    ("snapshot", "DELETE", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}"),
    ("rollback", "POST", "/nodes/{node}/qemu/{vmid}/snapshot/{snapname}/rollback"),
    ("image_upload", "POST", "/nodes/{node}/storage/{storage}/upload"),
    ("node_info", "GET", "/nodes/{node}/status"),
    ("cluster_info", "GET", "/cluster/status"),
    ("cluster_info", "GET", "/cluster/ha/status/current"),
    ("network", "POST", "/nodes/{node}/network"),
    ("network", "PUT", "/nodes/{node}/network"),
    ("storage", "POST", "/storage"),
    ("pool", "POST", "/pools"),
    ("ha", "POST", "/cluster/ha/resources"),
    ("group", "POST", "/access/groups"),
    ("group", "DELETE", "/access/groups/{groupid}"),
    ("group_info", "GET", "/access/groups/{groupid}"),
    ("role", "PUT", "/access/roles/{roleid}"),
    ("tenant", "POST", "/access/roles"),
    ("tenant", "PUT", "/cluster/options"),
]
# The same for containers; only the complete schema of 9.2 has their calls.
CONTAINER_CALLS: list[tuple[str, str, str]] = [
    ("container_clone", "POST", "/nodes/{node}/lxc/{vmid}/clone"),
    ("container_create", "GET", "/nodes/{node}/storage/{storage}/content"),
    ("container_update", "PUT", "/nodes/{node}/lxc/{vmid}/config"),
    ("vm_disks", "PUT", "/nodes/{node}/lxc/{vmid}/resize"),
    ("vm_disks", "POST", "/nodes/{node}/lxc/{vmid}/move_volume"),
    ("vm_power", "POST", "/nodes/{node}/lxc/{vmid}/status/start"),
    ("vm_delete", "DELETE", "/nodes/{node}/lxc/{vmid}"),
    ("vm_migrate", "POST", "/nodes/{node}/lxc/{vmid}/migrate"),
    ("vm_template", "POST", "/nodes/{node}/lxc/{vmid}/template"),
    ("snapshot", "POST", "/nodes/{node}/lxc/{vmid}/snapshot"),
    ("rollback", "POST", "/nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback"),
]
SUBJECTS = TaskObjects(
    vms=(100,),
    templates=(9000,),
    storages=("ceph",),
    image_storages=("local",),
    template_storages=("local",),
    bridges=("vmbr0",),
    nodes=("pve1",),
    pool="acme",
)
PLACES = {"{vmid}": "100", "{node}": "pve1", "{storage}": "local", "{poolid}": "acme"}


@pytest.mark.parametrize("version", [(8, 4), (9, 2)], ids=str)
@pytest.mark.parametrize(("task", "method", "path"), CALLS, ids=str)
def test_the_table_agrees_with_the_schema(
    shared: Path, task: str, method: str, path: str, version: tuple[int, int]
) -> None:
    rule = _schema(shared, f"{version[0]}.{version[1]}")["paths"][path][method]["perm"]
    require_agreement(rule, task, version)


@pytest.mark.parametrize(("task", "method", "path"), CONTAINER_CALLS, ids=str)
def test_the_table_agrees_with_the_schema_of_containers(
    shared: Path, task: str, method: str, path: str
) -> None:
    rule = _schema(shared, "9.2-full")["paths"][path][method]["perm"]
    if rule[0] == "and":  # of a clone, the first part is about its source
        where = SUBJECTS.templates
        assert rule[1] == ["perm", "/vms/{vmid}", ["VM.Clone"]]
        assert (f"/vms/{where[0]}", "VM.Clone", False) in asked(task, SUBJECTS)
        return
    require_agreement(rule, task, (9, 2))


def require_agreement(rule: list[Any], task: str, version: tuple[int, int]) -> None:
    """Check that preflight asks for the privileges of PVE's own check of a call."""
    assert rule[0] == "perm"
    where = rule[1]
    for place, value in PLACES.items():
        where = where.replace(place, value)
    asked_there = [
        question for question in questions([task], SUBJECTS, version) if question.path == where
    ]
    looked = {name for question in asked_there for name in question.privileges}
    if "any" in rule:
        assert looked & set(rule[2])
    else:
        assert set(rule[2]) <= looked


_SCHEMAS: dict[str, Any] = {}


def _schema(shared: Path, name: str) -> Any:
    if name not in _SCHEMAS:
        _SCHEMAS[name] = json.loads((shared / "pve" / f"schema-{name}.json").read_text())
    return _SCHEMAS[name]


TASK_NAMES = preflight_info_spec()["tasks"]["choices"]


def test_the_options_are_the_table() -> None:
    assert sorted({*TASKS, *MODULES}) == TASK_NAMES


def test_every_module_has_its_name(repo: Path) -> None:
    modules = {
        file.stem for file in (repo / "plugins" / "modules").glob("*.py") if file.stem != "__init__"
    }
    assert modules - {"preflight_info"} <= set(TASK_NAMES)
    for tasks in MODULES.values():
        assert set(tasks) <= set(TASKS)
    named = questions(["clone", "vm_power"], TaskObjects(), (9, 2))
    assert named == questions(
        ["vm_clone", "vm_update", "vm_disks", "vm_power"], TaskObjects(), (9, 2)
    )


def asked(
    task: str, subjects: TaskObjects, version: tuple[int, int] = (9, 2)
) -> set[tuple[str, str, bool]]:
    found = questions([task], subjects, version)
    return {(question.path, "|".join(question.privileges), question.below) for question in found}


def test_what_is_named_is_asked_and_else_what_stands_for_it() -> None:
    assert asked("snapshot", TaskObjects(vms=(100, 101))) == {
        (f"/vms/{vmid}", name, False) for vmid in (100, 101) for name in ("VM.Audit", "VM.Snapshot")
    }
    assert ("/vms", "VM.Snapshot", True) in asked("snapshot", TaskObjects())
    assert ("/pool/acme", "VM.Snapshot", False) in asked("snapshot", TaskObjects(pool="acme"))
    create = asked(
        "vm_create", TaskObjects(vms=(100,), pool="acme", storages=("ceph",), bridges=("vmbr0",))
    )
    assert ("/pool/acme", "VM.Allocate", False) in create
    assert ("/storage/ceph", "Datastore.AllocateSpace", False) in create
    assert ("/sdn/zones/localnetwork/vmbr0", "SDN.Use", False) in create
    assert ("/sdn/zones/localnetwork", "SDN.Use", True) in asked("vm_create", TaskObjects())
    own = asked("vm_create", TaskObjects(bridges=("front", "vmbr0"), zones={"front": "tenants"}))
    assert ("/sdn/zones/tenants/front", "SDN.Use", False) in own
    assert ("/sdn/zones/localnetwork/vmbr0", "SDN.Use", False) in own


def test_privileges_depend_on_the_version() -> None:
    assert asked("vm_agent", TaskObjects(vms=(100,)), (8, 4)) == {("/vms/100", "VM.Monitor", False)}
    assert asked("vm_agent", TaskObjects(vms=(100,)), (9, 0)) == {
        ("/vms/100", "VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted", False)
    }


def test_what_the_server_checks_beyond_the_schema_is_asked() -> None:
    """Source: qemu-server, API2/Qemu.pm, check_vm_modify_config_perm (startup) and
    check_vm_create_hostpci_perm.
    """
    assert ("/", "Sys.Modify", False) in asked("vm_startup", TaskObjects(vms=(100,)))
    assert ("/vms/100", "VM.Config.Options", False) in asked("vm_startup", TaskObjects(vms=(100,)))
    assert ("/mapping", "Mapping.Use", True) in asked("vm_mapping", TaskObjects(vms=(100,)))
    assert ("/vms/100", "VM.Config.HWType", False) in asked("vm_mapping", TaskObjects(vms=(100,)))


def test_a_privilege_is_asked_once_for_several_tasks() -> None:
    found = questions(["snapshot", "vm_power", "snapshot"], TaskObjects(vms=(100,)), (9, 2))
    (audit,) = [question for question in found if question.privileges == ("VM.Audit",)]
    assert audit.tasks == ("snapshot", "vm_power")


HOLDS: list[tuple[PrivilegeCheck, dict[str, int | None] | None, bool]] = [
    (PrivilegeCheck("/vms/1", ("A",), False, False, ()), {"A": 0}, True),
    (PrivilegeCheck("/vms", ("A",), False, True, ()), {"A": 0}, False),
    (PrivilegeCheck("/vms", ("A",), False, True, ()), {"A": 1}, True),
    (PrivilegeCheck("/vms/1", ("A",), False, False, ()), {"A": None}, False),
    (PrivilegeCheck("/vms/1", ("A", "B"), True, False, ()), {"B": 1}, True),
    (PrivilegeCheck("/vms/1", ("A",), False, False, ()), None, False),
    (PrivilegeCheck("/vms/1", ("A",), False, False, (), ("X", "Y")), {}, True),
    (PrivilegeCheck("/vms/1", ("A",), False, False, (), ("X", "Z")), {}, False),
]


@pytest.mark.parametrize(("question", "held", "wanted"), HOLDS)
def test_what_is_held(
    question: PrivilegeCheck, held: dict[str, int | None] | None, wanted: bool
) -> None:
    assert holds(question, held, {"X": 0, "Y": 1}) is wanted


def test_a_missing_privilege_is_reported_with_its_path() -> None:
    question = PrivilegeCheck("/vms/9000", ("VM.Clone",), False, False, ("vm_clone",))
    (row,) = privilege_rows("ops@pve!auto", [question], {"/vms/9000": {}}, {})
    assert row["status"] == "fail"
    assert row["detail"].startswith("ops@pve!auto lacks VM.Clone on /vms/9000")
    assert "role with VM.Clone on /vms/9000" in row["next_step"]
    (row,) = privilege_rows("ops@pve!auto", [question], {}, {"/vms/9000": "it did not answer"})
    assert row["status"] == "unknown"


PICTURE = cluster_state_of(
    [{"type": "node", "node": node, "status": "online"} for node in ("pve1", "pve2")]
    + [
        {
            "type": "storage",
            "storage": "ceph",
            "node": "pve1",
            "status": "available",
            "content": "images,rootdir",
        },
        {
            "type": "storage",
            "storage": "ceph",
            "node": "pve2",
            "status": "unknown",
            "content": "images,rootdir",
        },
    ],
    (),
)

STORAGES: list[tuple[dict[str, Any], list[str], str]] = [
    ({"name": "ceph"}, [], "pass"),
    ({"name": "ceph"}, ["pve1"], "pass"),
    ({"name": "ceph"}, ["pve1", "pve2"], "fail"),
    ({"name": "ceph", "node": "pve1"}, ["pve2"], "pass"),
    ({"name": "ceph", "content": "iso"}, [], "fail"),
    ({"name": "nosuch"}, [], "fail"),
]


@pytest.mark.parametrize(("storage", "nodes", "status"), STORAGES, ids=str)
def test_storages(storage: dict[str, Any], nodes: list[str], status: str) -> None:
    (row,) = storage_rows(PICTURE, [storage], nodes)
    assert row["status"] == status, row


def test_rows_and_their_table() -> None:
    rows = [
        version_row("9.2.11", (9, 2), "8.1"),
        version_row("7.4-3", (7, 4), "8.0"),
        quorum_row(False, ""),
        quorum_row(None, "may not"),
        *node_rows({"pve1": "online", "pve2": "offline"}, []),
        *node_rows({"pve1": "online", "pve2": "offline"}, ["pve2", "pve9"]),
        *bridge_rows({"pve1": {"vmbr0"}, "pve2": None}, ["vmbr0", "vmbr9"], {"pve2": "down"}),
    ]
    statuses = [row["status"] for row in rows]
    assert statuses == [
        "pass",
        "fail",
        "fail",
        "unknown",
        "pass",
        "fail",
        "fail",
        "fail",
        "pass",
        "unknown",
        "fail",
        "unknown",
    ]
    assert [row["required"] for row in rows[4:8]] == [False, False, True, True]
    lines = table(rows)
    assert lines[0].startswith("PASS  version")
    assert lines[5].startswith("warn  node")
    assert all(("->" in line) is (not line.startswith("PASS")) for line in lines)
    assert table([]) == []
