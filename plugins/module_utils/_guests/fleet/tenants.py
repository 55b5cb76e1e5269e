# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of each tenant in an estate, and their inheritance by its VMs (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.spec.tenants import OF_VMS, read_estate_tenants
from ..guest.desired.layers import lay_over
from ..guest.registry import VMS, ListKind


@dataclass(frozen=True)
class TenantSettings:
    """The settings of a tenant: the site of its VMs (empty: the task's) and their options."""

    site: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(params: Mapping[str, Any]) -> dict[str, TenantSettings]:
    """Return O(tenant_settings) by tenant. Raises ValidationFailed that names the tenant."""
    found: dict[str, TenantSettings] = {}
    given = read_estate_tenants(params.get("tenant_settings"))
    for tenant, options in given.items():
        found[tenant] = _settings(tenant, options)
    return found


def _settings(tenant: str, options: Mapping[str, Any]) -> TenantSettings:
    defaults = options.get("defaults") or {}
    if defaults.get("tenant"):
        raise ValidationFailed(
            attempted=f"The settings of tenant {tenant} were refused",
            answer="defaults has the option tenant, which is the name of these settings",
            next_step="Leave it out",
            reason="tenant",
        )
    own = {name: options.get(name) for name in OF_VMS}
    return TenantSettings(
        site=str(options.get("site") or ""),
        options=lay_over(VMS.without_empty_texts(defaults), own),
    )


def settings_of(settings: Mapping[str, TenantSettings], tenant: str) -> TenantSettings:
    """Return the settings of a tenant; empty without a tenant, or if no tenant has settings.

    Raises ValidationFailed for a tenant without settings if other tenants have settings.
    """
    if not settings or not tenant:
        return TenantSettings()
    if tenant in settings:
        return settings[tenant]
    known = ", ".join(sorted(settings))
    hint = did_you_mean(tenant, settings)
    reason = "tenant without settings"
    attempted = f"tenant '{tenant}' was refused"
    answer = f"the estate has settings for {known} only{hint}"
    raise ValidationFailed(
        attempted=attempted,
        answer=answer,
        next_step="Correct the tenant, or add it to the tenants of the estate",
        reason=reason,
    )


def inherited(
    params: Mapping[str, Any], settings: TenantSettings, kind: ListKind = VMS
) -> Mapping[str, Any]:
    """Return the options for a tenant's guests: its own settings override the shared ones."""
    if not settings.options:
        return params
    shared = {name: params.get(name) for name in kind.specs.shared}
    own = kind.specs.own(settings.options)
    return {**params, **lay_over(kind.without_empty_texts(shared), own)}


def site_of(own: Mapping[str, Any], settings: TenantSettings) -> str:
    """Return the site of a VM: its own, else its tenant's, else an empty text."""
    return str(own.get("site") or settings.site)
