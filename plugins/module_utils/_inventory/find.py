# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find one VM in the cluster's listing, for the lookup plugin.

The listing can show a VM under the name of a removed one that had its number, so a name is checked
against the lists of nodes (see `names.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from .._cluster.state import VmRow, cluster_state_of
from .._cluster.tenant import owns, tenant_tag
from .._core.errors import ConfigurationError, Conflict, UnknownVm
from .._core.quantities import whole_number
from .._vm.describe import describe_row
from .listing import Rows
from .names import with_figures


class Answers(Protocol):
    """The answers of a cluster; one that is not older than `since` need not be asked again."""

    def rows(self, since: float) -> Rows:
        """Return the VMs of the listing."""

    def node_rows(self, node: str, since: float) -> Rows:
        """Return the VMs of a node as it lists them itself."""


def find_vm(
    answers: Answers,
    term: str,
    tenant: str,
    prefix: str,
    *,
    since: float,
    now: float,
) -> dict[str, Any]:
    """Return the facts of the VM with that name or VMID, of that tenant when one is given.

    Answers that are not older than `since` are used first. What they lack is asked again at `now`,
    and a name then of every node. Raises FleetError.
    """
    is_number = whole_number(term) is not None
    rows = answers.rows(since)
    if not is_number:
        suspects = [row for row in rows if row.get("name") == term]
        rows = _on_nodes(answers, rows, suspects, since)
    found = find_row(rows, term, tenant, prefix)
    if found is not None:
        return found
    # perhaps created since then, or listed under another name
    rows = answers.rows(now)
    if not is_number:
        rows = _on_nodes(answers, rows, rows, now)
    found = find_row(
        rows,
        term,
        tenant,
        prefix,
        must_exist=True,
    )
    return dict(found or {})


def _on_nodes(
    answers: Answers,
    rows: Rows,
    suspects: Iterable[Mapping[str, Any]],
    since: float,
) -> Rows:
    """Return the rows as the nodes of some of them list their VMs."""
    of_nodes: dict[str, Rows] = {}
    for row in suspects:
        node = str(row["node"])
        if node not in of_nodes:
            of_nodes[node] = answers.node_rows(node, since)
    return with_figures(rows, of_nodes)


def find_row(
    rows: Sequence[Mapping[str, Any]],
    term: str,
    tenant: str,
    prefix: str,
    *,
    must_exist: bool = False,
) -> dict[str, Any] | None:
    """Return the facts of the VM with that name or VMID, of that tenant when one is given (pure).

    Raises Conflict when several VMs have the name, and NotFound for a missing VM that must exist.
    """
    attempted = f"Could not find the VM {term!r}"
    if not term.strip():
        raise ConfigurationError(
            attempted=attempted,
            answer="the name is empty",
            next_step="Give a name or VMID",
            reason="empty name",
        )
    found = _matches(rows, term)
    owned_by = ""
    if tenant:
        owned_by = f" of tenant {tenant}"
        owner = tenant_tag(tenant, prefix)
        found = [row for row in found if owns(owner, row.tags, prefix)]
    if len(found) > 1:
        vmids = [str(row.vmid) for row in found]
        raise Conflict(
            attempted=attempted,
            answer=f"several VMs have the name: {', '.join(vmids)}",
            next_step="Give the VMID",
            reason="ambiguous name",
        )
    if found:
        return describe_row(found[0], prefix=prefix)
    if must_exist:
        raise UnknownVm(
            attempted=attempted,
            answer=f"no VM{owned_by} has that name or VMID",
            next_step="Check the name and that the user may see the VM",
            reason="unknown VM",
        )
    return None


def _matches(rows: Sequence[Mapping[str, Any]], term: str) -> list[VmRow]:
    """Return the VMs with that VMID, or with that name.

    A number is never a name: PVE lets a tenant name a VM like the VMID of another VM.
    """
    vms = cluster_state_of(rows).vms.values()
    if whole_number(term) is not None:
        return [row for row in vms if str(row.vmid) == term]
    return [row for row in vms if row.name == term]
