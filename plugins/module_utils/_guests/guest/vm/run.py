# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, then apply the plan or preview it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ...._foundation.cluster.rules import require_not_kept
from ...._foundation.cluster.state import ClusterState
from ...._foundation.cluster.view import ClusterView
from ...._foundation.core.result import Result
from ...kinds.model import Actual
from ...kinds.vm.kind import VM
from ...kinds.vm.model import DesiredVm
from ..context import RunContext
from ..flow.apply import run_guest
from ..flow.flow import GuestFlow, require_choice, with_connection
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
    options = read_vm_options(params)
    require_not_kept(options.desired.guest.rules, "a single VM")
    context = VmContext(
        client=client,
        desired=options.desired,
        settings=options.settings,
        check_mode=check_mode,
        cluster_view=ClusterView(client, {VM.type}),
    )
    return run_guest(VM_FLOW, with_vm_facts(context))


def read_vm_options(params: Mapping[str, Any]) -> VmOptions:
    """Return the parsed options. Raises ValidationFailed for each refusal."""
    options = read_options(params)
    require_choice(options.desired.guest, "No VM was chosen")
    return options


def with_vm_facts(context: VmContext) -> VmContext:
    """Return the context with facts from the connection and the file of the user data.

    Raises ValidationFailed for options that PVE does not have.
    """
    desired, client = context.desired, context.client
    return replace(
        context,
        desired=with_present_content(with_connection(client, desired)),
        unverified=require_names(desired, release_for_names(client, desired)),
    )


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

    def guest_report(self, context: VmContext, actual: Actual) -> Mapping[str, Any]:
        request = context.settings.guest
        return report_of_guest(context.client, actual, request, waits=not context.check_mode)


VM_FLOW = VmFlow()
