# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module preflight_info against the simulator: a table of checks, which hold true when the tasks
are then tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.modules.access_lab import ROOT, limited, refused
from tests.modules.backup_lab import add_nas
from tests.modules.container_lab import add_container
from tests.modules.estate_lab import Lab, open_lab
from tests.modules.module_runner import run_module
from tests.modules.snapshot_lab import check, machine, settle, take
from tests.modules.tenant_lab import made
from tests.modules.test_check_privileges import roles_with

STRANGER = {"token_id": "ops@pve!auto", "token_secret": "00000000-0000-4000-8000-0000000000f2"}
EVERYTHING: dict[str, Any] = {
    "templates": ["debian-13", "9001"],
    "nodes": ["pve1", "pve3"],
    "storages": [{"name": "ceph"}, {"name": "local", "content": "iso", "node": "pve1"}],
    "bridges": ["vmbr0", "vmbr1"],
    "pool": "acme",
}

MAPPED_CARD = "node=pve1,path=0000:01:00.0,id=10de:1eb8"


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with open_lab("--lag-s", "0", "--auth-delay-s", "0") as opened:
        yield opened


def preflight(lab: Lab, **options: Any) -> dict[str, Any]:
    return check(lab, "preflight_info", **options)


def statuses(result: dict[str, Any], name: str) -> dict[str, str]:
    return {row["subject"]: row["status"] for row in result["checks"] if row["check"] == name}


def test_everything_is_there_for_root(lab: Lab) -> None:
    tasks = [
        "vm_clone",
        "vm_power",
        "snapshot",
        "rollback",
        "image_download",
        "cluster_info",
        "tenant",
        "vm_agent",
    ]
    result = preflight(lab, tasks=tasks, vms=["debian-13"], **EVERYTHING)
    assert result["passed"], result["table"]
    assert result["failed_checks"] == []
    assert len(result["table"]) == len(result["checks"]) + 1  # the command for a role
    assert {row["status"] for row in result["checks"]} == {"pass"}
    assert statuses(result, "bridge")["vmbr1 on pve3"] == "pass"


@pytest.mark.parametrize("term", ["²", "9" * 5000], ids=["superscript", "endless"])
def test_a_vm_that_no_number_names_is_not_found(lab: Lab, term: str) -> None:
    result = preflight(lab, vms=[term], templates=[term])
    assert statuses(result, "vm") == {term: "fail"}
    assert statuses(result, "template") == {term: "fail"}


def test_nothing_named_is_a_look_at_the_cluster(lab: Lab) -> None:
    result = preflight(lab)
    assert result["passed"]
    assert [row["check"] for row in result["checks"]] == [
        "endpoint",
        "authentication",
        "version",
        "quorum",
        "node",
        "node",
        "node",
        "privilege",
    ]
    assert len(lab.simulator.log()) == 3


def test_what_is_missing_fails_with_a_next_step(lab: Lab) -> None:
    result = preflight(
        lab,
        templates=["nosuch", "7777"],
        vms=["missing"],
        nodes=["pve1", "pve9"],
        storages=[{"name": "ceph", "content": "iso"}, {"name": "nosuch"}],
        bridges=["vmbr77"],
        pool="nosuch",
        min_version="99.0",
    )
    assert not result["passed"]
    failed = {(row["check"], row["subject"]) for row in result["failed_checks"]}
    assert failed == {
        ("version", "Proxmox VE 9.2.11"),
        ("node", "pve9"),
        ("storage", "ceph (iso)"),
        ("storage", "nosuch (images)"),
        ("bridge", "vmbr77 on pve1"),
        ("template", "nosuch"),
        ("template", "7777"),
        ("vm", "missing"),
        ("pool", "nosuch"),
    }
    assert all(row["next_step"] for row in result["failed_checks"])


def test_privileges_of_a_tenants_token(lab: Lab) -> None:
    settle(lab)
    wanted = {
        "tasks": ["vm_clone", "snapshot"],
        "templates": ["9000"],
        "pool": "acme",
        "storages": [{"name": "ceph"}],
    }
    result = run_module("preflight_info", {**lab.connection, **STRANGER, **wanted})
    assert not result.get("failed"), result
    assert not result["passed"]
    shown = statuses(result, "privilege")
    assert shown["VM.Snapshot on /pool/acme"] == "pass"
    assert shown["VM.Allocate on /pool/acme"] == "pass"
    assert shown["Datastore.AllocateSpace on /storage/ceph"] == "fail"
    assert shown["VM.Clone on /vms/9000"] == "fail"  # which it may not even see
    assert statuses(result, "quorum")["cluster"] == "unknown"
    assert any(
        "ops@pve!auto lacks Datastore.AllocateSpace on /storage/ceph" in line
        for line in result["table"]
    )
    assert lab.simulator.writes() == []


