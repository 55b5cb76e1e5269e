# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module clone: find the clone that is there, complete one that is unfinished, or make it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.lookup import find_template, find_vm
from .._cluster.picture import Picture, VmRow, ask_nodes, fill_names, read_picture
from .._core import validate
from .._core.errors import Conflict, NotFound, TaskTimeout, ValidationFailed
from .._core.result import Result
from .converge import prepare_found, prepare_new, settle
from .desired import read_desired
from .find import locate, read_found
from .job import Job, job_of
from .marker import split_notes
from .model import Actual, Desired, Source

if TYPE_CHECKING:
    from .._api.client import Client

_LOOK = 1.0  # seconds between two looks at a VM that is being made


def converge_clone(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make sure that the clone exists and return the outcome; in check mode plan it and write nothing.

    A finished clone is left as it is, but for its power state. Raises Conflict where the VM of that name or number was
    not cloned from the source.
    """
    desired = read_wish(params)
    job = job_of(params, client, desired, check_mode)
    picture = read_picture(client)
    origin, source = _source_row(client, desired, picture)
    actual = _find(job, picture, origin)
    if actual is None and desired.vmid is None and source is not None:
        row = _being_made(client, desired, picture, source, job.timeout)
        actual = _read(job, row, picture, origin) if row is not None else None
    if actual is None:
        said = Source(vmid=origin, **_of_clone(desired.source))
        return settle(prepare_new(replace(job, desired=replace(desired, source=said)), picture))
    marker = split_notes(actual.target.get("description"))[1]
    _require_same(desired, actual, marker.origin, origin)
    if marker.building:
        return settle(prepare_found(job, actual, picture))
    return settle(prepare_found(replace(job, desired=_power_only(desired, actual)), actual, picture))


def _find(job: Job, picture: Picture, origin: int) -> Actual | None:
    """Return the VM of that name or number once PVE has made it, or None."""
    row = locate(job.client, job.desired, picture)
    actual = _read(job, row, picture, origin) if row is not None else None
    if actual is None or job.desired.vmid is not None or actual.name == job.desired.name:
        return actual
    fresh = ask_nodes(job.client, picture, picture.nodes)  # the listing knew an old name
    row = locate(job.client, job.desired, fresh)
    return _read(job, row, fresh, origin) if row is not None else None


def _read(job: Job, row: VmRow, picture: Picture, origin: int) -> Actual:
    if row.lock == "clone":
        _wait_until_made(job.client, row, origin, job.timeout)
    return read_found(job, row, picture)


def read_wish(params: Mapping[str, Any]) -> Desired:
    """Return what the options ask for; every refusal is a ValidationFailed."""
    desired = read_desired(params)
    if not desired.name and desired.vmid is None:
        raise ValidationFailed(
            attempted="No clone was chosen",
            answer="neither name nor vmid is given",
            next_step="Give one of them",
            reason="name or vmid",
        )
    source = desired.source
    if source is None or source.volume:
        raise validate.refused("source", params.get("source"), "is no VM", "Give the VMID or name of a template or VM")
    if source.vmid is not None and source.vmid == desired.vmid:
        raise validate.refused("vmid", desired.vmid, "is the source itself", "Choose another vmid, or leave it out")
    storage = validate.storage(params["storage"]) if params.get("storage") else None
    wish = replace(
        source, snapshot=params.get("snapshot") or None, storage=storage, format=params.get("format") or None
    )
    return replace(desired, source=wish)


def _of_clone(source: Source | None) -> dict[str, Any]:
    said = source or Source()
    return {name: getattr(said, name) for name in ("full", "snapshot", "storage", "format")}


def _source_row(client: Client, desired: Desired, picture: Picture) -> tuple[int, VmRow | None]:
    """Return the number of the source, and its row where it is there.

    A name means the one template of that name, or else the one VM. Raises NotFound and Conflict where it is not clear.
    """
    said = desired.source or Source()
    if said.vmid is not None:
        return said.vmid, picture.vms.get(said.vmid)
    row = _named(desired, picture) or _named(desired, fill_names(client, picture))
    if row is None:
        names = sorted(f"{one.name} ({one.vmid})" for one in picture.vms.values() if one.template)
        raise NotFound(
            attempted=f"Source '{said.name}' could not be cloned",
            answer=f"no template or VM of that name is visible; templates are {', '.join(names) or 'none'}",
            next_step="Check the spelling, and that the token has VM.Audit and VM.Clone on it",
            reason="template missing",
        )
    return row.vmid, row


def _named(desired: Desired, picture: Picture) -> VmRow | None:
    name = desired.source.name if desired.source else None
    found = find_template(picture, name=name)
    return found or find_vm(picture, vmid=None, name=name, tenant_tag=desired.tenant_tag, prefix=desired.tenant_prefix)


def _require_same(desired: Desired, actual: Actual, origin: int | None, wanted: int) -> None:
    """Raise Conflict unless the VM that is there is the clone that is asked for."""
    if origin == wanted and desired.name in (None, actual.name):
        return
    if actual.vmid == wanted:
        said, step = "it is the source itself", "Give the clone another name"
    elif origin == wanted:
        said, step = f"the clone of {wanted} with that number has another name", "Give its name, or choose another vmid"
    elif origin is None:
        said = f"nothing in its notes says that it was cloned from {wanted}"
        step = "Choose another name or vmid, or manage that VM with pve.fleet.vm"
    else:
        said = f"it was cloned from {origin}, not from {wanted}"
        step = "Choose another name or vmid, or give the source it was cloned from"
    raise Conflict(attempted=f"{actual.label} was left alone", answer=said, next_step=step, reason="other origin")


def _power_only(desired: Desired, actual: Actual) -> Desired:
    """Return the wish for a clone that is finished: its power state, and nothing else."""
    return Desired(
        name=actual.target.get("name"),
        vmid=actual.vmid,
        node=None,
        state=desired.state,
        tenant=desired.tenant,
        tenant_prefix=desired.tenant_prefix,
        force=desired.force,
        shutdown_timeout=desired.shutdown_timeout,
    )


def _being_made(client: Client, desired: Desired, picture: Picture, source: VmRow, timeout: int) -> VmRow | None:
    """Return our clone that an earlier run left while PVE still copies its first disk: until then it has no name.

    Without a clone task of this source there is none; else each VM without a name is waited for until it has one.
    """
    nameless = [
        row for row in picture.vms.values() if row.lock == "clone" and row.node == source.node and not row.own_name
    ]
    if not nameless or not _running_tasks(client, source.node, source.vmid):
        return None
    deadline = client.clock.monotonic() + timeout
    for row in sorted(nameless, key=lambda one: one.vmid):
        base = ("nodes", row.node, "qemu", row.vmid, "config")
        while True:
            try:
                config = client.get(*base)
            except NotFound:
                break
            if config.get("name") or config.get("lock") != "clone":
                marker = split_notes(config.get("description"))[1]
                if config.get("name") == desired.name and marker.tenant == desired.tenant_tag:
                    return replace(row, name=str(desired.name), lock=config.get("lock"))
                break
            if client.clock.monotonic() > deadline:
                raise _still_made(client, row, source.vmid, timeout)
            client.clock.sleep(_LOOK)
    return None


def _wait_until_made(client: Client, row: VmRow, origin: int, timeout: int) -> None:
    """Wait until PVE has copied the disks of a clone. Raises TaskTimeout, with the task where it can be told."""
    deadline = client.clock.monotonic() + timeout
    while True:
        try:
            config = client.get("nodes", row.node, "qemu", row.vmid, "config")
        except NotFound:
            return  # it has failed, or has moved to its node: who reads it next says so
        if config.get("lock") != "clone":
            return
        if client.clock.monotonic() > deadline:
            raise _still_made(client, row, origin, timeout)
        client.clock.sleep(_LOOK)


def _still_made(client: Client, row: VmRow, origin: int, timeout: int) -> TaskTimeout:
    tasks = _running_tasks(client, row.node, origin)
    upid = tasks[0] if len(tasks) == 1 else ""
    return TaskTimeout(
        attempted=f"VM {row.vmid} on node {row.node} could not be completed",
        answer=f"it is still being cloned after {timeout} s",
        next_step="Run this again later: it goes on from there; or raise task_timeout",
        reason="task still runs",
        upid=upid,
    )


def _running_tasks(client: Client, node: str, source: int) -> list[str]:
    """Return the UPIDs of the clone tasks of a source that run now."""
    rows = client.get("nodes", node, "tasks", vmid=source, source="active", typefilter="qmclone") or []
    return [str(row["upid"]) for row in rows if row.get("type") == "qmclone" and not row.get("endtime")]
