# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plugins, in playbooks: commands of the guests are processes of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.plays.inventory_helpers import YAML, configure, run
from tests.simulator.process import TOKEN_ID, TOKEN_SECRET, Simulator

PLAY = Path(__file__).with_name("connection_play.yml")
VMID = 10000
CTID = 10500
LOGIN = {"ansible_pve_token_id": TOKEN_ID, "ansible_pve_token_secret": TOKEN_SECRET}
# What the stand-in for `pct` on a node says of a container that is elsewhere, and of one that does
# not run (pve-container: CLI/pct.pm, exec; LXC.pm).
PCT = """#!/bin/sh
here=$(cat "$(dirname "$0")/node")
test "$1" = exec || exit 99
if test -e "$(dirname "$0")/at" && test "$(cat "$(dirname "$0")/at")" != "$here"; then
    echo "Configuration file 'nodes/$here/lxc/$2.conf' does not exist" >&2; exit 2
fi
if test -e "$(dirname "$0")/stopped"; then
    echo "container '$2' not running!" >&2; exit 255
fi
shift 3
cd {root} && exec "$@"
"""
# The stand-in for `ssh`: it runs the last argument, with the address of the node before it.
SSH = """#!{python}
import os, sys
os.environ["PATH"] = "{bin}:" + os.environ["PATH"]
host, command = sys.argv[-2:]
with open("{bin}/node", "w") as stream:
    stream.write(host)
with open("{bin}/calls", "a") as stream:
    stream.write(host + "\\n")
os.execv("/bin/sh", ["sh", "-c", command])
"""


class Guests:
    """An inventory with one guest, and the ends of plays with it."""

    def __init__(self, simulator: Simulator, directory: Path) -> None:
        self.directory = directory
        self.simulator = simulator
        self.variables: dict[str, Any] = {
            **LOGIN,
            "ansible_pve_host": simulator.host,
            "ansible_pve_port": simulator.port,
            "ansible_pve_ca_path": simulator.ca,
            "ansible_python_interpreter": sys.executable,
            "local_tmp": str(directory / "local"),
            "remote_tmp": str(directory / "remote"),
            "is_root": os.geteuid() == 0 and shutil.which("su") is not None,
        }

    def play(self, file: Path) -> subprocess.CompletedProcess[str]:
        """Run a playbook on the guest."""
        inventory = self.directory / "hosts.yml"
        hosts = {"guest": {"hosts": {"web": self.variables}}}
        inventory.write_text(yaml.safe_dump({"all": {"children": hosts}}))
        done: subprocess.CompletedProcess[str] = run(
            *("ansible-playbook", "-i", str(inventory), str(file)), cwd=self.directory, environ=YAML
        )
        return done

    def raw(self, command: str = "echo here") -> str:
        """Run one command, and return the output of the play."""
        return self.task({"ansible.builtin.raw": command})

    def task(self, task: dict[str, Any]) -> str:
        """Run one task, and return the output of the play."""
        done = self.play(self.one_task(task))
        return done.stdout + done.stderr

    def one_task(self, task: dict[str, Any], hosts: str = "guest") -> Path:
        """Return a playbook that runs one task and shows its output."""
        file = self.directory / "task.yml"
        shown = {"ansible.builtin.debug": {"msg": "said={{ done.stdout }}"}}
        tasks = [{**task, "register": "done"}, shown]
        file.write_text(yaml.safe_dump([{"hosts": hosts, "gather_facts": False, "tasks": tasks}]))
        return file


@pytest.fixture
def guests(simulator: Simulator, tmp_path: Path) -> Guests:
    for name in ("guest", "local"):
        (tmp_path / name).mkdir()
    return Guests(simulator, tmp_path)


@pytest.fixture
def vm(guests: Guests) -> Guests:
    """A VM whose agent runs commands in a directory of this machine."""
    simulator = guests.simulator
    configure(simulator, VMID, name="web", tags="tenant_acme", agent="1")
    simulator.steer(f"/vms/{VMID}", {"running": True})
    simulator.steer(f"/vms/{VMID}", {"processes_in": str(guests.directory / "guest")})
    guests.variables.update(
        ansible_connection="pve.fleet.agent", proxmox_vmid=VMID, proxmox_name="web"
    )
    return guests


