# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules tenant and tenant_info: created, changed, used and removed without a trace."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do, limited, refused
from tests.modules.estate_lab import Lab
from tests.modules.tenant_lab import RIGHTS, made, state_of

NEW: dict[str, Any] = {"name": "initech", **RIGHTS}
GONE: dict[str, Any] = {"name": "initech", "state": "absent", "confirm": "initech"}


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start."""
    return unused


def foreseen_and_done(lab: Lab, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice: the plan is what is done, and nothing is left to do."""
    lab.simulator.reset_log()
    foreseen = do(lab, "tenant", check=True, **options)
    assert lab.simulator.writes() == []
    assert foreseen["done"] == []
    result = do(lab, "tenant", **options)
    assert result["changed"]
    assert result["diff"] == foreseen["diff"]
    assert result["done"] == result["plan"] == foreseen["plan"]
    assert result["vms"] == foreseen["vms"]
    lab.simulator.reset_log()
    again = do(lab, "tenant", **options)
    assert not again["changed"]
    assert again["plan"] == []
    assert lab.simulator.writes() == []
    return result


# -- created, changed, removed -----------------------------------------------------------------


def test_created_as_foreseen_and_removed_without_a_trace(lab: Lab) -> None:
    before = state_of(lab)
    result = foreseen_and_done(lab, **NEW)
    assert result["plan"][0] == "Create pool 'initech'"
    assert result["plan"][-1] == "Create token 'tenant_initech@pve!fleet'"
    counts = lab.simulator.counts()
    assert sum(counts.values()) == 8, counts
    login = {
        key: result["credentials"]["sites"][0][key]
        for key in ("host", "ca_path", "token_id", "token_secret")
    }
    own = {"tenant": "initech", "pool": "initech", **login}
    for name in ("app1", "app2"):
        do(lab, "vm", **own, name=name, source="debian-13", state="started")
    do(lab, "vm", **own, name="golden", source="debian-13", full=True, state="template")
    do(lab, "vm", **own, name="copy", source="golden", full=False)
    removal = foreseen_and_done(lab, **GONE)
    assert {vm["name"] for vm in removal["vms"]} == {"app1", "app2", "copy", "golden"}
    assert removal["tenant"] is None
    assert state_of(lab) == before


def test_tenant_with_all_that_it_can_have_is_removed_without_a_trace(lab: Lab) -> None:
    """VMs with snapshots, a template with a clone, a group, rights elsewhere, a second token, a
    registered tag, and a pool with a storage; beside another tenant with a container.
    """
    made(lab, "hooli")
    container = {
        "node": "pve2",
        "pool": "hooli",
        "config": {"rootfs": "ceph:vm-700-disk-0,size=1G"},
    }
    lab.simulator.ask("POST", "/containers/700", {**container, "running": True})
    lab.client.write("PUT", "cluster", "options", data={"registered-tags": "prod"})
    before = state_of(lab)
    options = {**NEW, "operations": ["operate", "snapshot", "images"], "group": "initech"}
    options |= {"image_storages": ["local"], "members": ["ops@pve"], "expire": "2099-01-01"}
    do(lab, "tenant", **options)
    do(lab, "tenant", name="initech", state="rotated", old_token="keep")
    lab.client.write("PUT", "pools", data={"poolid": "initech", "storage": "ceph"})
    for path, role in (("/storage/local-lvm", "PVEDatastoreUser"), ("/vms/700", "PVEAuditor")):
        given = {"users": "tenant_initech@pve", "roles": role, "path": path}
        lab.client.write("PUT", "access", "acl", data=given)
    own: dict[str, Any] = {"tenant": "initech", "pool": "initech"}
    do(lab, "vm", **own, name="app1", source="debian-13", state="started")
    do(lab, "snapshot", tenant="initech", name="app1", snapshot="s1", vmstate=True)
    do(lab, "snapshot", tenant="initech", name="app1", snapshot="s2")
    do(lab, "vm", **own, name="golden", source="debian-13", full=True, state="template")
    do(lab, "vm", **own, name="copy", source="golden", full=False)
    removal = foreseen_and_done(lab, **GONE, group="initech")
    for part in ("token 'tenant_initech@pve!fleet-2'", "group 'initech'", "'/storage/local-lvm'"):
        assert any(part in line for line in removal["plan"]), part
    assert state_of(lab) == before


