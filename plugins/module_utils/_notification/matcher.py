# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of notification matchers, which choose the endpoints of a message (pve-manager:
PVE/API2/Cluster/Notifications.pm).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from .._core import validate
from .._core.errors import NotFound
from .._resource.change import DesiredResource, ResourceChange
from .._resource.protocols import Api
from .._resource.table import Call, Key, Table
from .._resource.values import flag_field, text_field
from .endpoint import MATCHERS, list_field, require_custom

BUILTIN = "default-matcher"


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise a refusal before the first write; one request if targets are set."""
    if change.deletes:
        require_custom(MATCHER, desired, BUILTIN)
    if change.sets.get("target"):
        rows = client.get("cluster", "notifications", "targets", attempted="Could not list targets")
        require_targets(desired, change.sets, {str(row["name"]) for row in rows or []})
    return ()


def require_targets(
    desired: DesiredResource, sets: Mapping[str, Any], known: Collection[str]
) -> None:
    """Raise NotFound for endpoints that do not exist (pure)."""
    missing = sorted(set(sets["target"]).difference(known))
    if missing:
        raise NotFound(
            attempted=f"{MATCHER.label(desired.keys)} was not changed",
            answer=f"there is no endpoint {', '.join(missing)}; the cluster has"
            f" {', '.join(sorted(known))}",
            next_step="Create it first, or check target",
            reason="unknown endpoint",
            details={"endpoints": missing},
        )


MATCHER = Table(
    kind="notification_matcher",
    title="notification matcher",
    keys=(Key("name", "name", validate.config_id),),
    fields=(
        text_field("comment"),
        flag_field("disable"),
        list_field("target"),
        text_field("mode", default="all"),
        flag_field("invert_match"),
        list_field("match_severity"),
        list_field("match_field"),
        list_field("match_calendar"),
    ),
    digest=("PUT",),
    unset_as_list=True,
    list_call=Call(MATCHERS),
    read_call=Call((*MATCHERS, "{name}")),
    create_call=Call(MATCHERS, {"name": "{name}"}),
    precheck=precheck,
)
