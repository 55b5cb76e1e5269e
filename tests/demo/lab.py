# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated cluster of the demo and of the playbook tests, and what an onlooker sees of it."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import requests

from tests.simulator.process import DEMO, TOKEN_ID, TOKEN_SECRET, Simulator

TENANT_PREFIX = "tenant_"
# What takes time on a real cluster takes a little here, so that waiting is part of what is shown.
DEMO_TASKS = "qmclone=800,qmstart=300,default=100"


@dataclass(frozen=True)
class Machine:
    """A VM as the cluster's listing shows it."""

    vmid: int
    name: str
    node: str
    status: str
    tenant: str


@dataclass(frozen=True)
class Request:
    """A request that the cluster got."""

    method: str
    path: str
    params: dict[str, Any]

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def vmid(self) -> int | None:
        """The VM that the request was for."""
        found = re.search(r"/qemu/(\d+)", self.path)
        return int(found[1]) if found else None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Login:
    """A token with its secret."""

    token_id: str
    token_secret: str


class Lab:
    """A running simulated cluster: `with Lab() as lab: ... lab.environment ...`."""

    def __init__(
        self, *, task_ms: str = DEMO_TASKS, lag_s: float = 1.0, auth_delay_s: float = 3.0
    ) -> None:
        self.lag_s = lag_s
        self.simulator = Simulator(
            "--cluster",
            DEMO,
            "--task-ms",
            task_ms,
            "--lag-s",
            lag_s,
            "--auth-delay-s",
            auth_delay_s,
        )
        self.session = requests.Session()
        self.session.trust_env = False

    def __enter__(self) -> Lab:
        self.simulator.start()
        self.session.headers["Authorization"] = f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.session.close()
        self.simulator.stop()

    # How to reach it.

    @property
    def url(self) -> str:
        return self.simulator.url

    @property
    def connection(self) -> dict[str, str]:
        """The connection options of a module."""
        host = f"{self.simulator.host}:{self.simulator.port}"
        return {
            "host": host,
            "token_id": TOKEN_ID,
            "token_secret": TOKEN_SECRET,
            "ca_path": self.simulator.ca,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as environment variables."""
        return {f"PROXMOX_{name.upper()}": value for name, value in self.connection.items()}

    # What happened.

    def mark(self) -> int:
        """Return a place in the log of requests."""
        log = self.simulator.log()
        return int(log[-1]["n"]) if log else 0

    def requests_since(self, mark: int) -> list[Request]:
        log = self.simulator.log()
        return [
            Request(one["method"], one["path"], one["params"] or {})
            for one in log
            if one["n"] > mark
        ]

    # What is there.

    def machines(self) -> list[Machine]:
        """Return all VMs that are not templates, by VMID, once the listing is up to date."""
        time.sleep(self.lag_s)
        rows = self.call("GET", "/cluster/resources", type="vm")
        found = [
            Machine(
                row["vmid"],
                row.get("name", ""),
                row["node"],
                row["status"],
                _tenant(row.get("tags", "")),
            )
            for row in rows
            if not row.get("template")
        ]
        return sorted(found, key=lambda machine: machine.vmid)

    def config(self, machine: Machine) -> dict[str, Any]:
        config: dict[str, Any] = self.call(
            "GET", f"/nodes/{machine.node}/qemu/{machine.vmid}/config"
        )
        return config

    def state(self) -> dict[str, Any]:
        """Return what is there, by what it is: who may do what, pools, options, the configuration
        of each VM, and the volumes.
        """
        found: dict[str, Any] = {
            part: sorted(self.call("GET", f"/access/{part}"), key=str)
            for part in ("roles", "acl", "groups", "domains")
        }
        found["users"] = sorted(self.call("GET", "/access/users", full=1), key=str)
        found["options"] = self.call("GET", "/cluster/options")
        for row in self.call("GET", "/pools"):
            found[f"pool {row['poolid']}"] = sorted(
                member["id"]
                for member in self.call("GET", "/pools", poolid=row["poolid"])[0]["members"]
            )
        for row in self.call("GET", "/cluster/resources", type="vm"):
            path = f"/nodes/{row['node']}/{row['id']}/config"
            found[row["id"]] = self.call("GET", path)
        found["volumes"] = sorted(one["volid"] for one in self.simulator.ask("GET", "/volumes"))
        return found

    def attempt(self, login: Login, verb: str, resource: str) -> tuple[int, str]:
        """Return status and reason of the answer to a request of another login."""
        answer = requests.request(
            verb,
            f"{self.url}/api2/json{resource}",
            headers={"Authorization": f"PVEAPIToken={login.token_id}={login.token_secret}"},
            verify=str(self.simulator.ca),
            timeout=30,
        )
        return answer.status_code, answer.reason

    def call(self, verb: str, resource: str, **params: Any) -> Any:
        """Return the data of PVE's answer; waits for the task if there is one."""
        in_url = verb in ("GET", "DELETE")
        answer = self.session.request(
            verb,
            f"{self.url}/api2/json{resource}",
            params=params if in_url else None,
            data=None if in_url else params,
            verify=self.simulator.ca,
            timeout=30,
        )
        if not answer.ok:
            raise RuntimeError(
                f"{verb} {resource}: {answer.status_code} {answer.reason}: {answer.text}"
            )
        data = answer.json()["data"]
        if isinstance(data, str) and data.startswith("UPID:"):
            self._wait(data)
        return data

    def _wait(self, upid: str) -> None:
        node = upid.split(":")[1]
        while True:
            status = self.call("GET", f"/nodes/{node}/tasks/{upid}/status")
            if status["status"] == "stopped":
                break
            time.sleep(0.02)
        if status["exitstatus"] != "OK":
            raise RuntimeError(f"{upid}: {status['exitstatus']}")

    # What a test needs beside the estate.

    def reset(self) -> None:
        """Go back to the state at the start, with an empty log."""
        self.simulator.reset()

    def make_vm(self, name: str, **options: Any) -> int:
        """Create a small VM on pve1 and return its VMID."""
        vmid = int(self.call("GET", "/cluster/nextid"))
        self.call("POST", "/nodes/pve1/qemu", vmid=vmid, name=name, memory=128, **options)
        return vmid

    def make_template(self, name: str) -> int:
        vmid = self.make_vm(name)
        self.call("POST", f"/nodes/pve1/qemu/{vmid}/template")
        return vmid

    def make_token(self, user: str, token: str, privileges: Sequence[str]) -> dict[str, str]:
        """Make a role, a user and a token as docs/getting-started.md says.

        Return its connection options.
        """
        self.call("POST", "/access/roles", roleid="Fleet", privs=",".join(privileges))
        self.call("POST", "/access/users", userid=user)
        self.call("PUT", "/access/acl", path="/", users=user, roles="Fleet")
        made = self.call("POST", f"/access/users/{user}/token/{token}", privsep=0)
        return {**self.connection, "token_id": made["full-tokenid"], "token_secret": made["value"]}


def _tenant(tags: str) -> str:
    owners = [
        tag.removeprefix(TENANT_PREFIX) for tag in tags.split(";") if tag.startswith(TENANT_PREFIX)
    ]
    return owners[0] if len(owners) == 1 else ""