def test_no_privilege_is_asked_on_what_was_named_and_not_found(lab: Lab) -> None:
    """That the caller lacks it everywhere, or must name what is meant, would be the wrong
    advice.
    """
    result = preflight(lab, tasks=["vm_clone", "snapshot"], templates=["nosuch"], vms=["missing"])
    assert {row["check"] for row in result["failed_checks"]} == {"template", "vm"}
    shown = statuses(result, "privilege")
    assert not any("VM.Clone" in subject or "VM.Snapshot" in subject for subject in shown)
    assert shown["VM.Allocate on /vms"] == "pass"  # on the new VM, which cannot be named


def test_operations_are_checked_with_the_token_of_the_tenant(lab: Lab) -> None:
    """On its pool and the named objects only: it has no rights on others."""
    login = made(lab, "hooli", operations=["read", "operate"])
    own = {"pool": "hooli", "storages": [{"name": "ceph"}], "nodes": ["pve1", "pve2"]}
    checked = run_module(
        "preflight_info", {**lab.connection, **login, **own, "operations": ["read", "operate"]}
    )
    assert checked["passed"], checked["table"]
    checked = run_module(
        "preflight_info", {**lab.connection, **login, **own, "operations": ["backup", "snapshot"]}
    )
    failed = {row["subject"] for row in checked["failed_checks"]}
    assert {"VM.Backup on /pool/hooli", "VM.Snapshot on /pool/hooli"} <= failed


PROOFS: list[tuple[str, str, dict[str, Any]]] = [
    ("PVEVMUser", "snapshot", {"snapshot": "s2"}),
    ("PVEVMAdmin", "snapshot", {"snapshot": "s2"}),
    ("PVEVMUser", "rollback", {"snapshot": "s1", "state": "rolled_back"}),
    ("PVEVMAdmin", "rollback", {"snapshot": "s1", "state": "rolled_back"}),
]


@pytest.mark.parametrize(("role", "task", "options"), PROOFS, ids=str)
def test_the_table_says_what_then_happens(
    lab: Lab, role: str, task: str, options: dict[str, Any]
) -> None:
    vm = machine(lab, running=True)
    take(lab, vm, "s1")
    grant = {"path": f"/vms/{vm['vmid']}", "users": "ops@pve", "roles": role}
    lab.client.write("PUT", "access", "acl", data=grant)
    result = run_module(
        "preflight_info", {**lab.connection, **STRANGER, "tasks": [task], "vms": [str(vm["vmid"])]}
    )
    done = run_module("snapshot", {**lab.connection, **STRANGER, "vmid": vm["vmid"], **options})
    assert result["passed"] is not bool(done.get("failed")), (result["table"], done)
    if not result["passed"]:
        assert done["error"]["category"] == "PermissionDenied"


# What a tenant's user holds who clones into a pool, by path; of the new VM's options it sets one of
# each kind.
HELD: dict[str, str] = {
    "/vms/9000": "VM.Clone VM.Audit",
    "/pool/globex": (
        "VM.Allocate VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Disk VM.Config.CDROM"
        " VM.Config.Network VM.Config.HWType VM.Config.Options VM.Config.Cloudinit VM.PowerMgmt"
        " Pool.Audit"
    ),
    "/storage/ceph": "Datastore.AllocateSpace Datastore.Audit",
    "/sdn/zones/localnetwork/vmbr0": "SDN.Use",
}
CLONE: dict[str, Any] = {
    "source": "9000",
    "pool": "globex",
    "node": "pve1",
    "cores": 3,
    "memory": "1G",
    "disks": [{"name": "scsi0", "size": "9G"}],
    "nics": [{"bridge": "vmbr0", "vlan": 7}],
    "cloud_init": {"user": "ops"},
    "vga": "std",
    "description": "x",
    "state": "started",
}
# What this clone can do without: it changes no CD drive, the network's privilege does for
# cloud-init too, and it names no storage that it would have to see.
UNUSED = {
    "VM.Config.CDROM on /pool/globex",
    "VM.Config.Cloudinit on /pool/globex",
    "Datastore.Audit on /storage/ceph",
}


