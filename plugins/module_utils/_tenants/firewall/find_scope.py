# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the scope of a task. The scope of a guest is on the guest's node."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.lookup import locate, locate_by_name, require_own_guest
from ..._foundation.cluster.find.names import VNET as VNET_KIND
from ..._foundation.cluster.find.names import require_listed
from ..._foundation.cluster.find.visible import probe_vmid, require_visible
from ..._foundation.cluster.state import VmRow, fetch_cluster_state
from ..._foundation.cluster.tenant import (
    PREFIX,
    group_name,
    owns,
    parse_tags,
    tenant_tag,
    tenants_of,
)
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import UnknownVm
from ..._guests.kinds.identity import Identity, require_name, require_same_creation
from ..._guests.kinds.kind import Kind, nics_in
from ..._guests.kinds.words import CONTAINER, VM
from .owners import require_options_of_scope
from .scope import GUEST, VNET, FirewallScope, plain_scope

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def find_scope(client: Client, params: Mapping[str, Any]) -> FirewallScope:
    """Return the scope of a task. A guest needs two or more requests, a VNet one.

    Raises Conflict for a guest of another tenant, NotFound for a VNet that is not applied
    (pve-firewall: API2/Firewall/Helpers.pm, check_vnet_access).
    """
    kind = params["scope"]
    require_options_of_scope(params)
    if kind == VNET:
        require_listed(client, "vnet", VNET_KIND, [params["vnet"]])
    if kind != GUEST:
        return plain_scope(kind, params.get(kind))
    prefix = _prefix_of(params)
    row = _find_guest(client, params, tag_of(params), prefix)
    config = client.get(*row.path, "config")
    label = label_of_row(row)
    _require_chosen(label, row, config, params)
    tags = parse_tags(str(config.get("tags") or ""))
    return FirewallScope(
        GUEST,
        label,
        (*row.path, "firewall"),
        frozenset(nics_in(config)),
        tenant_groups=frozenset(group_name(one) for one in tenants_of(tags, prefix)),
        config=config,
        row=row,
    )


def tag_of(params: Mapping[str, Any]) -> str | None:
    """Return the tag of the task's tenant, or None (pure)."""
    tenant = params.get("tenant")
    return tenant_tag(tenant, _prefix_of(params)) if tenant else None


def _prefix_of(params: Mapping[str, Any]) -> str:
    return str(params.get("tenant_prefix") or PREFIX)


def require_same_guest(client: Client, scope: FirewallScope, params: Mapping[str, Any]) -> None:
    """Raise Conflict unless the guest still is the guest that was found; one request.

    Other scopes send no request.
    """
    if scope.row is None:
        return
    config = client.get(*scope.row.path, "config")
    current = _require_chosen(scope.label, scope.row, config, params)
    known = _identity(scope.row, scope.config)
    require_same_creation(scope.label, known, current)


def _require_chosen(
    label: str, row: VmRow, config: Mapping[str, Any], params: Mapping[str, Any]
) -> Identity:
    """Return the identity of the guest. Raises Conflict unless it has the tenant and the name of
    the task (pure).
    """
    tags = parse_tags(str(config.get("tags") or ""))
    require_own_guest(label, tags, tag_of(params), _prefix_of(params), unnamed=label)
    identity = _identity(row, config)
    if params.get("name") is not None:
        require_name(label, identity, [params["name"]])
    return identity


def _identity(row: VmRow, config: Mapping[str, Any]) -> Identity:
    kind = _kind_of(row)
    return kind.identity_in(config, name=kind.name_in(config), volumes={})


def label_of_row(row: VmRow) -> str:
    """Return the name of a guest in messages, such as C(VM 100)."""
    return f"{_kind_of(row).noun} {row.vmid}"


def _kind_of(row: VmRow) -> Kind:
    return CONTAINER if row.type == CONTAINER.type else VM


def _find_guest(client: Client, params: Mapping[str, Any], tag: str | None, prefix: str) -> VmRow:
    cluster = fetch_cluster_state(client)
    if params.get("vmid") is not None:
        vmid = validate.vmid(params["vmid"])
        row, cluster = locate(client, cluster, vmid=vmid)
        label = f"Guest {vmid}"
        if row is None:
            require_visible(probe_vmid(client, cluster, vmid), vmid, f"{label} was not found")
    else:
        name = validate.dns_name(params["name"])
        row, cluster = locate_by_name(client, cluster, name, tag, prefix)
        label = f"Guest '{name}'"
    names = {other.own_name for other in cluster.guests if owns(tag, other.tags, prefix)}
    return _require_found(row, label, str(params.get("name") or ""), names - {""})


def _require_found(row: VmRow | None, label: str, name: str, names: Collection[str]) -> VmRow:
    """Return the row of a guest. Raises UnknownVm with the most similar of the names (pure)."""
    if row is not None:
        return row
    raise UnknownVm(
        f"{label} was not found: no guest of that name or VMID is "
        f"visible{did_you_mean(name, names)}",
        "Check the spelling, and that the user or token has VM.Audit on it",
        "unknown guest",
    )
