# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container_image: replace the root file system of a container, restore the old
one, or confirm the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....._foundation.api.tasks import find_task
from ....._foundation.cluster.state import CREATION_LOCKS, ClusterState, VmRow, node_of, with_names
from ....._foundation.cluster.view import ClusterView
from ....._foundation.core.errors import (
    Conflict,
    FleetError,
    NotRunning,
    PermissionDenied,
    UnknownVm,
    VmidTaken,
)
from ....._foundation.core.result import Result
from ....._foundation.resource.engine import Resource, apply_plan
from ....._foundation.resource.execute import Execution, FailureVerdict, StepResult
from ....._foundation.resource.plan import Plan, Step
from ....._foundation.resource.result import result_of
from ....._foundation.spec.container import container_spec
from ....._foundation.spec.fleet import with_defaults
from ....kinds.container.kind import CONTAINER
from ....kinds.identity import require_name
from ....kinds.model import Actual, Guest
from ...flow.flow import with_connection
from ...live.creation import await_creation, await_name, with_hidden_creations
from ...live.find import find
from ...live.read import read_wherever, require_same
from ...live.steps import GuestSteps
from ...plan.copies import cloneable, image_of, require_templates
from ...plan.origin import find_newer_copy
from ..run import ContainerContext, read_container_options
from .holder import name_of_holder, record_of
from .plan import CLONE, REMOVE, ReplacementFacts, plan_confirmed, plan_replaced, plan_returned
from .refusals import (
    is_of_version,
    require_changeable,
    require_image,
    require_replaceable,
    require_storage,
)

if TYPE_CHECKING:
    from ....._foundation.api.client import Client

