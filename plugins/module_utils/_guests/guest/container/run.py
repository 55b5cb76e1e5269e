# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container: find the container, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.result import Result
from ...kinds.container.model import DesiredContainer
from ...kinds.model import Actual
from ..context import RunContext
from ..flow.apply import run_task
from ..flow.facts import Facts
from ..flow.flow import GuestFlow, require_choice
from ..flow.reads import GuestReads
from ..flow.volumes import missing_volumes
from .desired.parse import ContainerOptions, read_options
from .gather.source import from_copy, from_source
from .live.addresses import report_of_guest
from .plan.decide import ContainerIntent, adopted, needs_release
from .plan.planner import CONTAINER_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

ContainerContext: TypeAlias = RunContext[DesiredContainer]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a container to the desired state and return the result; in check mode write nothing."""
    return run_task(CONTAINER_FLOW, read_container_options(params), client, check_mode)


def read_container_options(params: Mapping[str, Any]) -> ContainerOptions:
    """Return the parsed options. Raises ValidationFailed for each refusal."""
    options = read_options(params)
    require_choice(options.desired.guest, "No container was chosen")
    return options


class ContainerFlow(GuestFlow[DesiredContainer]):
    """How a run brings containers to their desired state."""

    key = "container"
    planner = CONTAINER_PLANNER
    from_source = staticmethod(from_source)
    from_copy = staticmethod(from_copy)

    def desired_for(
        self, reads: GuestReads, desired: DesiredContainer, actual: Actual, cluster: ClusterState
    ) -> DesiredContainer:
        return adopted(desired, actual, cluster)

    def read_more(self, reads: GuestReads, intent: ContainerIntent, facts: Facts) -> Facts:
        node = intent.start.node or intent.node
        missing = missing_volumes(reads, intent.change.drives.volumes, node)
        release = reads.client.release() if needs_release(intent) else None
        return replace(facts, missing=tuple(missing), release=release)

    def guest_report(self, context: ContainerContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)


CONTAINER_FLOW = ContainerFlow()
