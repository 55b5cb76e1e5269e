# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An object of a tenant changes behind the approved plan of the tenant: nothing else than the plan is
written, a run fails if check mode says so, and a second run changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab
from tests.modules.test_plan_changes import BOTH
from tests.modules.test_plans import approved_requests, written
from tests.modules.test_tenant_networks import GONE, INITECH

pytestmark = pytest.mark.usefixtures("fast")

USER = "tenant_initech@pve"
PLAIN = {**INITECH, "networks": {}}
MORE = {**PLAIN, "operations": ["read", "operate"], "storages": ["ceph", "local-lvm"]}
Change = Callable[[Lab], Any]


def roles_of(lab: Lab) -> list[str]:
    rows = lab.client.get("access", "roles")
    return [row["roleid"] for row in rows if "initech" in row["roleid"]]


def remove_tokens(lab: Lab) -> None:
    for row in lab.client.get("access", "users", USER, "token"):
        lab.client.write("DELETE", "access", "users", USER, "token", row["tokenid"])


def remove_roles(lab: Lab) -> None:
    for role in roles_of(lab):
        lab.client.write("DELETE", "access", "roles", role)


def limit_roles(lab: Lab) -> None:
    for role in roles_of(lab):
        lab.client.write("PUT", "access", "roles", role, data={"privs": "VM.Audit"})


CHANGES: dict[str, Change] = {
    "pool": lambda lab: do(lab, "pool", name="initech", comment="by hand"),
    "user": lambda lab: do(lab, "user", name=USER, enabled=False),
    "no user": lambda lab: lab.client.write("DELETE", "access", "users", USER),
    "no token": remove_tokens,
    "no roles": remove_roles,
    "roles": limit_roles,
    "guest": lambda lab: lab.vm(name="b", tenant="initech", pool="initech", memory="128M"),
}
# The changes that a plan does not write over, and that a removal does not find any more.
HARMLESS = {
    "create": {"pool", "no roles", "roles"},
    "change": {"pool", "user", "guest"},
    "remove": {"no user", "no token", "no roles"},
}
# A tenant that is new does not take over the objects of others, with or without a plan.
CAUSES = {("create", "user"): re.compile("there is user 'tenant_initech@pve' without the mark")}
CASES = [
    (name, change)
    for name in HARMLESS
    for change in CHANGES
    if name != "create" or change in ("pool", "user")
]


@pytest.mark.parametrize(("name", "change"), CASES)
def test_an_object_of_a_tenant_that_changed(
    unused: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    place = str(tmp_path / "plan.json")
    login: dict[str, Any] = {"credentials_file": str(tmp_path / "sites.yml")}
    if name != "create":
        do(unused, "tenant", **PLAIN, **login)
    goal: dict[str, Any] = GONE if name == "remove" else {**PLAIN, **login}
    goal = {**MORE, **login} if name == "change" else goal
    assert unused.run("tenant", check=True, plan_file=place, **goal)["changed"]
    CHANGES[change](unused)
    is_refused = change not in HARMLESS[name]
    unused.simulator.reset_log()
    for check in (True, False):
        result = unused.run("tenant", check=check, apply_plan=place, **goal)
        assert result.get("failed", False) == is_refused, result
        text = CAUSES.get((name, change), BOTH)
        assert not is_refused or text.search(result["msg"]), result["msg"]
        assert not check or unused.simulator.writes() == []
    assert written(unused) <= approved_requests(place)
    unused.simulator.reset_log()
    again = unused.run("tenant", apply_plan=place, **goal)
    assert again.get("failed", False) == is_refused
    assert unused.simulator.writes() == []
