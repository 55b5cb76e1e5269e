"""Rules about rights, users, pools, tasks and storage definitions that are met less often."""

from __future__ import annotations

import pytest

from tests.simulator.process import Simulator
from tests.simulator_tests.client import Client

ALICE = "alice@pve!t1=00000000-0000-4000-8000-000000000002"


def refused(client: Client, verb: str, where: str, /, **params: object) -> str:
    """The reason of a refusal with status 500."""
    answer = client.call(verb, where, params)
    assert answer.status == 500, answer.body
    return str(answer.reason)


@pytest.fixture
def alice(lab: Client) -> Client:
    """A user of her own with a ticket."""
    client = Client(lab.sim, None)
    ticket = client.post("/access/ticket", username="alice@pve", password="alicepw12")
    client.session.cookies.set("PVEAuthCookie", ticket["ticket"])
    client.session.headers["CSRFPreventionToken"] = ticket["CSRFPreventionToken"]
    return client


# -- users and rights ------------------------------------------------------------------------------


def test_who_sees_which_users(lab: Client, alice: Client) -> None:
    def seen(client: Client) -> list[str]:
        return [user["userid"] for user in client.get("/access/users")]

    assert (seen(alice), seen(Client(lab.sim, ALICE))) == (["alice@pve"], [])
    lab.post("/access/groups", groupid="ops")
    lab.put("/access/users/bob@pve", groups="ops")
    lab.put("/access/acl", path="/access/groups/ops", users="alice@pve", roles="PVEUserAdmin")
    assert seen(alice) == ["alice@pve", "bob@pve"]


def test_no_user_hands_out_more_than_they_hold(lab: Client, alice: Client) -> None:
    lab.create(200)
    lab.put("/access/acl", path="/vms/200", users="alice@pve", roles="PVEVMAdmin")
    alice.put("/access/acl", path="/vms/200", users="bob@pve", roles="PVEVMUser")
    text = refused(
        alice, "PUT", "/access/acl", path="/vms/200", users="bob@pve", roles="PVESysAdmin"
    )
    assert text == "ACL update failed: 400 Parameter verification failed."
    answer = alice.call(
        "PUT", "/access/acl", {"path": "/vms/200", "users": "bob@pve", "roles": "NoAccess"}
    )
    assert answer.message.endswith(
        "role: Cannot add role 'NoAccess' - requires 'Permissions.Modify'\n"
    )


def test_who_sees_which_entries(lab: Client, alice: Client) -> None:
    """Source: API2/ACL.pm, read_acl, and RPCEnvironment.pm, check_perm_modify."""

    def seen() -> set[str]:
        return {entry["path"] for entry in alice.get("/access/acl")}

    lab.put("/access/acl", path="/pool/dev", users="bob@pve", roles="PVEVMUser")
    lab.put("/access/acl", path="/storage/images", users="bob@pve", roles="PVEDatastoreUser")
    assert "/pool/dev" not in seen()
    lab.put("/access/acl", path="/pool/dev", users="alice@pve", roles="PVEPoolAdmin")
    assert "/pool/dev" in seen(), "Pool.Allocate lets her change rights there"
    assert "/storage/images" not in seen()
    lab.post("/access/roles", roleid="Giver", privs="Permissions.Modify")
    lab.put("/access/acl", path="/access", users="alice@pve", roles="Giver")
    assert "/storage/images" not in seen(), "Permissions.Modify on /access is not Sys.Audit"
    lab.put("/access/acl", path="/access", users="alice@pve", roles="PVEAuditor")
    assert "/storage/images" in seen()


