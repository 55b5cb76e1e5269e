"""The envelope, credentials, and refusals that have nothing to do with machines."""

from __future__ import annotations

import json
import time

import pytest
import requests

from tests.simulator.process import DEMO, Simulator
from tests.simulator_tests.client import Client

NO_FILE = "Configuration file 'nodes/{}/qemu-server/{}.conf' does not exist"
AUDITOR = "bob@pve!t1=00000000-0000-4000-8000-000000000003"


def test_an_answer_is_data_in_json(pve: Client) -> None:
    answer = pve.call("GET", "/version")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json;charset=UTF-8"
    assert answer.body["data"]["release"] == "9.2"


@pytest.mark.parametrize(
    ("verb", "path", "status", "reason"),
    [
        ("GET", "/nope", 501, "Method 'GET /nope' not implemented"),
        ("PUT", "/version", 501, "Method 'PUT /version' not implemented"),
        (
            "GET",
            "/nodes/nowhere/status",
            500,
            (
                "hostname lookup 'nowhere' failed - failed to get address info for: nowhere: Name"
                " or service not known"
            ),
        ),
        ("GET", "/nodes/pve1/qemu/999/config", 500, NO_FILE.format("pve1", 999)),
        ("GET", "/nodes/pve2/qemu/9000/config", 500, NO_FILE.format("pve2", 9000)),
    ],
)
def test_a_refusal_has_its_text_in_reason_and_message(
    pve: Client, verb: str, path: str, status: int, reason: str
) -> None:
    answer = pve.call(verb, path)
    assert (answer.status, answer.reason) == (status, reason)
    assert answer.body["data"] is None
    assert answer.message.rstrip("\n") == reason


def test_when_the_server_closes_a_connection(pve: Client) -> None:
    """pve-http-server: AnyEvent.pm (keep_alive, response); pve-manager: Service/pveproxy.pm."""
    assert pve.call("GET", "/nope").headers["Connection"] == "close"
    closes = [pve.call("GET", "/version").headers.get("Connection") for _number in range(201)]
    assert [at for at, word in enumerate(closes) if word == "close"] == [99, 199]


def test_refused_parameters_are_named_one_by_one(pve: Client) -> None:
    answer = pve.call(
        "POST", "/nodes/pve1/qemu", {"vmid": 7, "cores": "many", "color": "red", "onboot": "yes"}
    )
    assert (answer.status, answer.reason) == (400, "Parameter verification failed.")
    assert answer.errors == {
        "vmid": "invalid format - value does not look like a valid VM ID\n",
        "cores": "type check ('integer') failed - got 'many'",
        "color": (
            "property is not defined in schema and the schema does not allow additional properties"
        ),
        "onboot": "type check ('boolean') failed - got 'yes'",
    }


@pytest.mark.parametrize("value", ["yes", "no", "on", "off", "true", "false"])
def test_booleans_in_forms_are_digits(pve: Client, value: str) -> None:
    answer = pve.call("POST", "/nodes/pve1/qemu", {"vmid": 100, "onboot": value})
    assert answer.errors == {"onboot": f"type check ('boolean') failed - got '{value}'"}


def test_json_bodies_work_with_their_own_booleans(pve: Client) -> None:
    body = json.dumps({"vmid": 100, "onboot": True, "tags": ["b", "a"]})
    answer = pve.call(
        "POST", "/nodes/pve1/qemu", data=body, headers={"Content-Type": "application/json"}
    )
    assert pve.wait(answer.data) == "OK"
    config = pve.config("/nodes/pve1/qemu/100")
    assert (config["onboot"], config["tags"]) == (1, "a;b")


def test_query_parameters_join_the_body(pve: Client) -> None:
    path = pve.create(100)
    assert pve.call("PUT", f"{path}/config?cores=3", {"sockets": 2}).status == 200
    assert (pve.config(path)["cores"], pve.config(path)["sockets"]) == (3, 2)


def test_a_body_must_not_contradict_the_path(pve: Client) -> None:
    path = pve.create(100)
    answer = pve.call("PUT", f"{path}/config", {"vmid": 101, "cores": 2})
    assert answer.errors == {
        "vmid": "duplicate parameter (already defined in URI) with conflicting values!"
    }


def test_a_delete_body_is_ignored(pve: Client) -> None:
    pve.create(100)
    answer = pve.call("DELETE", "/nodes/pve1/qemu/100", data={"color": "red"})
    assert pve.wait(answer.data) == "OK"


def test_without_credentials_the_body_is_empty(sim: Simulator) -> None:
    answer = Client(sim, token=None).call("GET", "/version")
    assert (answer.status, answer.reason, answer.text) == (401, "No ticket", "")


def test_a_wrong_token_is_refused(sim: Simulator) -> None:
    answer = Client(sim, token="root@pam!fleet=00000000-0000-4000-8000-000000000000").call(
        "GET", "/version"
    )
    assert (answer.status, answer.text) == (401, "")


