# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode with a login that lacks privileges: refused with the sentence of the run.

Sources: pve-access-control, PVE/RPCEnvironment.pm (exec_api2_perm_check,
get_effective_permissions); qemu-server, API2/Qemu.pm (create_vm, check_vm_modify_config_perm),
QemuConfig.pm (find_vmstate_storage); pve-guest-common, GuestHelpers.pm (assert_tag_permissions);
pve-manager, API2/Pool.pm, API2/Tasks.pm and API2/Backup.pm; pve-firewall, API2/Firewall/Helpers.pm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.modules.access_lab import limited
from tests.modules.estate_lab import Lab

AUDITOR: dict[str, str] = {"/": "PVEAuditor"}
CLONE: dict[str, Any] = {"name": "new1", "source": "debian-13"}
BLANK: dict[str, Any] = {
    "name": "new1",
    "node": "pve1",
    "disks": [{"size": "1G", "storage": "ceph"}],
}
CT: dict[str, Any] = {"name": "new1", "source": "debian-13-standard", "node": "pve1"}


def readings(lab: Lab) -> int:
    """Return the number of requests for privileges."""
    return sum(row["path"] == "/access/permissions" for row in lab.simulator.log())


def as_the_run(lab: Lab, module: str, login: Mapping[str, Any], **options: Any) -> str:
    """Return the message of a refusal, which check mode and the run share."""
    lab.simulator.reset_log()
    foreseen = lab.run(module, check=True, **options, **login)
    assert foreseen.get("failed"), foreseen
    assert readings(lab) <= 1
    result = lab.run(module, **options, **login)
    assert result["msg"] == foreseen["msg"]
    assert result["error"]["category"] == foreseen["error"]["category"] == "PermissionDenied"
    return str(foreseen["msg"])


@pytest.mark.parametrize(
    ("module", "options", "missing"),
    [
        ("vm", CLONE, "VM.Clone"),
        ("clone", CLONE, "VM.Clone"),
        ("vm", BLANK, "VM.Allocate"),
        ("vm", {"vmid": 9000, "state": "absent", "force": True}, "VM.Allocate"),
        ("pool", {"name": "new1"}, "Pool.Allocate"),
        ("group", {"name": "new1"}, "Group.Allocate"),
        ("role", {"name": "new1", "privileges": ["VM.Audit"]}, "Sys.Modify"),
        ("ha_resource", {"sid": "vm:9000"}, "Sys.Console"),
        ("storage", {"name": "new1", "type": "dir", "path": "/srv/new1"}, "Datastore.Allocate"),
        ("firewall", {"scope": "cluster", "options": {"enable": True}}, "Sys.Modify"),
    ],
)
def test_check_mode_refuses_like_the_run(
    unused: Lab, module: str, options: Mapping[str, Any], missing: str
) -> None:
    login = limited(unused, "auditor", AUDITOR)
    assert missing in as_the_run(unused, module, login, **options)


@pytest.mark.parametrize(
    ("option", "privilege"),
    [
        ({"cores": 3}, "VM.Config.CPU"),
        ({"memory": "1G"}, "VM.Config.Memory"),
        ({"onboot": True}, "VM.Config.Options"),
        ({"nics": [{"name": "net0", "bridge": "vmbr0"}]}, "VM.Config.Network"),
    ],
)
def test_option_of_a_vm(unused: Lab, option: Mapping[str, Any], privilege: str) -> None:
    every = "VM.Audit VM.Config.CPU VM.Config.Memory VM.Config.Options VM.Config.Network SDN.Use"
    unused.run("vm", **BLANK)
    privileges = [one for one in every.split() if one != privilege]
    unused.run("role", name="most", privileges=privileges)
    login = limited(unused, "most", {"/": "most"})
    message = as_the_run(unused, "vm", login, name="new1", **option)
    assert f", {privilege})" in message


@pytest.mark.parametrize(
    ("module", "options", "privilege"),
    [
        ("snapshot", {"snapshot": "s1"}, "VM.Snapshot"),
        ("vm", {"state": "started"}, "VM.PowerMgmt"),
        ("vm", {"node": "pve2"}, "VM.Migrate"),
        ("vm", {"disks": [{"name": "scsi0", "size": "2G"}]}, "VM.Config.Disk"),
    ],
)
def test_task_on_a_vm(unused: Lab, module: str, options: Mapping[str, Any], privilege: str) -> None:
    unused.run("vm", **BLANK)
    login = limited(unused, "auditor", AUDITOR)
    assert privilege in as_the_run(unused, module, login, **{"name": "new1", **options})


