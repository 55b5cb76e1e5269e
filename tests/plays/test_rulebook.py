# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event source, the event filter and the rulebooks, run by the real ansible-rulebook.

It has an environment of its own, and needs a Java runtime: without it the tests skip.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml

from tests.demo.lab import Lab
from tests.tools.environments import NotBuilt, Requirements, build
from tests.tools.stage import REPO

pytestmark = pytest.mark.long

HOME = REPO / "build" / "rulebook"
REQUIREMENTS = (Requirements("tests/requirements-rulebook.txt"),)
RULEBOOKS = REPO / "extensions" / "eda" / "rulebooks"
_JAVA = 17  # ansible-rulebook: cli.py, MIN_JAVA_VERSION
_PATIENCE = 120.0


def _java_version() -> int:
    """Return the major version of the Java runtime, 0 without one."""
    program = shutil.which("java")
    if program is None:
        return 0
    done = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0


@pytest.fixture(scope="module")
def program() -> Path:
    """The program ansible-rulebook in its environment."""
    if _java_version() < _JAVA:
        pytest.skip(f"ansible-rulebook needs a Java runtime, version {_JAVA} or newer")
    try:
        python = build(HOME, REQUIREMENTS)
    except NotBuilt as error:
        pytest.skip(f"the environment of ansible-rulebook: {error}")
    return python.parent / "ansible-rulebook"


