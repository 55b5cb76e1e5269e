# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules apt_repository and apt_repository_info."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import DigestChanged
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import Resource, apply_plan
from ...._foundation.resource.execute import Execution
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.result import result_of
from .plan import Answer, plan_configured, plan_repository, repositories_in, require_choice


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Enable or disable a repository of a node; check mode writes nothing."""
    node = validate.node(params["node"])
    handle, uri = params.get("handle"), params.get("uri")
    require_choice(node, handle, uri)
    return apply_plan(Repository(client, node, handle, uri, params["state"]), check_mode)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the standard repositories of a node; one request. Nothing is written."""
    node = validate.node(params["node"])
    return Result(False, {"node": node, "repositories": repositories_in(_read(client, node))})


def _read(client: Api, node: str) -> Answer:
    attempted = f"Could not read the repositories of node {node}"
    found: Answer = client.get("nodes", node, "apt", "repositories", attempted=attempted) or {}
    return found


class Repository(Resource[Result]):
    """A repository of a node, a standard one with its handle or another one with its URI."""

    stale_errors = (DigestChanged,)

    def __init__(
        self, client: Api, node: str, handle: str | None, uri: str | None, state: str
    ) -> None:
        self.client = client
        self.node = node
        self.handle = handle
        self.uri = uri
        self.state = state
        self.plan = self._planned()

    def _planned(self) -> Plan:
        answer = _read(self.client, self.node)
        if self.handle:
            return plan_repository(self.node, self.handle, self.state, answer)
        return plan_configured(self.node, self.uri or "", self.state, answer)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        return self._planned()

    def confirm_write(self, step: Step) -> Callable[[], bool | None]:
        """Return the check after a lost answer: a step is done if it is no longer planned."""

        def confirm() -> bool | None:
            return None if step.summary in self._planned().summaries else True

        return confirm

    def preview(self) -> Result:
        return self._result()

    def report(self, execution: Execution) -> Result:
        return self._result(execution)

    def _result(self, execution: Execution | None = None) -> Result:
        chosen = {"handle": self.handle, "uri": self.uri}
        repository = {"node": self.node, **chosen, "state": self.state}
        header = f"repository {self.handle or self.uri} of node {self.node}"
        return result_of(self.plan, {"apt_repository": repository}, execution, header=header)
