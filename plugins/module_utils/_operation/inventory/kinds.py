# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of hosts: VMs, containers and nodes, and their rows in the listing (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..._guests.kinds.words import CT, GUESTS, VIRTUAL_MACHINE, kind_name

NODE = "node"
KINDS = (VIRTUAL_MACHINE, CT, NODE)
"""The words of the option `kinds`, of the groups and of the variable proxmox_kind."""


def kind_of(row: Mapping[str, Any]) -> str:
    """Return the kind of host in a row of C(/cluster/resources), empty for other rows."""
    pve_type = row.get("type")
    if pve_type == NODE and row.get("node"):
        return NODE
    if "vmid" not in row:
        return ""
    return kind_name(str(pve_type))


def is_guest(row: Mapping[str, Any], kinds: Collection[str] = tuple(GUESTS)) -> bool:
    """Return whether a row is a guest of one of these kinds."""
    kind = kind_of(row)
    return kind in GUESTS and kind in kinds


def vmid_name(kind: str, vmid: int) -> str:
    """Return the name of a guest without a name: `vm-100`, or `ct-100` for a container."""
    prefix = "ct" if kind == CT else "vm"
    return f"{prefix}-{vmid}"


def listed_name(kind: str, name: str, vmid: int) -> str:
    """Return the name of a guest, an empty text if it has none.

    PVE lists a VM without a name as C(VM) and its VMID, and a container without a name as C(CT)
    and its VMID (pve-manager: API2/Cluster.pm; pve-container: LXC.pm, vmstatus).
    """
    placeholder = f"CT{vmid}" if kind == CT else f"VM {vmid}"
    return "" if name == placeholder else name
