# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The placement that HA rules keep, as guests of an estate declare it (pure).

Comments of rules contain the tenant, the direction and the selector. A guest gets the option only
if the rules that are derived from it are exactly the rules of the cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._foundation.cluster.rules import PlacementRules, VmSelector
from ..._foundation.cluster.state import VmRow
from ..._infrastructure.datacenter.ha.placement import (
    APART,
    NO_TENANT,
    GuestPlacement,
    Source,
    derive_rules,
    source_of,
)
from ..._infrastructure.datacenter.ha.sids import sid_of

_OPTIONS = {APART: "anti_affinity"}
Resources = Mapping[str, frozenset[str]]
"""The HA resources of each rule, by the name of the rule."""


def placements_of(
    rules: Mapping[str, Mapping[str, Any]], rows: Sequence[VmRow], prefix: str
) -> tuple[dict[int, dict[str, Any]], list[str]]:
    """Return the option C(placement) by VMID, and the names of rules that it cannot express.

    `rows` are all guests.
    """
    by_source: dict[Source, dict[str, frozenset[str]]] = {}
    lost: list[str] = []
    for name, values in rules.items():
        source = source_of(name, values["comment"])
        if source is not None and values["disable"]:
            lost.append(name)  # a run enables it again
        elif source is not None:
            by_source.setdefault(source, {})[name] = values["resources"]
    found: dict[int, dict[str, Any]] = {}
    for source, resources in sorted(by_source.items()):
        guests = _guests_of(source, resources, rows, prefix)
        if not guests:
            lost += resources
        for guest in guests:
            placement = found.setdefault(guest.row.vmid, {"keep": True})
            option = _OPTIONS.get(source[1], "affinity")
            placement.setdefault(option, []).append(source[2])
    return found, sorted(lost)


def _guests_of(
    source: Source, resources: Resources, rows: Sequence[VmRow], prefix: str
) -> list[GuestPlacement]:
    """Return the guests with the selector; none if no choice of guests results in these rules.

    A guest that the selector matches may be in a rule without having the selector itself.
    """
    tenant, direction, text = source
    owner = None if tenant == NO_TENANT else tenant
    selector = VmSelector(text)
    placement = PlacementRules(affinity=(selector,))
    if direction == APART:
        placement = PlacementRules(anti_affinity=(selector,))
    sids = frozenset().union(*resources.values())
    everyone = [row for row in rows if sid_of(row) in sids]
    for chosen in ([row for row in everyone if not selector.fits(row)], everyone):
        guests = [GuestPlacement(row, placement, owner, prefix) for row in chosen]
        derived = derive_rules(guests, rows)
        if {rule.name: rule.resources for rule in derived} == resources:
            return guests
    return []
