# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who has how much of a cluster (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .._cluster.tenant import parse_tags, tenants_of
from .nodes import counts, total, without_templates

Row = Mapping[str, Any]


def by_tenant(vms: Iterable[Row], prefix: str) -> dict[str, Any]:
    """Return the figures of each tenant, of VMs without a tenant, and of VMs with several."""
    owned: dict[str, list[Row]] = {}
    without_tenant: list[Row] = []
    with_several: list[Row] = []
    for vm in vms:
        tags = parse_tags(vm.get("tags"))
        owners = tenants_of(tags, prefix)
        if not owners:
            without_tenant.append(vm)
        elif len(owners) > 1:
            with_several.append(vm)
        else:
            tenant = owners[0][len(prefix) :]
            owned.setdefault(tenant, []).append(vm)
    tenants = {}
    for tenant in sorted(owned):
        tenants[tenant] = figures(owned[tenant])
    return {
        "tenants": tenants,
        "untenanted": {**figures(without_tenant), "vmids": _vmids(without_tenant)},
        "ambiguous": {**figures(with_several), "vmids": _vmids(with_several)},
    }


def figures(vms: Iterable[Row]) -> dict[str, Any]:
    """Return counts, cores, memory and disk of VMs; memory and disk in bytes.

    The disk is the boot disk, the only disk in the listing. Templates count as templates and disk
    only.
    """
    listed = list(vms)
    machines = without_templates(listed)
    return {
        "vms": counts(listed),
        "cores": total(machines, "maxcpu"),
        "memory": total(machines, "maxmem"),
        "disk": total(listed, "maxdisk"),
    }


def _vmids(rows: Iterable[Row]) -> list[int]:
    return sorted(int(row["vmid"]) for row in rows)