def test_bridge_of_a_template_that_the_tenant_was_not_given_is_a_warning(lab: Lab) -> None:
    options = {**NEW, "bridges": ["vmbr1"], "templates": ["debian-13", "9001"]}
    result = do(lab, "tenant", check=True, **options)
    text = "has a NIC on vmbr0, which tenant 'initech' was not given"
    warned = [line for line in result["warnings"] if text in line]
    assert [line.split()[1] for line in warned] == ["debian-13", "9001"]
    login = made(lab, "initech", bridges=["vmbr1"])
    own = {**login, "tenant": "initech", "pool": "initech", "source": "debian-13"}
    refusal = lab.run("vm", **own, name="a", nics=[{"bridge": "vmbr1"}])
    assert "SDN.Use on /sdn/zones/localnetwork/vmbr0" in refusal["msg"]
    more = do(lab, "tenant", **{**options, "bridges": ["vmbr0", "vmbr1"]})
    assert not [line for line in more["warnings"] if text in line]
    do(lab, "vm", **own, name="a", nics=[{"bridge": "vmbr1"}])


def test_operations_decide_the_privileges(lab: Lab) -> None:
    do(lab, "tenant", **{**NEW, "operations": ["read"]})
    roles = {row["roleid"]: row["privs"] for row in lab.client.get("access", "roles")}
    assert set(roles["tenant_initech"].split(",")) == {"Pool.Audit", "VM.Audit"}
    assert roles["tenant_initech.storage"] == "Datastore.Audit"
    assert "tenant_initech.template" not in roles
    more = foreseen_and_done(
        lab, **{**NEW, "operations": ["operate", "snapshot", "images"]}, image_storages=["local"]
    )
    assert more["tenant"]["roles"]["tenant_initech.images"] == [
        "Datastore.AllocateTemplate",
        "Datastore.Audit",
    ]
    assert more["tenant"]["rights"]["/storage/local"] == ["tenant_initech.images"]
    less = foreseen_and_done(lab, name="initech", operations=["operate"])
    assert less["tenant"]["rights"] == {"/pool/initech": ["tenant_initech"]}
    left = [row["path"] for row in lab.client.get("access", "acl") if "initech" in row["roleid"]]
    assert left == ["/pool/initech"]
    roles = {row["roleid"]: row["privs"] for row in lab.client.get("access", "roles")}
    assert {name for name in roles if name.startswith("tenant_initech")} == {"tenant_initech"}
    assert "VM.Snapshot" not in roles["tenant_initech"]


def test_tag_of_a_tenant_that_does_not_provision_is_registered(lab: Lab) -> None:
    lab.client.write("PUT", "cluster", "options", data={"registered-tags": "prod"})
    before = state_of(lab)
    options: dict[str, Any] = {"name": "initech", "operations": ["operate"]}
    login = made(lab, "initech", operations=["operate"])
    assert set(lab.client.get("cluster", "options")["registered-tags"]) == {
        "prod",
        "tenant_initech",
    }
    assert not do(lab, "tenant", **options, **{k: RIGHTS[k] for k in RIGHTS})["changed"]
    vm = do(lab, "vm", name="app1", tenant="initech", pool="initech", memory="1G")["vm"]
    own = {**login, "tenant": "initech"}
    do(lab, "vm", **own, name="app1", state="started")
    refusal = lab.run("vm", **own, name="app1", tags=["mine"])
    assert refusal["error"]["category"] == "PermissionDenied"
    lab.simulator.steer(f"/vms/{vm['vmid']}", {"running": False})
    do(lab, "tenant", **GONE)
    assert state_of(lab) == before
    do(lab, "tenant", **NEW, registered_tag=False)
    assert lab.client.get("cluster", "options")["registered-tags"] == ["prod"]