def test_a_refused_entry_leaves_all_as_they_were(lab: Client) -> None:
    """Source: API2/ACL.pm, update_acl: the file is written once, at the end."""
    before = lab.get("/access/acl")
    text = refused(
        lab, "PUT", "/access/acl", path="/vms/200", users="bob@pve", roles="PVEVMUser,nosuch"
    )
    assert text == "ACL update failed: role 'nosuch' does not exist"
    text = refused(
        lab, "PUT", "/access/acl", path="/vms/200", roles="PVEVMUser", users="bob@pve,no@pve"
    )
    assert text == "ACL update failed: user 'no@pve' does not exist"
    text = refused(
        lab, "PUT", "/access/acl", path="/vms/200", roles="PVEVMUser", tokens="no@pve!t1"
    )
    assert text == "ACL update failed: no such user ('no@pve')"
    assert lab.get("/access/acl") == before


def test_a_role_in_use_is_deleted_with_its_entries(lab: Client) -> None:
    """Source: API2/Role.pm, delete_role; AccessControl.pm, parse_user_config ignores the rest."""
    before = lab.get("/access/acl")
    lab.post("/access/roles", roleid="Short", privs="VM.Audit")
    lab.put("/access/acl", path="/vms/200", users="bob@pve", roles="Short")
    lab.delete("/access/roles/Short")
    assert lab.get("/access/acl") == before


def test_texts_as_user_cfg_keeps_them(lab: Client) -> None:
    """Source: AccessControl.pm, parse_user_config strips blanks and takes "0" for nothing."""
    lab.post("/access/groups", groupid="ops", comment="  two words ")
    assert lab.get("/access/groups/ops")["comment"] == "two words"
    lab.put("/access/groups/ops", comment="0")
    assert "comment" not in lab.get("/access/groups/ops")
    lab.post("/access/users", userid="carl@pve", comment="0", firstname=" Carl ")
    shown = lab.get("/access/users/carl@pve")
    assert ("comment" in shown, shown["firstname"]) == (False, "Carl")
    lab.post("/access/users/carl@pve/token/t1", comment=" x ")
    assert lab.get("/access/users/carl@pve/token/t1")["comment"] == "x"
    lab.post("/pools", poolid="dev", comment=" y ")
    assert lab.get("/pools/dev")["comment"] == "y"


def test_which_realms_keep_passwords(lab: Client) -> None:
    """Source: AccessControl.pm, domain_set_password; Auth/Plugin.pm, store_password."""
    prefix = "create user failed: "
    text = refused(lab, "POST", "/access/users", userid="carl@nosuch", password="longenough1")
    assert text == f"{prefix}auth domain 'nosuch' does not exist"
    lab.post(
        "/access/domains", realm="ld", type="ldap", server1="x", base_dn="dc=x", user_attr="uid"
    )
    text = refused(lab, "POST", "/access/users", userid="carl@ld", password="longenough1")
    assert text == f"{prefix}can't set password on auth type 'ldap'"
    assert "carl@ld" not in {user["userid"] for user in lab.get("/access/users")}


def test_a_token_is_not_its_user(lab: Client) -> None:
    token = Client(lab.sim, ALICE)
    answer = token.call("GET", "/access/permissions", {"userid": "alice@pve"})
    assert (answer.status, answer.reason) == (403, "Permission check failed (/access, Sys.Audit)")
    assert token.get("/access/permissions", userid="alice@pve!t1") == {}


def test_only_the_comment_of_a_token_can_be_deleted(lab: Client) -> None:
    path = "/access/users/alice@pve/token/t1"
    lab.put(path, comment="x")
    assert lab.put(path, delete="comment") == {"expire": 0, "privsep": 1}
    answer = lab.call("PUT", path, {"delete": "privsep"})
    assert (
        answer.message
        == "updating token info failed: 400 Parameter verification failed.\ndelete: unknown option"
        " 'privsep'\n"
    )


def test_realms(lab: Client) -> None:
    assert (
        refused(lab, "PUT", "/access/domains/pve")
        == "update auth server failed: no options specified"
    )
    text = "delete auth server failed: authentication domain 'x-y' does not exist"
    assert refused(lab, "DELETE", "/access/domains/x-y") == text
    answer = lab.call("POST", "/access/domains/x-y/sync")
    assert answer.errors == {"realm": "Realm does not exist."}
    assert (
        refused(lab, "POST", "/access/domains/pve/sync")
        == "Cannot sync realm type 'pve'! Only LDAP/AD realms can be synced."
    )
    assert lab.get("/access/users/alice@pve/tfa") == {}


