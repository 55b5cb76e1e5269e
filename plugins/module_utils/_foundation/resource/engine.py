# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run of a task for one resource: plan, then preview, or execute and report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from ..api.access.privileges import NEWEST, Privileges
from ..api.access.required import RequiredRequest, find_missing
from ..api.interface import Api
from ..core.errors import PermissionDenied
from ..core.failures.classify import classify
from ..schema.requests import require_accepted
from .execute import Execution, Steps, after_writes, attempted, execute
from .plan import Plan

Outcome = TypeVar("Outcome")
"""The report of a resource: a result, or its part of the result for several resources."""


class Resource(Steps, Generic[Outcome]):
    """One resource that a task manages, with the plan from a reading of it."""

    plan: Plan
    option_names: Mapping[str, str] = MappingProxyType({})  # by the parameters of its requests
    config: Mapping[str, Any] = MappingProxyType({})  # of the guest that it changes or copies

    def preview(self) -> Outcome:
        """Return the expected result of the plan; nothing is written."""
        raise NotImplementedError

    def report(self, execution: Execution) -> Outcome:
        """Return the result after the plan was carried out, from a new reading if needed.

        Raises FleetError; the engine adds the finished steps.
        """
        raise NotImplementedError


def read_privileges(client: Api, plans: Iterable[Plan]) -> Privileges | None:
    """Return the privileges of the login, None if no step of the plans has a known check."""
    requests = [request for plan in plans for request in requests_of(plan)]
    kinds = {kind for request in requests for kind in request.kinds}
    if not kinds:
        return None
    zones, pools, storages = dict[str, str](), dict[str, str](), dict[str, Any]()
    if any(request.uses_zones for request in requests):
        rows = client.get("cluster", "sdn", "vnets") or ()
        zones = {str(row["vnet"]): str(row["zone"]) for row in rows if row.get("zone")}
    if "moved" in kinds:
        rows = client.get("cluster", "resources", type="vm") or ()
        pools = {str(row["vmid"]): str(row["pool"]) for row in rows if row.get("pool")}
    if "state storage" in kinds:
        storages = {str(row["storage"]): row for row in client.get("storage") or ()}
    return Privileges(
        client.privileges(),
        client.login,
        client.release() if "since" in kinds else NEWEST,
        zones,
        pools,
        storages,
        (client.get("cluster", "options") or {}) if "tags" in kinds else {},
    )


def require_privileges(
    plan: Plan, held: Privileges | None, config: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """Raise PermissionDenied for the first step that PVE would refuse, as in a run.

    `config` is the configuration of the guest that the plan changes or copies.
    """
    if held is None:
        return
    for step, request in zip(plan.steps, requests_of(plan, config), strict=True):
        missing = find_missing(request, held)
        if missing is None:
            continue
        path = "/" + "/".join(map(str, step.path))
        message = f"Permission check failed ({missing})".removesuffix(" ()")
        error = classify(step.method, path, 403, message, message, {})
        raise error.on(attempted=attempted(step.summary), tries=1)


def require_permitted(
    client: Api, plans: Sequence[tuple[Plan, Mapping[str, Any]]], next_step: str
) -> None:
    """Raise PermissionDenied for the first step of plans that PVE would refuse. Each plan comes with
    the present values of its object.
    """
    held = read_privileges(client, [plan for plan, _values in plans])
    for plan, values in plans:
        try:
            require_privileges(plan, held, values)
        except PermissionDenied as error:
            raise error.on(next_step=next_step) from error


def requests_of(
    plan: Plan, config: Mapping[str, Any] = MappingProxyType({})
) -> list[RequiredRequest]:
    """Return the requests of a plan as their privileges are checked (pure)."""
    named = (step.data.get(key) for step in plan.steps for key in ("pool", "poolid"))
    pools = frozenset(str(pool) for pool in named if pool)
    steps = plan.steps
    return [RequiredRequest(one.method, one.path, one.data, pools, config) for one in steps]


def apply_plan(resource: Resource[Outcome], check_mode: bool) -> Outcome:
    """Carry out the plan of a resource and return the result; in check mode write nothing.

    Raises ValidationFailed before the first write if PVE would refuse a value of any step.
    """
    for step in resource.plan.steps:
        require_accepted(step.path, step.data, resource.option_names, resource.client.release)
    if check_mode:
        held = read_privileges(resource.client, [resource.plan])
        require_privileges(resource.plan, held, resource.config)
    if check_mode or not resource.plan.changed:
        return resource.preview()
    execution = execute(resource, resource.plan)
    with after_writes(execution.done, resource.after_failed_read):
        return resource.report(execution)