def test_agent_privilege_is_that_of_the_version(old: Lab) -> None:
    do(old, "tenant", **NEW)
    roles = {row["roleid"]: row["privs"] for row in old.client.get("access", "roles")}
    assert "VM.Monitor" in roles["tenant_initech"].split(",")
    before = {row["roleid"] for row in old.client.get("access", "roles")}
    do(old, "tenant", **GONE)
    after = {row["roleid"] for row in old.client.get("access", "roles")}
    assert {name.partition(".")[0] for name in before - after} == {"tenant_initech"}


def test_rights_by_its_roles_elsewhere_are_taken_away(lab: Lab) -> None:
    do(lab, "tenant", **NEW)
    given = {"users": "ops@pve", "roles": "tenant_initech", "path": "/pool/acme"}
    lab.client.write("PUT", "access", "acl", data=given)
    mine = {"users": "tenant_initech@pve", "roles": "PVEAuditor", "path": "/storage"}
    lab.client.write("PUT", "access", "acl", data=mine)
    result = foreseen_and_done(lab, **NEW)
    assert result["plan"] == [
        "Take tenant_initech for user ops@pve out of the rights on '/pool/acme'"
    ]
    assert any(
        "PVEAuditor for user tenant_initech@pve on /storage" in w for w in result["warnings"]
    )


def test_group_gets_the_rights_and_its_members_use_them(lab: Lab) -> None:
    before = state_of(lab)
    options = {**NEW, "group": "initech", "members": ["ops@pve"]}
    result = foreseen_and_done(lab, **options)
    rows = [row for row in lab.client.get("access", "acl") if "initech" in row["roleid"]]
    assert {(row["type"], row["ugid"]) for row in rows} == {("group", "initech")}
    members = lab.client.get("access", "groups", "initech")["members"]
    assert sorted(members) == ["ops@pve", "tenant_initech@pve"]
    assert result["credentials"] is not None
    foreseen_and_done(lab, **GONE, group="initech")
    assert state_of(lab) == before


def test_user_and_group_that_existed_are_kept(lab: Lab) -> None:
    lab.client.write("POST", "access", "groups", data={"groupid": "staff"})
    before = state_of(lab)
    options = {**NEW, "owner": "ops@pve", "group": "staff"}
    do(lab, "tenant", **options)
    removal = do(lab, "tenant", **GONE, owner="ops@pve", group="staff")
    assert "User 'ops@pve' was not created for tenant 'initech' and is kept" in removal["warnings"]
    after = state_of(lab)
    assert lab.client.get("access", "users", "ops@pve")["groups"] == ["staff"]
    lab.client.write("PUT", "access", "users", "ops@pve", data={"groups": ""})
    assert {**state_of(lab), "resources": 0} == {**before, "resources": 0}, after


def test_quota_is_a_warning(lab: Lab) -> None:
    login = made(lab, "initech")
    for name in ("a", "b"):
        do(lab, "vm", **login, name=name, tenant="initech", pool="initech", memory="1G")
    result = do(lab, "tenant", **NEW, quota={"vms": 1, "memory": "8G"})
    assert "tenant 'initech' exceeds its quota: vms 2 of 1" in result["warnings"]
    assert result["tenant"]["usage"]["vms"] == 2


def test_info_shows_what_the_cluster_has(lab: Lab) -> None:
    do(lab, "tenant", **NEW, expire="2099-01-01")
    (one,) = do(lab, "tenant_info", name="initech")["tenants"]
    assert one["pools"] == ["initech"]
    assert one["users"] == ["tenant_initech@pve"]
    assert one["tokens"][0]["token_id"] == "tenant_initech@pve!fleet"
    assert one["tokens"][0]["expire"] == "2099-01-01T00:00:00Z"
    assert one["tokens"][0]["created"]
    assert one["roles"]["tenant_initech.template"] == ["VM.Audit", "VM.Clone"]
    elsewhere = {"path": "/vms/100", "roles": "tenant_initech", "users": "tenant_initech@pve"}
    lab.client.write("PUT", "access", "acl", data=elsewhere)
    (one,) = do(lab, "tenant_info", name="initech")["tenants"]
    assert one["pools"] == ["initech"]
    do(lab, "vm", name="x", tenant="hooli", memory="1G")
    names = [row["name"] for row in do(lab, "tenant_info")["tenants"]]
    assert names == ["hooli", "initech"]


