# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages name the option of the module that a user of Proxmox VE probably means."""

from __future__ import annotations

from typing import Any

import pytest

from tests.modules.estate_lab import Lab
from tests.modules.module_runner import run_module

URL = "https://images.example.com/debian.iso"
PORTS = {"name": "vmbr7", "type": "bridge", "ports": []}
HINTS: list[tuple[str, dict[str, Any], str]] = [
    ("token", {"owner": "ops@pve", "name": "a", "privsep": True}, "'privilege_separation'"),
    ("token", {"user": "ops@pve", "name": "a"}, "did you mean owner?"),
    ("token", {"userid": "ops@pve", "name": "a"}, "(did you mean 'owner'?)"),
    ("storage_download", {"storage": "local", "content": "iso", "url": URL}, "source_url?"),
    ("volume", {"storage": "local", "content": "iso", "url": URL}, "source_url?"),
    ("notification_endpoint", {"type": "webhook", "name": "w", "url": URL}, "webhook_url?"),
    ("node_network", {"node": "pve1", "interfaces": [PORTS]}, "'bridge_ports' or 'ovs_ports'"),
]


@pytest.mark.parametrize(("module", "options", "hint"), HINTS, ids=str)
def test_the_option_is_named(lab: Lab, module: str, options: dict[str, Any], hint: str) -> None:
    result = lab.run(module, check=True, **options)
    assert result["failed"]
    assert hint in result["msg"]


def test_the_url_of_a_file_is_not_only_a_wrong_endpoint() -> None:
    options = {"storage": "local", "content": "iso", "filename": "debian.iso", "url": URL}
    result = run_module(
        "storage_download", {**options, "token_id": "a@pam!b", "token_secret": "0000-secret-0000"}
    )
    assert "url belongs to the connection: did you mean source_url?" in result["msg"]


def test_the_password_of_a_user_is_not_silently_that_of_the_connection(lab: Lab) -> None:
    user: dict[str, Any] = {"name": "new@pve", "password": "hush-hush-1"}
    result = lab.run("user", check=True, **user)
    hint = "password belongs to the connection: did you mean user_password?"
    assert result["warnings"] == [hint]
    login = {"user": "root@pam", "password": "fleetpw123", "token_id": "", "token_secret": ""}
    assert lab.run("user", check=True, name="new@pve", **login)["warnings"] == []


def test_a_pool_that_is_missing_names_the_playbook_of_tenants(lab: Lab) -> None:
    result = lab.run("vm", check=True, name="new", pool="acmee", disks=[{"size": 1}])
    assert "(did you mean 'acme'?)" in result["msg"]
    assert "playbook pve.fleet.tenant creates a tenant with its pool" in result["msg"]


def test_groups_of_an_old_cluster_file_name_the_key_and_the_way(lab: Lab) -> None:
    """pve-ha-manager: PVE/API2/HA/Groups.pm of Proxmox VE 9."""
    groups = [{"name": "prefer", "nodes": ["pve1"]}]
    result = lab.run("cluster", check=True, ha_groups=groups)
    assert "replace ha_groups, and group in ha_resources, by ha_rules" in result["msg"]