def stand_in_for_ssh(directory: Path, guest: Path) -> Path:
    """Return a program that stands in for SSH to a node, whose `pct` runs commands in `guest`.

    Without a file `at` with the name of a node, the container is on every node.
    """
    directory.mkdir()
    programs = {
        "ssh": SSH.format(python=sys.executable, bin=directory),
        "pct": PCT.format(root=guest),
    }
    for name, text in programs.items():
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    return directory / "ssh"


@pytest.fixture
def container(guests: Guests) -> Guests:
    """A container, and a stand-in for SSH to its node."""
    config = {"hostname": "web", "tags": "tenant_acme"}
    guests.simulator.ask("POST", f"/containers/{CTID}", {"node": "pve1", "config": config})
    bin_directory = guests.directory / "bin"
    ssh = stand_in_for_ssh(bin_directory, guests.directory / "guest")
    (bin_directory / "at").write_text("pve1")
    guests.variables.update(
        ansible_connection="pve.fleet.pct",
        proxmox_vmid=CTID,
        proxmox_name="web",
        proxmox_node="pve1",
        ansible_pct_node_addresses={"pve1": "pve1", "pve2": "pve2"},
        ansible_pct_node_ssh_executable=str(ssh),
    )
    return guests


@pytest.mark.parametrize("kind", ["vm", "container"])
def test_a_connection(kind: str, request: pytest.FixtureRequest) -> None:
    guests: Guests = request.getfixturevalue(kind)
    done = guests.play(PLAY)
    assert done.returncode == 0, done.stdout + done.stderr
    fetched = guests.directory / "local" / "fetched"
    for name in ("large", "empty.txt", "汉语.txt"):
        assert (fetched / name).read_bytes() == (
            guests.directory / "remote" / "汉语" / name
        ).read_bytes()
    assert (fetched / "large").stat().st_size > 3_000_000
    assert not list(Path("/tmp").glob(".pve-fleet.*"))


@pytest.mark.parametrize("kind", ["vm", "container"])
@pytest.mark.parametrize("pipelining", [False, True])
def test_pipelining(kind: str, pipelining: bool, request: pytest.FixtureRequest) -> None:
    """With it, a module comes to the guest as input of Python, and no file is written there."""
    guests: Guests = request.getfixturevalue(kind)
    remote = guests.directory / "tmp-of-ansible"
    guests.variables["ansible_remote_tmp"] = str(remote)
    guests.variables["ansible_pipelining"] = pipelining
    text = "汉语 'quoted \"twice\"'"
    command = {"argv": ["cat"], "stdin": text, "stdin_add_newline": False}
    output = guests.task({"ansible.builtin.command": command})
    assert "said=汉语 'quoted" in output
    assert remote.exists() is not pipelining


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user without a password")
@pytest.mark.parametrize("kind", ["vm", "container"])
def test_become(kind: str, request: pytest.FixtureRequest) -> None:
    guests: Guests = request.getfixturevalue(kind)
    become = {"become": True, "become_method": "ansible.builtin.su", "become_user": "daemon"}
    flags = {"vars": {"ansible_become_flags": "-s /bin/sh"}}
    assert "said=daemon" in guests.task({"ansible.builtin.raw": "id -un", **become, **flags})


@pytest.mark.parametrize(("kind", "group"), [("vm", "kind_vm"), ("container", "kind_container")])
def test_one_option_of_the_inventory_is_enough(
    kind: str, group: str, request: pytest.FixtureRequest
) -> None:
    """The inventory names the plugin, the guest, and its tenant."""
    guests: Guests = request.getfixturevalue(kind)
    configure(guests.simulator, VMID, name="web" if kind == "vm" else "other")
    inventory = guests.directory / "fleet.proxmox.yml"
    options = {
        "plugin": "pve.fleet.proxmox",
        "host": guests.simulator.url,
        "ca_path": guests.simulator.ca,
        "token_id": TOKEN_ID,
        "token_secret": TOKEN_SECRET,
        "guest_connections": True,
    }
    inventory.write_text(yaml.safe_dump(options))
    given = ("ansible_pct_", "ansible_pve_token", "ansible_python")
    more = {name: one for name, one in guests.variables.items() if name.startswith(given)}
    (guests.directory / "more.json").write_text(json.dumps(more))
    playbook = guests.one_task({"ansible.builtin.raw": "pwd"}, hosts=f"web:&{group}")
    done = run(
        *("ansible-playbook", "-i", str(inventory), "-e", "@more.json", str(playbook)),
        cwd=guests.directory,
        environ={"ANSIBLE_INVENTORY_ENABLED": "pve.fleet.proxmox"},
    )
    assert f"said={guests.directory / 'guest'}" in done.stdout, done.stdout + done.stderr