# The same of a user who creates containers from the file of a template (pve-container: API2/LXC.pm,
# create_vm; LXC.pm, check_ct_modify_config_perm; pve-storage: Storage.pm, check_volume_access).
HELD_FOR_CONTAINERS: dict[str, str] = {
    "/storage/local": "Datastore.Audit",
    "/pool/globex": (
        "VM.Allocate VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Disk VM.Config.Network"
        " VM.Config.Options VM.PowerMgmt Pool.Audit"
    ),
    "/storage/ceph": "Datastore.AllocateSpace Datastore.Audit",
    "/sdn/zones/localnetwork/vmbr0": "SDN.Use",
}
DEBIAN = "debian-13-standard"
CONTAINER: dict[str, Any] = {
    "source": DEBIAN,
    "pool": "globex",
    "node": "pve1",
    "cores": 1,
    "memory": "1G",
    "rootfs": {"storage": "ceph", "size": "4G"},
    "nics": [{"bridge": "vmbr0"}],
    "tty": 3,
    "state": "started",
}


def user_without(
    lab: Lab, number: int, all_held: dict[str, str], missing: tuple[str, str] | None
) -> dict[str, Any]:
    """Make a user who holds all of it but one privilege on one path; return its connection."""
    user = f"clone{number}@pve"
    lab.client.write("POST", "access", "users", data={"userid": user})
    for place, (path, held) in enumerate(all_held.items()):
        privileges = [one for one in held.split() if (path, one) != missing]
        if privileges:
            role = f"Clone{number}x{place}"
            lab.client.write(
                "POST", "access", "roles", data={"roleid": role, "privs": ",".join(privileges)}
            )
            lab.client.write(
                "PUT", "access", "acl", data={"path": path, "users": user, "roles": role}
            )
    made = lab.client.write("POST", "access", "users", user, "token", "auto", data={"privsep": 0})
    return {**lab.connection, "token_id": made["full-tokenid"], "token_secret": made["value"]}


@pytest.mark.parametrize(
    ("module", "options", "held", "template", "unused"),
    [
        ("clone", CLONE, HELD, "9000", UNUSED),
        ("container", CONTAINER, HELD_FOR_CONTAINERS, DEBIAN, set()),
    ],
    ids=["clone", "container"],
)
def test_every_privilege_that_a_new_guest_needs_is_foreseen(
    lab: Lab,
    module: str,
    options: dict[str, Any],
    held: dict[str, str],
    template: str,
    unused: set[str],
) -> None:
    """One privilege less, and both say so: the table before, and the task itself."""
    lab.simulator.reset()
    tasks = {"clone": ["vm_clone", "vm_power"], "container": ["container_create", "vm_power"]}
    content = {"clone": "images", "container": "rootdir"}[module]
    wanted: dict[str, Any] = {
        "tasks": tasks[module],
        "templates": [template],
        "pool": "globex",
        "nodes": ["pve1"],
        "storages": [{"name": "ceph", "content": content}],
        "bridges": ["vmbr0"],
    }
    everything = [(path, one) for path, text in held.items() for one in text.split()]
    said: dict[str, tuple[bool, bool]] = {}
    for number, missing in enumerate([None, *everything]):
        connection = user_without(lab, number, held, missing)
        result = run_module("preflight_info", {**connection, **wanted})
        done = run_module(
            module, {**connection, **options, "name": f"rights{number}", "vmid": 30000 + number}
        )
        said[" on ".join(reversed(missing)) if missing else "all"] = (
            result["passed"],
            not done.get("failed"),
        )
    assert said.pop("all") == (True, True)
    assert {which for which, (passed, _done) in said.items() if passed} == set()
    assert {which for which, (_passed, done) in said.items() if done} == unused


