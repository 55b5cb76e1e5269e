# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of HA resources (pve-ha-manager: PVE/API2/HA/Resources.pm)."""

from __future__ import annotations

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import NotSupported
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, Table
from ...._foundation.resource.values import flag_field, number_field, text_field
from .sids import sid

_RULES_SINCE = (9, 0)
_INSTEAD = {
    "group": "Use a rule of type node-affinity instead: pve.fleet.ha_rule",
    "failback": "Leave out failback: nofailback of its HA group decides",
}


def resolve(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises NotSupported for an option that the version does not have.

    One request if the task sets such an option.
    """
    if _INSTEAD.keys() & desired.values.keys():
        require_options(desired, client.version())
    return desired


def require_options(desired: DesiredResource, version: tuple[int, int]) -> None:
    """Raise NotSupported for an option that this version does not have (pure)."""
    option, answer = "failback", "failback of a resource came with Proxmox VE 9.0"
    if version >= _RULES_SINCE:
        option, answer = "group", "Proxmox VE 9 has no HA groups any more"
    if option not in desired.values:
        return
    raise NotSupported(
        f"HA resource '{desired.keys['sid']}' was not changed: {answer}",
        _INSTEAD[option],
        "version",
    )


def _request_state(value: str | None) -> str:
    """Return the requested state; C(enabled) is an old word for C(started)."""
    if value in (None, "enabled"):
        return "started"
    return str(value)


HA_RESOURCE = Table(
    kind="ha_resource",
    title="HA resource",
    keys=(Key("sid", "sid", sid),),
    fields=(
        Field("request_state", "state", read=_request_state),
        number_field("max_restart", default=1),
        number_field("max_relocate", default=1),
        flag_field("failback", default=True),
        text_field("group", want=lambda value: value and validate.config_id(value, "group")),
        text_field("comment"),
    ),
    digest=("PUT",),
    list_call=Call(("cluster", "ha", "resources")),
    read_call=Call(("cluster", "ha", "resources", "{sid}")),
    create_call=Call(("cluster", "ha", "resources"), {"sid": "{sid}"}),
    resolve=resolve,
)
