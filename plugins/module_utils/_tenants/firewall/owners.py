# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Refuses options that do not apply to a scope, and changes of objects of another tenant.

Security groups, VNets, and aliases and IP sets of the cluster belong to the tenant in the mark of
their comment. The firewall of the cluster and of a node belongs to no tenant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.tenant import EVERY_TENANT
from ..._foundation.core.errors import FleetError, ForeignTenant, ValidationFailed
from ..._foundation.core.marks import marked_tag
from .model import Firewall
from .scope import CLUSTER, GROUP, GUEST, NODE, VNET, FirewallScope

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_OPTIONS: Mapping[str, tuple[str, ...]] = {
    CLUSTER: (),
    NODE: ("node",),
    GUEST: ("name", "vmid", "tenant"),
    VNET: ("vnet", "tenant"),
    GROUP: ("group", "tenant"),
}
_NEXT_STEP = "Set tenant to the owner, or use module tenant; nothing was changed"


def require_options_of_scope(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed for an option that cannot limit the scope of the task (pure)."""
    scope = params["scope"]
    for option in ("node", "vnet", "group", "name", "vmid", "tenant"):
        if params.get(option) is None or option in _OPTIONS[scope]:
            continue
        answer = f"it does not apply to scope {scope}"
        if option == "tenant":
            answer = f"the firewall of a {scope} does not belong to a tenant"
        raise ValidationFailed(
            f"{option} was refused: {answer}",
            f"Remove {option}, or choose another scope; nothing was changed",
            "firewall",
        )


def read_owner(client: Client, scope: FirewallScope, firewall: Firewall) -> str | None:
    """Return the tag in the mark of a group or a VNet; one request for a VNet, none otherwise."""
    if scope.kind != VNET:
        return marked_tag(firewall.comment)
    rows = client.get("cluster", "sdn", "vnets") or ()
    aliases = {str(row["vnet"]): row.get("alias") for row in rows}
    return marked_tag(aliases.get(scope.name))


def require_owner(scope: FirewallScope, owner: str | None, tag: str | None) -> None:
    """Raise ForeignTenant for a group or a VNet that does not belong to the tenant with this tag.

    Without a tag, it must not belong to any tenant.
    """
    if scope.kind not in (GROUP, VNET) or owner == tag:
        return
    if tag is None:
        answer = "it has the mark of a tenant, and the task has no tenant"
    elif owner is None:
        answer = f"it does not have the mark of {tag}"
    else:
        answer = f"it belongs to another tenant, not to {tag}"
    raise ForeignTenant(
        f"The firewall of {scope.label} was refused: {answer}", _NEXT_STEP, "foreign tenant"
    )


def require_marks_unchanged(scope: FirewallScope, before: Firewall, after: Firewall) -> None:
    """Raise ForeignTenant if a change concerns a mark, or an alias or IP set with a mark (pure)."""
    has_new_mark = marked_tag(after.comment) not in (None, marked_tag(before.comment))
    if scope.kind == GROUP and has_new_mark:
        raise _marked(f"The comment of {scope.label}")
    if scope.kind != CLUSTER:
        return
    for name in {**before.aliases, **after.aliases}:
        aliases = before.aliases.get(name), after.aliases.get(name)
        marks = [marked_tag(alias[1]) for alias in aliases if alias is not None]
        if aliases[0] != aliases[1] and any(mark is not None for mark in marks):
            raise _marked(f"Alias '{name}' of the cluster")
    for name in {**before.ip_sets, **after.ip_sets}:
        sets = before.ip_sets.get(name), after.ip_sets.get(name)
        marks = [marked_tag(ip_set.comment) for ip_set in sets if ip_set is not None]
        is_marked = name == EVERY_TENANT or any(mark is not None for mark in marks)
        if sets[0] != sets[1] and is_marked:
            raise _marked(f"IP set '{name}' of the cluster")


def _marked(label: str) -> FleetError:
    return ForeignTenant(
        f"{label} was refused: it has the mark of a tenant",
        "Change the tenant with module tenant; nothing was changed",
        "foreign tenant",
    )
