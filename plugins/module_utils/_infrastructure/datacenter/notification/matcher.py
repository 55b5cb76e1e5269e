# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of notification matchers, which choose the endpoints of a message (pve-manager:
PVE/API2/Cluster/Notifications.pm).
"""

from __future__ import annotations

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.names import ENDPOINT, require_listed
from ...._foundation.core import validate
from ...._foundation.resource.change import DesiredResource, ResourceChange
from ...._foundation.resource.table import Call, Key, Table
from ...._foundation.resource.values import flag_field, text_field
from .endpoint import MATCHERS, list_field, require_custom

BUILTIN = "default-matcher"


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise a refusal before the first write; one request if targets are set."""
    if change.deletes:
        require_custom(MATCHER, desired, BUILTIN)
    require_listed(client, "target", ENDPOINT, change.sets.get("target") or ())
    return ()


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
