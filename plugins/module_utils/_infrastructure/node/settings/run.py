# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules node and node_settings_info."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.names import ACCOUNT, PLUGIN, require_listed
from ...._foundation.core import validate
from ...._foundation.core.errors import DigestChanged
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Execution, result_of
from ...._foundation.resource.manage import Hooks, manage
from ...._foundation.resource.plan import Plan
from .acme import DEFAULT_ACCOUNT, STANDALONE
from .desired import CONFIG, DNS, HOSTS, PARTS, TIME, read_desired
from .plan import SettingsReading, plan_settings, require_version, settings_of


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Apply the declared settings of a node; check mode writes nothing."""
    desired = read_desired(params)
    if any((desired.location or {}).values()):
        require_version(desired.node, client.version())
    read = partial(read_actual, client, desired.node, desired.parts)

    def plan(actual: SettingsReading) -> Plan:
        planned, _after = plan_settings(desired, actual)
        if desired.acme is not None and planned.changed:
            plugins = {plugin for plugin, _alias in desired.acme.domains.values()} - {STANDALONE}
            require_listed(client, "acme.domains", PLUGIN, plugins)
            require_listed(
                client, "acme.account", ACCOUNT, {desired.acme.account} - {DEFAULT_ACCOUNT}
            )
        return planned

    def report(plan: Plan, actual: SettingsReading, execution: Execution | None) -> Result:
        settings = settings_of(read()) if execution else plan_settings(desired, actual)[1]
        values = {"node": {"name": desired.node, **settings.as_dict()}}
        return result_of(plan, values, execution, header=f"node {desired.node}")

    hooks = Hooks[SettingsReading](stale_errors=(DigestChanged,))
    return manage(client, read, plan, report, check_mode=check_mode, hooks=hooks)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the settings of a node; four requests. Nothing is written."""
    node = validate.node(params["node"])
    found = settings_of(read_actual(client, node, PARTS))
    return Result(False, {"node": node, "settings": found.as_dict()})


def read_actual(client: Api, node: str, parts: Iterable[str]) -> SettingsReading:
    """Return the settings of a node, one request for each part. Raises FleetError."""
    found: dict[str, Mapping[str, Any]] = {}
    for part in parts:
        attempted = f"Could not read {_WORDS[part]} of node {node}"
        found[part] = client.get("nodes", node, part, attempted=attempted) or {}
    return found


_WORDS = {
    CONFIG: "the settings",
    DNS: "the DNS settings",
    HOSTS: "the hosts",
    TIME: "the time zone",
}
