# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules token and token_info against the simulator, which answers as pve-access-control's
API2/User.pm does, in two versions.
"""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import connect
from ansible_collections.pve.fleet.plugins.module_utils._tenants.access.run_token import run_token
from tests.modules.access_lab import as_foreseen, do, limited, overtaken, refused, requests
from tests.modules.estate_lab import Lab

Write = tuple[str, tuple[str, ...], dict[str, Any]]
ONE: dict[str, Any] = {"owner": "ops@pve", "name": "t1"}
WHOLE, PATH = "ops@pve!t1", "/access/users/ops@pve/token/t1"


@pytest.fixture
def lab(unused: Lab) -> Lab:
    """The demo cluster as it is at the start; ops@pve has one token."""
    return unused


def logs_in(lab: Lab, secret: str, whole: str = WHOLE) -> bool:
    """Return whether a token is accepted."""
    login: dict[str, Any] = {"token_id": whole, "token_secret": secret}
    result = lab.run("role_info", name="PVEAdmin", **login)
    assert not result.get("failed") or result["error"]["category"] == "AuthenticationError"
    return not result.get("failed")


def names(lab: Lab) -> set[str]:
    return {row["tokenid"] for row in lab.client.get("access", "users", "ops@pve", "token")}


def test_created_changed_and_deleted_as_foreseen(lab: Lab) -> None:
    made = as_foreseen(lab, "token", **ONE, comment=" ci ", expire="2100-01-31")
    assert made["token"] == {
        "owner": "ops@pve",
        "name": "t1",
        "token_id": WHOLE,
        "privilege_separation": True,
        "expire": "2100-01-31T00:00:00Z",
        "comment": "ci",
    }
    assert made["plan"] == ["Create token 'ops@pve!t1'"]
    assert logs_in(lab, made["secret"])
    changed = as_foreseen(
        lab, "token", **ONE, comment="", expire="never", privilege_separation=False
    )
    assert changed["secret"] is None
    assert changed["diff"]["after"] == {
        "comment": "",
        "expire": None,
        "privilege_separation": False,
    }
    assert logs_in(lab, made["secret"]), "a change keeps the secret"
    assert as_foreseen(lab, "token", **ONE, state="absent")["token"] is None
    assert names(lab) == {"auto"}


def test_the_secret_is_in_one_place_of_the_result(lab: Lab) -> None:
    foreseen = lab.run("token", check=True, **ONE)
    assert foreseen["secret"] is None
    made = do(lab, "token", **ONE)
    secret = made.pop("secret")
    assert secret
    assert secret not in json.dumps(made)
    assert do(lab, "token", **ONE)["secret"] is None
    assert secret not in json.dumps(do(lab, "token_info", **ONE))


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"owner": "ops", "name": "t1"}, "ValidationFailed", "owner"),
    ({"owner": " ", "name": "t1"}, "ValidationFailed", "owner"),
    ({"owner": "ops@pve", "name": ""}, "ValidationFailed", "name"),
    ({"owner": "ops@pve", "name": "1t"}, "ValidationFailed", "name"),
    ({"owner": "ops@pve", "name": "ops@pve!t1"}, "ValidationFailed", "name"),
    ({**ONE, "expire": "2001-01-01"}, "ValidationFailed", "expire"),
    ({**ONE, "expire": "soon"}, "ValidationFailed", "expire"),
    ({**ONE, "comment": "0"}, "ValidationFailed", "comment"),
    ({"owner": "no@pve", "name": "t1"}, "NotFound", "unknown user"),
    ({**ONE, "state": "rotated"}, "NotFound", "unknown token"),
    (
        {"owner": "ops@pve", "name": "auto", "state": "rotated", "successor": "t2"},
        "ValidationFailed",
        "successor",
    ),
    ({**ONE, "successor": "t2"}, "ValidationFailed", "successor"),
]


@pytest.mark.parametrize(
    ("options", "category", "reason"),
    REFUSED,
    ids=[f"{number}-{row[2]}" for number, row in enumerate(REFUSED)],
)
def test_refused_before_any_write(
    lab: Lab, options: dict[str, Any], category: str, reason: str
) -> None:
    error = refused(lab, "token", **options)["error"]
    assert (error["category"], error["reason"]) == (category, reason)


def test_a_token_of_a_user_that_is_gone_is_absent(lab: Lab) -> None:
    assert not do(lab, "token", owner="no@pve", name="t1", state="absent")["changed"]
    assert do(lab, "token_info", owner="no@pve")["tokens"] == []


def test_without_the_right(lab: Lab) -> None:
    login = limited(lab, "stranger", {})
    result = lab.run("token", **ONE, **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert result["changed"] is False
    assert do(lab, "token_info", **login)["tokens"] == []


# A secret that is lost.


@pytest.mark.usefixtures("fast")
def test_a_lost_answer_before_the_creation_is_sent_again(lab: Lab) -> None:
    lab.simulator.fault(method="POST", path="/token/t1$", drop="before")
    assert logs_in(lab, do(lab, "token", **ONE)["secret"])


@pytest.mark.usefixtures("fast")
def test_a_lost_secret_is_an_error_and_never_a_second_token(lab: Lab) -> None:
    lab.simulator.reset_log()
    lab.simulator.fault(method="POST", path="/token/t1$", drop="after")
    result = lab.run("token", **ONE)
    assert result["failed"]
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "NetworkError",
        "lost secret",
    )
    assert result["error"]["retryable"] is False
    assert "set state=rotated" in result["msg"]
    assert len(lab.simulator.writes()) == 1
    assert names(lab) == {"auto", "t1"}
    assert not do(lab, "token", **ONE)["changed"]
    assert logs_in(lab, do(lab, "token", **ONE, state="rotated")["secret"])


def test_read_that_fails_after_the_creation_does_not_lose_the_secret(lab: Lab) -> None:
    text = "something broke"
    lab.simulator.fault(method="GET", path="/token/t1$", nth=2, status=500, message=text)
    result = lab.run("token", **ONE, comment="c")
    assert not result.get("failed"), result
    assert result["warnings"] == [
        f"The token was created, but reading it failed: Could not read token '{WHOLE}': {text}."
    ]
    assert (result["token"]["token_id"], result["token"]["comment"]) == (WHOLE, "c")
    assert logs_in(lab, result["secret"])


# Rotation.


def test_rotated_with_rights_and_settings(lab: Lab) -> None:
    first = do(lab, "token", **ONE, comment="ci")["secret"]
    entry = {"path": "/pool/globex", "roles": "PVEVMUser", "tokens": WHOLE}
    lab.client.write("PUT", "access", "acl", data=entry)
    rights = lab.client.get("access", "acl")
    lab.simulator.reset_log()
    foreseen = do(lab, "token", check=True, **ONE, state="rotated")
    assert lab.simulator.writes() == []
    assert foreseen["secret"] is None
    assert logs_in(lab, first)
    result = do(lab, "token", **ONE, state="rotated")
    assert result["changed"]
    assert result["plan"] == result["done"] == foreseen["plan"]
    assert result["plan"] == ["Give token 'ops@pve!t1' another secret"]
    assert (result["token"], result["diff"]) == (foreseen["token"], foreseen["diff"])
    assert result["token"]["comment"] == "ci"
    assert logs_in(lab, result["secret"])
    assert not logs_in(lab, first)
    assert lab.client.get("access", "acl") == rights
    both = do(lab, "token", **ONE, state="rotated", comment="new")
    assert both["done"] == ["Set comment of token 'ops@pve!t1'", *result["done"]]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_rotation_whose_answer_is_lost_is_made_again(lab: Lab, moment: str) -> None:
    """The secret that was lost is void then."""
    do(lab, "token", **ONE)
    lab.simulator.fault(method="PUT", path="/token/t1$", drop=moment)
    assert logs_in(lab, do(lab, "token", **ONE, state="rotated")["secret"])


def own_login(lab: Lab) -> dict[str, Any]:
    return limited(lab, "self", {"/": "Administrator"})


def test_a_token_rotates_itself(lab: Lab) -> None:
    """Its old secret is void when the answer arrives; no request follows."""
    login = own_login(lab)
    options: dict[str, Any] = {"owner": "self@pve", "name": "tt", "state": "rotated"}
    assert refused(lab, "token", **options, **login)["error"]["reason"] == "own login"
    secret = do(lab, "token", **options, **login, allow_self=True)["secret"]
    assert logs_in(lab, secret, "self@pve!tt")


def test_a_token_that_rotates_itself_and_loses_the_answer(lab: Lab) -> None:
    login = own_login(lab)
    lab.simulator.fault(method="PUT", path="/token/tt$", drop="after")
    own: dict[str, Any] = {"owner": "self@pve", "name": "tt", "allow_self": True}
    result = lab.run("token", **own, state="rotated", **login)
    assert result["error"]["reason"] == "lost secret", result


def test_the_second_token_of_an_older_version(old: Lab) -> None:
    first = do(old, "token", **ONE, comment="ci", expire="2100-01-01")["secret"]
    for path, propagate in (("/pool/globex", 1), ("/storage/ceph", 0)):
        data = {"path": path, "roles": "PVEAuditor", "tokens": WHOLE, "propagate": propagate}
        old.client.write("PUT", "access", "acl", data=data)
    result = refused(old, "token", **ONE, state="rotated")
    assert (result["error"]["category"], result["error"]["reason"]) == (
        "NotSupported",
        "no regenerate",
    )
    options = {**ONE, "state": "rotated", "successor": "t2"}
    foreseen = do(old, "token", check=True, **options)
    assert names(old) == {"auto", "t1"}
    result = do(old, "token", **options)
    assert result["done"] == result["plan"] == foreseen["plan"]
    assert len(result["done"]) == 3
    assert result["token"] == foreseen["token"]
    assert (result["token"]["token_id"], result["token"]["comment"]) == ("ops@pve!t2", "ci")
    assert result["token"]["expire"] == "2100-01-01T00:00:00Z"
    assert logs_in(old, first)
    assert logs_in(old, result["secret"], "ops@pve!t2")
    rights: dict[str, set[tuple[str, str, int]]] = {}
    for row in old.client.get("access", "acl"):
        right = (row["path"], row["roleid"], int(row["propagate"]))
        rights.setdefault(row["ugid"], set()).add(right)
    assert rights["ops@pve!t2"] == rights[WHOLE]
    assert refused(old, "token", **options)["error"]["reason"] == "exists"


def test_a_successor_without_all_its_rights(old: Lab) -> None:
    do(old, "token", **ONE)
    data = {"path": "/pool/globex", "roles": "PVEAuditor", "tokens": WHOLE}
    old.client.write("PUT", "access", "acl", data=data)
    old.simulator.fault(method="PUT", path="/access/acl$", status=500, message="it broke")
    result = old.run("token", **ONE, state="rotated", successor="t2")
    assert result["error"]["done"] == ["Create token 'ops@pve!t2'"]
    assert "delete it with state=absent" in result["msg"]
    assert do(old, "token", owner="ops@pve", name="t2", state="absent")["changed"]
    assert do(old, "token", **ONE, state="rotated", successor="t2")["secret"]


def test_a_successor_whose_rights_are_not_all_visible(old: Lab) -> None:
    """PVE lists the rights that the caller may see, without a word about others."""
    do(old, "token", **ONE)
    data = {"path": "/pool/globex", "roles": "PVEAuditor", "tokens": WHOLE}
    old.client.write("PUT", "access", "acl", data=data)
    login = limited(old, "blind", {"/access/groups": "PVEUserAdmin"})
    result = refused(old, "token", **ONE, state="rotated", successor="t2", **login)
    assert result["error"]["category"] == "PermissionDenied"
    assert result["error"]["privileges"] == ["Sys.Audit"]
    assert names(old) == {"auto", "t1"}


def test_a_successor_whose_rights_the_caller_cannot_give(old: Lab) -> None:
    do(old, "token", **ONE)
    data = {"path": "/pool/globex", "roles": "PVEAdmin", "tokens": WHOLE}
    old.client.write("PUT", "access", "acl", data=data)
    privileges = {"roleid": "Seer", "privs": "Sys.Audit,User.Modify"}
    old.client.write("POST", "access", "roles", data=privileges)
    login = limited(old, "seer", {"/access": "Seer"})
    result = refused(old, "token", **ONE, state="rotated", successor="t2", **login)
    assert result["error"]["reason"] == "more than own rights"
    assert "PVEAdmin for token ops@pve!t2" in result["msg"]


def test_what_was_done_before_a_rotation_that_failed_is_named(lab: Lab) -> None:
    do(lab, "token", **ONE)
    lab.simulator.fault(
        method="PUT", path="/token/t1$", nth=2, status=500, message="the pool is on fire"
    )
    result = lab.run("token", **ONE, state="rotated", comment="new")
    assert "Could not give token 'ops@pve!t1' another secret" in result["msg"]
    assert result["error"]["done"] == ["Set comment of token 'ops@pve!t1'"]
    assert result["changed"] is True


# Two runs.


def test_another_run_may_be_faster(lab: Lab) -> None:
    """The run that did not create the token has no secret, and reports no change."""
    made: Write = ("POST", ("access", "users", "ops@pve", "token", "t1"), {})
    result = run_token({**ONE}, overtaken(lab, made))
    assert (result.changed, result.values["secret"]) == (False, None)
    gone: Write = ("DELETE", ("access", "users", "ops@pve", "token", "t1"), {})
    assert not run_token({**ONE, "state": "absent"}, overtaken(lab, gone)).changed


def test_of_runs_at_the_same_time_one_has_the_secret(lab: Lab) -> None:
    gate = threading.Barrier(4)

    def one(_number: int) -> str | None:
        with connect(lab.connection, {}) as client:
            gate.wait(60)
            secret: str | None = run_token({**ONE}, client).values["secret"]
            return secret

    with ThreadPoolExecutor(4) as workers:
        secrets = [secret for secret in workers.map(one, range(4)) if secret]
    assert len(secrets) == 1
    assert logs_in(lab, secrets[0])


def test_info_has_the_keys_of_the_module(lab: Lab) -> None:
    made = do(lab, "token", **ONE, comment="c")["token"]
    lab.simulator.reset_log()
    assert do(lab, "token_info", **ONE)["tokens"] == [made]
    of_ops = do(lab, "token_info", owner="ops@pve")["tokens"]
    assert [token["name"] for token in of_ops] == ["auto", "t1"]
    assert [token["owner"] for token in do(lab, "token_info", name="fleet")["tokens"]] == [
        "root@pam"
    ]
    assert made in do(lab, "token_info")["tokens"]
    assert do(lab, "token_info", owner="ops@pve", name="none")["tokens"] == []
    assert len(lab.simulator.log()) == 5


def test_the_requests_of_each_run(lab: Lab) -> None:
    lab.simulator.reset_log()
    do(lab, "token", **ONE, comment="c")
    assert requests(lab) == [f"GET {PATH}", f"POST {PATH}", f"GET {PATH}"]
    lab.simulator.reset_log()
    do(lab, "token", **ONE, comment="c")
    assert requests(lab) == [f"GET {PATH}"]
    lab.simulator.reset_log()
    do(lab, "token", **ONE, state="rotated")
    assert requests(lab) == [f"GET {PATH}", "GET /version", f"GET {PATH}", f"PUT {PATH}"]
