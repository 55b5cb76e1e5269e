# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One VM's job in a run: what its stages carry, and what it reports in the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._cluster.placement import Choice
from .._cluster.scene import Scene
from .._core import validate
from .._core.result import Result
from .describe import conditions, describe
from .guest import NOTHING_TOLD, GuestWish, read_addresses, read_guest_wish, told, wait_for_guest
from .model import Actual, Desired, Plan
from .snippets import current_content

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
    scene: Scene
    snippet_now: str | None = None  # what the file of the wished user data holds
    choice: Choice | None = None  # where the VM goes, and why


def job_of(
    params: Mapping[str, Any], client: Client, desired: Desired, check_mode: bool, scene: Scene | None = None
) -> Job:
    """Return the job that a module's options make of a wish."""
    timeout = validate.count(params.get("task_timeout"), 300, "task_timeout")
    return Job(
        client,
        desired,
        check_mode,
        timeout,
        read_guest_wish(params),
        scene or Scene(client),
        current_content(desired.snippet),
    )


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
        url = job.client.connection.endpoint.web
        vm = describe(actual, prefix=job.desired.tenant_prefix, url=url, guest=_ask_guest(job, actual))
    elif vmid is not None:
        vm = {"vmid": vmid, "node": node, "name": job.desired.name}
    notes = [*job.desired.advice, *plan.warnings, *(warnings or [])]
    if plan.pending and not job.check_mode and actual is not None:
        notes.append(f"{actual.label}: {', '.join(plan.pending)} will be applied at its next stop or reboot")
    values = {
        "vm": vm,
        "plan": plan.summaries,
        "done": done,
        "applied": sorted(plan.keys - set(plan.pending)) if vm is not None else [],
        "pending": list(plan.pending),
        "needs_reboot": bool(plan.pending),
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
