# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The `vm` value that modules return, and the conditions (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from .._cluster.picture import VmRow
from .._cluster.tenant import parse_tags, tenants_of
from .guest import NOTHING_TOLD
from .marker import split_notes
from .model import Actual, Plan
from .view import show

# Everything else that QEMU says of itself is some state of a machine that is on.
_POWER = {"stopped": "off", "hibernated": "suspended", "paused": "suspended", "suspended": "suspended"}


def describe(
    actual: Actual, *, prefix: str = "tenant_", url: str = "", guest: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return a VM as modules report it: who and where it is, and its configuration in PVE's own keys.

    `url` is that of the user interface, for the console's; `guest` is what the guest told.
    """
    tags = sorted(parse_tags(actual.target.get("tags", "")))
    owners = tenants_of(tags, prefix)
    notes, marker = split_notes(actual.target.get("description"))
    return {
        "vmid": actual.vmid,
        "name": actual.name,
        "node": actual.node,
        "status": actual.status,
        "power_state": power_state(actual.status),
        "template": actual.template,
        "tenant": owners[0][len(prefix) :] if len(owners) == 1 else None,
        "tags": tags,
        "pool": actual.pool,
        "lock": actual.lock,
        "uptime": actual.uptime,
        "description": notes,
        "cloned_from": marker.origin,
        "config": show(actual.target),
        "macs": macs(actual.target),
        "pending": sorted(
            key
            for key in actual.live.keys() | actual.target.keys()
            if actual.running and actual.live.get(key) != actual.target.get(key)
        ),
        "console_url": console_url(url, actual.vmid, actual.name, actual.node),
        **(guest or NOTHING_TOLD),
    }


def power_state(status: str) -> str | None:
    """Return on, off or suspended for what PVE or QEMU says of a VM; None where the listing does not know yet."""
    if status in ("", "unknown"):
        return None
    return _POWER.get(status, "on")  # a guest that has an error or is being moved has power


def console_url(url: str, vmid: int, name: str, node: str) -> str | None:
    """Return where a browser finds the VM's console; the user logs in there."""
    if not url:
        return None
    query = {"console": "kvm", "novnc": 1, "vmid": vmid, "vmname": name, "node": node, "resize": "off"}
    return f"{url}/?{urlencode(query)}"


def macs(config: Mapping[str, str]) -> dict[str, str]:
    """Return the MAC address of each NIC that has one."""
    shown = show(config)
    nics = {key: value for key, value in shown.items() if key.startswith("net") and isinstance(value, dict)}
    return {key: nic["macaddr"] for key, nic in sorted(nics.items()) if nic.get("macaddr")}


def conditions(actual: Actual | None, plan: Plan, *, applied: bool) -> list[dict[str, Any]]:
    """Return Ready, VMCreated, ResourcesAllocated and NetworkConfigured, each with status and reason."""
    if actual is None:
        gone = "Removed" if applied or not plan.changed else "Planned"
        return [
            _condition(name, False, gone) for name in ("Ready", "VMCreated", "ResourcesAllocated", "NetworkConfigured")
        ]
    waiting = [key for key in plan.pending if not key.startswith("net")]
    nics = [key for key in plan.pending if key.startswith("net")]
    settled = applied or not plan.changed
    ready = settled and actual.status == "running" and not plan.pending
    reason = (
        "Running"
        if ready
        else "Planned"
        if not settled
        else "PendingChanges"
        if plan.pending
        else actual.status.capitalize()
    )
    return [
        _condition("Ready", ready, reason),
        _condition(
            "VMCreated", settled or not _creates(plan), "Exists" if settled or not _creates(plan) else "Planned"
        ),
        _condition(
            "ResourcesAllocated",
            settled and not waiting,
            "AsWished" if settled and not waiting else "NeedsReboot" if waiting else "Planned",
        ),
        _condition(
            "NetworkConfigured",
            settled and not nics,
            "AsWished" if settled and not nics else "NeedsReboot" if nics else "Planned",
        ),
    ]


def _creates(plan: Plan) -> bool:
    return any(step.action in ("create", "clone") for step in plan.steps)


def _condition(name: str, status: bool, reason: str) -> dict[str, Any]:
    return {"type": name, "status": status, "reason": reason}


def describe_row(row: VmRow, *, prefix: str = "tenant_", url: str = "") -> dict[str, Any]:
    """Return a VM with the same keys, from the cluster's listing alone; what that does not know is null."""
    owners = tenants_of(row.tags, prefix)
    return {
        "vmid": row.vmid,
        "name": row.name,
        "node": row.node,
        "status": row.status,
        "power_state": power_state(row.status),
        "template": row.template,
        "tenant": owners[0][len(prefix) :] if len(owners) == 1 else None,
        "tags": sorted(row.tags),
        "pool": row.pool,
        "lock": row.lock,
        "uptime": row.uptime,
        "description": None,
        "cloned_from": None,
        "config": None,
        "macs": None,
        "pending": None,
        "console_url": console_url(url, row.vmid, row.name, row.node),
        **NOTHING_TOLD,
    }
