# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find one VM in the cluster's listing, for the lookup plugin.

The listing can show a VM under the name of a removed VM with the same VMID, so a name is checked
against the lists of nodes (see `names.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..._foundation.api.client import Client
from ..._foundation.cluster.find.restoring import remark_on_restored
from ..._foundation.cluster.state import VmRow, cluster_state_of
from ..._foundation.cluster.tenant import owns, tenant_tag, tenants_of
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, Conflict, UnknownVm
from ..._foundation.core.quantities import whole_number
from ..._guests.guest.describe import describe_row
from ..._guests.kinds.words import VM
from .sites import Rows, listed, listed_on, with_figures


class LookupAnswers(Protocol):
    """The answers of a cluster."""

    def rows(self) -> Rows:
        """Return the VMs of the listing."""

    def node_rows(self, node: str) -> Rows:
        """Return the VMs of a node from its own list."""


class CachedAnswers:
    """The answers of a cluster; each is requested once for all terms of one lookup."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._rows: Rows | None = None
        self._of_nodes: dict[str, Rows] = {}

    def rows(self) -> Rows:
        """Return the VMs of the listing. Raises FleetError."""
        if self._rows is None:
            self._rows = listed(self._client)
        return self._rows

    def node_rows(self, node: str) -> Rows:
        """Return the VMs of a node from its own list. Raises FleetError."""
        if node not in self._of_nodes:
            self._of_nodes[node] = listed_on(self._client, VM, node)
        return self._of_nodes[node]


def find_vm(answers: LookupAnswers, term: str, tenant: str, prefix: str) -> dict[str, Any]:
    """Return the facts of the VM with this name or VMID, and of the tenant if one is given.

    A name is checked on the nodes of the VMs that the listing shows under this name. If no VM on
    these nodes has the name, every node is asked. Raises FleetError.
    """
    rows = answers.rows()
    if whole_number(term) is None:
        suspects = [row for row in rows if row.get("name") == term]
        on_their_nodes = _on_nodes(answers, rows, suspects)
        found = find_row(on_their_nodes, term, tenant, prefix)
        if found is not None:
            return found
        rows = _on_nodes(answers, rows, rows)
    return dict(find_row(rows, term, tenant, prefix, must_exist=True) or {})


def _on_nodes(answers: LookupAnswers, rows: Rows, suspects: Iterable[Mapping[str, Any]]) -> Rows:
    """Return the rows with the figures that the nodes of the suspects report."""
    nodes = {str(row["node"]) for row in suspects}
    return with_figures(rows, [(node, answers.node_rows(node)) for node in sorted(nodes)])


def find_row(
    rows: Sequence[Mapping[str, Any]],
    term: str,
    tenant: str,
    prefix: str,
    *,
    must_exist: bool = False,
) -> dict[str, Any] | None:
    """Return the facts of the VM with this name or VMID, and of the tenant if one is given (pure).

    Raises Conflict if several VMs have the name, and UnknownVm for a missing VM that must exist.
    """
    attempted = f"Could not find the VM {term!r}"
    if not term.strip():
        raise ConfigurationError(
            f"{attempted}: the name is empty", "Give a name or VMID", "empty name"
        )
    cluster = cluster_state_of(rows, {VM.type})
    vms, owned_by = list(cluster.vms.values()), ""
    if tenant:
        owner, tags = tenant_tag(tenant, prefix), [tag for row in vms for tag in row.tags]
        tenants = {tag[len(prefix) :] for tag in tenants_of(tags, prefix)}
        hint = "" if tenant.lower() in tenants else did_you_mean(tenant, tenants)
        owned_by = f" of tenant {tenant}{hint}"
        vms = [row for row in vms if owns(owner, row.tags, prefix)]
    found = _matches(vms, term)
    if len(found) > 1:
        vmids = [str(row.vmid) for row in found]
        raise Conflict(
            f"{attempted}: several VMs have the name: {', '.join(vmids)}",
            "Give the VMID",
            "ambiguous name",
        )
    if found:
        return describe_row(VM, found[0], prefix=prefix)
    if must_exist:
        remark = remark_on_restored(cluster)
        hint = did_you_mean(term, [row.name for row in vms])
        raise UnknownVm(
            f"{attempted}: no VM{owned_by} has that name or VMID{hint}{remark}",
            "Check the name and that the user may see the VM",
            "unknown VM",
        )
    return None


def _matches(vms: Sequence[VmRow], term: str) -> list[VmRow]:
    """Return the VMs with this VMID or name.

    A number is never read as a name: in PVE a tenant can name a VM like the VMID of another VM.
    """
    if whole_number(term) is not None:
        return [row for row in vms if str(row.vmid) == term]
    return [row for row in vms if row.name == term]
