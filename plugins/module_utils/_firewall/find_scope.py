# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the scope of a task. The scope of a guest is on the guest's node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.locate import locate, locate_by_name
from .._cluster.lookup import require_own_guest
from .._cluster.state import VmRow, fetch_cluster_state
from .._cluster.tenant import PREFIX, group_name, parse_tags, tenant_tag, tenants_of
from .._cluster.visible import probe_vmid, require_visible
from .._container.kind import CONTAINER
from .._core import validate
from .._core.errors import UnknownVm
from .._guest.nics import nics_in
from .._vm.kind import VM
from .scope import GUEST, FirewallScope, plain_scope

if TYPE_CHECKING:
    from .._api.client import Client


def find_scope(client: Client, params: Mapping[str, Any]) -> FirewallScope:
    """Return the scope of a task. A guest needs two or more requests, other scopes none.

    Raises Conflict for a guest of another tenant.
    """
    kind = params["scope"]
    if kind != GUEST:
        return plain_scope(kind, params.get(kind))
    prefix = params.get("tenant_prefix") or PREFIX
    tag = tenant_tag(params["tenant"], prefix) if params.get("tenant") else None
    row = _find_guest(client, params, tag, prefix)
    config = client.get(*row.path, "config")
    label = label_of_row(row)
    tags = parse_tags(str(config.get("tags") or ""))
    require_own_guest(label, tags, tag, prefix, unnamed=label)
    return FirewallScope(
        GUEST,
        label,
        (*row.path, "firewall"),
        frozenset(nics_in(config)),
        tenant_groups=frozenset(group_name(one) for one in tenants_of(tags, prefix)),
        config=config,
    )


def label_of_row(row: VmRow) -> str:
    """Return the name of a guest in messages, such as C(VM 100)."""
    noun = CONTAINER.noun if row.type == CONTAINER.type else VM.noun
    return f"{noun} {row.vmid}"


def _find_guest(client: Client, params: Mapping[str, Any], tag: str | None, prefix: str) -> VmRow:
    cluster = fetch_cluster_state(client, {VM.type, CONTAINER.type})
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
    return row or _unknown(label)


def _unknown(label: str) -> VmRow:
    raise UnknownVm(
        attempted=f"{label} was not found",
        answer="no guest of that name or VMID is visible",
        next_step="Check the spelling, and that the user or token has VM.Audit on it",
        reason="unknown guest",
    )
