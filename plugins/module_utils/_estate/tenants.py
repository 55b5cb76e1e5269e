# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has how much of a cluster (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._cluster.tenant import parse_tags, tenants_of
from .nodes import counts

Row = Mapping[str, Any]


def by_tenant(vms: Iterable[Row], prefix: str) -> dict[str, Any]:
    """Return the figures of each tenant, of the VMs that nobody owns, and of those that several claim."""
    owned: dict[str, list[Row]] = {}
    nobodys: list[Row] = []
    claimed: list[Row] = []
    for vm in vms:
        owners = tenants_of(parse_tags(vm.get("tags") or ""), prefix)
        if len(owners) == 1:
            owned.setdefault(owners[0][len(prefix) :], []).append(vm)
        else:
            (claimed if owners else nobodys).append(vm)
    return {
        "tenants": {tenant: figures(rows) for tenant, rows in sorted(owned.items())},
        "untenanted": {**figures(nobodys), "vmids": _numbers(nobodys)},
        "ambiguous": {**figures(claimed), "vmids": _numbers(claimed)},
    }


def figures(vms: Iterable[Row]) -> dict[str, Any]:
    """Return counts, cores, memory and disk (bytes; the boot disk, which is what the listing knows) of VMs.

    Templates count as templates and disk only.
    """
    listed = list(vms)
    machines = [vm for vm in listed if not vm.get("template")]
    return {
        "vms": counts(listed),
        "cores": sum(int(vm.get("maxcpu") or 0) for vm in machines),
        "memory": sum(int(vm.get("maxmem") or 0) for vm in machines),
        "disk": sum(int(vm.get("maxdisk") or 0) for vm in listed),
    }


def _numbers(rows: Iterable[Row]) -> list[int]:
    return sorted(int(row["vmid"]) for row in rows)