# -- pools -----------------------------------------------------------------------------------------


def test_pools_and_rights(lab: Client, alice: Client) -> None:
    assert (
        refused(lab, "POST", "/pools", poolid="1st")
        == "create pool failed: pool name must start with a letter"
    )
    lab.post("/pools", poolid="dev")
    lab.create(200, tags="a", pool="dev")
    assert "tags" not in alice.get("/pools", poolid="dev")[0]["members"][0]
    answer = alice.call("GET", "/pools/dev")
    assert (answer.status, answer.reason) == (
        403,
        "Permission check failed (/pool/dev, Pool.Audit)",
    )
    (item,) = alice.get("/cluster/resources", type="vm")
    assert (item["vmid"], "pool" in item) == (200, False)
    lab.put("/access/acl", path="/pool/dev", users="alice@pve", roles="PVEPoolAdmin")
    assert (
        refused(alice, "PUT", "/pools", poolid="dev", vms="200", delete=1)
        == "update pools failed: 403 Permission check failed (/vms/200,"
        " Permissions.Modify|VM.Allocate)"
    )
    lab.put("/pools", poolid="dev", vms="200", delete=1)
    lab.put("/pools", poolid="dev", storage="images")
    text = "delete pool failed: pool 'dev' is not empty (contains storage 'images')"
    assert refused(lab, "DELETE", "/pools", poolid="dev") == text


def test_a_pool_adds_up_what_runs(pve: Client) -> None:
    path = pve.create(100, pool="acme", memory=512, cores=2)
    pve.ok("POST", f"{path}/status/start")
    Client.until(lambda: pve.get(f"{path}/status/current")["uptime"] > 0)
    (item,) = (item for item in pve.get("/cluster/resources") if item.get("id") == "/pool/acme")
    assert (item["maxcpu"], item["maxmem"]) == (2, 512 << 20)


# -- tasks -----------------------------------------------------------------------------------------


def test_who_sees_which_tasks(lab: Client, alice: Client) -> None:
    lab.create(200)
    upid = alice.call("POST", "/nodes/pve1/qemu/200/status/stop").data
    token = Client(lab.sim, ALICE)
    assert [task["upid"] for task in alice.get("/nodes/pve1/tasks")] == [upid]
    assert (token.get("/nodes/pve1/tasks"), token.get("/cluster/tasks")) == ([], [])
    assert len(lab.get("/nodes/pve1/tasks", userfilter="ALICE")) == 1
    text = "'download' cannot be used together with 'start' or 'limit' parameters"
    assert refused(lab, "GET", f"/nodes/pve1/tasks/{upid}/log", download=1, limit=5) == text


# -- storages --------------------------------------------------------------------------------------


def test_options_belong_to_kinds_of_storages(lab: Client) -> None:
    answer = lab.call(
        "POST", "/storage", {"storage": "s3", "type": "dir", "path": "/x", "server": "10.0.0.1"}
    )
    assert (answer.status, answer.reason) == (500, "unexpected property 'server'")
    lab.post("/storage", storage="s3", type="lvm", vgname="vg", content="images,iso")
    assert lab.get("/storage/s3")["content"] == "images"
    prefix = "update storage failed: "
    assert (
        refused(lab, "PUT", "/storage/s3", format="raw") == f"{prefix}unexpected property 'format'"
    )
    assert (
        refused(lab, "PUT", "/storage/s3", content="iso")
        == f"{prefix}storage does not support content type 'none'"
    )
    assert refused(lab, "PUT", "/storage/s3", delete="path") == f"{prefix}no such option 'path'"
    assert (
        refused(lab, "PUT", "/storage/s3", delete="vgname")
        == f"{prefix}unable to delete required option 'vgname'"
    )
    text = f"{prefix}cannot set and delete property 'shared' at the same time!"
    assert refused(lab, "PUT", "/storage/s3", shared=1, delete="shared") == text


