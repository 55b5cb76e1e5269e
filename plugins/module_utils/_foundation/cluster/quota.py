# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant's usage and limits (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..core import validate
from ..core.errors import QuotaExceeded
from ..core.quantities import GIB, MIB, parse_size, readable_sizes, whole_number
from .state import ClusterState
from .tenant import PREFIX, owns, tenant_tag


@dataclass(frozen=True)
class QuotaFigures:
    """Figures that count against a quota; memory and disk in bytes."""

    vms: int = 0
    cores: int = 0
    memory: int = 0
    disk: int = 0

    def __add__(self, other: QuotaFigures) -> QuotaFigures:
        return QuotaFigures(
            vms=self.vms + other.vms,
            cores=self.cores + other.cores,
            memory=self.memory + other.memory,
            disk=self.disk + other.disk,
        )


KINDS = tuple(field.name for field in fields(QuotaFigures))
_UNITS = {"memory": MIB, "disk": GIB}

Limits = Mapping[str, int]
"""The maximum of each kind; a missing kind has no limit."""


def read_limits(options: Mapping[str, Any]) -> Limits | None:
    """Return the limits for the task's tenant: O(quota), or else its entry in O(quotas), or None.

    Raises ValidationFailed for an invalid limit, and for O(quota) without a tenant.
    """
    tenant = options.get("tenant")
    own = options.get("quota")
    if own is not None and not tenant:
        step = "Give tenant, or use quotas for several"
        raise validate.refused("quota", own, "needs a tenant", step)
    prefix = options.get("tenant_prefix") or PREFIX
    by_tenant: dict[str, Limits] = {}
    quotas = options.get("quotas") or {}
    validate.distinct_tenants(quotas, "quotas")
    for name, value in quotas.items():
        what = f"quotas.{name}"
        validate.tag(tenant_tag(str(name), prefix), what)
        by_tenant[str(name).lower()] = _limits(value, what)
    if own is not None:
        return _limits(own, "quota")
    if not tenant:
        return None
    return by_tenant.get(str(tenant).lower())


def _limits(given: Any, what: str) -> Limits:
    step = f"Give it any of {', '.join(KINDS)}"
    if not isinstance(given, Mapping):
        raise validate.refused(what, given, "is not a quota", step)
    if not given.keys() <= set(KINDS):
        raise validate.refused(what, given, "is not a quota", step)
    limits: dict[str, int] = {}
    for kind, value in given.items():
        option = f"{what}.{kind}"
        if value is None:
            continue
        if kind in _UNITS:
            limits[kind] = parse_size(value, bare=_UNITS[kind], what=option)
            continue
        number = whole_number(str(value))
        if number is None:
            step = "Give a whole number, 0 or more"
            raise validate.refused(option, value, "is not a number", step)
        limits[kind] = number
    return limits


def figures_by_vm(
    cluster: ClusterState, tag: str, prefix: str, volumes: Mapping[int, int] | None = None
) -> dict[int, QuotaFigures]:
    """Return the figures of each VM of a tenant, by VMID. Of a template only the disks count.

    `volumes` are the bytes of all disks by VMID; the listing contains only the boot disk.
    """
    sizes = volumes or {}
    found: dict[int, QuotaFigures] = {}
    for row in cluster.vms.values():
        if not owns(tag, row.tags, prefix):
            continue
        disk = max(row.disk, sizes.get(row.vmid, 0))
        if row.template:
            found[row.vmid] = QuotaFigures(disk=disk)
        else:
            found[row.vmid] = QuotaFigures(1, row.cores, row.memory, disk)
    return found


def total(figures: Iterable[QuotaFigures]) -> QuotaFigures:
    """Return the sum."""
    return sum(figures, QuotaFigures())


def excess(limits: Limits, used: QuotaFigures, more: QuotaFigures) -> dict[str, dict[str, int]]:
    """Return used, wanted and limit of each kind for which `used` and `more` exceed the limit.

    Kinds for which `more` is 0 are not checked.
    """
    over: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        limit = limits.get(kind)
        in_use = getattr(used, kind)
        wanted = getattr(more, kind)
        if limit is None or wanted <= 0:
            continue
        if in_use + wanted > limit:
            over[kind] = {"used": in_use, "wanted": wanted, "limit": limit}
    return over


def growth(before: QuotaFigures, after: QuotaFigures) -> QuotaFigures:
    """Return by how much a VM grows, in each kind; a smaller figure counts as 0."""
    grown: dict[str, int] = {}
    for kind in KINDS:
        difference = getattr(after, kind) - getattr(before, kind)
        grown[kind] = max(0, difference)
    return QuotaFigures(**grown)


def beyond(
    tenant: str, over: Mapping[str, Mapping[str, int]], attempted: str, next_step: str, **more: Any
) -> QuotaExceeded:
    """Return the error with the figures that `excess` found."""
    causes: list[str] = []
    for kind, row in over.items():
        used, wanted, limit = format_figures(kind, row["used"], row["wanted"], row["limit"])
        causes.append(f"{kind}: {used} used + {wanted} wanted, the limit is {limit}")
    quota = {kind: dict(row) for kind, row in over.items()}
    return QuotaExceeded(
        attempted=attempted,
        answer=f"it exceeds the quota of tenant {tenant}: {'; '.join(causes)}",
        next_step=next_step,
        reason="quota",
        details={"tenant": tenant, "quota": quota, **more},
    )


def format_figures(kind: str, *values: int) -> tuple[str, ...]:
    """Return figures of one kind for a message: sizes with their unit, else plain numbers."""
    if kind in _UNITS:
        return readable_sizes(*values)
    return tuple(map(str, values))
