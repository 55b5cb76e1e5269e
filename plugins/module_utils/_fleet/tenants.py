# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What an estate says once for a tenant, and how its VMs inherit it (pure)."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._core.errors import ValidationFailed
from .._core.options import check_options
from .._spec.fleet import shared_spec, without_defaults
from .._vm.desired.layers import lay_over
from .._vm.desired.values import without_left_out

# Options of a VM that stand next to `defaults`, because they are about the tenant as a whole.
_OF_VMS = (
    "pool",
    "tags",
    "quota",
    "placement",
    "networks",
    "classes",
    "storage_classes",
    "class",
)


@dataclass(frozen=True)
class TenantSettings:
    """What holds for one tenant: the site of its VMs, empty for that of the task, and their
    options.
    """

    site: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def read_settings(params: Mapping[str, Any]) -> dict[str, TenantSettings]:
    """Return the settings of O(tenant_settings) by tenant.

    Raises ValidationFailed, with the tenant in the message.
    """
    given = params.get("tenant_settings") or {}
    found: dict[str, TenantSettings] = {}
    for tenant, options in given.items():
        name = str(tenant)
        found[name] = _read(name, options or {})
    return found


def _read(tenant: str, given: Any) -> TenantSettings:
    what = f"The settings of tenant {tenant} were refused"
    options = check_options(_spec(), given, what)
    defaults = options.get("defaults") or {}
    if defaults.get("tenant"):
        raise ValidationFailed(
            attempted=what,
            answer="defaults has the option tenant, which is the name of these settings",
            next_step="Leave it out",
            reason="tenant",
        )
    own = {name: options.get(name) for name in _OF_VMS}
    return TenantSettings(
        site=str(options.get("site") or ""),
        options=lay_over(without_left_out(defaults), own),
    )


def _spec() -> dict[str, dict[str, Any]]:
    """Return the options of one tenant. `access` and `comment` are for module tenant."""
    of_vms = without_defaults(shared_spec())
    return {
        **{name: of_vms[name] for name in _OF_VMS},
        "site": {"type": "str"},
        "comment": {"type": "str"},
        "access": {"type": "dict"},
        "defaults": {"type": "dict", "options": of_vms},
    }


def settings_of(settings: Mapping[str, TenantSettings], tenant: str) -> TenantSettings:
    """Return the settings of a tenant, empty ones for a VM without a tenant.

    Raises ValidationFailed for a tenant that is missing among those that are given.
    """
    if not settings or not tenant:
        return TenantSettings()
    if tenant in settings:
        return settings[tenant]
    near = difflib.get_close_matches(tenant, settings, n=1)
    hints = [f" (did you mean '{name}'?)" for name in near]
    raise ValidationFailed(
        attempted=f"tenant '{tenant}' was refused",
        answer=f"the estate has settings for {', '.join(sorted(settings))} only{''.join(hints)}",
        next_step="Correct the tenant, or add it to the tenants of the estate",
        reason="tenant without settings",
    )


def inherited(params: Mapping[str, Any], settings: TenantSettings) -> Mapping[str, Any]:
    """Return the options for all VMs as they hold for those of one tenant: its own over them."""
    if not settings.options:
        return params
    shared = {name: params.get(name) for name in shared_spec()}
    return {**params, **lay_over(without_left_out(shared), settings.options)}


def site_of(own: Mapping[str, Any], settings: TenantSettings) -> str:
    """Return the site of a VM: its own, else that of its tenant, else an empty text."""
    return str(own.get("site") or settings.site)