def test_requests_of_a_command(vm: Guests) -> None:
    vm.variables["proxmox_node"] = "pve1"
    configure(vm.simulator, VMID, name="web")
    vm.simulator.reset_log()
    assert "said=here" in vm.raw()
    counts = Counter(vm.simulator.counts())
    agent = "/nodes/{node}/qemu/{vmid}/agent"
    assert counts["GET /nodes/{node}/qemu/{vmid}/config"] <= 2
    assert counts[f"POST {agent}/ping"] == counts[f"POST {agent}/exec"] == 1
    assert counts[f"POST {agent}/file-write"] == 0


def test_a_guest_of_another_tenant_is_refused(vm: Guests, container: Guests) -> None:
    container.variables["ansible_pve_tenant"] = "globex"
    output = container.raw()
    assert "it does not belong to tenant globex" in output
    assert not (container.directory / "bin" / "calls").exists()


def test_a_vm_of_another_tenant_is_refused(vm: Guests) -> None:
    vm.variables["ansible_pve_tenant"] = "globex"
    assert "it does not belong to tenant globex" in vm.raw()
    vm.variables["ansible_pve_tenant"] = "acme"
    assert "said=here" in vm.raw()


def test_a_tenant_is_required(vm: Guests) -> None:
    vm.variables["ansible_pve_require_tenant"] = True
    assert "Set ansible_pve_tenant" in vm.raw()


def test_a_reused_vmid_is_refused(vm: Guests) -> None:
    configure(vm.simulator, VMID, name="db")
    assert "has the name 'db' now. Refresh the inventory" in vm.raw()


def test_a_guest_of_the_other_kind_is_refused(vm: Guests) -> None:
    vm.variables["ansible_connection"] = "pve.fleet.pct"
    assert "Use pve.fleet.agent for VMs" in vm.raw()


def test_a_guest_by_the_name_of_its_host(vm: Guests) -> None:
    del vm.variables["proxmox_vmid"], vm.variables["proxmox_name"]
    assert "said=here" in vm.raw()


def test_a_container_that_was_moved_is_followed(container: Guests) -> None:
    """The listing and the node of the inventory are older than the migration."""
    bin_directory = container.directory / "bin"
    (bin_directory / "at").write_text("pve2")
    output = container.raw()
    assert "Configuration file 'nodes/pve1/lxc/10500.conf' does not exist" in output
    container.simulator.ask("DELETE", f"/containers/{CTID}", {})
    container.simulator.ask(
        "POST", f"/containers/{CTID}", {"node": "pve2", "config": {"hostname": "web"}}
    )
    assert "said=here" in container.raw()
    assert (bin_directory / "calls").read_text().split() == ["pve1", "pve1", "pve2"]


def test_a_stopped_container(container: Guests) -> None:
    (container.directory / "bin" / "stopped").touch()
    output = container.raw()
    assert "Could not connect to container 10500 'web' on node pve1" in output
    assert "UNREACHABLE" in output


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"agent": "silent"}, "QEMU guest agent is not running"),
        ({"running": False}, "VM 10000 is not running"),
    ],
)
def test_an_agent_that_does_not_answer(vm: Guests, state: dict[str, Any], words: str) -> None:
    vm.simulator.steer(f"/vms/{VMID}", state)
    output = vm.raw()
    assert words in output
    assert "UNREACHABLE" in output


@pytest.mark.parametrize("kind", ["vm", "container"])
def test_a_command_has_a_time_limit(kind: str, request: pytest.FixtureRequest) -> None:
    guest: Guests = request.getfixturevalue(kind)
    guest.variables["ansible_pve_command_timeout"] = 1
    output = guest.raw("echo $$ > pid; exec sleep 60")
    assert "did not end within 1 seconds and was killed" in output
    assert "UNREACHABLE" in output


def test_an_output_that_the_agent_does_not_keep(vm: Guests) -> None:
    vm.variables["ansible_pve_timeout"] = 300  # an answer of this size takes long on a busy machine
    output = vm.raw("yes | head -c 17000000")
    assert "its output is longer than 16 MiB" in output