def test_right_on_a_vnet_is_one_in_its_zone(lab: Lab) -> None:
    """PVE checks SDN.Use on /sdn/zones/ZONE/VNET (pve-guest-common: PVE/GuestHelpers.pm,
    check_vnet_access).
    """
    lab.simulator.reset()
    lab.run("sdn", zones=[{"name": "tenants", "type": "vlan", "bridge": "vmbr0"}])
    lab.run("sdn", vnets=[{"name": "front", "zone": "tenants", "tag": 100}])
    wanted = {"tasks": ["vm_create"], "bridges": ["front"], "nodes": ["pve1"]}
    found: list[dict[str, str]] = []
    for number, zone in enumerate(("tenants", "localnetwork")):
        held = {"/vms": HELD["/pool/globex"], f"/sdn/zones/{zone}/front": "SDN.Use SDN.Audit"}
        connection = user_without(lab, number, held, None)
        rows = run_module("preflight_info", {**connection, **wanted})["checks"]
        about = {row["subject"]: row["status"] for row in rows if "front" in row["subject"]}
        found.append(about)
    assert found == [
        {"front on pve1": "pass", "SDN.Use on /sdn/zones/tenants/front": "pass"},
        {"front on pve1": "fail", "SDN.Use on /sdn/zones/localnetwork/front": "pass"},
    ]


FILE = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"


def templates_of(result: dict[str, Any]) -> dict[str, tuple[str, str]]:
    rows = [row for row in result["checks"] if row["check"] == "template"]
    return {row["subject"]: (row["status"], row["detail"]) for row in rows}


def test_files_of_container_templates_are_found_by_name_and_by_volume(lab: Lab) -> None:
    lab.simulator.reset()
    names = [DEBIAN, FILE, "debian-13", "ubuntu-99"]
    result = preflight(lab, tasks=["container"], templates=names, nodes=["pve1"])
    rows = templates_of(result)
    assert rows[DEBIAN] == rows[FILE]
    assert rows[FILE][0] == "pass"
    assert rows[FILE][1].startswith(f"{FILE} on pve1")
    assert rows["debian-13"] == ("pass", "VM 9000 on pve1")
    assert rows["ubuntu-99"][0] == "fail"
    assert FILE.partition("/")[2] in rows["ubuntu-99"][1]
    shown = statuses(result, "privilege")
    assert shown["Datastore.Audit or Datastore.AllocateSpace on /storage/local"] == "pass"
    # Tasks on VMs use no files of container templates, and read no storage for them.
    lab.simulator.reset_log()
    assert templates_of(preflight(lab, tasks=["vm_clone"], templates=[DEBIAN]))[DEBIAN][0] == "fail"
    assert not [entry for entry in lab.simulator.log() if "/content" in entry["path"]]


def test_file_that_a_named_node_lacks_fails(lab: Lab) -> None:
    lab.simulator.reset()
    lab.client.task("DELETE", "nodes", "pve2", "storage", "local", "content", FILE)
    options: dict[str, Any] = {"tasks": ["container_create"], "templates": [DEBIAN]}
    result = preflight(lab, **options, nodes=["pve1", "pve2"])
    (row,) = result["failed_checks"]
    assert row["subject"] == DEBIAN
    assert "Download it to pve2 too" in row["next_step"]
    assert preflight(lab, **options, nodes=["pve1"])["passed"]


def test_containers_are_found_as_vms_are(lab: Lab) -> None:
    lab.simulator.reset()
    add_container(lab, 700, hostname="ct1")
    add_container(lab, 701, hostname="golden", template=1)
    result = preflight(
        lab,
        tasks=["container_clone", "container_update"],
        vms=["ct1"],
        templates=["golden"],
        storages=[{"name": "ceph", "content": "rootdir"}, {"name": "local", "content": "vztmpl"}],
    )
    assert result["passed"], result["table"]
    assert statuses(result, "storage") == {"ceph (rootdir)": "pass", "local (vztmpl)": "pass"}
    assert templates_of(result)["golden"] == ("pass", "container 701 on pve1")
    shown = statuses(result, "privilege")
    assert shown["VM.Clone on /vms/701"] == shown["VM.Config.CPU on /vms/700"] == "pass"
    wrong = preflight(lab, storages=[{"name": "ceph", "content": "vztmpl"}])
    assert statuses(wrong, "storage") == {"ceph (vztmpl)": "fail"}


def test_no_quorum_fails(lab: Lab) -> None:
    lab.simulator.steer("/cluster", {"quorate": False})
    try:
        result = preflight(lab)
    finally:
        lab.simulator.steer("/cluster", {"quorate": True})
    assert [row["check"] for row in result["failed_checks"]] == ["quorum"]


