# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The guests of a tenant, and the strays, which stop its removal (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..._foundation.cluster.find.restoring import seems_bare
from ..._foundation.cluster.state import VmRow
from ..._foundation.cluster.tenant import owns, tenants_of
from ..._foundation.core.errors import Conflict
from ..._guests.guest.registry import list_of
from .facts import TenantFacts
from .marks import has_pool_alone
from .model import Tenant


@dataclass(frozen=True)
class TenantGuests:
    """The guests of a tenant, and the guests that share its pool.

    `own` have its tag and are in its pool. `outside` have its tag and are not in its pool.
    `untagged` are in its pool without a tenant's tag. `foreign` are in its pool and belong to other
    tenants, or have the tags of several tenants; they are never removed. `in_creation` have neither
    tag nor pool yet: only the marker in their notes names the tenant. `unclear` are sentences about
    guests that may be unfinished guests of the tenant.
    """

    own: tuple[VmRow, ...]
    outside: tuple[VmRow, ...]
    untagged: tuple[VmRow, ...]
    foreign: tuple[VmRow, ...]
    in_creation: tuple[VmRow, ...] = ()
    unclear: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[VmRow, ...]:
        """The guests of all groups."""
        return (*self.own, *self.outside, *self.untagged, *self.foreign, *self.in_creation)

    @property
    def strays(self) -> list[str]:
        """Message lines about the guests that stop a removal."""
        lines: list[str] = []
        for row in self.outside:
            lines.append(f"{_label(row)} has the tag, but is in {_place(row)}")
        for row in self.untagged:
            lines.append(f"{_label(row)} is in the pool without {_missing_marks(row)}")
        for row in self.foreign:
            lines.append(f"{_label(row)} has the tags {', '.join(row.tags)}")
        for row in self.in_creation:
            lines.append(f"{_label(row)} is unfinished, and will be its {_noun(row)}")
        return [*lines, *self.unclear]

    @property
    def labels(self) -> list[str]:
        """The tenant's own guests as messages name them."""
        return [_label(row) for row in self.own]

    @property
    def vmids(self) -> frozenset[int]:
        """The VMIDs of `rows`."""
        return frozenset(row.vmid for row in self.rows)


def guests_of(tenant: Tenant, facts: TenantFacts) -> TenantGuests:
    """Return the guests of a tenant and the strays, by VMID."""
    groups: dict[str, list[VmRow]] = {"own": [], "outside": [], "untagged": [], "foreign": []}
    is_alone = has_pool_alone(tenant, facts)
    for row in sorted(facts.cluster.guests, key=attrgetter("vmid")):
        group = _group_of(tenant, row, is_alone=is_alone)
        if group is not None:
            groups[group].append(row)
    return TenantGuests(
        own=tuple(groups["own"]),
        outside=tuple(groups["outside"]),
        untagged=tuple(groups["untagged"]),
        foreign=tuple(groups["foreign"]),
    )


def _group_of(tenant: Tenant, row: VmRow, *, is_alone: bool) -> str | None:
    """Return the field of `TenantGuests` that a guest belongs to, or None for an unrelated guest.

    If the tenant shares its pool (`is_alone` is false), other guests in the pool are ignored,
    except a guest that a restore may be writing: it has no tags until the restore ends.
    """
    is_pooled = row.pool == tenant.pool
    owners = tenants_of(row.tags, tenant.prefix)
    if owns(tenant.tag, row.tags, tenant.prefix):
        return "own" if is_pooled else "outside"
    if tenant.tag in owners:
        return "foreign"
    if is_pooled and (is_alone or seems_bare(row)):
        return "foreign" if owners else "untagged"
    return None


def require_no_strays(tenant: Tenant, guests: TenantGuests, tokens: Sequence[str]) -> None:
    """Raise Conflict for strays; `tokens` are the unmarked tokens of the tenant's user."""
    unmarked = [f"token '{tenant.user}!{name}' has no mark" for name in tokens]
    strays = [*guests.strays, *unmarked]
    if not strays:
        return
    raise Conflict(
        attempted=f"{tenant.label} was not removed",
        answer=f"these are not clearly its own: {'; '.join(strays)}",
        next_step="Give guests their tenant's tag and pool, and delete tokens; or set strays=keep"
        " to leave them, or strays=remove to remove the guests and tokens of no other tenant",
        reason="strays",
        details={"strays": strays},
    )


def names_of(rows: Iterable[VmRow]) -> str:
    """Return guests as messages name them."""
    return ", ".join(_label(row) for row in rows)


def _label(row: VmRow) -> str:
    if row.own_name:
        return f"{_noun(row)} '{row.own_name}' ({row.vmid})"
    return f"{_noun(row)} {row.vmid}"


def _noun(row: VmRow) -> str:
    return list_of(row.type).kind.noun


def _missing_marks(row: VmRow) -> str:
    """Return the missing properties that would identify the owner of a guest."""
    if seems_bare(row):
        return "name, tags and disks, as during a restore"
    return "a tenant"


def _place(row: VmRow) -> str:
    return f"pool '{row.pool}'" if row.pool else "no pool"