def roles_with(lab: Lab, *lacking: str) -> str:
    """Return a new role that has all privileges but these."""
    roles = lab.client.get("access", "roles")
    every = next(row["privs"] for row in roles if row["roleid"] == "Administrator").split(",")
    lab.run("role", name="most", privileges=sorted({*every} - {*lacking}))
    return "most"


def test_the_start_order_of_a_container(unused: Lab) -> None:
    """Of a VM it needs Sys.Modify on / as well (qemu-server: API2/Qemu.pm, check_vm_modify_config_
    perm), of a container it does not (pve-container: LXC.pm, check_ct_modify_config_perm).
    """
    new: dict[str, Any] = {**CT, "rootfs": {"size": "1G", "storage": "ceph"}}
    assert not unused.run("container", **new).get("failed")
    assert not unused.run("vm", **{**BLANK, "name": "vm1"}).get("failed")
    unused.run("role", name="most", privileges=["VM.Audit", "VM.Config.Options"])
    login = limited(unused, "most", {"/": "most"})
    assert "(/, Sys.Modify)" in as_the_run(unused, "vm", login, name="vm1", startup="order=2")
    for check in (True, False):
        result = unused.run("container", check=check, name="new1", startup="order=2", **login)
        assert result["changed"], result


def test_a_clone_with_a_custom_cpu_model(unused: Lab) -> None:
    """Since qemu-server 9.1.15 (API2/Qemu.pm, clone_vm, check_cpu_model_access)."""
    model = unused.run("cpu_model", name="fast", reported_model="Haswell")
    assert not model.get("failed"), model
    assert not unused.run("vm", **BLANK, cpu="custom-fast").get("failed")
    login = limited(unused, "most", {"/": roles_with(unused, "Mapping.Use")})
    copy = {"name": "copy1", "source": "new1", "full": True}
    assert "(/mapping/cpu/fast, Mapping.Use)" in as_the_run(unused, "clone", login, **copy)