def test_a_storage_that_is_not_on_the_node_is_listed_without_figures(lab: Client) -> None:
    lab.post("/storage", storage="s3", type="dir", path="/x", nodes="pve2")
    (item,) = (item for item in lab.get("/nodes/pve1/storage") if item["storage"] == "s3")
    assert (item["enabled"], item["active"], item["total"]) == (0, 0, 0)
    assert "s3" not in [
        item["storage"] for item in lab.get("/nodes/pve1/storage", content="images")
    ]
    assert lab.call("GET", "/nodes/pve1/storage", {"storage": "nosuch"}).errors == {
        "storage": "No such storage."
    }


def test_a_listing_for_one_machine_leaves_installation_media_out(
    sim: Simulator, lab: Client
) -> None:
    lab.create(200, scsi0="local:1")
    assert {"local:iso/test.iso", "local:200/vm-200-disk-0.raw"} <= lab.volumes("local")
    assert lab.volumes("local", vmid=200) == {
        "local:200/vm-200-disk-0.raw",
        "local:import/disk.qcow2",
        "local:snippets/user.yml",
    }


# -- what the role of the documentation lacks ------------------------------------------------------


def test_what_is_checked_beyond_the_schema(lab: Client) -> None:
    """Sources: qemu-server, API2/Qemu.pm, check_vm_modify_config_perm.

    For the agent the API schema of 9.x.
    """
    role = "VM.Allocate VM.Audit VM.Config.CDROM VM.Config.HWType VM.Config.Options"
    lab.post("/access/roles", roleid="Fleet", privs=role)
    lab.post("/access/users", userid="fleet@pve")
    lab.put("/access/acl", path="/", users="fleet@pve", roles="Fleet")
    secret = lab.post("/access/users/fleet@pve/token/t1", privsep=0)["value"]
    fleet = Client(lab.sim, f"fleet@pve!t1={secret}")
    path = lab.create(101, agent="1")
    refusals = {
        "startup": ({"startup": "order=1"}, "/, Sys.Modify"),
        "hostpci": ({"hostpci0": "mapping=gpu"}, "/mapping/pci/gpu, Mapping.Use"),
        "usb": ({"usb0": "mapping=key"}, "/mapping/usb/key, Mapping.Use"),
    }
    for change, lacking in refusals.values():
        answer = fleet.call("PUT", f"{path}/config", change)
        assert (answer.status, answer.reason) == (403, f"Permission check failed ({lacking})")
    answer = fleet.call("GET", f"{path}/agent/network-get-interfaces")
    needed = "VM.GuestAgent.Audit|VM.GuestAgent.Unrestricted"
    assert (answer.status, answer.reason) == (403, f"Permission check failed (/vms/101, {needed})")


# -- realms ----------------------------------------------------------------------------------------


def test_realms_of_directories(lab: Client) -> None:
    """Source: recordings of PVE 9.2.11 around virtual machines."""
    prefix = "add auth server failed: "
    assert (
        refused(lab, "POST", "/access/domains", realm="ad1", type="ad", server1="x")
        == f"{prefix}missing value for required option 'domain'"
    )
    lab.post(
        "/access/domains",
        realm="ad1",
        type="ad",
        server1="x",
        domain="lab.test",
        tfa="type=oath,step=30",
        default=1,
    )
    (listed,) = (realm for realm in lab.get("/access/domains") if realm["realm"] == "ad1")
    assert listed == {"realm": "ad1", "type": "ad", "default": 1, "tfa": "oath"}
    assert lab.get("/access/domains/ad1")["domain"] == "lab.test"
    stale = refused(lab, "PUT", "/access/domains/ad1", comment="c", digest="0" * 40)
    assert (
        stale
        == "update auth server failed: detected modified configuration - file changed by other"
        " user? Try again."
    )
    synced = {"sync-defaults-options": "scope=users,remove-vanished=acl,enable-new=1"}
    lab.put("/access/domains/ad1", **synced)
    text = "enable-new=1,remove-vanished=acl,scope=users"  # sorted: API2/Domains.pm, update
    assert lab.get("/access/domains/ad1")["sync-defaults-options"] == text
    lab.delete("/access/domains/pve")
    assert "pve" in {realm["realm"] for realm in lab.get("/access/domains")}


