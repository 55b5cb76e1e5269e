# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm_info: list, filter, and read the configuration of what matches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, VmRow, ask_nodes, fetch_cluster_state, with_names
from .._cluster.tenant import owns, parse_tags, tenant_tag
from .._cluster.unread import refuse_unread
from .._cluster.visible import require_visible
from .._core import validate
from .._core.errors import FleetError, NotFound
from .._core.result import Result
from .._resource.plan import Plan
from .describe import conditions, describe, describe_row
from .desired.settings import GuestRequest, read_guest_request
from .live.guest import NO_GUEST_REPORT, guest_report, read_addresses
from .live.read import read_wherever

if TYPE_CHECKING:
    from .._api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs that match all filters, sorted by VMID.

    Nothing is written, in check mode or out of it. Raises NodeUnhealthy where a VM that is named
    may be one whose name cannot be read.
    """
    wanted = matcher(params)
    prefix = params.get("tenant_prefix") or "tenant_"
    cluster = _named(client, params)
    request = read_guest_request(params)
    url = client.connection.endpoint.web
    rows = [row for row in cluster.vms.values() if wanted(row)]
    require_visible(
        client, cluster, params.get("vmid"), f"VM {params.get('vmid')} could not be read"
    )
    name = params.get("name")
    if name is not None and not rows:
        refuse_unread(cluster, f"VM '{name}'", lambda row: wanted(replace(row, name=name)))
    vms: list[dict[str, Any]] = []
    warnings: list[str] = []
    for row in sorted(rows, key=lambda row: row.vmid):
        if not params.get("config") and not request.asks:
            vms.append(_row(row, prefix, url))
            continue
        try:
            vm = _read(client, row, wanted, request, prefix)
        except NotFound:
            continue  # removed since the listing was made
        except FleetError as error:  # a node that is down hides only its own VMs
            if params.get("vmid") is not None or params.get("name"):
                attempted = f"Could not read VM '{row.name}' ({row.vmid}) on node {row.node}"
                raise error.on(attempted=attempted) from error
            vms.append(_row(row, prefix, url))
            warnings.append(f"VM '{row.name}' ({row.vmid}) on node {row.node}: {error.message}")
            continue
        if vm is not None:
            vms.append(vm)
    return Result(False, {"vms": vms}, warnings=tuple(warnings))


def _named(client: Client, params: Mapping[str, Any]) -> ClusterState:
    """Return the cluster state; the name of a VM that the task names is that which its node has.

    The listing can have it under the name of a removed VM.
    """
    cluster = fetch_cluster_state(client)
    if params.get("name") is not None:
        return with_names(client, cluster)
    row = cluster.vms.get(params.get("vmid") or 0)
    if row is not None:
        return ask_nodes(client, cluster, {row.node})
    return with_names(client, cluster, missing=True)


def _read(
    client: Client,
    row: VmRow,
    wanted: Callable[[VmRow], bool],
    request: GuestRequest,
    prefix: str,
) -> dict[str, Any] | None:
    """Return the VM with its configuration; None where it does not match the filters any more."""
    actual = read_wherever(client, row.vmid, row.node, pool=row.pool)
    tags = parse_tags(actual.target.get("tags"))
    if not wanted(replace(row, name=actual.name, tags=tags)):
        return None  # another tenant's, or renamed, since the listing was made
    guest = NO_GUEST_REPORT
    if request.asks:
        guest = guest_report(actual, *read_addresses(client, actual), request.rule)
    url = client.connection.endpoint.web
    vm = describe(actual, prefix=prefix, url=url, guest=guest)
    pending = Plan(pending=tuple(vm["pending"]))
    return {**vm, "conditions": conditions(actual, pending, applied=True)}


def _row(row: VmRow, prefix: str, url: str) -> dict[str, Any]:
    return {**describe_row(row, prefix=prefix, url=url), "conditions": None}


def matcher(params: Mapping[str, Any]) -> Callable[[VmRow], bool]:
    """Return whether a VM of the listing matches every filter that is given (pure).

    An unknown tag matches nothing.
    """
    prefix = params.get("tenant_prefix") or "tenant_"
    tenant = params.get("tenant")
    owner = tenant_tag(tenant, prefix) if tenant else None
    tags = {validate.tag(tag) for tag in params.get("tags") or ()}
    exact = {
        key: params[key]
        for key in ("name", "vmid", "node", "pool", "template")
        if params.get(key) is not None
    }

    def matches(row: VmRow) -> bool:
        if any(getattr(row, key) != value for key, value in exact.items()):
            return False
        if not owns(owner, row.tags, prefix):
            return False
        return tags <= {tag.lower() for tag in row.tags}

    return matches
