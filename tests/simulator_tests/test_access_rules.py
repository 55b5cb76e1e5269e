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


def test_nobody_hands_out_more_than_they_hold(lab: Client, alice: Client) -> None:
    lab.create(200)
    lab.put("/access/acl", path="/vms/200", users="alice@pve", roles="PVEVMAdmin")
    alice.put("/access/acl", path="/vms/200", users="bob@pve", roles="PVEVMUser")
    text = refused(alice, "PUT", "/access/acl", path="/vms/200", users="bob@pve", roles="PVESysAdmin")
    assert text == "ACL update failed: 400 Parameter verification failed."
    answer = alice.call("PUT", "/access/acl", {"path": "/vms/200", "users": "bob@pve", "roles": "NoAccess"})
    assert answer.message.endswith("role: Cannot add role 'NoAccess' - requires 'Permissions.Modify'\n")


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
    assert answer.message == (
        "updating token info failed: 400 Parameter verification failed.\ndelete: unknown option 'privsep'\n"
    )


def test_realms(lab: Client) -> None:
    assert refused(lab, "PUT", "/access/domains/pve") == "update auth server failed: no options specified"
    text = "delete auth server failed: authentication domain 'x-y' does not exist"
    assert refused(lab, "DELETE", "/access/domains/x-y") == text
    answer = lab.call("POST", "/access/domains/x-y/sync")
    assert answer.errors == {"realm": "Realm does not exist."}
    assert refused(lab, "POST", "/access/domains/pve/sync") == (
        "Cannot sync realm type 'pve'! Only LDAP/AD realms can be synced."
    )
    assert lab.get("/access/users/alice@pve/tfa") == {}


# -- pools -----------------------------------------------------------------------------------------


def test_pools_and_rights(lab: Client, alice: Client) -> None:
    assert refused(lab, "POST", "/pools", poolid="1st") == "create pool failed: pool name must start with a letter"
    lab.post("/pools", poolid="dev")
    lab.create(200, tags="a", pool="dev")
    assert "tags" not in alice.get("/pools", poolid="dev")[0]["members"][0]
    answer = alice.call("GET", "/pools/dev")
    assert (answer.status, answer.reason) == (403, "Permission check failed (/pool/dev, Pool.Audit)")
    (item,) = alice.get("/cluster/resources", type="vm")
    assert (item["vmid"], "pool" in item) == (200, False)
    lab.put("/access/acl", path="/pool/dev", users="alice@pve", roles="PVEPoolAdmin")
    assert refused(alice, "PUT", "/pools", poolid="dev", vms="200", delete=1) == (
        "update pools failed: 403 Permission check failed (/vms/200, Permissions.Modify|VM.Allocate)"
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
    answer = lab.call("POST", "/storage", {"storage": "s3", "type": "dir", "path": "/x", "server": "10.0.0.1"})
    assert (answer.status, answer.reason) == (500, "unexpected property 'server'")
    lab.post("/storage", storage="s3", type="lvm", vgname="vg", content="images,iso")
    assert lab.get("/storage/s3")["content"] == "images"
    prefix = "update storage failed: "
    assert refused(lab, "PUT", "/storage/s3", format="raw") == f"{prefix}unexpected property 'format'"
    assert refused(lab, "PUT", "/storage/s3", content="iso") == f"{prefix}storage does not support content type 'none'"
    assert refused(lab, "PUT", "/storage/s3", delete="path") == f"{prefix}no such option 'path'"
    assert refused(lab, "PUT", "/storage/s3", delete="vgname") == f"{prefix}unable to delete required option 'vgname'"
    text = f"{prefix}cannot set and delete property 'shared' at the same time!"
    assert refused(lab, "PUT", "/storage/s3", shared=1, delete="shared") == text


def test_a_storage_that_is_not_on_the_node_is_listed_without_figures(lab: Client) -> None:
    lab.post("/storage", storage="s3", type="dir", path="/x", nodes="pve2")
    (item,) = (item for item in lab.get("/nodes/pve1/storage") if item["storage"] == "s3")
    assert (item["enabled"], item["active"], item["total"]) == (0, 0, 0)
    assert "s3" not in [item["storage"] for item in lab.get("/nodes/pve1/storage", content="images")]
    assert lab.call("GET", "/nodes/pve1/storage", {"storage": "nosuch"}).errors == {"storage": "No such storage."}


def test_a_listing_for_one_machine_leaves_installation_media_out(sim: Simulator, lab: Client) -> None:
    lab.create(200, scsi0="local:1")
    assert {"local:iso/test.iso", "local:200/vm-200-disk-0.raw"} <= lab.volumes("local")
    assert lab.volumes("local", vmid=200) == {
        "local:200/vm-200-disk-0.raw", "local:import/disk.qcow2", "local:snippets/user.yml"
    }  # fmt: skip
