# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, carry out. Sequences what the other rooms know."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.bridges import KnownBridges
from .._cluster.lookup import find_vm, guard_tenant
from .._cluster.picture import Picture, VmRow, ask_nodes, fill_names, read_picture, refreshed
from .._cluster.placement import Choice
from .._cluster.tenant import parse_tags
from .._core.errors import Conflict, FleetError, NodeUnhealthy, NotFound, ValidationFailed
from .._core.result import Result
from . import creation, power
from .actual import power_of, read_actual
from .apply import Replan, carry_out
from .checks import check_change, check_cpus, check_pool, check_version
from .config import apply_to, changes
from .describe import conditions, describe
from .desired import read_desired
from .guest import NOTHING_TOLD, GuestWish, read_addresses, read_guest_wish, told, wait_for_guest
from .limits import grow_within
from .marker import split_notes
from .model import Actual, Desired, Plan, Step
from .moving import check_move, read_wherever, require_same
from .placing import rebalance
from .plan import plan_absent, plan_update
from .snippets import current_content, with_snippet, write_snippet
from .source import guard_drives

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class Job:
    """What one run carries through its stages."""

    client: Client
    desired: Desired
    check_mode: bool
    timeout: int
    guest: GuestWish
    snippet_now: str | None = None  # what the file of the wished user data holds
    choice: Choice | None = None  # where the VM goes, and why


