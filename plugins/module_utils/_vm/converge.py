# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module vm: find the VM, plan, carry out. Sequences what the other rooms know."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import find_vm, guard_tenant
from .._cluster.picture import Picture, VmRow, fill_names, read_picture
from .._cluster.tenant import parse_tags
from .._core.errors import FleetError, NodeUnhealthy, NotFound, ValidationFailed
from .._core.result import Result
from . import creation, power
from .actual import power_of, read_actual
from .apply import Replan, carry_out
from .checks import check_change, check_pool
from .config import changes
from .describe import conditions, describe
from .desired import read_desired
from .marker import split_notes
from .model import Actual, Desired, Plan, Step
from .plan import plan_absent, plan_update

if TYPE_CHECKING:
    from .._api.client import Client


@dataclass(frozen=True)
class Job:
    """What one run carries through its stages."""

    client: Client
    desired: Desired
    check_mode: bool
    timeout: int


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
    job = Job(client, desired, check_mode, int(params.get("task_timeout") or 300))
    picture = read_picture(client)
    row = locate(client, desired, picture)
    if row is None:
        if desired.state == "absent":
            return Result(False, {"vm": None, "plan": [], "conditions": conditions(None, Plan(), applied=True)})
        power.check_wish(desired, None)
        return create(job, picture)
    actual = read_found(job, row, picture)
    if desired.state == "absent":
        return _remove(job, actual)
    return bring_to(job, actual, picture)


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

    row = search(picture)
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
        actual = read_actual(job.client, row.vmid, row.node, status=listed, pool=row.pool)
    except FleetError as error:
        raise error.on(attempted=f"{label} could not be read") from error
    if listed:
        actual = replace(actual, uptime=row.uptime)
    tags = set(parse_tags(actual.target.get("tags")))
    marker = split_notes(actual.target.get("description"))[1]
    building = marker.building and marker.tenant == desired.tenant_tag
    if building:  # an unfinished clone of ours still bears its source's tags
        tags = {tag for tag in tags if tag.lower() not in marker.shed}
    guard_tenant(actual.label, tags, desired.tenant_tag, desired.tenant_prefix, adopt=desired.adopt or building)
    return actual


def _remove(job: Job, actual: Actual) -> Result:
    plan = plan_absent(job.desired, actual)
    if not job.check_mode:

        def replan(_done: list[Step], _uncertain: bool) -> Plan:
            return plan_absent(job.desired, read_actual(job.client, actual.vmid, actual.node, pool=actual.pool))

        done, warnings = carry_out(job.client, plan, replan=_unless_gone(replan), timeout=job.timeout)
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
    desired, client = job.desired, job.client
    shared = picture.shared_storages
    change = changes(desired, actual.target)
    node = desired.node or actual.node
    if desired.state == "present" and (change.keys or node != actual.node or desired.reboot != "never"):
        current = client.get("nodes", actual.node, "qemu", actual.vmid, "status", "current")
        actual = replace(actual, status=power_of(current), uptime=int(current.get("uptime") or 0))
    if change.keys or node != actual.node:
        check_change(client, change, node, picture)
    if desired.pool and desired.pool != actual.pool:
        check_pool(client, desired.pool, picture)
    plan = plan_update(desired, actual, shared=shared)
    if job.check_mode or not plan.changed:
        return report(job, plan, actual, done=[])
    return _carry_out_update(job, plan, actual, shared)


def _carry_out_update(job: Job, plan: Plan, actual: Actual, shared: frozenset[str]) -> Result:
    places = {"node": actual.node}

    def read() -> Actual:
        pool = job.desired.pool or actual.pool
        try:
            return read_actual(job.client, actual.vmid, places["node"], pool=pool)
        except NotFound:
            if not job.desired.node or job.desired.node == places["node"]:
                raise
            places["node"] = job.desired.node  # it has been migrated
            return read_actual(job.client, actual.vmid, places["node"], pool=pool)

    def replan(done: list[Step], _uncertain: bool) -> Plan:
        written = any("cipassword" in step.data for step in done)
        policy = "on_create" if written else job.desired.update_password
        return plan_update(replace(job.desired, update_password=policy), read(), shared=shared)

    done, warnings = carry_out(job.client, plan, replan=replan, timeout=job.timeout)
    final = read()
    waiting = tuple(sorted(key for key in final.live.keys() | final.target.keys() if _differs(final, key)))
    return report(job, replace(plan, pending=waiting), final, done=done, warnings=warnings)


def _differs(actual: Actual, key: str) -> bool:
    return actual.running and actual.live.get(key) != actual.target.get(key)


def create(job: Job, picture: Picture) -> Result:
    draft = creation.prepare(job.client, job.desired, picture, run=uuid.uuid4().hex[:12], identity=str(uuid.uuid4()))
    if job.check_mode:
        return report(job, draft.plan, None, done=[], node=draft.node, vmid=draft.vmid)
    draft, done, warnings = creation.create(job.client, draft, timeout=job.timeout)
    status = str(draft.plan.after["status"])  # the start was a task, and it ended well
    final = read_actual(job.client, draft.vmid, draft.node, status=status, pool=job.desired.pool)
    return report(job, draft.plan, final, done=done, warnings=warnings)


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
        vm = describe(actual, prefix=job.desired.tenant_prefix)
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
    }
    diff = {"before": dict(plan.before), "after": dict(plan.after)}
    return Result(plan.changed, values, diff, tuple(notes))
