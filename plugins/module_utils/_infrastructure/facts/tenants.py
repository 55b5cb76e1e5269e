# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a cluster by tenant (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.cluster.tenant import parse_tags, tenants_of
from ..._guests.kinds.words import VM
from .nodes import counts, of_type, other_guests, total, without_templates

Row = Mapping[str, Any]


def by_tenant(guests: Iterable[Row], prefix: str) -> dict[str, Any]:
    """Return the figures of each tenant, of guests without a tenant, and of guests with several."""
    owned: dict[str, list[Row]] = {}
    without_tenant: list[Row] = []
    with_several: list[Row] = []
    for guest in guests:
        tags = parse_tags(guest.get("tags"))
        owners = tenants_of(tags, prefix)
        if not owners:
            without_tenant.append(guest)
        elif len(owners) > 1:
            with_several.append(guest)
        else:
            tenant = owners[0][len(prefix) :]
            owned.setdefault(tenant, []).append(guest)
    tenants = {}
    for tenant in sorted(owned):
        tenants[tenant] = figures(owned[tenant])
    return {
        "tenants": tenants,
        "untenanted": {**figures(without_tenant), "vmids": _vmids(without_tenant)},
        "ambiguous": {**figures(with_several), "vmids": _vmids(with_several)},
    }


def figures(guests: Iterable[Row]) -> dict[str, Any]:
    """Return counts of VMs and of containers, and their cores, memory and disk in bytes.

    Only system disks count, because the listing contains no other disks. Templates count only as
    templates and in the disk figure.
    """
    listed = list(guests)
    machines = without_templates(listed)
    return {
        "vms": counts(of_type(listed, VM.type)),
        "containers": counts(other_guests(listed)),
        "cores": total(machines, "maxcpu"),
        "memory": total(machines, "maxmem"),
        "disk": total(listed, "maxdisk"),
    }


def _vmids(rows: Iterable[Row]) -> list[int]:
    return sorted(int(row["vmid"]) for row in rows)
