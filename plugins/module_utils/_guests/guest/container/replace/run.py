# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module container_image: replace the root file system of a container, restore the old
one, or confirm the new one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....._foundation.api.tasks import find_task
from ....._foundation.cluster.state import (
    CREATION_LOCKS,
    ClusterState,
    StorageRow,
    VmRow,
    node_of,
    with_names,
)
from ....._foundation.cluster.storages.images import ImageVersion
from ....._foundation.cluster.view import ClusterView
from ....._foundation.core.errors import (
    Conflict,
    DigestChanged,
    FleetError,
    NotRunning,
    PermissionDenied,
    QuotaExceeded,
    UnknownVm,
    ValidationFailed,
    VmidTaken,
)
from ....._foundation.core.quantities import parse_disk_size, readable_sizes
from ....._foundation.core.result import Result
from ....._foundation.core.texts.plan_lines import (
    CHANGED,
    UNCHANGED,
    PlanLine,
    describe_change,
    plan_lines,
)
from ....._foundation.plans.document import PlannedGuest
from ....._foundation.resource.engine import (
    Execution,
    FailureVerdict,
    Resource,
    StepResult,
    apply_plan,
    result_of,
)
from ....._foundation.resource.plan import Plan, Step
from ....._foundation.spec.container import container_spec
from ....._foundation.spec.fleet import with_defaults
from ....kinds.container.config.actual import is_privileged, mounts, volumes_in
from ....kinds.container.kind import CONTAINER
from ....kinds.identity import require_name
from ....kinds.model import Actual, Guest, GuestSource
from ...live.creation import await_creation, await_name, with_hidden_creations
from ...live.find import find
from ...live.read import read_wherever, require_same, with_power
from ...live.steps import GuestSteps
from ...plan.copies import cloneable, image_of, require_templates
from ...plan.origin import find_newer_copy
from ..desired.parse import read_options
from ..run import CONTAINER_FLOW, ContainerContext
from .plan import (
    CLONE,
    REMOVE,
    ReplacementFacts,
    name_of_holder,
    plan_confirmed,
    plan_replaced,
    plan_returned,
    record_of,
    with_confirmation,
)

if TYPE_CHECKING:
    from ....._foundation.api.client import Client


_CLOCKS = 10  # seconds by which the clock of a node may differ


