# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""HA rules of the affinity and anti-affinity of guests (pure).

A rule belongs to a tenant, a direction and a selector, so its name stays if guests come and go.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ...._foundation.cluster.rules import PlacementRules
from ...._foundation.cluster.state import VmRow
from ...._foundation.cluster.tenant import PREFIX, owns
from .sids import sid_of

APART, TOGETHER = "apart", "together"
AFFINITIES = {APART: "negative", TOGETHER: "positive"}
NAME_PREFIX = "fleet-"
NO_TENANT = "-"
_MARK = re.compile(r"\[pve\.fleet: placement=([^\s\[\]]+)\]\Z")


@dataclass(frozen=True)
class GuestPlacement:
    """A guest whose placement is kept: its row, its rules, and the tag of its tenant."""

    row: VmRow
    rules: PlacementRules
    tenant_tag: str | None = None
    prefix: str = PREFIX


@dataclass(frozen=True)
class DerivedRule:
    """An HA rule of the placement of guests."""

    name: str
    tenant: str
    direction: str
    comment: str
    resources: frozenset[str]


Pair = frozenset[str]
Source = tuple[str, str, str]
"""The tag of a tenant (C(-) without a tenant), the direction, and the text of the selector."""


def mark_of(tenant: str) -> str:
    """Return the mark of an HA rule or resource that the placement of a tenant has created.

    `tenant` is the tag of the tenant, C(-) without a tenant.
    """
    return f"[pve.fleet: placement={tenant}]"


def marked_tenant(comment: object) -> str | None:
    """Return the tag of the tenant in a mark, C(-) for no tenant, None without a mark."""
    found = _MARK.search(str(comment or ""))
    return found[1] if found else None


def source_of(name: str, comment: object) -> Source | None:
    """Return the source of a rule that the placement of a tenant created, None for another rule."""
    tenant = marked_tenant(comment)
    direction, colon, rest = str(comment or "").partition(": ")
    if tenant is None or not colon or not name.startswith(f"{NAME_PREFIX}{direction}-"):
        return None
    return tenant, direction, _MARK.sub("", rest).strip()


def derive_rules(guests: Sequence[GuestPlacement], rows: Iterable[VmRow]) -> list[DerivedRule]:
    """Return the rules that keep the placement of these guests; `rows` are all guests."""
    others = [row for row in rows if not row.template]
    pairs: dict[Source, set[Pair]] = {}
    for guest in guests:
        own, tenant = sid_of(guest.row), guest.tenant_tag or NO_TENANT
        candidates = [
            row
            for row in others
            if row.vmid != guest.row.vmid and owns(guest.tenant_tag, row.tags, guest.prefix)
        ]
        selectors = {APART: guest.rules.anti_affinity, TOGETHER: guest.rules.affinity}
        for direction, listed in selectors.items():
            for selector in listed:
                matched = pairs.setdefault((tenant, direction, selector.text), set())
                fitting = [row for row in candidates if selector.fits(row)]
                matched.update(frozenset((own, sid_of(row))) for row in fitting)
    found: list[DerivedRule] = []
    for source in sorted(pairs):
        found += _rules_of(source, pairs[source])
    return found


def _rules_of(source: Source, pairs: set[Pair]) -> list[DerivedRule]:
    """Return one rule if its guests form exactly these pairs, otherwise a rule for each pair.

    Proxmox VE separates every two guests of a rule. If a VM must be separated from two databases,
    but these need not be separated from each other, one rule with all three is wrong.
    """
    if not pairs:
        return []
    everyone = frozenset().union(*pairs)
    every_pair = {frozenset(pair) for pair in combinations(sorted(everyone), 2)}
    if source[1] == TOGETHER or pairs == every_pair:
        return [_rule(source, everyone)]
    return [_rule(source, pair, "/".join(sorted(pair))) for pair in sorted(pairs, key=sorted)]


def _rule(source: Source, resources: frozenset[str], pair: str = "") -> DerivedRule:
    tenant, direction, selector = source
    digest = hashlib.sha256("\0".join((*source, pair)).encode()).hexdigest()
    name = f"{NAME_PREFIX}{direction}-{digest[:12]}"
    comment = f"{direction}: {selector} {mark_of(tenant)}"
    return DerivedRule(name, tenant, direction, comment, resources)


def scope_of(tags: Iterable[str | None]) -> frozenset[str]:
    """Return the tags of tenants in the form of marks."""
    return frozenset(tag or NO_TENANT for tag in tags)


def obsolete_rules(
    rules: Mapping[str, Mapping[str, object]], derived: Iterable[DerivedRule], scope: frozenset[str]
) -> list[str]:
    """Return the names of rules that the placement of these tenants created and no longer has."""
    kept = {rule.name for rule in derived}
    found: list[str] = []
    for name, values in sorted(rules.items()):
        is_own = name.startswith(NAME_PREFIX) and marked_tenant(values["comment"]) in scope
        if is_own and name not in kept:
            found.append(name)
    return found
