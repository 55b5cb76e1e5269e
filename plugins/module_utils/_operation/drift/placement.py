# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the HA rules and resources of C(placement.keep) with an estate, from the plan of module
vms. Nothing is written.
"""

from __future__ import annotations

from ..._foundation.core.errors import FleetError, PermissionDenied
from ..._foundation.resource.run import TableResource
from ..._guests.fleet.placement_rules import PlacementKeeper
from ..._infrastructure.datacenter.ha.rule import HA_RULE
from .cluster_file import add_resource, differences
from .compare import BLIND
from .ignore import IgnorePatterns
from .model import DRIFTED, MISSING, UNKNOWN, UNWANTED, ClusterResource, DriftReading

RULES, RESOURCES = "ha_rules", "ha_resources"
_WHOLE = "placement"


def add_placement(reading: DriftReading, keeper: PlacementKeeper, ignored: IgnorePatterns) -> None:
    """Add each rule and resource that differs, under the sections of a cluster file.

    Two requests if a guest of the estate sets C(keep). Without the privilege to read HA rules, only
    a warning is added.
    """
    try:
        plan = keeper.plan()
    except PermissionDenied as error:
        reading.warnings.append(f"HA rules of placement.keep were not compared: {error.message}")
        return
    except FleetError as error:
        status = UNKNOWN if isinstance(error, BLIND) else DRIFTED
        found = ClusterResource(reading.site, RULES, _WHOLE, status, error.message)
        add_resource(reading, found, ignored)
        return
    for one in plan.resources:
        add_resource(reading, described(one, reading.site), ignored)
    reading.warnings += plan.warnings


def described(one: TableResource, site: str) -> ClusterResource:
    """Return a rule or a resource that differs, as the report shows it (pure)."""
    section = RULES if one.table is HA_RULE else RESOURCES
    name = "/".join(one.desired.keys.values())
    found = ClusterResource(site, section, name, _status_of(one))
    found.steps = one.plan.summaries
    found.options = differences({"before": one.plan.before, "after": one.plan.after})
    return found


def _status_of(one: TableResource) -> str:
    if not one.desired.present:
        return UNWANTED
    return MISSING if one.actual is None else DRIFTED
