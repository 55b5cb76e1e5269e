# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The run of a task for one resource: plan, then preview, or execute and report."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Generic, TypeVar

from .._schema.requests import require_accepted
from .execute import Execution, Steps, after_writes, execute
from .plan import Plan

Outcome = TypeVar("Outcome")
"""The report of a resource: a result, or its part of the result for several resources."""


class Resource(Steps, Generic[Outcome]):
    """One resource that a task manages, with the plan from a reading of it."""

    plan: Plan
    option_names: Mapping[str, str] = MappingProxyType({})  # by the parameters of its requests

    def preview(self) -> Outcome:
        """Return the expected result of the plan; nothing is written."""
        raise NotImplementedError

    def report(self, execution: Execution) -> Outcome:
        """Return the result after the plan was carried out, from a new reading if needed.

        Raises FleetError; the engine adds the finished steps.
        """
        raise NotImplementedError


def apply_plan(resource: Resource[Outcome], check_mode: bool) -> Outcome:
    """Carry out the plan of a resource and return the result; in check mode write nothing.

    Raises ValidationFailed before the first write if PVE would refuse a value of any step.
    """
    for step in resource.plan.steps:
        require_accepted(
            step.path, step.data, resource.option_names, lambda: resource.client.release()
        )
    if check_mode or not resource.plan.changed:
        return resource.preview()
    execution = execute(resource, resource.plan)
    with after_writes(execution.done, resource.after_failed_read):
        return resource.report(execution)
