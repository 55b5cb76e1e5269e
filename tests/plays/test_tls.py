# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that must not be trusted, met by modules (both ways), the inventory and the lookup."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cases import cases, repeated
from tests.certificates import Authority, Pair, self_signed
from tests.plays.commands import run
from tests.plays.inventory_helpers import Lister, one_line
from tests.plays.test_in_process import MINIMAL
from tests.renegotiating import renegotiating
from tests.scripted import Reply, Scripted, serving
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

PASSWORD = "not-for-strangers-1"
TICKET = "PVE:root@pam:not-for-strangers-2"
LOGIN = "/access/ticket"
GOOD_LOGIN = Reply(
    {"ticket": TICKET, "CSRFPreventionToken": "1:not-for-strangers-3"},
    headers={"Connection": "close"},
)
WAYS = {"in the controller": True, "as a process": False}


@dataclass(frozen=True)
class Case:
    """What a user reads about a server, and the requests that may reach it."""

    category: str
    cause: str
    next_step: str
    requests: tuple[str, ...] = ()


CASES: Mapping[str, Case] = {
    "expired": Case("NetworkError", "has expired", "Renew it on the node"),
    "not yet valid": Case("NetworkError", "is not valid yet", "Compare the clocks"),
    "wrong host": Case(
        "NetworkError",
        "is not made for this name",
        "Use a name or address that the certificate holds as host",
    ),
    "unknown CA": Case(
        "NetworkError", "is not signed by a trusted CA", "take /etc/pve/pve-root-ca.pem from a node"
    ),
    "self-signed": Case("NetworkError", "is signed by no CA", "Set ca_path to a copy"),
    "replaced in the middle": Case(
        "NetworkError",
        "is not signed by a trusted CA",
        "take /etc/pve/pve-root-ca.pem from a node",
        (f"POST {LOGIN}",),
    ),
    "renegotiated": Case(
        "NetworkError",
        "wants another TLS handshake in the middle of a connection, which is refused",
        "Proxmox VE never does this",
        (f"POST {LOGIN}", "GET"),
    ),
    "plain HTTP": Case("NetworkError", "does not speak TLS", "PVE serves HTTPS on 8006"),
    "login redirected": Case(
        "ConfigurationError",
        "redirects the request (status 307)",
        "credentials are never sent elsewhere",
        (f"POST {LOGIN}",),
    ),
    "request redirected": Case(
        "ConfigurationError",
        "redirects the request (status 302)",
        "credentials are never sent elsewhere",
        (f"POST {LOGIN}", "GET"),
    ),
}


@dataclass
class Doors:
    """A server for each case, and the one that two of them redirect to."""

    servers: dict[str, Scripted]
    elsewhere: Scripted
    ca: Path

    def options(self, case: str) -> dict[str, Any]:
        """The connection of a task."""
        return {
            "host": f"127.0.0.1:{self.servers[case].port}",
            "user": "root@pam",
            "password": PASSWORD,
            "ca_path": str(self.ca),
        }

    def forget(self) -> None:
        """Forget all requests."""
        for server in self.servers.values():
            server.seen.clear()

    def reached(self, case: str) -> list[str]:
        """The requests that reached the server, without the path of those after the login."""
        found = []
        for one in self.servers[case].seen:
            path = one.path.removeprefix("/api2/json")
            found.append(f"{one.method} {path}" if path == LOGIN else one.method)
        return found


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    where = tmp_path_factory.mktemp("tls")
    ours, other = Authority(where), Authority(where, "other CA")
    good, stranger = ours.issue("good"), other.issue("stranger")
    pairs: dict[str, list[Pair]] = {
        "expired": [ours.issue("expired", days_ago=30)],
        "not yet valid": [ours.issue("early", days_ago=-30)],
        "wrong host": [ours.issue("elsewhere", "127.0.0.2")],
        "unknown CA": [stranger],
        "self-signed": [self_signed(where)],
        "replaced in the middle": [good, stranger],
        "plain HTTP": [],
        "login redirected": [good],
        "request redirected": [good],
    }
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(serving(ours.file, given)) for name, given in pairs.items()
        }
        again = renegotiating(ours.file, good, stranger)
        servers["renegotiated"] = stack.enter_context(again)
        assert set(servers) == set(CASES)
        elsewhere = stack.enter_context(serving(ours.file, [good]))
        there = {"Location": f"https://127.0.0.1:{elsewhere.port}/api2/json{LOGIN}"}
        for server in servers.values():
            server.fixed[LOGIN] = GOOD_LOGIN
            server.replies = [Reply(status=302, reason="Found", headers=there)]
        servers["renegotiated"].fixed[LOGIN] = Reply(GOOD_LOGIN.data)  # the connection stays
        servers["login redirected"].fixed[LOGIN] = Reply(
            status=307, reason="Temporary Redirect", headers=there
        )
        yield Doors(servers, elsewhere, ours.file)