_CLOCKS = 10  # seconds by which the clock of a node may differ
# The options of the container that the steps write.
_WRITTEN = frozenset(("rootfs", "description", "ostype"))


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Replace the root of a container, and return the result; in check mode write nothing."""
    goal = str(params["state"])
    context = _context(params, client, check_mode)
    actual, cluster = find(context, context.cluster_view.now())
    if actual is None:
        raise UnknownVm(
            attempted=f"The root of {context.desired.guest.label} was not changed",
            answer="there is no such container, or the login may not see it",
            next_step="Check name and vmid, and that the login has VM.Audit on it",
            reason="unknown container",
        )
    if params.get("name") is not None:
        require_name(context.desired.guest.label, actual.identity, [params["name"]])
    return apply_plan(Replacement(context, actual, cluster, goal), check_mode)


def _context(params: Mapping[str, Any], client: Client, check_mode: bool) -> ContainerContext:
    given = {**params, "state": "present"}
    options = read_container_options(with_defaults(container_spec(), given))
    return ContainerContext(
        client=client,
        desired=with_connection(client, options.desired),
        settings=options.settings,
        check_mode=check_mode,
        cluster_view=ClusterView(client, {CONTAINER.type}),
    )


class Replacement(GuestSteps, Resource[Result]):
    """A container whose root file system is replaced, with its holder."""

    kind = CONTAINER

    def __init__(
        self, context: ContainerContext, actual: Actual, cluster: ClusterState, goal: str
    ) -> None:
        self.client = context.client
        self.timeout = context.settings.task_timeout
        self._guest = context.desired.guest
        self._goal = goal
        self._cluster = with_names(self.client, cluster)
        self._template = self._template_for(actual) if goal == "replaced" else None
        self._has_cloned = False
        self._lost: set[int] = set()  # VMIDs that another guest got before the holder
        self._vmid = self._vmid_of_holder(actual)
        self._facts = self._read(actual)
        if self._template is not None:
            self._require_replaceable(self._template)
            self.config = self._template.target
        self.plan = self._planned()
        if self.plan.changed and goal == "returned":
            require_changeable(actual)

    def _template_for(self, actual: Actual) -> Actual | None:
        """Return the template of the source's image, None if the container has the image."""
        source, cluster = require_image(self._guest), self._cluster
        if is_of_version(actual, source):
            return None
        require_templates(source, cloneable(self._guest, source, cluster))
        return find_newer_copy(self._guest, actual, cluster, self._read_templates)

    def _read_templates(self, rows: Sequence[VmRow]) -> list[Actual]:
        return [read_wherever(self.client, CONTAINER, row.vmid, row.node) for row in rows]

    def _vmid_of_holder(self, actual: Actual) -> int:
        """Return the VMID of the holder, or a free one. Raises Conflict for several holders."""
        name = name_of_holder(actual.vmid)
        vmids = [row.vmid for row in self._cluster.vms.values() if row.name == name]
        if len(vmids) > 1:
            raise _not_holder(actual, vmids)
        return vmids[0] if vmids else self._free_vmid(name)

    def _free_vmid(self, name: str) -> int:
        wanted = Guest(CONTAINER, name, None, None, vmid_ranges=self._guest.vmid_ranges)
        return wanted.vmids.free(self._cluster.taken | self._lost)

    def _read(self, actual: Actual) -> ReplacementFacts:
        holder = self._read_holder(actual)
        if holder is None:
            return ReplacementFacts(self._guest, actual, None, self._vmid, self._template)
        if not _holds_for(holder, actual) or holder.template or holder.running:
            raise _not_holder(actual, [holder.vmid])
        return ReplacementFacts(self._guest, actual, holder, self._vmid, self._template)

    def _read_holder(self, actual: Actual) -> Actual | None:
        try:
            holder = read_wherever(self.client, CONTAINER, self._vmid, actual.node)
            if holder.lock in CREATION_LOCKS:
                return await_creation(self.client, holder, self.timeout)
            return holder
        except UnknownVm:
            return None
        except PermissionDenied:
            # PVE checks rights before it looks for a guest, and a tenant has none on a free VMID.
            if self._has_cloned:
                raise
            return None

    def _planned(self) -> Plan:
        if self._goal == "replaced":
            return plan_replaced(self._facts)
        return (
            plan_returned(self._facts) if self._goal == "returned" else plan_confirmed(self._facts)
        )

    def _require_replaceable(self, template: Actual) -> None:
        """Raise FleetError for a container whose root cannot be replaced."""
        container = self._facts.container
        config = self.client.get(*container.path, "config")
        require_replaceable(container, template, config.get(CONTAINER.type))
        storage = container.target["rootfs"].partition(":")[0]
        row = self._cluster.storage_on(storage, container.node)
        require_storage(container, template, row)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        self._has_cloned = any(step.action == CLONE for step in done)
        container = self._read_container()
        template = self._template
        if template is not None and container.marker.image == image_of(template):
            self._template = None
        if self._vmid in self._lost and not _holds_for(self._read_holder(container), container):
            self._vmid = self._free_vmid(name_of_holder(container.vmid))
        self._facts = self._read(container)
        return self._planned()

    def _read_container(self) -> Actual:
        known = self._facts.container
        container = read_wherever(self.client, CONTAINER, known.vmid, known.node, pool=known.pool)
        require_same(self._guest, known, container, _WRITTEN)
        return container

    def guard(self, step: Step) -> None:
        """Raise Conflict if the VMID of the container was reused, or its holder is not one now."""
        if step.action == REMOVE:
            self._read(self._read_container())

    def send(self, step: Step) -> StepResult:
        try:
            return super().send(step)
        except VmidTaken:
            self._await_clone()
            self._lost.add(self._vmid)
            raise

    def _await_clone(self) -> None:
        """Wait for the holder if an earlier run of this login is still creating it."""
        cluster = with_hidden_creations(self.client, CONTAINER, self._cluster, self._vmid)
        row = cluster.vms.get(self._vmid)
        if row is not None:
            await_name(self.client, CONTAINER, self._vmid, row.node, self.timeout, complete=True)

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        """Classify the failure of a step (pure).

        If another guest got the VMID of the holder first, nothing was created, and the clone gets
        another VMID. A container that is not running has stopped after the listing was read.
        """
        if isinstance(error, (VmidTaken, NotRunning)):
            return FailureVerdict.STALE
        return super().classify_failure(step, error)

    def confirm_write(self, step: Step) -> Callable[[], Any] | None:
        """Return the search for the task of a clone; after other steps the plan is made again."""
        if step.action != CLONE:
            return None
        node, vmid = str(step.path[1]), int(step.path[3])
        since = self.client.clock.time() - _CLOCKS

        def confirm() -> str | None:
            if node_of(self.client, self._vmid) is None:
                return None
            return find_task(self.client, node, type="vzclone", vmid=vmid, since=since)

        return confirm

    def preview(self) -> Result:
        return self._result(Execution())

    def report(self, execution: Execution) -> Result:
        return self._result(execution)

    def _result(self, execution: Execution) -> Result:
        plan = self.plan
        container = self._facts.container
        image = plan.after.get("image", _image_in(container))
        described = {
            "name": container.name,
            "vmid": container.vmid,
            "node": container.node,
            "image": image or None,
        }
        return result_of(plan, {"container": described}, execution)


def _holds_for(holder: Actual | None, container: Actual) -> bool:
    """Return whether the notes of a holder name the container."""
    record = record_of(holder) if holder is not None else None
    return record is not None and record.vmid == container.vmid


def _image_in(container: Actual) -> str:
    image = container.marker.image
    return image.label if image is not None else ""


def _not_holder(container: Actual, vmids: Sequence[int]) -> Conflict:
    listed = ", ".join(map(str, sorted(vmids)))
    return Conflict(
        attempted=f"The root of {container.label} was not changed",
        answer=f"the name {name_of_holder(container.vmid)} belongs to container {listed}, which"
        " does not hold a root for it, or not alone",
        next_step="Rename or remove it, and run this again",
        reason="holder",
    )
