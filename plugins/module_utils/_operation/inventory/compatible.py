# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Groups and facts as the inventory plugin of community.proxmox 2.0.0 makes them (pure).

Names and forms equal the output of its plugins/inventory/proxmox.py with `want_facts`, including
its peculiarities: playbooks written for that plugin must find them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any

from ..._foundation.core import propstring
from ..._guests.kinds.words import CT, VIRTUAL_MACHINE
from .hosts import InventoryGuest
from .kinds import NODE

COMMUNITY_PROXMOX = "community.proxmox"
# These groups exist even if they have no hosts.
COMMON_GROUPS = (
    "proxmox_all_lxc",
    "proxmox_all_qemu",
    "proxmox_all_running",
    "proxmox_all_stopped",
    "proxmox_all_templates",
)
GROUP_OF_NODES = "proxmox_nodes"
_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_TAG_SEPARATORS = re.compile(r"[;,]")
# Any option that begins like a disk, including `scsihw` and `virtiofs0`.
_DISKS = ("virtio", "sata", "ide", "scsi")
_ROOT = "rootfs"
# Settings of LXC itself in a configuration: pairs of key and value.
_RAW_PREFIX = "lxc."
# QEMU's states in which a VM has no process.
_OFF = ("stopped", "unknown")


def groups_of(guest: InventoryGuest) -> list[str]:
    """Return the groups of a host; pools `a-b` and `a_b` share one, as in community.proxmox."""
    if guest.kind == NODE:
        return [GROUP_OF_NODES]
    if guest.template:
        groups = ["all_templates"]
    else:
        groups = [f"all_{guest.type}", f"{guest.node}_{guest.type}", f"all_{_status(guest)}"]
    if guest.pool:
        groups.append(f"pool_{guest.pool}")
    return list(map(_name, groups))


def listed_facts(guest: InventoryGuest) -> dict[str, Any]:
    """Return the guest's variables with the facts that need only the listing.

    The listing contains QEMU's state of a running VM (pve-manager, pvestatd.pm,
    update_qemu_status). In community.proxmox a node has no facts.
    """
    if guest.kind == NODE:
        return dict(guest.variables)
    facts: dict[str, Any] = {
        **guest.variables,
        "proxmox_vmtype": guest.type,
        "proxmox_status": _status(guest),
    }
    if guest.kind == VIRTUAL_MACHINE:
        facts["proxmox_qmpstatus"] = guest.status
    del facts["proxmox_tags"]
    if guest.tags:
        facts["proxmox_tags"] = ";".join(guest.tags)
    return facts


def all_facts(guest: InventoryGuest) -> dict[str, Any]:
    """Return the guest's variables with all facts, which replace variables of the same names."""
    facts = listed_facts(guest)
    config: Mapping[str, Any] = facts.get("proxmox_config", {})
    for key, value in config.items():
        facts[_name(key)] = _parsed(key, value)
    tags = str(config.get("tags", "")).strip()
    if tags:
        parts = _TAG_SEPARATORS.split(tags)
        facts["proxmox_tags_parsed"] = list(map(str.strip, parts))
    if "proxmox_snapshots" in facts:
        names = map(itemgetter("name"), facts["proxmox_snapshots"])
        facts["proxmox_snapshots"] = list(names)
    rows = facts.get("proxmox_interfaces", ())
    if guest.kind == VIRTUAL_MACHINE:
        facts.update(_filled("proxmox_agent_interfaces", _agent_interfaces(rows, config)))
    if guest.kind == CT and facts["proxmox_status"] == "running":
        found: dict[str, dict[str, Any]] = {}
        for row in rows:
            name, address = row["name"], row["address"]
            family = "inet6" if ":" in address else "inet"
            interface = found.setdefault(name, {"name": name, "hwaddr": row["mac"]})
            interface[family] = f"{address}/{row['prefix']}"
        facts.update(_filled("proxmox_lxc_interfaces", list(found.values())))
    return facts


def _filled(fact: str, interfaces: list[dict[str, Any]]) -> dict[str, Any]:
    return {fact: interfaces} if interfaces else {}


def _name(text: str) -> str:
    return _UNSAFE.sub("_", f"proxmox_{text.lower()}".replace(" ", ""))


def _status(guest: InventoryGuest) -> str:
    """Return the status that a node lists: running if the guest has a process."""
    return guest.status if guest.status in _OFF else "running"


def _parsed(key: str, value: Any) -> Any:
    """Return an option as a dictionary if all its parts have a key, otherwise unchanged."""
    if isinstance(value, list):
        return {str(name).removeprefix(_RAW_PREFIX): setting for name, setting in value}
    if key == _ROOT or key.startswith(_DISKS):
        value = f"disk_image={value}"
    is_plain = key == "description"
    if is_plain or not isinstance(value, str):
        return value
    parts = propstring.sub_keys(value)
    return value if not parts or "" in parts else parts


def _agent_interfaces(
    rows: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return interfaces with their addresses from `rows` with one address each.

    Interfaces with the name of an option (`net0`) come from cloud-init: no agent answered.
    """
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = row["name"]
        if name in config:
            continue
        empty = {"name": name, "mac-address": row["mac"], "ip-addresses": []}
        address = f"{row['address']}/{row['prefix']}"
        found.setdefault(name, empty)["ip-addresses"].append(address)
    return list(found.values())
