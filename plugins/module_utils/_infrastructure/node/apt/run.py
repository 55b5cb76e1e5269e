# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules apt_repository and apt_repository_info."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import DigestChanged
from ...._foundation.core.result import Result
from ...._foundation.resource.execute import Execution
from ...._foundation.resource.manage import Hooks, manage
from ...._foundation.resource.plan import Plan
from ...._foundation.resource.result import result_of
from .plan import Answer, plan_configured, plan_repository, repositories_in, require_choice


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Enable or disable a repository of a node; check mode writes nothing."""
    node = validate.node(params["node"])
    handle, uri = params.get("handle"), params.get("uri")
    state = params["state"]
    require_choice(node, handle, uri)

    def plan(answer: Answer) -> Plan:
        if handle:
            return plan_repository(node, handle, state, answer)
        return plan_configured(node, uri or "", state, answer)

    def report(plan: Plan, _answer: Answer, execution: Execution | None) -> Result:
        repository = {"node": node, "handle": handle, "uri": uri, "state": state}
        header = f"repository {handle or uri} of node {node}"
        return result_of(plan, {"apt_repository": repository}, execution, header=header)

    hooks = Hooks[Answer](stale_errors=(DigestChanged,))
    read = partial(_read, client, node)
    return manage(client, read, plan, report, check_mode=check_mode, hooks=hooks)


def run_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the standard repositories of a node; one request. Nothing is written."""
    node = validate.node(params["node"])
    return Result(False, {"node": node, "repositories": repositories_in(_read(client, node))})


def _read(client: Api, node: str) -> Answer:
    attempted = f"Could not read the repositories of node {node}"
    found: Answer = client.get("nodes", node, "apt", "repositories", attempted=attempted) or {}
    return found