# -- the login ---------------------------------------------------------------------------------


def test_login_goes_to_a_file_that_every_module_reads(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "initech.yml"
    result = do(lab, "tenant", **NEW, credentials_file=str(file))
    assert result["credentials"] is None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["initech.yml"]
    secret = json.loads(file.read_text(encoding="utf-8").partition("\n")[2])
    assert secret["sites"][0]["token_secret"] not in json.dumps(result)
    own: dict[str, Any] = {**dict.fromkeys(lab.connection), "sites_file": str(file)}
    pool = lab.run("pool_info", **own)
    assert [row["name"] for row in pool["pools"]] == ["initech"]
    again = do(lab, "tenant", **NEW, credentials_file=str(file))
    assert not again["changed"]


def test_administrator_logs_in_with_a_password(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "initech.yml"
    login: dict[str, Any] = {"user": "root@pam", "password": "fleetpw123"}
    login |= {"token_id": None, "token_secret": None}
    do(lab, "tenant", **NEW, **login, credentials_file=str(file))
    own: dict[str, Any] = {**dict.fromkeys(lab.connection), "sites_file": str(file)}
    assert [row["name"] for row in do(lab, "pool_info", **own)["pools"]] == ["initech"]
    do(lab, "tenant", name="initech", state="rotated", **login, credentials_file=str(file))
    assert "fleetpw123" not in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "content", ["", "sites: []\n", "# Login of tenant acme, written by pve.fleet.tenant.\n{}"]
)
def test_another_file_is_never_overwritten(lab: Lab, tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.yml"
    file.write_text(content, encoding="utf-8")
    result = refused(lab, "tenant", **NEW, credentials_file=str(file))
    assert "is not the login of tenant initech" in result["msg"]
    assert file.read_text(encoding="utf-8") == content


def test_lost_file_is_an_error_and_no_second_token(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "initech.yml"
    do(lab, "tenant", **NEW, credentials_file=str(file))
    file.unlink()
    result = refused(lab, "tenant", **NEW, credentials_file=str(file))
    assert result["error"]["reason"] == "unknown secret"
    assert "state=rotated" in result["msg"]


def test_file_that_cannot_be_written_stops_before_the_first_write(lab: Lab, tmp_path: Path) -> None:
    file = tmp_path / "missing" / "initech.yml"
    result = refused(lab, "tenant", **NEW, credentials_file=str(file))
    assert "there is no directory" in result["msg"]
    (tmp_path / "missing").mkdir()
    do(lab, "tenant", **NEW, credentials_file=str(file))


# -- what stops a removal ----------------------------------------------------------------------


def test_the_removal_of_a_misspelt_tenant_names_the_similar_one(lab: Lab) -> None:
    removed = lab.run("tenant", name="globez", state="absent", confirm="globez")
    assert (removed["changed"], removed.get("failed")) == (False, None)
    assert any("(did you mean 'globex'?)" in text for text in removed["warnings"])


def test_removal_needs_the_name_and_names_the_vms(lab: Lab) -> None:
    login = made(lab, "initech")
    do(lab, "vm", **login, name="app1", tenant="initech", pool="initech", memory="1G")
    lab.simulator.reset_log()
    for confirm in (None, "", "acme"):
        result = lab.run("tenant", name="initech", state="absent", confirm=confirm)
        assert "VM 'app1'" in result["msg"]
        assert "confirm=initech" in result["msg"]
    assert lab.simulator.writes() == []


def strays(lab: Lab) -> None:
    login = made(lab, "initech")
    do(lab, "vm", **login, name="app1", tenant="initech", pool="initech", memory="1G")
    do(lab, "vm", name="outside", tenant="initech", memory="1G")
    do(lab, "vm", name="untagged", pool="initech", memory="1G")
    do(lab, "vm", name="foreign", tenant="acme", tags=["x"], memory="1G")
    do(lab, "vm", name="both", tenant="acme", tags=["x"], memory="1G")
    vmids = {r["name"]: r["vmid"] for r in lab.client.get("cluster", "resources", type="vm")}
    lab.client.write("PUT", "pools", "initech", data={"vms": str(vmids["foreign"])})
    tags = {"config": {"tags": "tenant_acme;tenant_initech"}}
    lab.simulator.steer(f"/vms/{vmids['both']}", tags)


def left(lab: Lab) -> set[str]:
    rows = lab.client.get("cluster", "resources", type="vm")
    return {row["name"] for row in rows if not row.get("template")}


def test_strays_stop_a_removal(lab: Lab) -> None:
    strays(lab)
    result = refused(lab, "tenant", **GONE)
    assert result["error"]["reason"] == "strays"
    for name in ("outside", "untagged", "foreign", "both"):
        assert f"VM '{name}'" in result["msg"]
    assert "app1" not in result["msg"]


@pytest.mark.parametrize(
    ("word", "stay"),
    [("keep", {"outside", "untagged", "foreign", "both"}), ("remove", {"foreign", "both"})],
)
def test_strays_are_kept_or_removed_but_never_another_tenants(
    lab: Lab, word: str, stay: set[str]
) -> None:
    strays(lab)
    result = do(lab, "tenant", **GONE, strays=word)
    assert left(lab) == stay
    assert "initech" not in {row["poolid"] for row in lab.client.get("pools")}
    assert len([line for line in result["warnings"] if line.startswith("Kept: ")]) == len(stay)
    (foreign,) = [
        r for r in lab.client.get("cluster", "resources", type="vm") if r["name"] == "foreign"
    ]
    assert foreign["tags"] == "tenant_acme;x"


def test_protected_vm_keeps_the_whole_tenant(lab: Lab) -> None:
    login = made(lab, "initech")
    own = {**login, "tenant": "initech", "pool": "initech", "memory": "1G"}
    do(lab, "vm", **own, name="app1")
    do(lab, "vm", **own, name="safe", protection=True)
    result = refused(lab, "tenant", **GONE)
    assert "safe" in result["msg"]
    assert left(lab) == {"app1", "safe"}
    do(lab, "tenant", **GONE, protection=False)
    assert left(lab) == set()


def test_pool_in_its_pool_stops_the_removal(lab: Lab) -> None:
    made(lab, "initech")
    lab.client.write("POST", "pools", data={"poolid": "initech/sub"})
    result = refused(lab, "tenant", **GONE)
    assert "initech/sub" in result["msg"]


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"owner": "x@nowhere"}, "there is no realm nowhere"),
        ({"templates": ["debian-99"]}, "there is no template debian-99"),
        ({"templates": ["4711"]}, "there is no template 4711"),
        ({"storages": ["tape"]}, "there is no storage tape"),
        ({"bridges": ["vmbr77"]}, "there is no bridge vmbr77"),
        ({"nodes": ["pve9"]}, "there is no node pve9"),
        ({"group": "g", "members": ["ghost@pve"]}, "there is no user ghost@pve"),
        ({"members": ["ops@pve"]}, "no group is given"),
        ({"expire": "2001-01-01"}, "has passed"),
        ({"expire": "soon"}, "is not a date"),
        ({"name": "a b"}, "is not the name of a tenant"),
        ({"name": "initech.node"}, "is not the name of a tenant"),
        ({"pool": "no/such/pool"}, "pool 'no/such' above it does not exist"),
        ({"registered_tag": True}, "only a user with Sys.Modify on /"),
        ({"quota": {"vms": "many"}}, "is not a number"),
    ],
    ids=str,
)
def test_bad_input_stops_before_the_first_write(
    lab: Lab, options: dict[str, Any], words: str
) -> None:
    result = refused(lab, "tenant", **{**NEW, **options})
    assert words in result["msg"]


