# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant's usage and limits: at one site, and its sites with a quota over all of them (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any

from ..core import validate
from ..core.arguments.options import did_you_mean
from ..core.errors import QuotaExceeded, ValidationFailed
from ..core.quantities import GIB, MIB, parse_size, readable_sizes, whole_number
from .state import ClusterState
from .tenant import PREFIX, owns, tenant_tag
from .vmids import VmidRange, read_vmid_ranges


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

    def __sub__(self, other: QuotaFigures) -> QuotaFigures:
        return QuotaFigures(**{kind: getattr(self, kind) - getattr(other, kind) for kind in KINDS})


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
        by_tenant[str(name).lower()] = read_quota(value, what)
    if own is not None:
        return read_quota(own, "quota")
    if not tenant:
        return None
    return by_tenant.get(str(tenant).lower())


def read_quota(given: Any, what: str) -> Limits:
    """Return the limits of one quota. Raises ValidationFailed."""
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
        f"{attempted}: it exceeds the quota of tenant {tenant}: {'; '.join(causes)}",
        next_step,
        "quota",
        details={"tenant": tenant, "quota": quota, **more},
    )


def format_figures(kind: str, *values: int) -> tuple[str, ...]:
    """Return figures of one kind for a message: sizes with their unit, else plain numbers."""
    if kind in _UNITS:
        return readable_sizes(*values)
    return tuple(map(str, values))


AUTO = "auto"
"""The site of a guest whose site is chosen among the sites of its tenant."""


@dataclass(frozen=True)
class TenantSites:
    """The sites of a tenant, empty if it is not a tenant over sites.

    `total` is its quota over all sites, None without. `quotas` are its quotas at single sites, and
    `options` are the options of its guests at each site.
    """

    names: tuple[str, ...] = ()
    total: Limits | None = None
    quotas: Mapping[str, Limits] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_tenant_sites(tenant: str, given: Mapping[str, Any]) -> TenantSites:
    """Return the sites in the settings of a tenant. Raises ValidationFailed for each mistake."""
    names = tuple(dict.fromkeys(str(name) for name in given.get("sites") or ()))
    by_site = {name: given.get(name) or {} for name in ("site_quotas", "vmid_ranges")}
    if not names:
        needs = next((option for option, value in by_site.items() if value), "")
        if needs:
            raise _refused(tenant, f"{needs} needs sites", "List the sites of the tenant")
        return TenantSites()
    if given.get("site") not in (None, "", AUTO):
        raise _refused(tenant, "both site and sites are given", "Give one of them, or site: auto")
    if AUTO in names:
        raise _refused(tenant, "a site is named auto", "Rename the site: auto chooses one")
    for option, values in by_site.items():
        _require_listed(tenant, option, values, names)
    total = None if given.get("quota") is None else read_quota(given["quota"], "quota")
    quotas = {
        site: read_quota(value, f"site_quotas.{site}")
        for site, value in by_site["site_quotas"].items()
    }
    ranges = _read_ranges(tenant, by_site["vmid_ranges"])
    options: dict[str, dict[str, Any]] = {}
    for site in names:
        # Without a quota at the site, an empty quota: the guests count over all sites.
        options[site] = {"quota": by_site["site_quotas"].get(site, {})}
        if total is None and site not in quotas:
            options[site] = {"quota": None}
        if site in ranges:
            options[site]["vmid_range"] = list(ranges[site])
    return TenantSites(names, total, quotas, options)


def _require_listed(tenant: str, option: str, values: Any, names: tuple[str, ...]) -> None:
    """Raise ValidationFailed unless an option is a dictionary by the sites of the tenant."""
    if not isinstance(values, Mapping):
        raise _refused(tenant, f"{option} is not a dictionary by site", "Write {SITE: VALUE}")
    for name in values:
        if name not in names:
            hint = did_you_mean(str(name), names)
            answer = f"{option} names site {name}, which is not in its sites{hint}"
            raise _refused(tenant, answer, "Correct the name, or add it to sites")


def _read_ranges(tenant: str, given: Mapping[str, Any]) -> dict[str, VmidRange]:
    """Return the VMIDs of new guests by site. Raises ValidationFailed for ranges that overlap."""
    found: dict[str, VmidRange] = {}
    for site, value in given.items():
        numbers = value if isinstance(value, list) else []
        if len(numbers) != 2 or any(
            not isinstance(number, int) or isinstance(number, bool) for number in numbers
        ):
            answer = f"vmid_ranges.{site} is not a range"
            raise _refused(tenant, answer, "Give the first and the last VMID")
        found[site] = read_vmid_ranges(numbers, None).automatic
    in_order = sorted((vmids, site) for site, vmids in found.items())
    for (vmids, site), (others, other) in pairwise(in_order):
        if others[0] <= vmids[1]:
            answer = f"the vmid_ranges of {site} and {other} overlap"
            raise _refused(tenant, answer, "Give each site VMIDs that no other site has")
    return found


def site_of_guest(tenant: str, own: str, sites: TenantSites) -> str:
    """Return the site of a guest of a tenant over sites. Raises ValidationFailed."""
    if own in (*sites.names, AUTO):
        return own
    if not own and len(sites.names) == 1:
        return sites.names[0]
    listed = ", ".join(sites.names)
    if own:
        hint = did_you_mean(own, sites.names)
        raise _refused(tenant, f"its sites are {listed}, not {own}{hint}", "Correct the site")
    raise _refused(
        tenant,
        f"the guest names none of its sites {listed}",
        "Set site of the guest, or site: auto",
    )


def _refused(tenant: str, answer: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(
        f"The settings of tenant {tenant} were refused: {answer}", next_step, "sites"
    )
