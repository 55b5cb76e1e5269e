# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A tenant as the modules report it (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from ..._foundation.cluster.quota import QuotaFigures, excess, figures_by_vm, total
from ..._foundation.cluster.state import VmRow
from ..._guests.kinds.model import Actual
from .facts import TenantFacts, other_rights
from .login.token import current_token
from .model import Tenant
from .tenant_resources import wanted_privileges, wanted_rights


def describe(tenant: Tenant, facts: TenantFacts, templates: Mapping[str, int]) -> dict[str, Any]:
    """Return a tenant with its roles and rights; `templates` are VMIDs by the option's text."""
    wanted = wanted_privileges(tenant, facts)
    name = current_token(tenant, facts) or tenant.token
    return {
        "name": tenant.name,
        "tag": tenant.tag,
        "registered_tag": tenant.registered,
        "pool": tenant.pool,
        "user": tenant.user,
        "group": tenant.group,
        "token_id": f"{tenant.user}!{name}",
        "roles": {role: sorted(privileges) for role, privileges in sorted(wanted.items())},
        "rights": {
            path: sorted(grant.role for grant in grants)
            for path, grants in wanted_rights(tenant, facts, templates).items()
        },
        "usage": vars(usage(tenant, facts)),
    }


def usage(tenant: Tenant, facts: TenantFacts) -> QuotaFigures:
    """Return the usage of a tenant's VMs and containers.

    The disk usage includes only boot disks and root file systems, as in the listing.
    """
    return total(figures_by_vm(facts.of_both_kinds, tenant.tag, tenant.prefix).values())


def over_quota(tenant: Tenant, facts: TenantFacts) -> Mapping[str, Mapping[str, int]]:
    """Return the usage, C(wanted), and the C(limit) of each kind that exceeds its quota."""
    return excess(tenant.quota or {}, QuotaFigures(), usage(tenant, facts))


def privileged_among(
    tenant: Tenant, containers: Iterable[VmRow], guests: Mapping[int, Actual]
) -> Iterator[tuple[str, int]]:
    """Yield a sentence about each privileged container, with its VMID."""
    for row in sorted(containers, key=attrgetter("vmid")):
        actual = guests.get(row.vmid)
        if actual is not None and actual.kind.is_privileged(actual.target):
            label = f"Container {actual.name} ({row.vmid})"
            yield f"{label} is privileged, which {tenant.label} must not have", row.vmid


def notes(tenant: Tenant, facts: TenantFacts) -> list[str]:
    """Return warnings about an exceeded quota, and about rights from other roles."""
    lines: list[str] = []
    for kind, row in over_quota(tenant, facts).items():
        figures = f"{kind} {row['wanted']} of {row['limit']}"
        lines.append(f"{tenant.label} exceeds its quota: {figures}")
    for path, grants in other_rights(tenant, facts).items():
        names = ", ".join(grant.text() for grant in sorted(grants))
        lines.append(f"{tenant.label} has rights that its roles do not give: {names} on {path}")
    return lines
