# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tenant whose guests a task may read or change (pure)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import FleetError, ForeignTenant
from ..state import VmRow
from ..tenant import PREFIX, owns, tenant_tag
from .lookup import require_own_guest


@dataclass(frozen=True)
class OwnerScope:
    """The tenant whose VMs the task may change; without a tag, it may change every VM."""

    tag: str | None
    prefix: str

    @property
    def tenant(self) -> str | None:
        """The name of the tenant, None for a task without one."""
        return None if self.tag is None else self.tag[len(self.prefix) :]

    def require_owned(self, label: str, tags: Collection[str], *, unnamed: str) -> None:
        """Raise Conflict for a guest of another tenant or of no tenant; see `require_own_guest`."""
        require_own_guest(label, tags, self.tag, self.prefix, unnamed=unnamed)

    def may_see(self, row: VmRow, error: FleetError) -> bool:
        """Return whether the listed values of a VM that failed with this error may be shown."""
        if isinstance(error, ForeignTenant):
            return False
        return self.owns(row)

    def owns(self, row: VmRow) -> bool:
        """Return whether the VM belongs to this tenant alone; without a tag every VM does."""
        return owns(self.tag, row.tags, self.prefix)


def owner_of(params: Mapping[str, Any]) -> OwnerScope:
    """Return the tenant whose VMs the task may change."""
    prefix = params.get("tenant_prefix") or PREFIX
    tenant = params.get("tenant")
    tag = tenant_tag(tenant, prefix) if tenant else None
    return OwnerScope(tag, prefix)
