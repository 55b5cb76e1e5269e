# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules node and node_settings_info."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.cluster.find.names import ACCOUNT, PLUGIN, require_listed
from ...._foundation.core import validate
from ...._foundation.core.errors import DigestChanged
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Resource, apply_plan
from ...._foundation.resource.execute import Execution
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.result import result_of
from .acme import DEFAULT_ACCOUNT, STANDALONE, AcmeSettings
from .desired import CONFIG, DNS, HOSTS, PARTS, TIME, DesiredSettings, read_desired
from .location import require_version
from .plan import NodeSettings, SettingsReading, plan_settings, settings_of


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Apply the declared settings of a node; check mode writes nothing."""
    return apply_plan(NodeSettingsResource(client, read_desired(params)), check_mode)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the settings of a node; four requests. Nothing is written."""
    node = validate.node(params["node"])
    found = settings_of(read_actual(client, node, PARTS))
    return Result(False, {"node": node, "settings": found.as_dict()})


def read_actual(client: Api, node: str, parts: Iterable[str]) -> SettingsReading:
    """Return the settings of a node, one request for each part. Raises FleetError."""
    found: dict[str, Any] = {}
    for part in parts:
        attempted = f"Could not read {_WORDS[part]} of node {node}"
        found[part] = client.get("nodes", node, part, attempted=attempted) or {}
    return SettingsReading(found.get(CONFIG), found.get(DNS), found.get(HOSTS), found.get(TIME))


_WORDS = {
    CONFIG: "the settings",
    DNS: "the DNS settings",
    HOSTS: "the hosts",
    TIME: "the time zone",
}


class NodeSettingsResource(Resource[Result]):
    """The settings of a node."""

    stale_errors = (DigestChanged,)

    def __init__(self, client: Api, desired: DesiredSettings) -> None:
        self.client = client
        self.desired = desired
        self.plan, self.after = self._planned()

    def _planned(self) -> tuple[Plan, NodeSettings]:
        if any((self.desired.location or {}).values()):
            require_version(self.desired.node, self.client.version())
        actual = read_actual(self.client, self.desired.node, self.desired.parts)
        plan, after = plan_settings(self.desired, actual)
        if self.desired.acme is not None and plan.changed:
            self._require_known(self.desired.acme)
        return plan, after

    def _require_known(self, acme: AcmeSettings) -> None:
        """Raise NotFound for a plugin or an account that does not exist; one request each."""
        plugins = {plugin for plugin, _alias in acme.domains.values()} - {STANDALONE}
        require_listed(self.client, "acme.domains", PLUGIN, plugins)
        require_listed(self.client, "acme.account", ACCOUNT, {acme.account} - {DEFAULT_ACCOUNT})

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self._planned()[0]

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: a step is done if it is no longer planned."""

        def confirm() -> bool | None:
            planned = [one.action for one in self._planned()[0].steps]
            return None if step.action in planned else True

        return confirm

    def preview(self) -> Result:
        return self._result(self.after)

    def report(self, execution: Execution) -> Result:
        actual = read_actual(self.client, self.desired.node, self.desired.parts)
        return self._result(settings_of(actual), execution)

    def _result(self, settings: NodeSettings, execution: Execution | None = None) -> Result:
        values = {"node": {"name": self.desired.node, **settings.as_dict()}}
        return result_of(self.plan, values, execution, header=f"node {self.desired.node}")
