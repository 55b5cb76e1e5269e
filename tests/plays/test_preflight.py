# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook preflight derives its checks from the estate that it gets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.demo.lab import Lab
from tests.plays.provision_helpers import Played, Player

ESTATE: dict[str, Any] = {
    "tenants": {"acme": {"pool": "acme"}},
    "provision_defaults": {"source": "debian-13", "nics": [{"network": "front"}]},
    "provision_networks": {"front": "vmbr0"},
    "provision_storage_classes": {"fast": {"storage": "ceph"}},
    "provision_classes": {
        "db": {"disks": [{"name": "scsi1", "size": "5G", "storage_class": "fast"}]}
    },
    "provision_vms": [{"name": "db1", "tenant": "acme", "class": "db"}],
}


def checked(lab: Lab, directory: Path, **changes: Any) -> Played:
    player = Player(directory, lab.environment)
    (directory / "estate.yml").write_text(yaml.safe_dump({**ESTATE, **changes}), encoding="utf-8")
    return player.play("pve.fleet.preflight", "-e", "@estate.yml")


def test_an_estate_is_checked(lab: Lab, tmp_path: Path) -> None:
    output = checked(lab, tmp_path).expect().output
    for subject in ("debian-13", "ceph (images)", "vmbr0 on any node", "VM.Clone on /vms/9000"):
        assert subject in output
    assert "pveum role add FleetEstate --privs" in output


def test_the_role_that_it_prints_is_enough(lab: Lab, tmp_path: Path) -> None:
    output = checked(lab, tmp_path).expect().output
    (privileges,) = re.findall(r'pveum role add \w+ --privs "([^"]+)"', output)
    connection = lab.make_token("estate@pve", "ansible", privileges.split())
    environment = {f"PROXMOX_{name.upper()}": value for name, value in connection.items()}
    player = Player(tmp_path, environment)
    player.play("pve.fleet.preflight", "-e", "@estate.yml").expect()
    assert player.play("pve.fleet.provision", "-e", "@estate.yml").expect().changed


@pytest.mark.parametrize(
    "changes",
    [
        {"provision_networks": {"front": "vmbr77"}},
        {"provision_storage_classes": {"fast": {"storage": "cehp"}}},
        {"provision_overrides": {"source": "debian-31"}},
    ],
)
def test_an_estate_that_cannot_be_provided(
    lab: Lab, tmp_path: Path, changes: dict[str, Any]
) -> None:
    assert "1 of " in checked(lab, tmp_path, **changes).expect(2).output