@pytest.mark.parametrize(
    ("options", "tags"),
    [
        ({"registered_tags": ["prod"]}, ["prod"]),
        ({"user_tag_access": {"user_allow": "none"}}, ["web"]),
        ({"user_tag_access": {"user_allow": "list", "user_allow_list": ["db"]}}, ["web"]),
        ({"user_tag_access": {"user_allow": "existing"}}, ["never-seen"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("module", ["vm", "container"])
def test_tags_that_the_datacenter_restricts(
    unused: Lab, module: str, options: Mapping[str, Any], tags: list[str]
) -> None:
    new = dict(BLANK)
    if module == "container":
        new = {**CT, "rootfs": {"size": "1G", "storage": "ceph"}}
    made = unused.run(module, **new)
    assert not made.get("failed"), made
    unused.run("cluster_options", **options)
    login = limited(unused, "most", {"/": roles_with(unused, "Sys.Modify")})
    said = as_the_run(unused, module, login, name="new1", tags=tags)
    assert f"/, Sys.Modify for modifying tag '{tags[0]}'" in said


def test_a_registered_tag_of_the_guest_is_restricted_without_a_look_at_the_options(
    unused: Lab,
) -> None:
    """Without Sys.Audit, PVE shows which tags may be set, but not which are registered."""
    unused.run("vm", **BLANK, tags=["prod", "web"])
    unused.run("cluster_options", registered_tags=["prod"])
    roles = {"/vms": roles_with(unused), "/storage": "PVEDatastoreUser"}
    login = limited(unused, "most", roles)
    options = {"name": "new1", "tags": ["web"], "tags_exact": True}
    assert "modifying tag 'prod'" in as_the_run(unused, "vm", login, **options)
    foreseen = unused.run("vm", check=True, name="new1", tags=["db"], **login)
    assert not foreseen.get("failed"), foreseen
    assert not unused.run("vm", name="new1", tags=["db"], **login).get("failed")


def test_hibernation_of_a_vm_with_disks_on_two_storages(unused: Lab) -> None:
    """PVE saves the memory on the shared storage."""
    disks = [{"size": "1G", "storage": storage} for storage in ("ceph", "local-lvm")]
    unused.run("vm", **{**BLANK, "disks": disks, "state": "started"})
    most = roles_with(unused, "Datastore.AllocateSpace")
    wrong = limited(unused, "wrong", {"/": most, "/storage/local-lvm": "Administrator"})
    task = {"name": "new1", "state": "hibernated"}
    assert "/storage/ceph, Datastore.AllocateSpace" in as_the_run(unused, "vm", wrong, **task)
    login = limited(unused, "right", {"/": most, "/storage/ceph": "Administrator"})
    foreseen = unused.run("vm", check=True, **task, **login)
    assert not foreseen.get("failed"), foreseen


def test_a_move_between_pools_needs_both(unused: Lab) -> None:
    for pool in ("old1", "new1"):
        unused.run("pool", name=pool)
    unused.run("vm", **BLANK, pool="old1")
    roles = {"/": "PVEAuditor", "/vms": "PVEVMAdmin", "/pool/new1": "PVEPoolAdmin"}
    login = limited(unused, "mover", roles)
    for module, options in (
        ("vm", {"name": "new1", "pool": "new1"}),
        ("pool", {"name": "new1", "vms": [made(unused)], "allow_move": True, "allow_self": True}),
    ):
        foreseen = unused.run(module, check=True, **options, **login)
        result = unused.run(module, **options, **login)
        for one in (foreseen, result):
            assert "(/pool/old1, Pool.Allocate)" in one["msg"]


def made(lab: Lab) -> int:
    """Return the VMID of the VM of a test."""
    rows = lab.client.get("cluster", "resources", type="vm")
    return next(int(row["vmid"]) for row in rows if row.get("name") == "new1")


def test_firewall_of_a_vnet(unused: Lab) -> None:
    zone: dict[str, Any] = {"zones": [{"name": "faulty", "type": "simple"}]}
    unused.run("sdn", **zone, vnets=[{"name": "faulty0", "zone": "faulty"}])
    login = limited(unused, "auditor", AUDITOR)
    rule = {"type": "forward", "action": "DROP", "proto": "tcp", "dport": "22"}
    for options in ({"options": {"enable": True}}, {"rules": [rule]}):
        task = {"scope": "vnet", "vnet": "faulty0", **options}
        said = as_the_run(unused, "firewall", login, **task)
        assert "/sdn/zones/faulty/faulty0, SDN.Allocate" in said


def test_the_present_storage_of_a_backup_job(unused: Lab) -> None:
    job: dict[str, Any] = {"name": "nightly", "schedule": "02:00", "storage": "local", "all": True}
    assert not unused.run("backup_job", **job).get("failed")
    most = roles_with(unused, "Datastore.Allocate")
    login = limited(unused, "most", {"/": most})
    said = as_the_run(unused, "backup_job", login, name="nightly", comment="new")
    assert "/storage/local, Datastore.Allocate" in said


def test_privileges_of_the_pool_count(unused: Lab) -> None:
    """A tenant has privileges on its pool alone; a new VM joins the pool with its creation."""
    unused.client.write("POST", "pools", data={"poolid": "acme2"})
    roles: dict[str, str] = {
        "/pool/acme2": "PVEVMAdmin,PVEPoolUser",
        "/vms/9000": "PVETemplateUser",
        "/storage": "PVEDatastoreUser",
        "/sdn/zones/localnetwork": "PVESDNUser",
    }
    login = limited(unused, "acme2", roles)
    options: dict[str, Any] = {**CLONE, "pool": "acme2", "cores": 2}
    foreseen = unused.run("vm", check=True, **options, **login)
    assert not foreseen.get("failed"), foreseen
    assert not unused.run("vm", **options, **login).get("failed")


def test_privileges_are_read_once_for_a_list_and_never_without_a_change(unused: Lab) -> None:
    vms = [{**CLONE, "name": f"new{number}"} for number in range(3)]
    login = limited(unused, "auditor", AUDITOR)
    unused.simulator.reset_log()
    foreseen = unused.run("vms", check=True, vms=vms, **login)
    assert "vms" in foreseen, foreseen
    assert [row["error"]["category"] for row in foreseen["vms"]] == ["PermissionDenied"] * 3
    assert readings(unused) == 1
    unused.run("pool", name="same")
    unused.simulator.reset_log()
    assert not unused.run("pool", check=True, name="same")["changed"]
    assert unused.run("pool", name="other")["changed"]
    assert readings(unused) == 0
