# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.state import ClusterState
from ...._foundation.core.result import Result
from ...kinds.model import Actual
from ...kinds.vm.model import DesiredVm
from ..context import RunContext
from ..flow.apply import run_task
from ..flow.flow import GuestFlow, require_choice
from ..flow.reads import GuestReads
from ..live.snippets import with_present_content
from .desired.parse import VmOptions, read_options
from .gather.facts import read_vm_facts, release_for_names
from .gather.source import from_copy, from_source, with_newer_image
from .live.guest import report_of_guest
from .plan.decide import adopted
from .plan.refusals.options import require_names
from .plan.update import VM_PLANNER

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


VmContext: TypeAlias = RunContext[DesiredVm]


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring a VM to the desired state and return the result; in check mode write nothing."""
    return run_task(VM_FLOW, read_vm_options(params), client, check_mode)


def read_vm_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options. Raises ValidationFailed for each refusal."""
    options = read_options(params)
    require_choice(options.desired.guest, "No VM was chosen")
    return options


class VmFlow(GuestFlow[DesiredVm]):
    """How a run brings VMs to their desired state."""

    key = "vm"
    planner = VM_PLANNER
    from_source = staticmethod(from_source)
    from_copy = staticmethod(from_copy)
    read_more = staticmethod(read_vm_facts)

    def desired_for(
        self, reads: GuestReads, desired: DesiredVm, actual: Actual, cluster: ClusterState
    ) -> DesiredVm:
        return adopted(with_newer_image(reads, desired, actual, cluster), actual, cluster)

    def ready(self, context: VmContext) -> VmContext:
        """Return the context with facts of the connection and the file of the user data.

        Raises ValidationFailed for options that PVE does not have.
        """
        desired, context = context.desired, super().ready(context)
        return replace(
            context,
            desired=with_present_content(context.desired),
            unverified=require_names(desired, release_for_names(context.client, desired)),
        )

    def guest_report(self, context: VmContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)


VM_FLOW = VmFlow()