def test_users_and_tokens_in_full(lab: Client) -> None:
    lab.post("/access/users", userid="new@pve")
    shown = {user["userid"]: user for user in lab.get("/access/users", full=1)}
    assert (shown["new@pve"]["tokens"], shown["new@pve"]["realm-type"]) == (None, "pve")
    assert lab.post("/access/users/new@pve/token/t1")["info"] == {"privsep": 1}
    assert lab.post("/access/users/new@pve/token/t2", privsep=0)["info"] == {"privsep": "0"}
    reason = refused(lab, "POST", "/access/users", userid="nosuch@pam", password="longenough1")
    assert reason == "create user failed: change password failed: user 'nosuch' does not exist"


# -- realms and their directories ------------------------------------------------------------------

LDAP = {
    "realm": "ld",
    "type": "ldap",
    "server1": "127.0.0.1",
    "base_dn": "dc=x",
    "user_attr": "uid",
}


def synchronized(lab: Client, **options: object) -> list[str]:
    """The log of a run, as pve-access-control's API2/Domains.pm prints it."""
    upid = lab.post("/access/domains/ld/sync", **options)
    lab.wait(upid)
    rows = lab.get(f"/nodes/pve1/tasks/{upid}/log", limit=100)
    return [row["t"] for row in rows]


def test_a_directory_is_taken_over(lab: Client) -> None:
    lab.post("/access/domains", **LDAP)
    lab.sim.steer("/directories/ld", {"users": {"u1": {}, "u2": {}}, "groups": {"g": ["u1"]}})
    log = synchronized(lab, scope="both")
    assert log == [
        "starting sync for realm ld",
        "got data from server, updating users and groups",
        "syncing users (remove-vanished opts: none)",
        "adding user 'u1@ld'",
        "adding user 'u2@ld'",
        "syncing groups (remove-vanished opts: none)",
        "adding group 'g-ld'",
        "successfully updated users and groups configuration",
        "TASK OK",
    ]
    assert lab.get("/access/groups/g-ld")["members"] == ["u1@ld"]
    lab.sim.steer("/directories/ld", {"users": {"u1": {"email": "a@b.test"}}})
    options = {"scope": "users", "remove-vanished": "entry;acl;properties"}
    dry = synchronized(lab, **options, **{"dry-run": 1})
    assert dry[0] == "(dry test run) starting sync for realm ld"
    assert "remove user 'u2@ld'" in dry
    assert "purge users 'u2@ld' ACL entries" in dry
    assert "overwriting user 'u1@ld'" in dry
    assert dry[-2] == "NOTE: Dry test run, changes were NOT written to the configuration."
    assert lab.get("/access/users/u2@ld")["enable"] == 1
    synchronized(lab, **options)
    assert refused(lab, "GET", "/access/users/u2@ld") == "no such user ('u2@ld')"
    assert lab.get("/access/users/u1@ld")["email"] == "a@b.test"


def test_what_cannot_be_taken_over(lab: Client) -> None:
    lab.post("/access/domains", **LDAP)
    answer = lab.call("POST", "/access/domains/ld/sync", {})
    assert answer.errors == {
        "scope": "Not passed as parameter and not defined in realm default sync options."
    }
    assert synchronized(lab, scope="users")[-1] == "TASK ERROR: Connection refused"
    text = refused(lab, "POST", "/access/domains/pve/sync")
    assert text == "Cannot sync realm type 'pve'! Only LDAP/AD realms can be synced."


