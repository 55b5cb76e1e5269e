# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules vm_info and container_info: list, filter, and read the configuration of the
matching guests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._foundation.cluster.find.restoring import (
    find_restored,
    require_restored,
    suspects,
    with_bare_queried,
)
from ..._foundation.cluster.find.unread import require_readable
from ..._foundation.cluster.find.visible import probe_vmid, require_visible
from ..._foundation.cluster.state import (
    ClusterState,
    VmRow,
    fetch_cluster_state,
    query_nodes,
    with_names,
)
from ..._foundation.cluster.tenant import owns, parse_tags, tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.errors import FleetError, NotFound
from ..._foundation.core.result import Result
from ..._foundation.resource.plan import Plan
from ..kinds.kind import Kind
from ..kinds.model import Actual
from ..kinds.words import kind_name
from .context import TaskSettings, read_settings
from .describe import NO_GUEST_REPORT, conditions, describe, describe_row
from .live.read import read_wherever

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

Report: TypeAlias = Callable[["Client", Actual, TaskSettings], Mapping[str, Any]]


def gather(
    params: Mapping[str, Any], client: Client, kind: Kind, report: Report, *, restored: bool
) -> Result:
    """Return the guests that match all filters, sorted by VMID.

    `report` returns the report of one guest; `restored` is whether a restore hides the names of
    guests of this kind. Nothing is written. Raises NodeUnhealthy if a named guest may be a guest
    whose name cannot be read, and BeingRestored if it may be a guest that is being restored.
    """
    wanted = matcher(params)
    noun = kind.noun
    prefix = params.get("tenant_prefix") or "tenant_"
    cluster = _named(client, params, kind)
    rows = [row for row in cluster.vms.values() if wanted(row)]
    vmid = params.get("vmid")
    require_visible(probe_vmid(client, cluster, vmid), vmid, f"{noun} {vmid} could not be read")
    name = params.get("name")
    if name is not None and not rows:
        require_readable(cluster, f"{noun} '{name}'", lambda row: wanted(replace(row, name=name)))
    hidden = _find_suspects(client, cluster, params, prefix) if restored else []
    if name is not None and not rows:
        require_restored(client, hidden, f"{noun} '{name}' could not be found")
    warnings: list[str] = []
    if name is None:
        warnings += find_restored(client, hidden).values()
    reader = _GuestReader(client, params, kind, report, wanted)
    guests = [reader.guest(row, warnings) for row in sorted(rows, key=lambda row: row.vmid)]
    found = [guest for guest in guests if guest is not None]
    return Result(False, {f"{kind_name(kind.type)}s": found}, warnings=tuple(warnings))


def _named(client: Client, params: Mapping[str, Any], kind: Kind) -> ClusterState:
    """Return the cluster state; if the task names a guest, names are read from the nodes.

    The listing can show the guest under the name of a removed guest.
    """
    cluster = fetch_cluster_state(client, {kind.type})
    if params.get("name") is not None:
        return with_names(client, cluster)
    row = cluster.vms.get(params.get("vmid") or 0)
    if row is not None:
        return query_nodes(client, cluster, {row.node})
    return with_names(client, cluster, missing=True)


def _find_suspects(
    client: Client, cluster: ClusterState, params: Mapping[str, Any], prefix: str
) -> list[VmRow]:
    """Return the VMs that may be restored and that the filters may hide.

    The listing shows a new restore as a VM that has lost its tags and keeps its name. So only a
    selection by tenant or tags needs more requests.
    """
    owner = tenant_tag(params["tenant"], prefix) if params.get("tenant") else None
    if params.get("name") is None and (owner or params.get("tags")):
        cluster = with_bare_queried(client, cluster, owner, prefix)
    return suspects(cluster, owner, prefix)


class _GuestReader:
    """Reads the guests that match."""

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any],
        kind: Kind,
        report: Report,
        wanted: Callable[[VmRow], bool],
    ) -> None:
        self._client = client
        self._params = params
        self._kind = kind
        self._report = report
        self._wanted = wanted
        self._prefix = params.get("tenant_prefix") or "tenant_"
        self._request = read_settings(params)

    def guest(self, row: VmRow, warnings: list[str]) -> dict[str, Any] | None:
        """Return the guest of a row, with its configuration if requested.

        None if it was removed or does not match any more. A warning replaces the configuration of
        a guest on a node that is down, unless the task names the guest.
        """
        if not self._params.get("config") and not self._request.needs_agent:
            return self._row(row)
        try:
            return self._read(row)
        except NotFound:
            return None  # removed since the listing was made
        except FleetError as error:
            label = f"{self._kind.noun} '{row.name}' ({row.vmid}) on node {row.node}"
            if self._params.get("vmid") is not None or self._params.get("name"):
                raise error.on(attempted=f"Could not read {label}") from error
            warnings.append(f"{label}: {error.message}")
            return self._row(row)

    def _read(self, row: VmRow) -> dict[str, Any] | None:
        """Return the guest with its configuration; None if it does not match any more."""
        client = self._client
        actual = read_wherever(client, self._kind, row.vmid, row.node, pool=row.pool)
        tags = parse_tags(actual.target.get("tags"))
        if not self._wanted(replace(row, name=actual.name, tags=tags)):
            return None  # another tenant's, or renamed, since the listing was made
        report: Mapping[str, Any] = NO_GUEST_REPORT
        if self._request.needs_agent:
            report = self._report(client, actual, self._request)
        url = client.endpoint.web
        checked = client.clock.time()
        guest = describe(actual, checked=checked, prefix=self._prefix, url=url, guest=report)
        pending = Plan(pending=tuple(guest["pending"]))
        return {**guest, "conditions": conditions(actual, pending, applied=True)}

    def _row(self, row: VmRow) -> dict[str, Any]:
        checked, url = self._client.clock.time(), self._client.endpoint.web
        described = describe_row(self._kind, row, checked=checked, prefix=self._prefix, url=url)
        return {**described, "conditions": None}


def matcher(params: Mapping[str, Any]) -> Callable[[VmRow], bool]:
    """Return whether a guest of the listing matches every filter that is given (pure).

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
