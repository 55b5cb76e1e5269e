# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook replace_images, run by ansible-playbook against the simulated Proxmox VE."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import PROVISION, Player, writes

REPLACE = "pve.fleet.replace_images"
NEW = 9501
GUESTS = ("web", "db")
ESTATE: dict[str, Any] = {
    "provision_defaults": {"source": "golden", "node": "pve1", "cores": 1, "memory": "256M"},
    "provision_vms": [
        {"name": name, "tenant": "acme", "disks": [{"name": "scsi1", "size": "1G"}]}
        for name in GUESTS
    ],
}
CHECK = """
- name: Check db
  ansible.builtin.assert:
    that: _provision_guest.name != 'db'
    fail_msg: db is not healthy
"""


@pytest.fixture
def player(lab: Lab, tmp_path: Path) -> Player:
    """A player of an estate whose VMs are of the older one of two versions."""
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(ESTATE), encoding="utf-8")
    (tmp_path / "check.yml").write_text(CHECK, encoding="utf-8")
    player = Player(tmp_path, lab.environment)
    publish(lab, NEW - 1, "1")
    player.play(PROVISION, "-e", "@estate.yml").expect()
    publish(lab, NEW, "2")
    return player


def publish(lab: Lab, vmid: int, version: str) -> None:
    options = {"name": "golden", "tags": f"version-{version}", "scsi0": "local-lvm:1"}
    lab.call("POST", "/nodes/pve1/qemu", vmid=vmid, agent=1, boot="order=scsi0", **options)
    lab.call("POST", f"/nodes/pve1/qemu/{vmid}/template")


def configs(lab: Lab) -> dict[str, dict[str, Any]]:
    return {
        machine.name: lab.call("GET", f"/nodes/pve1/qemu/{machine.vmid}/config")
        for machine in lab.machines()
        if machine.name in GUESTS
    }


def versions(lab: Lab) -> dict[str, str]:
    """Return the version in the marker of each VM."""
    found = {}
    for name, config in configs(lab).items():
        found[name] = config["description"].partition("image=golden:")[2].partition(" ")[0]
    return found


def status(lab: Lab, name: str) -> str:
    (vmid,) = [machine.vmid for machine in lab.machines() if machine.name == name]
    return str(lab.call("GET", f"/nodes/pve1/qemu/{vmid}/status/current")["status"])


@pytest.mark.slow
def test_images_are_replaced_one_by_one_and_rolled_back(lab: Lab, player: Player) -> None:
    before = configs(lab)
    mark = lab.mark()
    foreseen = player.play(REPLACE, "--check", "-e", "@estate.yml").expect()
    assert foreseen.changed == len(GUESTS)
    assert writes(lab, mark) == []
    # web passes its check, db does not and returns to the version before.
    check = ("-e", f"provision_replace_check={player.directory / 'check.yml'}")
    failed = player.play(REPLACE, "-e", "@estate.yml", *check).expect(2)
    assert "db is not healthy" in failed.output
    assert "It has image golden@1 again." in failed.output
    assert versions(lab) == {"web": "2", "db": "1"}
    assert {status(lab, name) for name in GUESTS} == {"running"}
    # Interrupted between the new disk and the start: the next run starts and checks it.
    (web,) = [machine.vmid for machine in lab.machines() if machine.name == "web"]
    lab.call("POST", f"/nodes/pve1/qemu/{web}/status/stop")
    player.play(REPLACE, "-e", "@estate.yml").expect()
    assert versions(lab) == {"web": "2", "db": "2"}
    assert {status(lab, name) for name in GUESTS} == {"running"}
    for name, config in configs(lab).items():
        assert config["scsi1"] == before[name]["scsi1"]
        kept = {value for key, value in config.items() if key.startswith("unused")}
        assert before[name]["scsi0"].partition(",")[0] in kept
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml").expect().changed == 0
    assert writes(lab, mark) == []