class Running:
    """A running ansible-rulebook, and the lines of its output so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text: str, number: int = 1) -> None:
        """Return as soon as this number of lines has a text."""
        end = time.monotonic() + _PATIENCE
        while self.count(text) < number:
            assert self.process.poll() is None, "\n".join(self.lines)
            assert time.monotonic() < end, "\n".join(self.lines)
            time.sleep(0.05)

    def count(self, text: str) -> int:
        return sum(text in line for line in self.lines)

    def events(self) -> list[dict[str, Any]]:
        """Return the events that a rule printed."""
        found = []
        for line in self.lines:
            if line.startswith("EVENT "):
                found.append(json.loads(line.removeprefix("EVENT ")))
        return found


@contextmanager
def running(
    program: Path, rulebook: str, place: Path, lab: Lab | None, **variables: Any
) -> Iterator[Running]:
    """Run a rulebook, and end it with SIGTERM."""
    given = place / "variables.yml"
    given.write_text(yaml.safe_dump(variables), encoding="utf-8")
    inventory = place / "inventory.yml"
    inventory.write_text("all: {hosts: {localhost: {ansible_connection: local}}}", encoding="utf-8")
    seen = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    if lab is not None:
        seen |= lab.environment
    seen["PATH"] = os.pathsep.join([str(program.parent), seen["PATH"]])
    command = [str(program), "--rulebook", rulebook, "--inventory", str(inventory)]
    process = subprocess.Popen(
        [*command, "--vars", str(given), "--verbose"],
        cwd=place,
        env=seen,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield Running(process)
    finally:
        process.terminate()
        process.wait()


def print_all(place: Path, **source: Any) -> str:
    """Write a rulebook that prints each event of the source, and return its path."""
    rule = {
        "name": "Print",
        "condition": "event.type is defined",
        "action": {"debug": {"msg": "EVENT {{ event | tojson }}"}},
    }
    text = yaml.safe_dump(
        [
            {
                "name": "Print all",
                "hosts": "localhost",
                "gather_facts": False,
                "sources": [{"pve.fleet.cluster_events": source}],
                "rules": [rule],
            }
        ]
    )
    file = place / "print_all.yml"
    file.write_text(text, encoding="utf-8")
    return str(file)


def wait_for_position(state: Path) -> None:
    """Return as soon as the first reading is in the file."""
    end = time.monotonic() + _PATIENCE
    while not state.exists():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_the_rules_of_the_first_day(program: Path, lab: Lab, tmp_path: Path) -> None:
    """A guest without a tenant, a node that is down, and a tenant at 90 % of its quota."""
    state = tmp_path / "events.json"
    variables = {
        "pve_state_file": str(state),
        "pve_interval": 1,
        "pve_quotas": {"acme": {"vms": 10}},
    }
    with running(program, "pve.fleet.watch_cluster", tmp_path, lab, **variables) as run:
        wait_for_position(state)
        simulator = lab.simulator
        simulator.ask("POST", "/vms/150", {"node": "pve1", "name": "stray"})
        run.wait_for("vm 150 (stray) on pve1: no tenant tag")
        for vmid in range(151, 160):
            tagged = {"node": "pve1", "name": f"web{vmid}", "config": {"tags": "tenant_acme"}}
            simulator.ask("POST", f"/vms/{vmid}", tagged)
        run.wait_for("tenant acme uses 90.0 % of its vms")
        simulator.steer("/nodes/pve3", {"online": False})
        run.wait_for("node pve3 is offline")
        assert run.count("no tenant tag") == 1
        assert run.count("is not watched completely") == 0


def test_a_failed_backup(program: Path, lab: Lab, tmp_path: Path) -> None:
    state = tmp_path / "events.json"
    lab.simulator.ask("POST", "/vms/150", {"node": "pve1", "name": "web", "lock": "migrate"})
    with running(
        program, "pve.fleet.watch_cluster", tmp_path, lab, pve_state_file=str(state), pve_interval=1
    ) as run:
        wait_for_position(state)
        lab.session.post(
            f"{lab.simulator.url}/api2/json/nodes/pve1/vzdump",
            data={"vmid": 150, "storage": "local"},
            verify=lab.simulator.ca,
        ).raise_for_status()
        run.wait_for("backup of [150] on pve1 failed: ")


def test_nothing_is_lost_or_repeated_over_a_kill(program: Path, lab: Lab, tmp_path: Path) -> None:
    """The process is killed; what happens before it runs again is reported then."""
    state = tmp_path / "events.json"
    rulebook = print_all(tmp_path, state_file=str(state), interval=1)
    with running(program, rulebook, tmp_path, lab) as first:
        wait_for_position(state)
        lab.simulator.ask("POST", "/vms/150", {"node": "pve1", "name": "a"})
        first.wait_for("EVENT ")
        first.process.kill()
        first.process.wait()
    lab.simulator.ask("POST", "/vms/151", {"node": "pve1", "name": "b"})
    with running(program, rulebook, tmp_path, lab) as second:
        second.wait_for("guest_appeared")
        lab.simulator.ask("DELETE", "/vms/150", None)
        second.wait_for("guest_disappeared")
    # an event that was not noted before the kill comes again, with the same ID
    by_id = {event["id"]: event for event in (*first.events(), *second.events())}
    reported = [(event["type"], event["name"]) for event in by_id.values()]
    assert reported == [
        ("guest_appeared", "a"),
        ("guest_appeared", "b"),
        ("guest_disappeared", "a"),
    ]
    assert lab.environment["PROXMOX_TOKEN_SECRET"] not in "\n".join([*first.lines, *second.lines])


def test_notifications(program: Path, tmp_path: Path) -> None:
    """The body is that of docs/events.md, as Proxmox VE renders it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variables = {
        "pve_webhook_host": "127.0.0.1",
        "pve_webhook_port": port,
        "pve_webhook_token": "not-secret",
    }
    body = {
        "title": "vzdump backup status (pve1.example.com): backup failed",
        "message": "Details",
        "severity": "error",
        "timestamp": 1795208400,
        "fields": {"type": "vzdump", "hostname": "pve1"},
    }
    headers = {"Authorization": "Bearer not-secret"}
    session = requests.Session()
    session.trust_env = False
    with running(program, "pve.fleet.notifications", tmp_path, None, **variables) as run:
        end = time.monotonic() + _PATIENCE
        while True:
            assert time.monotonic() < end, "\n".join(run.lines)
            try:
                url = f"http://127.0.0.1:{port}/endpoint"
                session.post(url, json=body, headers=headers).raise_for_status()
                break
            except requests.ConnectionError:
                time.sleep(0.05)
        run.wait_for("backup on pve1 failed: vzdump backup status (pve1.example.com)")
