# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role image customises a guest over its connection: its commands are processes here."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Player
from tests.plays.test_connections import stand_in_for_ssh
from tests.plays.test_image_role import IMAGE, web, writes

__all__ = ["web"]
APT_GET = """#!/bin/sh
echo "$@" >> {guest}/apt-get-calls
"""
TASKS = [
    {"name": "Write a file", "ansible.builtin.raw": "pwd > of-the-user"},
    {"name": "Fail if that is wanted", "ansible.builtin.raw": "test ! -e must-fail"},
]
# The files of a guest after its first start.
STATE = {
    "etc/machine-id": "0123456789abcdef0123456789abcdef\n",
    "etc/ssh/ssh_host_rsa_key": "secret",
    "etc/ssh/sshd_config": "Port 22",
    "var/lib/cloud/instance/user-data.txt": "secret",
    "var/log/syslog": "booted",
    "var/log/journal/0123/system.journal": "booted",
    "root/.bash_history": "echo secret",
    "tmp/left": "x",
}


class World:
    """A cluster whose guests run commands in one directory."""

    def __init__(self, lab: Lab, guest: Path, programs: Path) -> None:
        self.lab = lab
        self.guest = guest
        self.ssh = programs / "ssh"

    def first_start(self) -> None:
        """Write the files that the first start of a guest leaves behind."""
        for name, text in STATE.items():
            path = self.guest / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def names(self, kind: str) -> list[str]:
        rows = self.lab.call("GET", "/cluster/resources")
        return [row["name"] for row in rows if row["type"] == kind and "golden" in row["name"]]

    def variables(self, directory: Path) -> dict[str, Any]:
        """Return the variables of a customised image with one place."""
        tasks = directory / "tasks.yml"
        tasks.write_text(yaml.safe_dump(TASKS), encoding="utf-8")
        host = {
            "ansible_python_interpreter": sys.executable,
            "ansible_remote_tmp": str(self.guest / "run"),
            "ansible_pct_node_ssh_executable": str(self.ssh),
        }
        return {
            "image_name": "golden",
            "image_version": "1",
            "image_nodes": ["pve1"],
            "image_disk_size": "2G",
            "image_packages": ["nginx", "a package"],
            "image_files": [{"dest": f"{self.guest}/etc/motd", "content": "hello", "mode": "0640"}],
            "image_tasks": str(tasks),
            "image_host_variables": host,
            "_image_root": str(self.guest),
        }


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    directory = tmp_path_factory.mktemp("world")
    guest, programs = directory / "guest", directory / "bin"
    guest.mkdir()
    stand_in_for_ssh(programs, guest)
    for name, text in (("apt-get", APT_GET), ("cloud-init", "#!/bin/sh\n")):
        (programs / name).write_text(text.format(guest=guest), encoding="utf-8")
        (programs / name).chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        with Lab(task_ms="default=10", auth_delay_s=0.1, lag_s=0.1) as lab:
            lab.simulator.steer("/settings", {"processes_in": str(guest)})
            yield World(lab, guest, programs)


@pytest.fixture
def player(tmp_path: Path, world: World) -> Player:
    return Player(tmp_path, world.lab.environment)


def check_guest(world: World) -> None:
    """Check that the guest was changed and sealed."""
    guest = world.guest
    calls = (guest / "apt-get-calls").read_text(encoding="utf-8").splitlines()
    assert calls[-2:] == ["-q update", "-q -y -o DPkg::Lock::Timeout=300 install nginx a package"]
    assert (guest / "etc/motd").read_text(encoding="utf-8") == "hello"
    assert (guest / "etc/motd").stat().st_mode & 0o777 == 0o640
    assert (guest / "of-the-user").read_text(encoding="utf-8").strip() == str(guest)
    assert (guest / "etc/machine-id").read_text(encoding="utf-8") == ""
    assert (guest / "etc/ssh/sshd_config").exists()
    for name in ("etc/ssh/ssh_host_rsa_key", "var/lib/cloud/instance", "root/.bash_history"):
        assert not (guest / name).exists()


@pytest.mark.slow
def test_a_vm_is_customised_through_its_agent(
    world: World, player: Player, web: str, tmp_path: Path
) -> None:
    said = {**world.variables(tmp_path), "image_url": f"{web}/golden.qcow2"}
    world.first_start()
    mark = world.lab.mark()
    player.play(IMAGE, "--check", **said).expect()
    assert writes(world.lab, mark) == []
    # A failed task publishes nothing, and removes the guest.
    (world.guest / "must-fail").touch()
    failed = player.play(IMAGE, **said).expect(2)
    assert "could not be customised, and was removed" in failed.output
    assert "golden" not in " ".join(world.names("qemu"))
    (world.guest / "must-fail").unlink()
    # The guest of an interrupted run is removed, and made again.
    notes = "Template golden@1, made from golden.qcow2"
    name = "candidate-golden-1-pve1"
    left = world.lab.make_vm(name, scsi0="local-lvm:1", description=notes)
    world.lab.call("POST", f"/nodes/pve1/qemu/{left}/status/start")
    world.first_start()
    mark = world.lab.mark()
    # Nothing of the network of the customisation stays in the template.
    build = {"nics": [{"bridge": "vmbr1", "vlan": 50, "link_down": True}]}
    player.play(IMAGE, **said, image_build_vm=build).expect()
    nics = [
        one.params["net0"]
        for one in world.lab.requests_since(mark)
        if one.is_write and "net0" in one.params
    ]
    assert nics[0] == "virtio,bridge=vmbr1,link_down=1,tag=50"
    (template,) = [
        row for row in world.lab.call("GET", "/nodes/pve1/qemu") if row["name"] == "golden"
    ]
    config = world.lab.call("GET", f"/nodes/pve1/qemu/{template['vmid']}/config")
    assert config["net0"].partition(",")[2] == "bridge=vmbr0"
    assert f"DELETE /nodes/pve1/qemu/{left}" in " ".join(writes(world.lab, mark))
    check_guest(world)
    assert world.names("qemu") == ["golden"]
    mark = world.lab.mark()
    assert player.play(IMAGE, **said).expect().changed == 0
    assert writes(world.lab, mark) == []


def test_a_container_is_customised_through_its_node(
    world: World, player: Player, web: str, tmp_path: Path
) -> None:
    said = {**world.variables(tmp_path), "image_kind": "container"}
    said["image_url"] = f"{web}/golden_1-1_amd64.tar.zst"
    world.lab.make_vm("golden")
    mark = world.lab.mark()
    assert "'golden' is the name of VM" in player.play(IMAGE, **said).expect(2).output
    assert writes(world.lab, mark) == []
    world.first_start()
    build = {"nics": [{"name": "net0", "bridge": "vmbr1", "vlan": 50, "ip": "dhcp"}]}
    player.play(IMAGE, **{**said, "image_name": "cgolden", "image_build_vm": build}).expect()
    check_guest(world)
    assert world.names("lxc") == ["cgolden"]
    (row,) = world.lab.call("GET", "/nodes/pve1/lxc")
    net = world.lab.call("GET", f"/nodes/pve1/lxc/{row['vmid']}/config")["net0"]
    assert "bridge=vmbr0" in net
    assert "tag=" not in net
