# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the networks and the isolation of tenants with an estate, from the plan of module
tenant. Nothing is written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.api.layers.caching import CachingReader
from ..._foundation.cluster.tenant import PREFIX
from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._foundation.spec.tenants import read_estate_tenants
from ..._tenants.tenant.model import Tenant, described_tenant
from ..._tenants.tenant.network.work import plan_networks
from .cluster_file import add_resource, differences
from .compare import BLIND
from .ignore import IgnorePatterns
from .model import DRIFTED, IN_SYNC, UNKNOWN, ClusterResource, DriftReading, DriftScope

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

SECTION = "tenants"


def read_networked(
    options: Mapping[str, Any], chosen: Collection[str] | None
) -> dict[str, list[Tenant]]:
    """Return the tenants with networks, by site; only tenants in `chosen` if any are given (pure).

    Raises ValidationFailed.
    """
    prefix = str(options.get("tenant_prefix") or PREFIX).lower()
    found: dict[str, list[Tenant]] = {}
    for name, settings in read_estate_tenants(options.get("tenant_settings")).items():
        if chosen and name not in chosen:
            continue
        tenant = described_tenant(name, settings, prefix)
        if tenant.networking is None:
            continue
        for site in settings.get("sites") or [settings.get("site") or ""]:
            found.setdefault(site, []).append(tenant)
    return found


def add_tenants(
    reading: DriftReading, client: Client, scope: DriftScope, sites: Collection[str]
) -> None:
    """Add the networks of the tenants of these sites, or of all tenants if `sites` is empty.

    As many requests as module tenant for networks without a change.
    """
    reader = CachingReader(client)
    for site, tenants in scope.networked.items():
        if sites and site not in sites:
            continue
        for tenant in tenants:
            _add_tenant(reading, reader, tenant, scope.ignored)


def _add_tenant(
    reading: DriftReading, reader: Client, tenant: Tenant, ignored: IgnorePatterns
) -> None:
    found = ClusterResource(reading.site, SECTION, tenant.name, UNKNOWN)
    try:
        planned = plan_networks(tenant, reader)
        found.status = DRIFTED if planned.parts else IN_SYNC
        found.steps = planned.summaries
        for part in planned.parts:
            found.options += differences({"before": part.plan.before, "after": part.plan.after})
    except PermissionDenied as error:
        text = f"The networks of tenant {tenant.name} were not compared: {error.message}"
        reading.warnings.append(text)
        return
    except FleetError as error:
        found.reason = error.message
        found.status = UNKNOWN if isinstance(error, BLIND) else DRIFTED
    add_resource(reading, found, ignored)
