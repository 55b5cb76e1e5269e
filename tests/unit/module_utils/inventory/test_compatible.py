# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups and facts as the inventory plugin of community.proxmox makes them."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.compatible import (
    all_facts,
    groups_of,
    listed_facts,
)
from ansible_collections.pve.fleet.plugins.module_utils._operation.inventory.hosts import (
    InventoryGuest,
    read_guests,
)


def guest(**row: Any) -> InventoryGuest:
    base = {"type": "qemu", "vmid": 100, "name": "web1", "node": "pve1", "status": "running"}
    (found,) = read_guests([{**base, **row}])
    return found


@pytest.mark.parametrize(
    ("row", "groups"),
    [
        ({}, ["proxmox_all_qemu", "proxmox_pve1_qemu", "proxmox_all_running"]),
        (
            {"status": "paused", "node": "PVE-1.x"},
            ["proxmox_all_qemu", "proxmox_pve_1_x_qemu", "proxmox_all_running"],
        ),
        ({"status": "unknown"}, ["proxmox_all_qemu", "proxmox_pve1_qemu", "proxmox_all_unknown"]),
        ({"template": 1, "pool": "Front-End"}, ["proxmox_all_templates", "proxmox_pool_front_end"]),
    ],
)
def test_groups(row: dict[str, Any], groups: list[str]) -> None:
    assert groups_of(guest(**row)) == groups


def test_a_paused_vm_runs_for_the_other_plugin() -> None:
    facts = listed_facts(guest(status="paused"))
    assert (facts["proxmox_status"], facts["proxmox_qmpstatus"]) == ("running", "paused")


def test_a_vm_without_tags_has_no_such_fact() -> None:
    assert "proxmox_tags" not in listed_facts(guest())
    assert listed_facts(guest(tags="a;b"))["proxmox_tags"] == "a;b"


@pytest.mark.parametrize(
    ("option", "value", "fact"),
    [
        ("net0", "virtio=AA,bridge=vmbr0", {"virtio": "AA", "bridge": "vmbr0"}),
        ("scsi0", "ceph:disk-0,size=3G", {"disk_image": "ceph:disk-0", "size": "3G"}),
        ("scsihw", "virtio-scsi-single", {"disk_image": "virtio-scsi-single"}),
        ("agent", "1", "1"),
        ("agent", "1,type=virtio", "1,type=virtio"),
        ("agent", "enabled=1", {"enabled": "1"}),
        ("description", "a=b", "a=b"),
        ("cores", 4, 4),
        ("boot", "order=scsi0;net0", {"order": "scsi0;net0"}),
        ("cicustom", "user=local:snippets/a=b.yml", {"user": "local:snippets/a=b.yml"}),
    ],
)
def test_options(option: str, value: Any, fact: Any) -> None:
    detailed = guest().with_variables({"proxmox_config": {option: value}})
    assert all_facts(detailed)[f"proxmox_{option}"] == fact


def test_interfaces_are_those_of_the_agent() -> None:
    rows = [
        {"name": "eth0", "mac": "aa", "address": "10.0.0.5", "prefix": 24},
        {"name": "eth0", "mac": "aa", "address": "2001:db8::5", "prefix": 64},
        {"name": "net1", "mac": "bb", "address": "10.0.1.5", "prefix": 24},
    ]
    config = {"proxmox_config": {"net1": "virtio=BB"}}
    facts = all_facts(guest().with_variables({"proxmox_interfaces": rows, **config}))
    assert facts["proxmox_agent_interfaces"] == [
        {"name": "eth0", "mac-address": "aa", "ip-addresses": ["10.0.0.5/24", "2001:db8::5/64"]}
    ]
    planned = guest().with_variables({"proxmox_interfaces": rows[2:], **config})
    assert "proxmox_agent_interfaces" not in all_facts(planned)


def test_variables_of_this_collection_stay() -> None:
    before = guest(tags="a").variables
    facts = all_facts(guest(tags="a"))
    changed = {name for name, value in before.items() if facts.get(name) != value}
    assert changed == {"proxmox_tags"}
