# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM and plan, then carry out. Sequences what the other rooms know."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .._cluster.bridges import KnownBridges
from .._cluster.picture import FRESH, Picture, ask_nodes
from .._cluster.scene import Scene
from .._core.errors import Conflict, NotFound, ValidationFailed
from .._core.result import Result
from . import creation, power
from .actual import read_actual, with_power
from .apply import Replan, carry_out
from .checks import check_change, check_cpus, check_pool, check_version
from .config import apply_to, changes
from .creation import Draft
from .desired import read_desired
from .find import guard, locate, read_found
from .job import Job, job_of, report
from .limits import Growth, check_grown, grow_within
from .marker import split_notes
from .model import Actual, Desired, Plan, Step
from .moving import check_move, read_wherever, require_same
from .placing import rebalance
from .plan import plan_absent, plan_update
from .snapshots import check_snapshots
from .snippets import with_snippet, write_snippet
from .source import check_images, guard_drives, with_new_volumes
from .twins import TWIN

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class Prepared:
    """A VM's plan and the facts it rests on: the VM as it is or the draft of a new one, neither where it is gone."""

    asked: Job
    job: Job  # with what was decided
    plan: Plan
    picture: Picture
    actual: Actual | None = None
    draft: Draft | None = None
    growth: Growth | None = None
    config: Mapping[str, str] | None = None  # what the VM's configuration will be
    images: Mapping[str, int] = field(default_factory=dict)  # bytes of what new disks import, by slot
    read_at: float = 0.0  # when the VM was read, by the client's monotonic clock