def test_a_node_that_is_down_counts_only_when_it_is_named(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve3", {"online": False})
    try:
        whole = preflight(lab, bridges=["vmbr0"])
        named = preflight(lab, nodes=["pve3"], bridges=["vmbr0"])
    finally:
        lab.simulator.steer("/nodes/pve3", {"online": True})
    assert whole["passed"]
    assert statuses(whole, "node")["pve3"] == "fail"
    assert [row["subject"] for row in named["failed_checks"]] == ["pve3"]


def test_a_node_in_maintenance_is_reported_and_does_not_count(lab: Lab) -> None:
    lab.simulator.steer("/nodes/pve3", {"maintenance": True})
    try:
        result = preflight(lab, nodes=["pve1", "pve3"])
    finally:
        lab.simulator.steer("/nodes/pve3", {"maintenance": False})
    assert result["passed"]
    (row,) = [one for one in result["checks"] if one["subject"] == "pve3"]
    assert (row["status"], row["required"], row["detail"]) == (
        "fail",
        False,
        "online, in maintenance",
    )
    assert "node-maintenance disable pve3" in row["next_step"]
    assert any(line.startswith("warn  node") for line in result["table"])


UNREACHED: list[tuple[dict[str, Any], str, int]] = [
    ({"token_secret": "00000000-0000-4000-8000-00000000dead"}, "authentication", 3),
    ({"host": "127.0.0.1:9", "retries": 1}, "endpoint", 2),
]


@pytest.mark.parametrize(("options", "failed", "rows"), UNREACHED, ids=str)
def test_an_endpoint_that_cannot_be_used_is_a_row_too(
    lab: Lab, options: dict[str, Any], failed: str, rows: int
) -> None:
    result = run_module("preflight_info", {**lab.connection, **options, "tasks": ["snapshot"]})
    assert not result.get("failed"), result
    assert not result["passed"]
    assert [row["check"] for row in result["failed_checks"]] == [failed]
    assert result["failed_checks"][0]["next_step"]
    assert len(result["checks"]) == rows
    assert result["checks"][-1]["status"] == "skipped"


def test_a_cluster_that_does_not_tell_what_it_has(lab: Lab) -> None:
    lab.simulator.fault(
        method="GET", path="/cluster/resources", status=500, message="internal error", times=None
    )
    try:
        result = preflight(lab, storages=[{"name": "ceph"}])
    finally:
        lab.simulator.clear_faults()
    assert [row["check"] for row in result["failed_checks"]] == ["listing"]
    assert result["checks"][-1]["status"] == "skipped"


NIGHTLY = {"schedule": "02:30", "storage": "nas", "keep": {"keep_daily": 7}}
ESTATE: dict[str, Any] = {
    "tenant_settings": {"acme": {"backup": NIGHTLY}, "globex": {}},
    "classes": {"db": {"backup": {**NIGHTLY, "storage": "local"}}},
    "vms": [
        {"name": "web1", "tenant": "acme"},
        {"name": "db1", "tenant": "globex", "class": "db"},
        {"name": "own", "tenant": "globex", "backup": {**NIGHTLY, "storage": "ceph"}},
        {"name": "gone", "tenant": "acme", "state": "absent"},
    ],
    "containers": [{"name": "box", "tenant": "acme", "backup": {"schedule": ""}}],
}


def test_privileges_for_the_backup_jobs_of_an_estate_are_named(unused: Lab) -> None:
    """pve-manager: API2/Backup.pm, assert_param_permission_create and the checks of the methods."""
    add_nas(unused)
    root = preflight(unused, estate=ESTATE)
    assert statuses(root, "storage") == {
        "ceph (backup)": "fail",
        "local (backup)": "pass",
        "nas (backup)": "pass",
    }
    assert set(statuses(root, "privilege").values()) == {"pass"}
    login = limited(unused, "mary", {"/": "PVEAuditor", "/storage/nas": "PVEDatastoreAdmin"})
    rows = {row["subject"]: row for row in preflight(unused, estate=ESTATE, **login)["checks"]}
    assert rows["Datastore.Allocate on /storage/nas"]["status"] == "pass"
    assert (
        rows["Datastore.Allocate on /storage/nas"]["detail"] == "for the backup jobs of acme/web1"
    )
    lacking = rows["Datastore.Allocate on /storage/local"]
    who = login["token_id"]
    assert lacking["status"] == "fail"
    assert lacking["detail"] == (
        f"{who} lacks Datastore.Allocate on /storage/local, for the backup jobs of globex/db1"
    )
    everyone = rows["Sys.Modify on /"]
    assert everyone["status"] == "fail"
    assert everyone["detail"].endswith("of acme/web1, globex/db1, globex/own, acme/box")
    assert refused(unused, "vms", **ESTATE, **login)["error"]["category"]


def test_an_estate_that_leaves_its_jobs_to_others_needs_no_privileges_for_them(lab: Lab) -> None:
    estates: list[dict[str, Any]] = [
        {**ESTATE, "backup_jobs": False},
        {"vms": [{"name": "web1"}]},
        {},
    ]
    for estate in estates:
        result = preflight(lab, estate=estate)
        assert "Sys.Modify on /" not in statuses(result, "privilege")
        assert statuses(result, "storage") == {}


def test_a_mistake_in_the_estate_is_refused_before_any_request(lab: Lab) -> None:
    guests: list[dict[str, Any]] = [{"name": "x", "backup": {"schedule": "02:30"}}]
    estates: list[dict[str, Any]] = [{"vmss": []}, {"vms": guests}]
    for estate in estates:
        error = refused(lab, "preflight_info", estate=estate)
        assert "vmss" in error["msg"] or "backup.storage" in error["msg"]


def derived(lab: Lab, login: dict[str, Any] | None = None, **guest: Any) -> dict[str, Any]:
    """Return the checks of an estate with one VM."""
    vm = {"name": "web1", "source": "debian-13", "state": "started", **guest}
    return preflight(lab, estate={"vms": [vm]}, **(login or {}))


def test_an_estate_names_what_it_needs(lab: Lab) -> None:
    lab.client.write(
        "POST", "cluster", "mapping", "usb", data={"id": "key", "map": "node=pve1,id=1d6b:0002"}
    )
    result = derived(
        lab,
        node="pve1",
        pool="acme",
        full=True,
        disks=[{"name": "scsi0", "size": "40G", "storage": "ceph"}],
        nics=[{"name": "net0", "bridge": "vmbr0"}],
        options={"usb0": "mapping=key"},
    )
    assert result["passed"], result["table"]
    subjects = {(row["check"], row["subject"]) for row in result["checks"]}
    for expected in (
        ("template", "debian-13"),
        ("storage", "ceph (images)"),
        ("bridge", "vmbr0 on pve1"),
        ("pool", "acme"),
        ("node", "pve1"),
        ("device", "usb key"),
        ("privilege", "VM.Clone on /vms/9000"),
        ("privilege", "VM.Allocate on /pool/acme"),
        ("privilege", "VM.PowerMgmt on /pool/acme"),
        ("privilege", "Datastore.AllocateSpace on /storage/ceph"),
        ("privilege", "Datastore.Audit on /storage/ceph"),
        ("privilege", "SDN.Use on /sdn/zones/localnetwork/vmbr0"),
        ("privilege", "Mapping.Use on /mapping/usb/key"),
    ):
        assert expected in subjects, result["table"]
    assert result["role_command"].startswith('pveum role add FleetEstate --privs "')
    assert "VM.Clone" in result["role_command"]
    assert result["role_command"] in result["table"][-1]


@pytest.mark.parametrize(
    ("guest", "failed"),
    [
        ({"source": "debian-31"}, "template"),
        ({"disks": [{"name": "scsi0", "size": "40G", "storage": "cehp"}]}, "storage"),
        ({"nics": [{"name": "net0", "bridge": "vmbr77"}]}, "bridge"),
        ({"pool": "acmee"}, "pool"),
        ({"node": "pve77"}, "node"),
        ({"options": {"usb0": "mapping=kye"}}, "device"),
        ({"cpu": "custom-nosuch"}, "device"),
    ],
)
def test_an_estate_that_names_what_is_missing(lab: Lab, guest: dict[str, Any], failed: str) -> None:
    result = derived(lab, **guest)
    assert [row["check"] for row in result["failed_checks"]] == [failed], result["table"]


def test_privileges_that_an_estate_needs(lab: Lab) -> None:
    login = limited(lab, "estate-auditor", {"/": "PVEAuditor"})
    result = derived(lab, login, cpu="custom-big")
    lacking = {row["subject"] for row in result["failed_checks"] if row["check"] == "privilege"}
    assert {
        "VM.Clone on /vms/9000",
        "VM.Allocate on /vms",
        "Mapping.Use on /mapping/cpu/big",
    } <= lacking


@pytest.mark.parametrize(
    ("kind", "guest", "wanted"),
    [
        ("vms", {"options": {"startup": {"order": 3}}}, "Sys.Modify on /"),
        ("containers", {"startup": "order=3"}, ""),
        ("containers", {"unprivileged": False}, "Sys.Modify on /"),
        (
            "vms",
            {"nics": [{"name": "net0", "bridge": "vmbr0", "vlan": 7}]},
            "SDN.Use on /sdn/zones/localnetwork/vmbr0/7",
        ),
        ("vms", {"options": {"rng0": {"source": "/dev/hwrng"}}}, "Mapping.Use on /mapping/hwrng"),
    ],
)
def test_privileges_that_options_of_an_estate_need(
    lab: Lab, kind: str, guest: dict[str, Any], wanted: str
) -> None:
    """The start order of a VM changes its node (qemu-server: API2/Qemu.pm,
    check_vm_modify_config_perm); that of a container needs VM.Config.Options alone (pve-container:
    LXC.pm, check_ct_modify_config_perm).
    """
    source = "debian-13" if kind == "vms" else "debian-13-standard"
    result = preflight(lab, estate={kind: [{"name": "new1", "source": source, **guest}]})
    privileges = statuses(result, "privilege")
    if wanted:
        assert wanted in privileges
        assert wanted.partition(" ")[0] in result["role_command"].replace('"', " ").split()
    else:
        assert not any(subject.endswith("on /") for subject in privileges)


@pytest.mark.parametrize(
    ("options", "tag"),
    [
        ({"registered_tags": ["prod"]}, "prod"),
        ({"user_tag_access": {"user_allow": "list", "user_allow_list": ["db"]}}, "prod"),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", ["vms", "containers"])
def test_tags_that_the_datacenter_restricts(
    unused: Lab, kind: str, options: dict[str, Any], tag: str
) -> None:
    """Source: pve-guest-common, GuestHelpers.pm, assert_tag_permissions."""
    unused.run("cluster_options", **options)
    login = limited(unused, "most", {"/": roles_with(unused, "Sys.Modify")})
    guest: dict[str, Any] = {"name": "new1", "node": "pve1", "tags": [tag], "blank": True}
    if kind == "containers":
        guest = {"name": "new1", "node": "pve1", "tags": [tag], "source": "debian-13-standard"}
        guest["rootfs"] = {"storage": "ceph", "size": "1G"}
    estate: dict[str, Any] = {kind: [guest]}
    foreseen = unused.run("vms", check=True, **estate, **login)
    assert f"Sys.Modify for modifying tag '{tag}'" in foreseen["msg"]
    result = preflight(unused, estate=estate, **login)
    failed = [(row["subject"], row["detail"]) for row in result["failed_checks"]]
    assert [subject for subject, _detail in failed] == ["Sys.Modify on /"], result["table"]
    assert f"the tag {tag} of" in failed[0][1]
    assert "Sys.Modify" in preflight(unused, estate=estate)["role_command"]
    assert not unused.run("vms", **estate).get("failed")
    assert preflight(unused, estate=estate, **login)["passed"]  # it has the tag


ROOT_ONLY: list[tuple[str, dict[str, Any], str]] = [
    ("vms", {"options": {"args": "-S"}}, "args"),
    ("vms", {"options": {"usb0": "host=1d6b:0002"}}, "usb0"),
    ("vms", {"options": {"serial0": "/dev/ttyS0"}}, "serial0"),
    ("vms", {"options": {"hostpci0": {"host": "0000:01:00"}}}, "hostpci0"),
    ("vms", {"options": {"hostpci0": {"mapping": "gpu", "romfile": "a.rom"}}}, "hostpci0"),
    ("containers", {"mounts": [{"volume": "/srv", "path": "/srv"}]}, "mp0"),
    ("containers", {"features": {"keyctl": True}}, "features"),
    ("containers", {"devices": [{"path": "/dev/ttyS0"}]}, "dev0"),
]


@pytest.mark.parametrize(("kind", "options", "key"), ROOT_ONLY, ids=str)
def test_options_that_only_root_may_set(
    unused: Lab, kind: str, options: dict[str, Any], key: str
) -> None:
    """Source: qemu-server, API2/Qemu.pm, check_vm_modify_config_perm; pve-container, LXC.pm,
    check_ct_modify_config_perm.
    """
    unused.client.write("POST", "cluster", "mapping", "pci", data={"id": "gpu", "map": MAPPED_CARD})
    login = limited(unused, "all", {"/": "Administrator"})
    guest: dict[str, Any] = {"name": "new1", "node": "pve1", **options, "blank": True}
    if kind == "containers":
        del guest["blank"]
        guest["source"] = "debian-13-standard"
        guest["rootfs"] = {"storage": "local-lvm", "size": "1G"}
    estate: dict[str, Any] = {kind: [guest]}
    foreseen = unused.run("vms", check=True, **estate, **login)
    result = preflight(unused, estate=estate, **login)
    (failed,) = result["failed_checks"]
    assert (failed["check"], failed["subject"].split()[0]) == ("root", key)
    assert failed["detail"] in foreseen["msg"]
    assert "root@pam" in failed["next_step"]
    assert unused.run("preflight_info", estate=estate, **ROOT)["passed"]


def test_options_of_root_at_a_guest_that_exists(unused: Lab) -> None:
    """A guest that has them keeps them, whoever runs the estate."""
    vm = {"name": "new1", "node": "pve1", "blank": True, "options": {"args": "-S"}}
    estate: dict[str, Any] = {"vms": [vm]}
    unused.run("vms", **estate, **ROOT)
    login = limited(unused, "all", {"/": "Administrator"})
    assert not unused.run("vms", **estate, **login)["changed"]
    result = preflight(unused, estate=estate, **login)
    assert result["passed"], result["table"]
    assert statuses(result, "root") == {"args of new1": "fail"}


def test_a_check_without_privileges_says_so(lab: Lab) -> None:
    result = preflight(lab)
    (row,) = [row for row in result["checks"] if row["check"] == "privilege"]
    assert (row["status"], row["required"]) == ("unknown", False)
    assert row["detail"] == "none was checked"
    assert "Set tasks, or give the estate" in row["next_step"]
    assert result["role_command"] == ""


def test_operations_without_objects_name_the_missing_options(lab: Lab) -> None:
    result = preflight(lab, operations=["snapshot"])
    (row,) = [row for row in result["checks"] if row["check"] == "privilege"]
    assert (row["status"], row["detail"]) == ("unknown", "none was checked for snapshot")
    assert row["next_step"].startswith("Set pool or vms")
    for objects in ({"pool": "acme"}, {"vms": ["9000"]}):
        checked = preflight(lab, operations=["snapshot"], **objects)
        assert any("VM.Snapshot" in subject for subject in statuses(checked, "privilege"))


def test_files_of_an_estate_are_checked_on_their_storages(lab: Lab) -> None:
    """An ISO image needs a right to read; a snippet only its storage (Storage.pm,
    check_volume_access).
    """
    files: dict[str, Any] = {
        "disks": [{"name": "ide2", "iso": "local:iso/debian-13-netinst.iso"}],
        "options": {"cicustom": "user=local:snippets/user.yml"},
    }
    result = derived(lab, **files)
    assert statuses(result, "storage") == {"local (iso)": "pass", "local (snippets)": "pass"}
    login = limited(lab, "estate-reader", {"/vms": "PVEVMAdmin"})
    result = derived(lab, login, **files)
    lacking = {row["subject"] for row in result["failed_checks"] if row["check"] == "privilege"}
    assert "Datastore.Audit or Datastore.AllocateSpace on /storage/local" in lacking


def test_a_container_of_an_estate_may_be_a_clone(lab: Lab) -> None:
    data = {"node": "pve1", "config": {"hostname": "ct-base", "template": 1}}
    lab.simulator.ask("POST", "/containers/9010", data)
    cloned, unpacked = (
        statuses(
            preflight(lab, estate={"containers": [{"name": "ct1", "source": source}]}), "privilege"
        )
        for source in ("ct-base", "debian-13-standard")
    )
    assert "VM.Clone on /vms/9010" in cloned
    assert not [subject for subject in unpacked if "VM.Clone" in subject]
