# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a tenant has, and what it may have (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from .._core import validate
from .._core.errors import QuotaExceeded
from .._core.quantities import GIB, MIB, parse_size, render_size
from .picture import Picture
from .tenant import tenant_tag, tenants_of


@dataclass(frozen=True)
class Figures:
    """What counts against a quota; memory and disk in bytes."""

    vms: int = 0
    cores: int = 0
    memory: int = 0
    disk: int = 0

    def __add__(self, other: Figures) -> Figures:
        return Figures(*(getattr(self, kind) + getattr(other, kind) for kind in KINDS))


KINDS = tuple(field.name for field in fields(Figures))
_UNITS = {"memory": MIB, "disk": GIB}

Limits = Mapping[str, int]
"""The most of each kind; a kind that is missing has no limit."""


def read_limits(options: Mapping[str, Any]) -> Limits | None:
    """Return the limits for the task's tenant: O(quota), or else its entry in O(quotas), or None.

    Raises ValidationFailed for what is no limit, and for O(quota) without a tenant.
    """
    tenant, own, several = options.get("tenant"), options.get("quota"), options.get("quotas") or {}
    checked = {str(name).lower(): _limits(limits, f"quotas.{name}") for name, limits in several.items()}
    for name in several:
        validate.tag(tenant_tag(str(name), options.get("tenant_prefix") or "tenant_"), f"quotas.{name}")
    if own is not None:
        if not tenant:
            raise validate.refused("quota", own, "needs a tenant", "Give tenant, or use quotas for several")
        return _limits(own, "quota")
    return checked.get(str(tenant).lower()) if tenant else None


def _limits(given: Any, what: str) -> Limits:
    if not isinstance(given, Mapping) or set(given) - set(KINDS):
        raise validate.refused(what, given, "is no quota", f"Give it any of {', '.join(KINDS)}")
    limits: dict[str, int] = {}
    for kind, value in given.items():
        if value is None:
            continue
        if kind in _UNITS:
            limits[kind] = parse_size(value, bare=_UNITS[kind], what=f"{what}.{kind}")
        elif isinstance(value, bool) or not str(value).isdigit():
            raise validate.refused(f"{what}.{kind}", value, "is no number", "Give a whole number, 0 or more")
        else:
            limits[kind] = int(value)
    return limits


def figures_by_vm(
    picture: Picture, tag: str, prefix: str, volumes: Mapping[int, int] | None = None
) -> dict[int, Figures]:
    """Return what each VM of a tenant counts, by VMID. A template counts for its disks only.

    `volumes` are the bytes of all disks by VMID; the listing itself knows the boot disk alone.
    """
    found: dict[int, Figures] = {}
    for row in picture.vms.values():
        if tuple(tenants_of(row.tags, prefix)) != (tag,):
            continue
        disk = max(row.disk, (volumes or {}).get(row.vmid, 0))
        found[row.vmid] = Figures(disk=disk) if row.template else Figures(1, row.cores, row.memory, disk)
    return found


def total(figures: Iterable[Figures]) -> Figures:
    """Return the sum."""
    return sum(figures, Figures())


def excess(limits: Limits, used: Figures, more: Figures) -> dict[str, dict[str, int]]:
    """Return used, wanted and limit of each kind in which `more` is asked for and does not fit beside `used`."""
    return {
        kind: {"used": getattr(used, kind), "wanted": getattr(more, kind), "limit": limits[kind]}
        for kind in KINDS
        if kind in limits and getattr(more, kind) > 0 and getattr(used, kind) + getattr(more, kind) > limits[kind]
    }


def growth(before: Figures, after: Figures) -> Figures:
    """Return by how much a VM grows, in each kind; what shrinks counts as 0."""
    return Figures(*(max(0, getattr(after, kind) - getattr(before, kind)) for kind in KINDS))


def beyond(
    tenant: str, over: Mapping[str, Mapping[str, int]], attempted: str, next_step: str, **more: Any
) -> QuotaExceeded:
    """Return the error that tells the figures of what `excess` found."""
    said = [
        f"{kind}: {_said(kind, row['used'])} used + {_said(kind, row['wanted'])} wanted, "
        f"the limit is {_said(kind, row['limit'])}"
        for kind, row in over.items()
    ]
    return QuotaExceeded(
        attempted=attempted,
        answer=f"it exceeds the quota of tenant {tenant}: {'; '.join(said)}",
        next_step=next_step,
        reason="quota",
        details={"tenant": tenant, "quota": {kind: dict(row) for kind, row in over.items()}, **more},
    )


def _said(kind: str, value: int) -> str:
    return render_size(value) if kind in _UNITS else str(value)
