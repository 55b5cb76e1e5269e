# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for users, groups, roles, rights and tokens must all stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.api.client import Client
from tests.modules.estate_lab import Lab
from tests.simulator.process import Simulator

# The login of root with the password, which is a line of the cluster log.
ROOT: dict[str, Any] = {
    "user": "root@pam",
    "password": "fleetpw123",
    "token_id": None,
    "token_secret": None,
}


def do(lab: Lab, module: str, *, check: bool = False, **options: Any) -> dict[str, Any]:
    """Return the result of a module that must not fail."""
    result = lab.run(module, check=check, **options)
    assert not result.get("failed"), result
    return result


def refused(lab: Lab, module: str, *, harmless: str = "nothing", **options: Any) -> dict[str, Any]:
    """Return the failure, which is the same in check mode and must come before any write except
    to the path `harmless`.
    """
    lab.simulator.reset_log()
    foreseen = lab.run(module, check=True, **options)
    result = lab.run(module, **options)
    assert result.get("failed"), result
    assert foreseen["msg"] == result["msg"]
    assert foreseen["error"] == result["error"]
    assert [row for row in lab.simulator.writes() if row["path"] != harmless] == []
    assert "Traceback" not in str(result)
    return result


def _predictable(resource: dict[str, Any] | None) -> dict[str, Any]:
    """Return a resource without the time of its next run, which only the server computes."""
    return {name: value for name, value in (resource or {}).items() if name != "next_run"}


def as_foreseen(lab: Lab, module: str, **options: Any) -> dict[str, Any]:
    """Run in check mode, then twice: no write is foreseen, the diff is the run's, and nothing is
    left to do.
    """
    lab.simulator.reset_log()
    foreseen = do(lab, module, check=True, **options)
    assert lab.simulator.writes() == []
    made = do(lab, module, **options)
    assert made["changed"]
    assert made["changed"] == foreseen["changed"]
    assert made["diff"] == foreseen["diff"]
    assert _predictable(made[module]) == _predictable(foreseen[module])
    assert made["done"] == made["plan"] == foreseen["plan"]
    assert foreseen["done"] == []
    lab.simulator.reset_log()
    again = do(lab, module, **options)
    assert not again["changed"]
    assert again["diff"] == {"before": {}, "after": {}}
    assert again[module] == made[module]
    assert lab.simulator.writes() == []
    return made


def limited(lab: Lab, name: str, roles: Mapping[str, str], *, privsep: int = 0) -> dict[str, Any]:
    """Return the login of a new user's token; the user has these roles on these paths."""
    user = f"{name}@pve"
    lab.client.write("POST", "access", "users", data={"userid": user})
    for path, role in roles.items():
        lab.client.write("PUT", "access", "acl", data={"path": path, "roles": role, "users": user})
    data = {"privsep": privsep}
    made = lab.client.write("POST", "access", "users", user, "token", "tt", data=data)
    return {"token_id": f"{user}!tt", "token_secret": made["value"]}


def requests(lab: Lab) -> list[str]:
    """Return the requests since the log was reset."""
    return [f"{row['method']} {row['path']}" for row in lab.simulator.log()]


class Overtaken(Client):
    """A client that does another run's writes right before its own first one."""

    others: list[tuple[str, tuple[str, ...], dict[str, Any]]]

    def write(self, method: str, *segments: str | int, **more: Any) -> Any:
        while self.others:
            verb, path, data = self.others.pop(0)
            super().write(verb, *path, data=data)
        return super().write(method, *segments, **more)


def overtaken(lab: Lab, *others: tuple[str, tuple[str, ...], dict[str, Any]]) -> Overtaken:
    """Return a client before whose first write another run makes these."""
    client = Overtaken(lab.client.connection)
    client.others = list(others)
    return client


def with_directory(client: Client, simulator: Simulator) -> None:
    """Give a cluster an LDAP realm with a directory that has two users and a group."""
    client.write(
        "POST",
        "access",
        "domains",
        data={
            "realm": "ldap",
            "type": "ldap",
            "server1": "127.0.0.1",
            "base_dn": "dc=lab,dc=test",
            "user_attr": "uid",
            "comment": "Staff",
            "default": 1,
        },
    )
    alice = {"email": "alice@lab.test", "firstname": "Alice"}
    directory = {"users": {"alice": alice, "bob": {}}, "groups": {"staff": ["alice"]}}
    simulator.steer("/directories/ldap", directory)
