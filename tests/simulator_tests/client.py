"""A plain API client for the simulator's own tests: what was asked, and exactly what came back."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
import urllib3

from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

urllib3.disable_warnings()


@dataclass
class Answer:
    """An answer, with its reason phrase and parsed body."""

    status: int
    reason: str
    body: Any
    headers: Any
    text: str

    @property
    def data(self) -> Any:
        """What was asked for; the answer must be a success."""
        assert self.status == 200, f"{self.status} {self.reason} {self.body}"
        return self.body["data"]

    @property
    def message(self) -> str:
        """The refusal's text."""
        return str(self.body["message"])

    @property
    def errors(self) -> dict[str, str]:
        """The texts by parameter."""
        found: dict[str, str] = self.body["errors"]
        return found


class Client:
    """Speaks to one simulator with one token (or none)."""

    def __init__(self, sim: Simulator, token: str | None = f"{TOKEN_ID}={TOKEN_SECRET}") -> None:
        self.sim = sim
        self.base = sim.url + "/api2/json"
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.verify = sim.ca
        if token:
            self.session.headers["Authorization"] = f"PVEAPIToken={token}"

    def call(
        self, verb: str, path: str, params: dict[str, Any] | None = None, **options: Any
    ) -> Answer:
        """One request.

        Parameters go to the query of GET and DELETE and to the form of the others.
        """
        if params is not None:
            options["params" if verb in ("GET", "DELETE") else "data"] = params
        answer = self.session.request(verb, self.base + path, timeout=300, **options)
        try:
            body = answer.json()
        except ValueError:
            body = None
        return Answer(answer.status_code, answer.reason, body, answer.headers, answer.text)

    def get(self, path: str, /, **params: Any) -> Any:
        """The data of a GET that must succeed."""
        return self.call("GET", path, params).data

    def post(self, path: str, /, **params: Any) -> Any:
        """The data of a POST that must succeed."""
        return self.call("POST", path, params).data

    def put(self, path: str, /, **params: Any) -> Any:
        """The data of a PUT that must succeed."""
        return self.call("PUT", path, params).data

    def delete(self, path: str, /, **params: Any) -> Any:
        """The data of a DELETE that must succeed."""
        return self.call("DELETE", path, params).data

    def status_of(self, upid: str) -> dict[str, Any]:
        """A task's status now."""
        found: dict[str, Any] = self.get(f"/nodes/{upid.split(':')[1]}/tasks/{upid}/status")
        return found

    def wait(self, upid: str, timeout: float = 30) -> str:
        """A task's exit status."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            status = self.status_of(upid)
            if status["status"] == "stopped":
                return str(status["exitstatus"])
            time.sleep(0.02)
        raise AssertionError(f"{upid} does not end")

    def task_log(self, upid: str) -> list[str]:
        """A task's lines."""
        return [
            line["t"] for line in self.get(f"/nodes/{upid.split(':')[1]}/tasks/{upid}/log", limit=0)
        ]

    def do(self, verb: str, path: str, /, **params: Any) -> str:
        """A call that starts a task: its exit status."""
        return self.wait(self.call(verb, path, params).data)

    def ok(self, verb: str, path: str, /, **params: Any) -> None:
        """A call that starts a task, which must end well."""
        result = self.do(verb, path, **params)
        assert result == "OK", result

    @staticmethod
    def until(true: Callable[[], bool], timeout: float = 30) -> None:
        """Wait until something is true."""
        end = time.monotonic() + timeout
        while not true():
            assert time.monotonic() < end, "it does not come true"
            time.sleep(0.02)

    # -- shorthands ------------------------------------------------------------------------------

    def create(self, vmid: int, node: str = "pve1", **options: Any) -> str:
        """Create a machine and return its path."""
        self.ok("POST", f"/nodes/{node}/qemu", vmid=vmid, **options)
        return f"/nodes/{node}/qemu/{vmid}"

    def config(self, path: str, **params: Any) -> dict[str, Any]:
        """A machine's configuration."""
        found: dict[str, Any] = self.get(f"{path}/config", **params)
        return found

    def pending(self, path: str) -> dict[str, dict[str, Any]]:
        """What is pending, by option."""
        items = self.get(f"{path}/pending")
        return {item["key"]: item for item in items if "pending" in item or item.get("delete")}

    def state(self, path: str) -> str:
        """running or stopped."""
        return str(self.get(f"{path}/status/current")["status"])

    def volumes(self, store: str, node: str = "pve1", **params: Any) -> set[str]:
        """The volume IDs in a storage."""
        return {
            item["volid"] for item in self.get(f"/nodes/{node}/storage/{store}/content", **params)
        }


def login_as_root(sim: Simulator) -> Client:
    """root@pam with a ticket, who may call methods that no token may call."""
    client = Client(sim, None)
    ticket = client.post("/access/ticket", username="root@pam", password="fleetpw123")
    client.session.cookies.set("PVEAuthCookie", ticket["ticket"])
    client.session.headers["CSRFPreventionToken"] = ticket["CSRFPreventionToken"]
    return client
