# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the real `ansible-inventory` against the simulator."""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.plays import commands
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

LISTING = "GET /cluster/resources"
NODE_VMS = "GET /nodes/{node}/qemu"
AGENT = "GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces"
CONFIG = "GET /nodes/{node}/qemu/{vmid}/config"
SNAPSHOTS = "GET /nodes/{node}/qemu/{vmid}/snapshot"

YAML = {"ANSIBLE_INVENTORY_ENABLED": "ansible.builtin.yaml"}


@dataclass
class Listed:
    """What `ansible-inventory --list` said."""

    code: int
    errors: str
    data: dict[str, Any] = field(default_factory=dict)

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        """The variables of each host."""
        return self.data.get("_meta", {}).get("hostvars", {})

    def group(self, name: str) -> list[str]:
        """The hosts of a group, sorted."""
        return sorted(self.data.get(name, {}).get("hosts", []))

    @property
    def groups(self) -> set[str]:
        """The groups that have hosts, without those of Ansible itself."""
        return {
            name for name, group in self.data.items() if name != "_meta" and group.get("hosts")
        } - {"ungrouped"}

    def host_of(self, vmid: int) -> str:
        """The name of the host that is this VM."""
        (found,) = [name for name, one in self.hosts.items() if one["proxmox_vmid"] == vmid]
        return found

    def by_name(self, end: str) -> dict[str, Any]:
        """The variables of the only host whose name ends so."""
        (found,) = [one for name, one in self.hosts.items() if name.endswith(end)]
        return found

    def by_vmid(self, vmid: int) -> dict[str, Any]:
        """The variables of the host that is this VM."""
        return self.hosts[self.host_of(vmid)]


@dataclass
class Lister:
    """Writes inventory files and lists them."""

    simulator: Simulator
    directory: Path

    @property
    def connection(self) -> dict[str, Any]:
        """The options that reach the simulator with its token."""
        return {
            "host": self.simulator.url,
            "ca_path": self.simulator.ca,
            "token_id": TOKEN_ID,
            "token_secret": TOKEN_SECRET,
        }

    def __call__(
        self,
        *arguments: str,
        environ: dict[str, str] | None = None,
        name: str = "fleet.proxmox.yml",
        connect: bool = True,
        **options: Any,
    ) -> Listed:
        """Return what an inventory file with these options lists.

        The log of the simulator starts afresh.
        """
        file = self.directory / name
        base = self.connection if connect else {}
        # JSON is YAML, and cannot be misread.
        file.write_text(json.dumps({"plugin": "pve.fleet.proxmox", **base, **options}))
        if self.simulator.process is not None:
            self.simulator.reset_log()
        done = run(
            "ansible-inventory",
            "-i",
            str(file),
            "--list",
            *arguments,
            environ=environ,
            cwd=self.directory,
        )
        data = json.loads(done.stdout) if done.stdout.strip().startswith("{") else {}
        return Listed(done.returncode, done.stderr, data)


def run(
    *command: str, environ: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of Ansible; a source that cannot be parsed is an error of the command.

    Commands with `YAML` in their environment are usual, as those with variables of the collection.
    """
    given = environ or {}
    own = {name for name, _value in given.items() - YAML.items()}
    known = {
        **os.environ,
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "true",
        "ANSIBLE_INVENTORY_ENABLED": "pve.fleet.proxmox",
        **given,
    }
    usual = all(name.startswith(commands.UNREAD) for name in own)
    return commands.run(list(command), cwd or Path.cwd(), known, usual=usual)


def call(simulator: Simulator, method: str, path: str, **data: Any) -> None:
    """Make one request to the simulated API, for example to create a VM."""
    request = urllib.request.Request(
        f"{simulator.url}/api2/json{path}",
        data=urllib.parse.urlencode(data).encode(),
        method=method,
        headers={"Authorization": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"},
    )
    with urllib.request.urlopen(
        request, timeout=300, context=ssl.create_default_context(cafile=simulator.ca)
    ):
        pass


def replaced(simulator: Simulator, vmid: int, **options: Any) -> None:
    """Remove a VM and make another one with its number, of which the listing does not know yet."""
    (node,) = [
        str(row["node"])
        for row in ask(simulator, "/cluster/resources?type=vm")
        if row["vmid"] == vmid
    ]
    guest = f"/nodes/{node}/qemu/{vmid}"
    simulator.steer("/settings", {"lag_s": 300, "task_ms": {"default": 0}})
    call(simulator, "POST", f"{guest}/status/stop")
    wait_until(lambda: ask(simulator, f"{guest}/status/current")["status"] == "stopped")
    call(simulator, "DELETE", guest)
    wait_until(lambda: vmid not in vmids_on(simulator, node))
    call(simulator, "POST", f"/nodes/{node}/qemu", vmid=vmid, **options)
    wait_until(lambda: vmid in vmids_on(simulator, node))


def vmids_on(simulator: Simulator, node: str) -> list[int]:
    return [row["vmid"] for row in ask(simulator, f"/nodes/{node}/qemu")]


def wait_until(holds: Callable[[], bool]) -> None:
    for _try in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not happen within 30 s")


def ask(simulator: Simulator, path: str) -> Any:
    """Return the data of one request to the simulated API."""
    request = urllib.request.Request(
        f"{simulator.url}/api2/json{path}",
        headers={"Authorization": f"PVEAPIToken={TOKEN_ID}={TOKEN_SECRET}"},
    )
    context = ssl.create_default_context(cafile=simulator.ca)
    with urllib.request.urlopen(request, timeout=300, context=context) as answer:
        return json.load(answer)["data"]


def most_at_once(requests: list[dict[str, Any]]) -> int:
    """Return how many of these requests, as the simulator logged them, were under way at the same
    time.
    """
    spans = [(one["time"], one["time"] + one["ms"] / 1000) for one in requests]
    return max(
        (sum(first <= start < ended for first, ended in spans) for start, _end in spans), default=0
    )


def configure(simulator: Simulator, vmid: int, **changes: Any) -> None:
    """Change a VM's configuration behind the API."""
    simulator.steer(f"/vms/{vmid}", {"config": changes})


def one_line(errors: str) -> str:
    """Return what is said about the failure, as one line."""
    return " ".join(errors.split())
