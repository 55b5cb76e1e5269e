# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuses a task without a tenant if the connection requires one, and a task that writes at a closed
site (pure).

A task without a tenant may change the VMs of every tenant. A site or the environment sets
`require_tenant` if no task may forget the tenant by mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.settings import CLOSED, ConnectionSettings
from ..core.errors import ConfigurationError, ValidationFailed
from .generated.administrative import ADMINISTRATIVE

TEMPLATE_TASK = "vm"
"""With C(state=template), this module makes templates for all tenants. It then changes no VM that
has the tag of a tenant (_guests/guest/live/find.py)."""
FIREWALL_TASK = "firewall"
"""Only the firewall of a guest belongs to a tenant."""
# Modules that write nothing in Proxmox VE, besides the modules whose names end in _info.
READING = frozenset({"metrics", "firewall_check", "usage"})


def only_reads(module: str) -> bool:
    """Return whether a module writes nothing in Proxmox VE."""
    return module.endswith("_info") or module in READING


def is_exempt(module: str, params: Mapping[str, Any]) -> bool:
    """Return whether a task only reads or is administrative; a module without a name is neither."""
    if only_reads(module) or module in ADMINISTRATIVE:
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


def require_accepted_by_site(
    module: str, params: Mapping[str, Any], connection: ConnectionSettings
) -> None:
    """Raise ConfigurationError for a task that may write, if its site is closed, and
    ValidationFailed for a task that needs a tenant and has none.
    """
    if connection.state == CLOSED and not only_reads(module):
        raise ConfigurationError(
            f"The task was refused: site {connection.site} is closed, so nothing is written there",
            "Remove the site from the task or the estate, or set its state to active",
            "closed site",
        )
    if not connection.require_tenant or is_exempt(module, params) or has_tenant(params):
        return
    raise ValidationFailed(
        "The task was refused: it could change the guests of every tenant, because it has no "
        "tenant, and require_tenant is set",
        "Set tenant; in a list of VMs, set it for each VM",
        "require_tenant",
    )
