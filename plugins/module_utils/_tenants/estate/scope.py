# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The selection of the VMs of an export (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.cluster.drill.copies import is_marked
from ..._foundation.cluster.state import ClusterState, VmRow
from ..._foundation.cluster.tenant import PREFIX, owns, tenant_tag
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import NotFound
from ..._foundation.core.quantities import whole_number


@dataclass(frozen=True)
class ExportScope:
    """The filters of a task; without filters all VMs are chosen.

    `tenant` is a tag. `names` are names and VMIDs as texts.
    """

    tenant: str | None = None
    prefix: str = PREFIX
    pool: str | None = None
    tags: frozenset[str] = frozenset()
    names: tuple[str, ...] = ()
    templates: bool = True

    def chosen(self, cluster: ClusterState) -> list[VmRow]:
        """Return the VMs that match the filters, sorted by VMID."""
        rows = map(cluster.vms.get, sorted(cluster.vms))
        return [row for row in rows if row is not None and self._includes(row)]

    def _includes(self, row: VmRow) -> bool:
        if row.template and not self.templates:
            return False
        if is_marked(row.tags):
            return False
        if self.pool not in (None, row.pool):
            return False
        if not owns(self.tenant, row.tags, self.prefix):
            return False
        if not self.tags.issubset(map(str.lower, row.tags)):
            return False
        if not self.names:
            return True
        return not {row.own_name, str(row.vmid)}.isdisjoint(self.names)

    @property
    def vmids(self) -> list[int]:
        """The VMIDs among the names."""
        vmids = map(whole_number, self.names)
        return list(filter(None, vmids))

    @property
    def label(self) -> str:
        """The filters as the text of a comment, empty without filters."""
        parts: list[str] = []
        if self.tenant:
            parts.append(f"with the tag {self.tenant}")
        if self.pool is not None:
            parts.append(f"in the pool {self.pool}")
        if self.tags:
            tags = ", ".join(sorted(self.tags))
            parts.append(f"with the tags {tags}")
        if self.names:
            names = ", ".join(self.names)
            parts.append(f"named {names}")
        if not self.templates:
            parts.append("without templates")
        return ", ".join(parts)


def read_scope(params: Mapping[str, Any]) -> ExportScope:
    """Return the filters. Raises ValidationFailed."""
    prefix = params["tenant_prefix"]
    tenant = None
    if params.get("tenant"):
        tag = tenant_tag(params["tenant"], prefix)
        tenant = validate.tag(tag, "tenant")
    pool = params.get("pool")
    if pool is not None:
        validate.pool(pool)
    tags = map(validate.tag, params.get("tags") or ())
    return ExportScope(
        tenant=tenant,
        prefix=prefix,
        pool=pool,
        tags=frozenset(tags),
        names=_names(params.get("vms")),
        templates=params["templates"],
    )


def _names(given: Iterable[Any] | None) -> tuple[str, ...]:
    """Return the names of VMs. Raises ValidationFailed for an empty list or an empty name."""
    if given is None:
        return ()
    names = [str(one).strip() for one in given]
    if not names or "" in names:
        step = "Name the VMs, or leave it out to export all of them"
        raise validate.refused("vms", names, "names no VM", step)
    return tuple(dict.fromkeys(names))


def require_exists(
    scope: ExportScope, cluster: ClusterState, rows: Iterable[VmRow], hidden: Collection[int]
) -> None:
    """Raise NotFound for a name that no VM of the export has.

    `hidden` are the VMIDs of existing VMs that the caller may not see.
    """
    found = set(map(str, hidden))
    for row in rows:
        found.update((row.own_name, str(row.vmid)))
    for name in scope.names:
        if name not in found:
            names = {
                row.own_name for row in cluster.guests if owns(scope.tenant, row.tags, scope.prefix)
            }
            raise _unknown(name, names - {""})


def _unknown(name: str, known: Collection[str]) -> NotFound:
    return NotFound(
        attempted=f"VM {name} could not be exported",
        answer="no VM of that name or number is visible and matches the other filters"
        f"{did_you_mean(name, known)}",
        next_step="Check vms, the other filters, and that the login has VM.Audit on the VM",
        reason="unknown VM",
    )