def test_jobs_that_synchronize(lab: Client) -> None:
    """Source: pve-access-control, API2/Jobs/RealmSync.pm."""
    lab.post("/access/domains", **LDAP)
    job = "/cluster/jobs/realm-sync/j1"
    lab.post(job, realm="ld", schedule="daily", scope="users")
    assert lab.get(job) == {
        "enabled": 1,
        "realm": "ld",
        "schedule": "daily",
        "scope": "users",
        "type": "realm-sync",
    }
    assert [row["id"] for row in lab.get("/cluster/jobs/realm-sync")] == ["j1"]
    text = refused(lab, "PUT", job, schedule="hourly", delete="scope")
    assert text == "unable to delete required option 'scope'"
    text = refused(lab, "PUT", job, schedule="hourly", delete="bogus")
    assert text == "no such option 'bogus'"
    text = refused(lab, "PUT", job, schedule="hourly", comment="x", delete="comment")
    assert text == "cannot set and delete property 'comment' at the same time!"
    lab.put(job, schedule="hourly", delete="enabled")
    assert "enabled" not in lab.get(job)
    other = {"schedule": "daily", "scope": "users"}
    for realm, text in (("nope", "No such realm 'nope'"), ("pve", "Only LDAP/AD realms")):
        answer = lab.call("POST", "/cluster/jobs/realm-sync/j2", {**other, "realm": realm})
        assert answer.status == 500
        assert text in answer.message
    backup = {"schedule": "daily", "all": 1, "storage": "local"}
    text = refused(lab, "POST", "/cluster/backup", id="j1", **backup)
    assert text == "Job 'j1' already exists"  # jobs.cfg has jobs of both kinds
    lab.post("/cluster/backup", id="saved", **backup)
    text = refused(lab, "POST", "/cluster/jobs/realm-sync/saved", realm="ld", **other)
    assert text == "Job 'saved' already exists"
    lab.delete(job)
    assert lab.call("GET", job).errors == {"id": "No such job 'j1'"}


def test_names_are_checked_before_rights(lab: Client) -> None:
    text = "value 'bogus' does not look like a valid user name"
    assert refused(lab, "GET", "/access/users/bogus") == text
    answer = lab.call("PUT", "/access/acl", {})
    assert set(answer.errors) == {"path", "roles"}


def test_a_custom_cpu_model_needs_its_mapping(lab: Client, alice: Client) -> None:
    """Setting another custom model, and cloning a machine that has one, need Mapping.Use on the
    model since qemu-server 9.1.13 (its changelog; API2/Qemu.pm, check_cpu_model_access). A change
    of the flags alone does not.
    """
    lab.post("/cluster/qemu/custom-cpu-models", cputype="custom-big", **{"reported-model": "kvm64"})
    lab.create(200)
    for path in ("/vms/200", "/vms/201"):
        lab.put("/access/acl", path=path, users="alice@pve", roles="PVEVMAdmin")
    lab.put("/access/acl", path="/storage", users="alice@pve", roles="PVEDatastoreUser")
    config = "/nodes/pve1/qemu/200/config"
    answer = alice.call("PUT", config, {"cpu": "custom-big"})
    assert answer.status == 403
    assert answer.reason == "Permission check failed (/mapping/cpu/big, Mapping.Use)"
    lab.put(config, cpu="custom-big")
    alice.put(config, cpu="custom-big,flags=+aes")
    answer = alice.call("POST", "/nodes/pve1/qemu/200/clone", {"newid": 201})
    assert answer.reason == "Permission check failed (/mapping/cpu/big, Mapping.Use)"
    lab.put("/access/acl", path="/mapping/cpu/big", users="alice@pve", roles="PVEMappingUser")
    alice.post("/nodes/pve1/qemu/200/clone", newid=201)