def test_user_of_another_purpose_is_not_taken(lab: Lab) -> None:
    lab.client.write("POST", "access", "users", data={"userid": "tenant_initech@pve"})
    result = refused(lab, "tenant", **NEW)
    assert result["error"]["reason"] == "not marked"
    assert "Set adopt=true if that was created for tenant 'initech'" in result["msg"]
    do(lab, "tenant", **NEW, owner="tenant_initech@pve")


def test_caller_without_the_right_to_give_a_right(lab: Lab) -> None:
    login = limited(lab, "helper", {"/": "PVEAdmin"})
    result = refused(lab, "tenant", **{**NEW, **login})
    assert result["error"]["category"] == "PermissionDenied"
    assert "(/access, Sys.Modify)" in result["msg"]


def test_caller_who_may_manage_all_but_lacks_a_privilege_of_the_role(lab: Lab) -> None:
    """Proxmox VE lets no one give more than they have (AccessControl.pm, check_acl)."""
    privileges = {row["roleid"]: row["privs"] for row in lab.client.get("access", "roles")}
    every = set(privileges["Administrator"].split(",")) - {"VM.Clone", "Permissions.Modify"}
    data = {"roleid": "AlmostAll", "privs": ",".join(sorted(every))}
    lab.client.write("POST", "access", "roles", data=data)
    login = limited(lab, "helper", {"/": "AlmostAll"})
    result = refused(lab, "tenant", **{**NEW, **login})
    assert result["error"]["category"] == "PermissionDenied"
    assert "Permissions.Modify" in result["msg"]
    assert "initech" not in {row["poolid"] for row in lab.client.get("pools")}