_PLANS = {"replaced": plan_replaced, "returned": plan_returned, "confirmed": plan_confirmed}
# The options of the container that the steps write.
_WRITTEN = frozenset(("rootfs", "description", "ostype"))


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Replace the root of a container, and return the result; in check mode write nothing."""
    goal = str(params["state"])
    context = _context(params, client, check_mode)
    actual, cluster = find(context, context.cluster_view.now())
    if actual is None:
        raise UnknownVm(
            f"The root of {context.desired.guest.label} was not changed: there is no such "
            "container, or the login may not see it",
            "Check name and vmid, and that the login has VM.Audit on it",
            "unknown container",
        )
    if params.get("name") is not None:
        require_name(context.desired.guest.label, actual.identity, [params["name"]])
    try:
        replacement = Replacement(context, actual, cluster, goal)
    except FleetError as error:
        raise client.plan_book.explain(error, actual.vmid) from error
    return apply_plan(replacement, check_mode)


def _context(params: Mapping[str, Any], client: Client, check_mode: bool) -> ContainerContext:
    given = {**params, "state": "started" if params.get("start") else "present"}
    options = read_options(with_defaults(container_spec(), given))
    view = ClusterView(client, {CONTAINER.type})
    context = ContainerContext(client, options.desired, options.settings, check_mode, view)
    return CONTAINER_FLOW.ready(context)


class Replacement(GuestSteps, Resource[Result]):
    """A container whose root file system is replaced, with its holder."""

    kind = CONTAINER

    def __init__(
        self, context: ContainerContext, actual: Actual, cluster: ClusterState, goal: str
    ) -> None:
        self.client = context.client
        self.timeout = context.settings.task_timeout
        self._check_mode = context.check_mode
        self._guest = context.desired.guest
        self._goal = goal
        self._cluster = with_names(self.client, cluster)
        self._template: Actual | None = None
        self._has_cloned = False
        self._lost: set[int] = set()  # VMIDs that another guest got before the holder
        self._vmid = self._vmid_of_holder(actual)
        if goal == "replaced":
            self._template = self._template_for(actual)
        if actual.listed and goal != "confirmed":
            actual = with_power(actual, self.client.get(*actual.path, "status", "current"))
        self._facts = self._read(actual)
        if self._template is not None:
            container = self._facts.container
            config = self.client.get(*container.path, "config")
            require_replaceable(container, self._template, config.get(CONTAINER.type))
            storage = container.target["rootfs"].partition(":")[0]
            row = self._cluster.storage_on(storage, container.node)
            require_storage(container, self._template, row)
            self.config = self._template.target
        self.plan = self._planned()
        if self.plan.changed and goal == "returned":
            require_changeable(actual)

    def _template_for(self, actual: Actual) -> Actual | None:
        """Return the template of the source's image, None if the container has the image. Without a
        source, the image is that of the record.
        """
        if self._guest.source is None:
            record = self._read(actual).record
            if record is not None and record.image == actual.marker.image:
                return None
        source, cluster = require_image(self._guest), self._cluster
        if actual.marker.image == ImageVersion(source.name or "", source.version or ""):
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
        taken = self._cluster.taken | self._lost
        approved = self.client.plan_book.vmid_of_copy(name)
        return wanted.vmids.free(taken) if approved is None or approved in taken else approved

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
        return _PLANS[self._goal](self._facts)

    @property
    def for_approval(self) -> tuple[Plan, PlannedGuest]:
        guest, container = self._guest, self._facts.container
        key = (CONTAINER.type, guest.tenant_tag or "", container.name or str(container.vmid))
        is_replaced = self._goal == "replaced"
        plan = with_confirmation(self.plan, self._facts) if is_replaced else self.plan
        if not plan.changed and is_replaced:
            plan = replace(plan, before={"image": _image_in(container)})
        return plan, PlannedGuest(*key, container.vmid, container.node)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        self._has_cloned = any(step.action == CLONE for step in done)
        container = self._read_container()
        if self._vmid in self._lost and not _holds_for(self._read_holder(container), container):
            self._vmid = self._free_vmid(name_of_holder(container.vmid))
        self._facts = self._read(container)
        return self._planned()

    def _read_container(self) -> Actual:
        known = self._facts.container
        container = read_wherever(self.client, CONTAINER, known.vmid, known.node, pool=known.pool)
        require_same(self._guest, known, container, _WRITTEN)
        template = self._template
        if template is not None and container.marker.image == image_of(template):
            self._template = None
        return container

    def guard(self, step: Step) -> None:
        """Raise Conflict if the VMID of the container was reused, if its holder is not one now, or if
        another run uses it: the plan was made while that run moved the image.
        """
        if step.action != REMOVE:
            return
        self._facts = self._read(self._read_container())
        if step not in self._planned().steps:
            label = self._facts.container.label
            raise DigestChanged(
                f"The holder of {label} was not removed: another run uses it",
                "Run this again",
                "holder in use",
            )

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
        report = plan_lines([self._line()], check_mode=self._check_mode)
        return result_of(plan, {"container": described, "report": report}, execution)

    def _line(self) -> PlanLine:
        container, plan = self._facts.container, self.plan
        label = "/".join(filter(None, (self._guest.tenant, container.name)))
        if not plan.changed:
            return PlanLine(UNCHANGED, label)
        before, after = ({**side, "rootfs": ""} for side in (plan.before, plan.after))
        changes = describe_change(before, after) or plan.summaries
        return PlanLine(CHANGED, label, ", ".join(changes))


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
        f"The root of {container.label} was not changed: the name "
        f"{name_of_holder(container.vmid)} belongs to container {listed}, which does not hold a "
        "root for it, or not alone",
        "Rename or remove it, and run this again",
        "holder",
    )


def require_image(desired: Guest) -> GuestSource:
    """Return the image that the task names. Raises ValidationFailed."""
    source = desired.source
    if source is not None and source.name:
        return source
    raise ValidationFailed(
        f"The root of {desired.label} was not replaced: source names no image",
        "Give source, such as debian-13 or debian-13@2026.11.20",
        "source",
    )


def require_replaceable(container: Actual, template: Actual, raw: Any) -> None:
    """Raise FleetError if the root file system cannot be replaced by that of a template.

    `raw` are the options of LXC itself in the configuration of the container.
    """
    require_changeable(container)
    for cause, step in _obstacles(container, template, raw):
        raise _refused(container, f"image {image_of(template).label}: {cause}", step)


def require_changeable(container: Actual) -> None:
    """Raise FleetError if the root file system of a container cannot be changed now."""
    causes = {
        "it is a template": container.template,
        "it is protected": container.target.get("protection") == "1",
        f"it is locked ({container.lock})": container.lock is not None,
        "its root is not a volume": "rootfs" not in volumes_in(container.target),
    }
    for cause, is_true in causes.items():
        if is_true:
            raise _refused(container, cause, "Change that first, and run this again")


def _obstacles(container: Actual, template: Actual, raw: Any) -> list[tuple[str, str]]:
    """Return why the container cannot have the root of a template, with the next steps.

    The files of an unprivileged container have other owners than the files of a privileged one. The
    files of a container with its own ID map have different owners too.
    """
    found: list[tuple[str, str]] = []
    if not image_of(template).version:
        found.append(("the template has no version", "Publish it with the role pve.fleet.image"))
    slots = sorted(volumes_in(template.target))
    if slots != ["rootfs"]:
        step = "Use an image with a root file system only"
        found.append((f"the volumes of the template are {', '.join(slots)}", step))
    again = "Use an image like it, or create the container again"
    if is_privileged(container.target) != is_privileged(template.target):
        found.append(("one of both is privileged, so that the owners of files differ", again))
    if container.target.get("arch", "amd64") != template.target.get("arch", "amd64"):
        found.append(("it is for another architecture", again))
    if "idmap" in container.target["rootfs"] or "idmap" in str(raw):
        found.append(("the container has a map of IDs of its own", again))
    return found


def require_storage(container: Actual, template: Actual, row: StorageRow | None) -> None:
    """Raise FleetError if the storage cannot contain a second root file system or rename it.

    Only ZFS renames a volume that is a directory (pve-storage: Plugin.pm and BTRFSPlugin.pm,
    volume_has_feature).
    """
    volume = volumes_in(container.target)["rootfs"]
    name = volume.partition(":")[2].rpartition("/")[2]
    if row is None or (name.startswith("subvol-") and row.kind != "zfspool"):
        step = "Move the root file system to another storage first"
        raise _refused(container, f"PVE cannot rename volumes such as {volume}", step)
    sizes = (mounts(one.target)["rootfs"].get("size", "0") for one in (container, template))
    needed = max(parse_disk_size(size, what="rootfs") for size in sizes)
    free = row.total - row.used
    if not row.total or needed <= free:
        return
    needed_text, free_text = readable_sizes(needed, free)
    raise QuotaExceeded(
        f"The root of {container.label} was not replaced: storage {row.storage} has {free_text} "
        f"free, and a second root needs {needed_text}",
        "Free space there, or move the root file system to another storage first",
        "storage full",
    )


def _refused(container: Actual, answer: str, next_step: str) -> Conflict:
    return Conflict(
        f"The root of {container.label} was not replaced: {answer}", next_step, "replace"
    )