def converge(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make a VM what the options say and return the outcome; in check mode plan it and write nothing."""
    job = job_of(params, client, read_wish(params), check_mode)
    return settle(prepare(job, job.scene.now()))


def read_wish(params: Mapping[str, Any]) -> Desired:
    """Return what the options ask for; every refusal is a ValidationFailed."""
    desired = read_desired(params)
    if not desired.name and desired.vmid is None:
        raise ValidationFailed(
            attempted="No VM was chosen",
            answer="neither name nor vmid is given",
            next_step="Give one of them",
            reason="name or vmid",
        )
    return desired


def prepare(job: Job, picture: Picture) -> Prepared:
    """Return the plan for the VM, after every check that needs no write. Raises FleetError."""
    row = locate(job.client, job.desired, picture)
    actual = read_found(job, row, picture) if row is not None else None
    if actual is not None and job.desired.vmid is None and actual.name != job.desired.name:
        picture = ask_nodes(job.client, picture, picture.nodes)  # the listing knew an old name
        row = locate(job.client, job.desired, picture)
        actual = read_found(job, row, picture) if row is not None else None
    return prepare_found(job, actual, picture) if actual is not None else prepare_missing(job, picture)


def prepare_missing(job: Job, picture: Picture) -> Prepared:
    """Return the plan for a VM that nobody has: make it, unless it shall be absent."""
    if job.desired.state == "absent":
        return Prepared(job, job, Plan(), picture)
    power.check_wish(job.desired, None)
    return prepare_new(job, picture)


def prepare_found(job: Job, actual: Actual, picture: Picture) -> Prepared:
    """Return the plan for a VM that is there and that the guard has seen."""
    read_at = job.client.clock.monotonic()
    if job.desired.state != "absent":
        return replace(_update(job, actual, picture), asked=job, read_at=read_at)
    name = job.desired.name
    if name and name != actual.name:  # numbers are used again, and what is destroyed is gone
        raise Conflict(
            attempted=f"VM {actual.vmid} was not removed",
            answer=f"it is '{actual.name}' and not '{name}'",
            next_step="Name the VM you mean by its vmid or its name alone",
            reason="name differs",
        )
    return Prepared(job, job, plan_absent(job.desired, actual), picture, actual, read_at=read_at)


def prepare_new(job: Job, picture: Picture) -> Prepared:
    """Return the plan for a VM that is not there."""
    run, identity = uuid.uuid4().hex[:12], str(uuid.uuid4())
    draft = creation.prepare(job.client, job.desired, picture, run=run, identity=identity)
    return _of_draft(job, draft, picture)


def _of_draft(job: Job, draft: Draft, picture: Picture) -> Prepared:
    plan = with_snippet(draft.plan, job.desired.snippet, job.snippet_now, None)
    return Prepared(job, replace(job, choice=draft.choice), plan, picture, draft=draft, config=draft.config)


def _update(job: Job, actual: Actual, picture: Picture) -> Prepared:
    if split_notes(actual.target.get("description"))[1].building:  # it still has its source's password
        job = replace(job, desired=replace(job.desired, update_password="always"))
    desired, client, bridges = job.desired, job.client, KnownBridges(job.client)
    if desired.rebalance or desired.limits is not None:
        picture = job.scene.fresh(picture)
    change = changes(desired, actual.target)
    check_version(client, actual.label, change.sets)
    after = apply_to(change, actual.target)
    guard_drives(desired, change.sets, actual.target, picture, actual.vmid)
    choice = rebalance(client, desired, actual, after, change, picture, bridges)
    if choice is not None:
        desired = replace(desired, node=choice.node)
        job = replace(job, desired=desired, choice=choice)
    node = desired.node or actual.node
    if actual.listed and (change.keys or node != actual.node or desired.reboot != "never"):
        current = client.get(*actual.path, "status", "current")
        actual = with_power(actual, current)
    if change.keys or node != actual.node:
        check_change(bridges, change, node, picture)
    starts = power.wakes(desired) and not actual.running
    if starts or (actual.running and (change.keys & {"cores", "sockets", "vcpus"} or node != actual.node)):
        check_cpus(actual.label, after, node, picture)
    if node != actual.node and desired.migrate and actual.status != "hibernated":  # it is locked: the plan says so
        check_move(client, actual, node, {row.storage: row.kind for row in picture.storages}, after)
    check_snapshots(client, desired, actual, change)
    images = check_images(client, with_new_volumes(desired, actual.target), actual.node)
    if desired.pool and desired.pool != actual.pool:
        check_pool(client, desired.pool, picture)
    grown = grow_within(client, desired, actual, after, picture)
    plan = plan_update(desired, actual, shared=picture.shared_storages, images=images)
    plan = with_snippet(plan, desired.snippet, job.snippet_now, actual)
    return Prepared(job, job, plan, picture, actual, growth=grown, config=after, images=images)


def settle(prepared: Prepared) -> Result:
    """Carry the plan out and return the outcome; in check mode return what it would be and write nothing."""
    job, plan, draft = prepared.job, prepared.plan, prepared.draft
    if draft is not None:
        return preview(prepared) if job.check_mode else _make(prepared, draft)
    if job.check_mode or not plan.changed or prepared.actual is None:
        return preview(prepared)
    if job.client.clock.monotonic() - prepared.read_at > FRESH:
        prepared = _again(prepared, prepared.actual)
    actual = prepared.actual
    if actual is None or not prepared.plan.changed:
        return preview(prepared)
    return _remove(prepared, actual) if job.desired.state == "absent" else _change(prepared, actual)


def with_view(prepared: Prepared, client: Client, scene: Scene) -> Prepared:
    """Return the same, to be carried out by another client and with another view of the cluster."""
    asked, job = (replace(one, client=client, scene=scene) for one in (prepared.asked, prepared.job))
    return replace(prepared, asked=asked, job=job)


def preview(prepared: Prepared) -> Result:
    """Return what the plan comes to, without carrying it out."""
    job, plan, draft = prepared.job, prepared.plan, prepared.draft
    if draft is not None:
        return report(job, plan, None, done=[], node=draft.node, vmid=draft.vmid)
    return report(job, plan, None if job.desired.state == "absent" else prepared.actual, done=[])


def _again(prepared: Prepared, known: Actual) -> Prepared:
    """Return the plan from a new look at the VM: what the old one rests on is too old for a write."""
    job = prepared.asked
    seen = read_wherever(job.client, known.vmid, known.node, pool=known.pool)
    guard(job.desired, seen)
    require_same(known, seen)
    return prepare_found(job, seen, job.scene.fresh(prepared.picture))


def _remove(prepared: Prepared, actual: Actual) -> Result:
    job, plan = prepared.job, prepared.plan

    def look(node: str, status: str | None = None) -> Actual:
        seen = read_wherever(job.client, actual.vmid, node, status=status, pool=actual.pool)
        guard(job.desired, seen)
        require_same(actual, seen)
        return seen

    def replan(_done: list[Step], _uncertain: bool) -> Plan:
        return plan_absent(job.desired, look(actual.node))

    def before(step: Step) -> None:
        if step.action == "destroy":  # the stop before it takes its time
            look(str(step.path[1]), "stopped")

    done, warnings = carry_out(job.client, plan, replan=_unless_gone(replan), timeout=job.timeout, before=before)
    return report(job, plan, None, done=done, warnings=warnings)


def _unless_gone(replan: Replan) -> Replan:
    """A removal whose answer was lost is over when the VM is gone."""

    def again(done: list[Step], uncertain: bool) -> Plan:
        try:
            return replan(done, uncertain)
        except NotFound:
            return Plan()

    return again


def _change(prepared: Prepared, actual: Actual) -> Result:
    job, plan = prepared.job, prepared.plan
    shared = prepared.picture.shared_storages
    places = {"node": actual.node}

    def read(done: list[Step]) -> Actual:
        moved = any(step.action == "pool" for step in done)
        pool = job.desired.pool if moved else actual.pool
        seen = read_wherever(job.client, actual.vmid, places["node"], pool=pool)
        places["node"] = seen.node
        guard(job.desired, seen)
        return seen

    def replan(done: list[Step], _uncertain: bool) -> Plan:
        written = any("cipassword" in step.data for step in done)
        policy = "on_create" if written else job.desired.update_password
        wish = replace(job.desired, update_password=policy)
        return plan_update(wish, read(done), shared=shared, images=prepared.images)

    done, warnings = carry_out(job.client, plan, replan=replan, timeout=job.timeout)
    final = replace(read([]), pool=job.desired.pool or actual.pool)
    waiting = tuple(sorted(key for key in final.live.keys() | final.target.keys() if _differs(final, key)))
    result = report(job, replace(plan, pending=waiting), final, done=done, warnings=warnings)
    if prepared.growth is not None:
        check_grown(job.client, job.desired, actual, prepared.growth)
    return result


def _differs(actual: Actual, key: str) -> bool:
    return actual.running and actual.live.get(key) != actual.target.get(key)


def _make(prepared: Prepared, draft: Draft) -> Result:
    job = prepared.job
    fresh = job.scene.fresh(prepared.picture)
    if fresh is not prepared.picture:  # reading took long: who else was at work meanwhile?
        row = locate(job.client, job.desired, fresh)
        if row is not None:
            return settle(prepare_found(job, read_found(job, row, fresh), fresh))
        draft = creation.confirm(job.client, draft, fresh)
    written = write_snippet(job.desired.snippet, job.snippet_now)
    try:
        draft, done, warnings = creation.create(job.client, draft, timeout=job.timeout, scene=job.scene)
    except Conflict as error:
        return _go_on_with_twin(prepared, error)
    made = _of_draft(job, draft, fresh)
    status = str(draft.plan.after["status"])  # the start was a task, and it ended well
    final = read_actual(job.client, draft.vmid, draft.node, status=status, pool=job.desired.pool)
    return report(made.job, made.plan, final, done=[*written, *done], warnings=warnings)


def _go_on_with_twin(prepared: Prepared, error: Conflict) -> Result:
    """Return what comes of the VM of that name which somebody else was making. Raises the error where there is none."""
    job = prepared.asked
    fresh = job.scene.now() if error.reason == TWIN else prepared.picture
    row = fresh.vms.get(error.details.get("twin", 0))
    if row is None:
        raise error
    job.scene.claim(row.vmid, row.node)
    return settle(prepare_found(job, read_found(job, row, fresh), fresh))
