# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The option O(site_placement): the eligible sites of a guest, and the rules to choose one (pure)."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.api.settings import ACTIVE, ConnectionSettings
from ...._foundation.cluster.rules import PlacementRules, read_selectors
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import did_you_mean

_OPTION = "site_placement"
_CHEAPEST = "cheapest"


@dataclass(frozen=True)
class SiteChoice:
    """The chosen site, the reasons, and why each other site was not chosen."""

    site: str
    reasons: tuple[str, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return the choice in the form of the module's result."""
        return {
            "site": self.site,
            "reasons": list(self.reasons),
            "refused": dict(sorted(self.refused.items())),
        }


@dataclass(frozen=True)
class SiteRules:
    """The rules for the site of a guest; `among` compares sites as the nodes of a cluster."""

    labels: Mapping[str, str] = field(default_factory=dict)
    exclude: frozenset[str] = frozenset()
    is_cheapest: bool = False
    among: PlacementRules = PlacementRules()

    def why_not(self, connection: ConnectionSettings) -> str | None:
        """Return the first reason why a site is not eligible, or None; no request is needed."""
        if connection.state != ACTIVE:
            return f"it is {connection.state}"
        if connection.site in self.exclude:
            return f"{_OPTION}.exclude names it"
        own = dict(connection.labels)
        for name, value in sorted(self.labels.items()):
            if own.get(name) != value:
                present = f"its label {name} is {own[name]}" if name in own else f"no label {name}"
                return f"{present}, and {value} is needed"
        if self.is_cheapest and price_of(connection) is None:
            return "its label price is not a number"
        return None


def price_of(connection: ConnectionSettings) -> float | None:
    """Return the price of a site, None if its label is missing or not a number."""
    try:
        price = float(dict(connection.labels)["price"])
    except (KeyError, ValueError):
        return None
    return price if math.isfinite(price) else None


def read_site_rules(given: Mapping[str, Any] | None, sites: Collection[str]) -> SiteRules:
    """Return the rules of the option. Raises ValidationFailed, also for a name that is not in
    `sites`, unless these are empty.
    """
    given = given or {}
    for key in ("sites", "exclude"):
        for name in given.get(key) or ():
            if sites and name not in sites:
                hint = did_you_mean(name, sites)
                step = f"The tenant has {', '.join(sites)}{hint}"
                raise validate.refused(
                    f"{_OPTION}.{key}", name, "is not a site of the tenant", step
                )
    strategy = given.get("strategy") or "least_used"
    among = PlacementRules(
        nodes=tuple(given.get("sites") or sites),
        strategy="least_used" if strategy == _CHEAPEST else strategy,
        affinity=read_selectors(given, "affinity", _OPTION),
        anti_affinity=read_selectors(given, "anti_affinity", _OPTION),
        required=given.get("affinity_policy") != "preferred",
    )
    return SiteRules(
        labels={str(name): str(value) for name, value in (given.get("labels") or {}).items()},
        exclude=frozenset(given.get("exclude") or ()),
        is_cheapest=strategy == _CHEAPEST,
        among=among,
    )