def test_group_that_vanished_is_created_again_and_does_not_stop_a_removal(lab: Lab) -> None:
    before = state_of(lab)
    options = {**NEW, "group": "initech", "members": ["ops@pve"]}
    do(lab, "tenant", **options)
    lab.client.write("DELETE", "access", "groups", "initech")
    result = foreseen_and_done(lab, **options)
    assert "Create group 'initech'" in result["plan"]
    members = lab.client.get("access", "groups", "initech")["members"]
    assert sorted(members) == ["ops@pve", "tenant_initech@pve"]
    lab.client.write("DELETE", "access", "groups", "initech")
    foreseen_and_done(lab, **GONE, group="initech")
    assert state_of(lab) == before


def test_role_that_others_use_goes_with_the_tenant(lab: Lab) -> None:
    before = state_of(lab)
    do(lab, "tenant", **NEW)
    given = {"users": "ops@pve", "roles": "tenant_initech.storage", "path": "/storage/local"}
    lab.client.write("PUT", "access", "acl", data=given)
    result = foreseen_and_done(lab, **GONE)
    assert (
        "Take tenant_initech.storage for user ops@pve out of the rights on '/storage/local'"
        in result["plan"]
    )
    assert state_of(lab) == before


def test_what_was_done_before_a_failure_is_named_and_completed(lab: Lab) -> None:
    before = state_of(lab)
    lab.simulator.fault(
        method="POST", path="/access/users$", status=500, message="no space left", times=None
    )
    result = lab.run("tenant", **NEW)
    assert result["failed"]
    assert result["changed"]
    assert result["error"]["done"][0] == "Create pool 'initech'"
    assert "Create role 'tenant_initech'" in result["error"]["done"]
    lab.simulator.clear_faults()
    rest = do(lab, "tenant", **NEW)
    assert rest["plan"][0] == "Create user 'tenant_initech@pve'"
    lab.simulator.fault(
        method="DELETE", path="/access/users/tenant_initech@pve$", status=500, message="no"
    )
    result = lab.run("tenant", **GONE)
    assert "Delete token 'tenant_initech@pve!fleet'" in result["error"]["done"]
    lab.simulator.clear_faults()
    do(lab, "tenant", **GONE)
    assert state_of(lab) == before