def test_domains_need_no_credentials(sim: Simulator) -> None:
    assert {"pam", "pve"} <= {
        item["realm"] for item in Client(sim, token=None).get("/access/domains")
    }


def test_the_token_header_takes_a_space(sim: Simulator) -> None:
    client = Client(sim, token=None)
    client.session.headers["Authorization"] = (
        "PVEAPIToken root@pam!fleet=00000000-0000-4000-8000-0000000000f1"
    )
    assert client.get("/version")["release"] == "9.2"


def test_a_ticket_reads_with_the_cookie_and_writes_with_the_csrf_token(sim: Simulator) -> None:
    client = Client(sim, token=None)
    login = client.post("/access/ticket", username="root@pam", password="fleetpw123")
    assert login["username"] == "root@pam"
    client.session.cookies.set("PVEAuthCookie", login["ticket"])
    assert client.get("/version")["release"] == "9.2"
    answer = client.call("POST", "/pools", {"poolid": "x"})
    assert (answer.status, answer.reason, answer.text) == (
        401,
        "Permission denied - invalid csrf token",
        "",
    )
    client.session.headers["CSRFPreventionToken"] = login["CSRFPreventionToken"]
    assert client.post("/pools", poolid="x") is None


def test_a_failed_login_has_a_body(sim: Simulator) -> None:
    answer = Client(sim, token=None).call(
        "POST", "/access/ticket", {"username": "root@pam", "password": "wrong1"}
    )
    assert (answer.status, answer.reason) == (401, "authentication failure")
    assert answer.body["data"] is None


def test_a_token_cannot_log_in(pve: Client) -> None:
    answer = pve.call("POST", "/access/ticket", {"username": "root@pam", "password": "fleetpw123"})
    assert answer.status == 403


def test_every_401_is_held_back() -> None:
    with Simulator("--cluster", DEMO, "--auth-delay-s", "0.5") as sim:
        started = time.monotonic()
        assert Client(sim, token=None).call("GET", "/version").status == 401
        assert time.monotonic() - started >= 0.5


def test_a_missing_right_is_named(lab: Client) -> None:
    lab.create(200)
    lab.post("/access/roles", roleid="Renamer", privs="VM.Config.Options")
    lab.put("/access/acl", path="/vms/200", roles="Renamer", users="bob@pve")
    bob = Client(lab.sim, AUDITOR)
    bob.put("/nodes/pve1/qemu/200/config", description="mine")
    answer = bob.call("PUT", "/nodes/pve1/qemu/200/config", {"cores": 2})
    assert (answer.status, answer.reason) == (
        403,
        "Permission check failed (/vms/200, VM.Config.CPU)",
    )


def test_what_may_not_be_seen_is_left_out(lab: Client) -> None:
    lab.create(200)
    lab.create(201)
    lab.put("/access/acl", path="/vms/200", roles="PVEVMUser", tokens="alice@pve!t1")
    alice = Client(lab.sim, "alice@pve!t1=00000000-0000-4000-8000-000000000002")
    assert {item["vmid"] for item in alice.get("/cluster/resources", type="vm")} == {200}


def test_a_privilege_separated_token_has_no_more_than_its_own_rights(lab: Client) -> None:
    lab.create(200)
    alice = Client(lab.sim, "alice@pve!t1=00000000-0000-4000-8000-000000000002")
    assert alice.call("GET", "/nodes/pve1/qemu/200/status/current").status == 403


def test_the_extjs_format_is_always_200(sim: Simulator, pve: Client) -> None:
    url = f"{sim.url}/api2/extjs/nodes/pve1/qemu/999/config"
    with requests.Session() as session:
        session.trust_env = False
        answer = session.get(url, headers=dict(pve.session.headers), verify=sim.ca, timeout=30)
    assert answer.status_code == 200
    assert (answer.json()["success"], answer.json()["status"]) == (0, 500)


def test_next_id_is_a_string_and_reserves_nothing(pve: Client) -> None:
    assert pve.get("/cluster/nextid") == "100"
    assert pve.get("/cluster/nextid") == "100"
    pve.create(100)
    assert pve.get("/cluster/nextid") == "101"
    assert pve.call("GET", "/cluster/nextid", {"vmid": 100}).errors == {
        "vmid": "VM 100 already exists"
    }


def test_localhost_is_the_node_that_was_asked(pve: Client) -> None:
    pve.create(100)
    assert [vm["vmid"] for vm in pve.get("/nodes/localhost/qemu")] == [
        vm["vmid"] for vm in pve.get("/nodes/pve1/qemu")
    ]
    upid = pve.post("/nodes/localhost/qemu/100/status/stop")
    assert upid.startswith("UPID:pve1:")


def test_other_methods_are_not_known(pve: Client) -> None:
    answer = pve.call("PATCH", "/version")
    assert (answer.status, answer.reason, answer.text) == (501, "method 'PATCH' not available", "")
