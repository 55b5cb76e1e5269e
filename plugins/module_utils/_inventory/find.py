# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding one VM in the cluster's listing, for the lookup plugin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._api.client import Client
from .._cluster.picture import picture_of
from .._cluster.tenant import tenant_tag, tenants_of
from .._core.errors import ApiError, ConfigurationError, Conflict, NotFound
from .._vm.describe import describe_row


def listed(client: Client) -> list[dict[str, Any]]:
    """Return the VMs of `/cluster/resources`. Raises FleetError."""
    attempted = "Could not list the VMs"
    rows = client.get("cluster", "resources", type="vm", attempted=attempted)
    return [dict(row) for row in checked_rows(rows, attempted) if row.get("type") == "qemu"]


def checked_rows(answer: Any, attempted: str) -> list[Mapping[str, Any]]:
    """Return the rows of a listing. Raises ApiError for an answer that is none: it must not pass for an empty one."""
    if not isinstance(answer, list):
        raise ApiError(
            attempted=attempted,
            answer="the answer is no list",
            next_step="Check that host and port lead to Proxmox VE, and the proxies on the way",
            reason="not a listing",
        )
    return [row for row in answer if isinstance(row, Mapping)]


def find_row(
    rows: Sequence[Mapping[str, Any]], term: str, tenant: str, prefix: str, *, must_exist: bool = False
) -> dict[str, Any] | None:
    """Return the facts of the VM with that name or VMID, of that tenant when one is named (pure).

    Raises Conflict when several VMs bear the name, and NotFound for a missing one when it must exist.
    """
    attempted = f"Could not find the VM {term!r}"
    if not term.strip():
        raise ConfigurationError(
            attempted=attempted, answer="the name is empty", next_step="Give a name or VMID", reason="empty name"
        )
    owner = (tenant_tag(tenant, prefix),) if tenant else None
    # A number is never a name: PVE lets a tenant call a VM by the VMID of another's.
    is_vmid = term.isascii() and term.isdigit()
    found = [
        row
        for row in picture_of(rows).vms.values()
        if (str(row.vmid) if is_vmid else row.name) == term
        and (owner is None or tuple(tenants_of(row.tags, prefix)) == owner)
    ]
    if len(found) > 1:
        raise Conflict(
            attempted=attempted,
            answer=f"several VMs bear the name: {', '.join(str(row.vmid) for row in found)}",
            next_step="Give the VMID",
            reason="ambiguous name",
        )
    if found:
        return describe_row(found[0], prefix=prefix)
    if must_exist:
        of_tenant = f" of tenant {tenant}" if tenant else ""
        raise NotFound(
            attempted=attempted,
            answer=f"no VM{of_tenant} has that name or VMID",
            next_step="Check the name and that the user may see the VM",
            reason="unknown VM",
        )
    return None
