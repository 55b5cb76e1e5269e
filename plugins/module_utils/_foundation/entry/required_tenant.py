# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses a task without a tenant if the connection requires one (pure).

A task without a tenant may change the VMs of every tenant. A site or the environment sets
`require_tenant` if no task may forget the tenant by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.settings import ConnectionSettings
from ..core.errors import ValidationFailed
from .generated.administrative import ADMINISTRATIVE

TEMPLATE_TASK = "vm"
"""With C(state=template), this module makes templates for all tenants. It then changes no VM that
has the tag of a tenant (_guests/guest/live/find.py)."""
FIREWALL_TASK = "firewall"
"""Only the firewall of a guest belongs to a tenant."""
# Modules that write nothing in Proxmox VE, besides the modules whose names end in _info.
READING = frozenset({"metrics", "firewall_check"})


def is_exempt(module: str, params: Mapping[str, Any]) -> bool:
    """Return whether a task only reads or is administrative; a module without a name is neither."""
    if module.endswith("_info") or module in READING or module in ADMINISTRATIVE:
        return True
    if module == FIREWALL_TASK:
        return params.get("scope") != "guest"
    return module == TEMPLATE_TASK and params.get("state") == "template"


def has_tenant(params: Mapping[str, Any]) -> bool:
    """Return whether a task names a tenant, for each of its VMs if it lists some."""
    defaults = params.get("defaults")
    common = defaults.get("tenant") if isinstance(defaults, Mapping) else None
    if params.get("tenant") or common:
        return True
    listed = params.get("vms")
    if not isinstance(listed, list) or not listed:
        return False
    return all(isinstance(item, Mapping) and item.get("tenant") for item in listed)


def require_tenant(module: str, params: Mapping[str, Any], connection: ConnectionSettings) -> None:
    """Raise ValidationFailed for a task that needs a tenant and has none."""
    if not connection.require_tenant or is_exempt(module, params) or has_tenant(params):
        return
    raise ValidationFailed(
        attempted="The task was refused",
        answer="it could change the guests of every tenant, because it has no tenant, and"
        " require_tenant is set",
        next_step="Set tenant; in a list of VMs, set it for each VM",
        reason="require_tenant",
        dispatched=False,
    )