def play(
    where: Path,
    tasks: list[dict[str, Any]],
    connection: Mapping[str, Any],
    *arguments: str,
    **variables: Any,
) -> tuple[list[dict[str, Any]], str]:
    """Return the result of each task, and all that was printed."""
    registered = [{**task, "register": f"r{number}"} for number, task in enumerate(tasks)]
    results = ", ".join(task["register"] for task in registered)
    last = {
        "keep": {"content": f"{{{{ [{results}] | to_json }}}}", "dest": "r.json"},
        "no_log": True,
    }
    plays = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "module_defaults": {"group/pve.fleet.all": dict(connection)},
            "vars": {"ansible_python_interpreter": "{{ ansible_playbook_python }}", **variables},
            "tasks": [*registered, last],
        }
    ]
    (where / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
    environment = {**os.environ, "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false", "COLUMNS": "999"}
    done = run(["ansible-playbook", "-vvv", "play.yml", *arguments], where, environment)
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    return json.loads((where / "r.json").read_text(encoding="utf-8")), output


def refused(case: str, text: str) -> bool:
    """Whether a message has cause and next step; older Ansible breaks its lines at hyphens too."""
    wanted, shown = CASES[case], _unbroken(text)
    return _unbroken(wanted.cause) in shown and _unbroken(wanted.next_step) in shown


def _unbroken(text: str) -> str:
    return "".join(text.split())


# As a process, test_every_module_refuses_a_certificate_of_another_ca is the slow one.
@pytest.mark.parametrize("way", repeated(WAYS, more=0))
def test_modules_refuse_it(doors: Doors, tmp_path: Path, way: str) -> None:
    """One module that reads, and one that writes."""
    doors.forget()
    tasks = [
        {f"pve.fleet.{module}": {**MINIMAL[module], **doors.options(case)}, "ignore_errors": True}
        for case in CASES
        for module in ("vm_info", "pool")
    ]
    results, output = play(tmp_path, tasks, {}, pve_fleet_in_process=WAYS[way])
    for index, (case, wanted) in enumerate(CASES.items()):
        for result in results[2 * index : 2 * index + 2]:
            assert result["error"]["category"] == wanted.category, (case, result["msg"])
            assert refused(case, result["msg"]), (case, result["msg"])
            assert result["error"]["retryable"] is False, case
        assert doors.reached(case) == [*wanted.requests] * 2, case
    assert doors.elsewhere.connections == 0
    assert "not-for-strangers" not in output


def cause_in(module: str, result: Mapping[str, Any]) -> str:
    """Return why a module could not do its work, also where that is a row of its report."""
    if module == "drift_info":
        assert not result["drift"]["complete"], result
        return str(result["drift"]["sites"])
    if module == "report_info":
        assert not result["report"]["complete"], result
        return str(result["report"])
    if module == "usage":
        assert not result["complete"], result
        return str(result["sites"])
    if module in ("metrics", "metrics_info"):
        assert not result["complete"], result
        return str(result["missing"])
    if module == "preflight_info":
        assert not result["passed"], result
        return str(result["failed_checks"])
    assert result["error"]["category"] == "NetworkError", (module, result)
    return str(result["msg"])


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_module_refuses_a_certificate_of_another_ca(
    doors: Doors, tmp_path: Path, way: str
) -> None:
    modules = [name for name in MINIMAL if name != "relocate"]  # it has two sites
    if not WAYS[way]:  # the same code: in `make test-long` all
        modules = cases(full=modules, short=["vms", "audit_info"])
    doors.forget()
    tasks = [{f"pve.fleet.{module}": MINIMAL[module], "ignore_errors": True} for module in modules]
    results, output = play(
        tmp_path, tasks, doors.options("unknown CA"), pve_fleet_in_process=WAYS[way]
    )
    for module, result in zip(modules, results, strict=True):
        assert "is not signed by a trusted CA" in cause_in(module, result), (module, result)
    assert doors.reached("unknown CA") == []
    assert "not-for-strangers" not in output


def test_the_inventory_refuses_it(doors: Doors, tmp_path: Path) -> None:
    doors.forget()
    sources = []
    for number, case in enumerate(CASES):
        file = tmp_path / f"{number}.proxmox.yml"
        plugin = {"plugin": "pve.fleet.proxmox", **doors.options(case)}
        file.write_text(json.dumps(plugin), encoding="utf-8")
        sources += ["-i", file.name]
    environment = {**os.environ, "ANSIBLE_INVENTORY_ENABLED": "pve.fleet.proxmox"}
    done = run(["ansible-inventory", "-vvv", "--list", *sources], tmp_path, environment)
    warned = [part for part in one_line(done.stderr).split("[WARNING]: ") if "Error)" in part]
    for number, (case, wanted) in enumerate(CASES.items()):
        (text,) = [line for line in warned if f"/{number}.proxmox.yml" in line]
        assert f"({wanted.category})" in text, (case, text)
        assert refused(case, text), (case, text)
        assert doors.reached(case) == [*wanted.requests], case
    assert doors.elsewhere.connections == 0
    assert "not-for-strangers" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_the_lookup_refuses_it(doors: Doors, tmp_path: Path) -> None:
    doors.forget()
    tasks = [
        {
            "ansible.builtin.debug": {"msg": "{{ lookup('pve.fleet.vm', 'web', **of) }}"},
            "vars": {"of": doors.options(case)},
            "ignore_errors": True,
        }
        for case in CASES
    ]
    results, output = play(tmp_path, tasks, {})
    for (case, wanted), result in zip(CASES.items(), results, strict=True):
        assert f"({wanted.category})" in result["msg"], (case, result)
        assert refused(case, result["msg"]), (case, result)
        assert doors.reached(case) == [*wanted.requests], case
    assert doors.elsewhere.connections == 0
    assert "not-for-strangers" not in output


UNVERIFIED = "is not verified (validate_certs=false)"


@pytest.mark.parametrize("way", repeated(WAYS))
@pytest.mark.parametrize("verified", [True, False])
def test_verification_off_warns_once_a_run(
    simulator: Simulator, tmp_path: Path, verified: bool, way: str
) -> None:
    """Two tasks, two items and two lookups give one warning that is shown."""
    connection: dict[str, Any] = {
        "host": simulator.url,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
    }
    if verified:
        connection["ca_path"] = simulator.ca
    else:
        connection["validate_certs"] = False
    lookup = {"ansible.builtin.debug": {"msg": "{{ lookup('pve.fleet.vm', 10001, **of).vmid }}"}}
    tasks: list[dict[str, Any]] = [
        {"pve.fleet.vm_info": {"vmid": 10001}},
        {"pve.fleet.pool": {"name": "{{ item }}"}, "loop": ["one", "two"]},
        {"pve.fleet.pool": {"name": "one", "state": "nonsense"}, "ignore_errors": True},
        lookup,
        lookup,
    ]
    results, output = play(
        tmp_path, tasks, connection, pve_fleet_in_process=WAYS[way], of=connection
    )
    # Ansible before 2.19 breaks the lines of a warning.
    shown = one_line(output).split("[WARNING]: The certificate of ")[1:]
    warned = [text for text in shown if text.partition(" ")[2].startswith(UNVERIFIED)]
    assert len(warned) == (0 if verified else 1), output
    if not verified:
        said = warned[0].partition("TASK [")[0]
        assert "get the credentials" in said
        assert "Set ca_path to the CA of the cluster" in said
        assert UNVERIFIED in results[0]["warnings"][0]
        assert "warnings" not in results[2]  # refused before any connection was looked at


@pytest.mark.parametrize("verified", [True, False])
def test_verification_off_warns_once_an_inventory(listed: Lister, verified: bool) -> None:
    trust: dict[str, Any] = {} if verified else {"ca_path": "", "validate_certs": False}
    found = listed(**trust)
    assert len(found.hosts) == 13
    assert one_line(found.errors).count(UNVERIFIED) == (0 if verified else 1)


def test_each_site_without_verification_is_named(listed: Lister, simulator: Simulator) -> None:
    here = {"host": f"127.0.0.1:{simulator.port}", "ca_path": simulator.ca}
    there = {"host": f"localhost:{simulator.port}", "validate_certs": False}
    found = listed(host="", ca_path="", sites=[{"name": "a", **here}, {"name": "b", **there}])
    warned = one_line(found.errors)
    assert warned.count(UNVERIFIED) == 1
    assert f"localhost:{simulator.port} {UNVERIFIED}" in warned
