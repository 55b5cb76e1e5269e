# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tenants in the demo cluster, and all that the cluster shows of its state."""

from __future__ import annotations

from typing import Any

from tests.modules.access_lab import do
from tests.modules.estate_lab import Lab

# What changes by itself, or says when something happened.
_MOVING = {"uptime", "cpu", "mem", "disk", "maxdisk", "netin", "netout", "diskread", "diskwrite"}
RIGHTS: dict[str, Any] = {
    "templates": ["debian-13"],
    "storages": ["ceph"],
    "bridges": ["vmbr0", "vmbr1"],
    "nodes": ["pve1", "pve2"],
}


def state_of(lab: Lab) -> dict[str, Any]:
    """Return the whole state of a cluster as root sees it: access, pools, options, guests with
    their configurations, and the volumes of all storages.
    """
    get = lab.client.get
    found: dict[str, Any] = {
        "users": get("access", "users", full=1),
        "groups": get("access", "groups"),
        "roles": get("access", "roles"),
        "acl": get("access", "acl"),
        "domains": get("access", "domains"),
        "options": get("cluster", "options"),
        "pools": {
            row["poolid"]: get("pools", params={"poolid": row["poolid"]}) for row in get("pools")
        },
        "ha": get("cluster", "ha", "resources"),
        "mappings": get("cluster", "mapping", "pci"),
    }
    listed = get("cluster", "resources")
    for row in listed:
        if row["type"] == "qemu":
            path = ("nodes", row["node"], "qemu", row["vmid"])
            found[f"vm {row['vmid']}"] = get(*path, "config")
            found[f"snapshots {row['vmid']}"] = get(*path, "snapshot")
        if row["type"] == "storage":
            path = ("nodes", row["node"], "storage", row["storage"])
            found[f"volumes {row['node']} {row['storage']}"] = get(*path, "content")
    found["resources"] = [
        {key: value for key, value in row.items() if row["type"] != "pool" or key == "pool"}
        for row in listed  # the figures of a pool are those of its running guests, a little late
    ]
    return {key: _sorted(value) for key, value in found.items()}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(one) for key, one in sorted(value.items()) if key not in _MOVING}
    if isinstance(value, list):
        return sorted(map(_sorted, value), key=str)
    return value


def made(lab: Lab, name: str, **options: Any) -> dict[str, Any]:
    """Create a tenant and return the connection options of its token."""
    result = do(lab, "tenant", name=name, **{**RIGHTS, **options})
    (site,) = result["credentials"]["sites"]
    return {key: site[key] for key in ("host", "ca_path", "token_id", "token_secret")}