CONTAINERS: dict[str, Any] = {
    "provision_vms": [],
    "provision_defaults": {"node": "pve1", "memory": "256M", "default_storage": "local-lvm"},
    "provision_containers": [
        {
            "name": f"{name}-ct",
            "tenant": "acme",
            "source": "cgolden",
            "rootfs": {"size": "2G"},
            "nics": [{"name": "net0", "bridge": "vmbr0", "ip": "dhcp"}],
            "mounts": [{"name": "mp0", "path": "/data", "size": "1G"}],
        }
        for name in GUESTS
    ],
}


def publish_container(lab: Lab, vmid: int, version: str) -> None:
    options = {"hostname": "cgolden", "tags": f"version-{version}", "rootfs": "local-lvm:1"}
    template = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
    lab.call("POST", "/nodes/pve1/lxc", vmid=vmid, ostemplate=template, unprivileged=1, **options)
    lab.call("POST", f"/nodes/pve1/lxc/{vmid}/template")


def containers(lab: Lab) -> dict[str, dict[str, Any]]:
    """Return configuration and status of each container that is not a template, by name."""
    found = {}
    for row in lab.call("GET", "/nodes/pve1/lxc"):
        path = f"/nodes/pve1/lxc/{row['vmid']}"
        if row["name"] != "cgolden":
            config = lab.call("GET", f"{path}/config")
            found[row["name"]] = {**config, "status": row["status"], "vmid": row["vmid"]}
    return found


@pytest.mark.slow
def test_containers_are_replaced_one_by_one_and_rolled_back(lab: Lab, tmp_path: Path) -> None:
    check = CHECK.replace("'db'", "'db-ct'")
    (tmp_path / "estate.yml").write_text(yaml.safe_dump(CONTAINERS), encoding="utf-8")
    (tmp_path / "check.yml").write_text(check, encoding="utf-8")
    player = Player(tmp_path, lab.environment)
    publish_container(lab, NEW + 10, "1")
    player.play(PROVISION, "-e", "@estate.yml").expect()
    publish_container(lab, NEW + 11, "2")
    before = containers(lab)
    mark = lab.mark()
    foreseen = player.play(REPLACE, "--check", "-e", "@estate.yml").expect()
    assert foreseen.changed == len(GUESTS)
    assert writes(lab, mark) == []
    # web-ct passes its check, db-ct does not and gets its old root file system back.
    options = ("-e", f"provision_replace_check={tmp_path / 'check.yml'}")
    failed = player.play(REPLACE, "-e", "@estate.yml", *options).expect(2)
    assert "It has its old root file system." in failed.output
    middle = containers(lab)
    assert middle["db-ct"]["rootfs"] == before["db-ct"]["rootfs"]
    assert "image=cgolden:2" in middle["web-ct"]["description"]
    assert set(middle) == {"web-ct", "db-ct"}
    # An interrupted run that did not check the new root yet: the next run does.
    (tmp_path / "once.yml").write_text(
        yaml.safe_dump(
            [
                {
                    "name": "Replace one root",
                    "hosts": "localhost",
                    "gather_facts": False,
                    "tasks": [
                        {"pve.fleet.container_image": {"name": "db-ct", "source": "cgolden"}},
                        {"pve.fleet.container": {"name": "db-ct", "state": "started"}},
                    ],
                }
            ]
        ),
        encoding="utf-8",
    )
    player.play("once.yml").expect()
    player.play(REPLACE, "-e", "@estate.yml", *options).expect(2)
    assert containers(lab)["db-ct"]["rootfs"] == before["db-ct"]["rootfs"]
    player.play(REPLACE, "-e", "@estate.yml").expect()
    after = containers(lab)
    assert set(after) == {"web-ct", "db-ct"}
    for name, config in after.items():
        assert "image=cgolden:2" in config["description"]
        assert config["status"] == "running"
        kept = {value for key, value in config.items() if key.startswith("unused")}
        assert before[name]["rootfs"].partition(",")[0] in kept
        for key in ("vmid", "mp0", "net0", "hostname", "tags"):
            assert config[key] == before[name][key]
    mark = lab.mark()
    assert player.play(REPLACE, "-e", "@estate.yml").expect().changed == 0
    assert writes(lab, mark) == []