def converge(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make a VM what the options say and return the outcome; in check mode plan it and write nothing."""
    desired = read_desired(params)
    if not desired.name and desired.vmid is None:
        raise ValidationFailed(
            attempted="No VM was chosen",
            answer="neither name nor vmid is given",
            next_step="Give one of them",
            reason="name or vmid",
        )
    job = job_of(params, client, desired, check_mode)
    picture = read_picture(client)
    row = locate(client, desired, picture)
    if row is None:
        if desired.state == "absent":
            return Result(False, {"vm": None, "plan": [], "conditions": conditions(None, Plan(), applied=True)})
        power.check_wish(desired, None)
        return create(job, picture)
    actual = read_found(job, row, picture)
    if desired.vmid is None and actual.name != desired.name:  # the listing knew an old name
        picture = ask_nodes(client, picture, picture.nodes)
        row = locate(client, desired, picture)
        if row is None:
            return report(job, Plan(), None, done=[]) if desired.state == "absent" else create(job, picture)
        actual = read_found(job, row, picture)
    if desired.state == "absent":
        return _remove(job, actual)
    return bring_to(job, actual, picture)


def job_of(params: Mapping[str, Any], client: Client, desired: Desired, check_mode: bool) -> Job:
    """Return the job that a module's options make of a wish."""
    timeout = int(params.get("task_timeout") or 300)
    return Job(client, desired, check_mode, timeout, read_guest_wish(params), current_content(desired.snippet))


def locate(client: Client, desired: Desired, picture: Picture) -> VmRow | None:
    """Return the row of the VM that is meant, or None. A VM the listing has no name for yet is asked for it."""

    def search(seen: Picture) -> VmRow | None:
        return find_vm(
            seen,
            vmid=desired.vmid,
            name=desired.name,
            tenant_tag=desired.tenant_tag,
            prefix=desired.tenant_prefix,
        )

    try:
        row = search(picture)
    except Conflict:  # the listing may know an old name of one of them
        row = search(ask_nodes(client, picture, picture.nodes))
    if row is None and desired.vmid is None:
        row = search(fill_names(client, picture))
    return row


def read_found(job: Job, row: VmRow, picture: Picture) -> Actual:
    """Return the VM as it is, after the guard has seen its fresh tags. Raises NodeUnhealthy where its node is down."""
    desired = job.desired
    label = f"VM '{row.name}' ({row.vmid}) on node {row.node}" if row.name else f"VM {row.vmid} on node {row.node}"
    node = picture.nodes.get(row.node)
    if node is not None and not node.online:
        raise NodeUnhealthy(
            attempted=f"{label} could not be read",
            answer="the node is offline",
            next_step="Bring the node back, or wait until HA has moved the VM",
            reason="node offline",
        )
    # The listing's power state is old; it will do only where nothing rests on it.
    listed = row.status if desired.state == "present" and row.status in ("running", "stopped") else None
    try:
        actual = read_wherever(job.client, row.vmid, row.node, status=listed, pool=row.pool)
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error
    if listed:
        actual = replace(actual, uptime=row.uptime)
    guard(desired, actual)
    return actual


def guard(desired: Desired, actual: Actual) -> None:
    """Raise Conflict where the VM, as it is now, is not one that the task's tenant may touch."""
    tags = set(parse_tags(actual.target.get("tags")))
    marker = split_notes(actual.target.get("description"))[1]
    building = marker.building and marker.tenant == desired.tenant_tag
    if building:  # an unfinished clone of ours still bears its source's tags
        tags = {tag for tag in tags if tag.lower() not in marker.shed}
    guard_tenant(actual.label, tags, desired.tenant_tag, desired.tenant_prefix, adopt=desired.adopt or building)


def _remove(job: Job, actual: Actual) -> Result:
    name = job.desired.name
    if name and name != actual.name:  # numbers are used again, and what is destroyed is gone
        raise Conflict(
            attempted=f"VM {actual.vmid} was not removed",
            answer=f"it is '{actual.name}' and not '{name}'",
            next_step="Name the VM you mean by its vmid or its name alone",
            reason="name differs",
        )
    plan = plan_absent(job.desired, actual)
    if not job.check_mode:

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
    return report(job, plan, None, done=[])


def _unless_gone(replan: Replan) -> Replan:
    """A removal whose answer was lost is over when the VM is gone."""

    def again(done: list[Step], uncertain: bool) -> Plan:
        try:
            return replan(done, uncertain)
        except NotFound:
            return Plan()

    return again


def bring_to(job: Job, actual: Actual, picture: Picture) -> Result:
    if split_notes(actual.target.get("description"))[1].building:  # it still has its source's password
        job = replace(job, desired=replace(job.desired, update_password="always"))
    desired, client, bridges = job.desired, job.client, KnownBridges(job.client)
    if desired.rebalance or desired.limits is not None:
        picture = refreshed(client, picture)
    shared = picture.shared_storages
    change = changes(desired, actual.target)
    check_version(client, actual.label, change.sets)
    after = apply_to(change, actual.target)
    guard_drives(desired, change.sets, actual.target, picture, actual.vmid)
    choice = rebalance(client, desired, actual, after, change, picture, bridges)
    if choice is not None:
        desired = replace(desired, node=choice.node)
        job = replace(job, desired=desired, choice=choice)
    node = desired.node or actual.node
    if desired.state == "present" and (change.keys or node != actual.node or desired.reboot != "never"):
        current = client.get("nodes", actual.node, "qemu", actual.vmid, "status", "current")
        actual = replace(actual, status=power_of(current), uptime=int(current.get("uptime") or 0))
    if change.keys or node != actual.node:
        check_change(bridges, change, node, picture)
    if change.keys & {"cores", "sockets"} and (actual.running or desired.state == "started"):
        check_cpus(actual.label, after, node, picture)
    if node != actual.node and desired.migrate:
        check_move(client, actual, node)
    if desired.pool and desired.pool != actual.pool:
        check_pool(client, desired.pool, picture)
    grown = grow_within(client, desired, actual, after, picture)
    plan = with_snippet(plan_update(desired, actual, shared=shared), desired.snippet, job.snippet_now, actual)
    if job.check_mode or not plan.changed:
        return report(job, plan, actual, done=[])
    result = _carry_out_update(job, plan, actual, shared)
    grown()
    return result


def _carry_out_update(job: Job, plan: Plan, actual: Actual, shared: frozenset[str]) -> Result:
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
        return plan_update(replace(job.desired, update_password=policy), read(done), shared=shared)

    done, warnings = carry_out(job.client, plan, replan=replan, timeout=job.timeout)
    final = replace(read([]), pool=job.desired.pool or actual.pool)
    waiting = tuple(sorted(key for key in final.live.keys() | final.target.keys() if _differs(final, key)))
    return report(job, replace(plan, pending=waiting), final, done=done, warnings=warnings)


def _differs(actual: Actual, key: str) -> bool:
    return actual.running and actual.live.get(key) != actual.target.get(key)


def create(job: Job, picture: Picture) -> Result:
    run, identity = uuid.uuid4().hex[:12], str(uuid.uuid4())
    draft = creation.prepare(job.client, job.desired, picture, run=run, identity=identity)
    fresh = picture if job.check_mode else refreshed(job.client, picture)
    if fresh is not picture:  # reading took long: who else was at work meanwhile?
        row = locate(job.client, job.desired, fresh)
        if row is not None:
            return bring_to(job, read_found(job, row, fresh), fresh)
        draft = creation.prepare(job.client, job.desired, fresh, run=run, identity=identity)
    job = replace(job, choice=draft.choice)
    if job.check_mode:
        plan = with_snippet(draft.plan, job.desired.snippet, job.snippet_now, None)
        return report(job, plan, None, done=[], node=draft.node, vmid=draft.vmid)
    written = write_snippet(job.desired.snippet, job.snippet_now)
    draft, done, warnings = creation.create(job.client, draft, timeout=job.timeout)
    job = replace(job, choice=draft.choice)
    plan = with_snippet(draft.plan, job.desired.snippet, job.snippet_now, None)
    status = str(draft.plan.after["status"])  # the start was a task, and it ended well
    final = read_actual(job.client, draft.vmid, draft.node, status=status, pool=job.desired.pool)
    return report(job, plan, final, done=[*written, *done], warnings=warnings)


def report(
    job: Job,
    plan: Plan,
    actual: Actual | None,
    *,
    done: list[str],
    warnings: list[str] | None = None,
    node: str | None = None,
    vmid: int | None = None,
) -> Result:
    """Return what the module reports; the diff is the plan's, in check mode and after applying it."""
    vm: dict[str, Any] | None = None
    if actual is not None:
        url = job.client.connection.endpoint.url
        vm = describe(actual, prefix=job.desired.tenant_prefix, url=url, guest=_ask_guest(job, actual))
    elif vmid is not None:
        vm = {"vmid": vmid, "node": node, "name": job.desired.name}
    notes = list(plan.warnings) + (warnings or [])
    if plan.pending and not job.check_mode and actual is not None:
        notes.append(f"{actual.label}: {', '.join(plan.pending)} will be applied at its next stop or reboot")
    values = {
        "vm": vm,
        "plan": plan.summaries,
        "done": done,
        "pending": list(plan.pending),
        "conditions": conditions(actual, plan, applied=not job.check_mode),
        "placement": job.choice.as_dict() if job.choice is not None else None,
    }
    diff: dict[str, Any] = {"before": dict(plan.before), "after": dict(plan.after)}
    if plan.changed:
        diff["before_header"] = diff["after_header"] = job.desired.label
    return Result(plan.changed, values, diff, tuple(notes))


def _ask_guest(job: Job, actual: Actual) -> Mapping[str, Any]:
    """Return what the guest tells, after waiting for it where that is asked for; check mode does not wait."""
    if not job.guest.asks:
        return NOTHING_TOLD
    if job.check_mode or actual.status != "running":
        return told(actual, *read_addresses(job.client, actual), job.guest.rule)
    return wait_for_guest(job.client, actual, job.guest)
