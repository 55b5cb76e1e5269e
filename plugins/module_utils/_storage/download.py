# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module storage_download: a file that PVE fetches from a URL into a storage, or that goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._cluster.picture import Picture, read_picture
from .._cluster.placement import require_node, require_storage
from .._core import validate
from .._core.errors import ConfigurationError, Conflict, FleetError, NotFound, NotSupported, TaskFailed
from .._core.result import Result
from .._vm.model import Plan, Step
from .wish import File, read_file_wish

if TYPE_CHECKING:
    from .._api.client import Client
    from .._api.tasks import TaskResult

# Since when a storage can hold images to import (content=import).
_IMPORT_SINCE = (8, 3)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make sure that a file is on a storage or is not, and return the outcome; check mode writes nothing."""
    wish = read_file_wish(params)
    timeout = validate.count(params.get("task_timeout"), 1800, "task_timeout")
    _check_version(client, wish)
    file = replace(wish, node=choose_node(wish, read_picture(client), client.default_node))
    found = _look(client, file)
    if params.get("state") == "absent":
        plan = plan_absent(file, found)
        warnings = _remove(client, file, plan.steps[0], timeout) if plan.changed and not check_mode else ()
        return _result(plan, _told(file, found) if check_mode else None, check_mode, warnings)
    plan, warnings = plan_present(file, found), ()
    if plan.changed and not check_mode:
        made = _fetch(client, file, plan.steps[0], timeout)
        found = _look(client, file)
        if made is None:  # somebody else was faster
            plan = Plan()
        warnings = made or ()
    return _result(plan, _told(file, found), check_mode, warnings)


def choose_node(file: File, picture: Picture, default: str) -> str:
    """Return the node that does the work: the one that is asked for, or else one that has the storage (pure).

    Raises ConfigurationError where the storage is not there or does not take that content.
    """
    if file.node:
        require_node(picture, file.node)
        require_storage(picture, file.storage, file.node, file.content)
        return file.node
    rows = [row for row in picture.storages if row.storage == file.storage]
    online = {name for name, node in picture.nodes.items() if node.online}
    able = sorted(row.node for row in rows if row.available and file.content in row.content and row.node in online)
    if not able:
        known = sorted({row.storage for row in picture.storages})
        content = sorted({one for row in rows for one in row.content if one})
        raise ConfigurationError(
            attempted=f"Storage '{file.storage}' could not be used for {file.name}",
            answer=f"it takes {', '.join(content)}, not {file.content}, or no node with it is online"
            if rows
            else f"the cluster has {', '.join(known) or 'no storage this token may see'}",
            next_step=f"Allow content {file.content} on it, or choose another storage"
            if rows
            else "Name one of them; the token needs Datastore.Audit to see a storage",
            reason="storage content" if rows else "unknown storage",
        )
    return default if default in able else able[0]


def plan_present(file: File, found: Mapping[str, Any] | None) -> Plan:
    """Return what brings the file there (pure). A file of that name is left alone. Raises NotFound without a URL."""
    if found is not None:
        return Plan()
    if not file.url:
        raise NotFound(
            attempted=f"{file.volume} was not found on node {file.node}",
            answer="there is no such file, and no URL to fetch it from",
            next_step="Give source_url and checksum, or upload the file",
            reason="unknown volume",
        )
    data: dict[str, Any] = {"content": file.content, "filename": file.name, "url": file.url}
    if file.checksum:
        data |= {"checksum": file.checksum, "checksum-algorithm": file.algorithm}
    if file.compression:
        data["compression"] = file.compression
    if not file.verify:
        data["verify-certificates"] = 0
    path = ("nodes", str(file.node), "storage", file.storage, "download-url")
    summary = f"Download {file.shown_url} to {file.volume} on node {file.node}"
    after = {"volid": file.volume, "node": file.node, "url": file.shown_url, "checksum": _sum(file)}
    step = Step("download", summary, "POST", path, data)
    return Plan((step,), {}, {key: value for key, value in after.items() if value})


def plan_absent(file: File, found: Mapping[str, Any] | None) -> Plan:
    """Return what removes the file (pure)."""
    if found is None:
        return Plan()
    path = ("nodes", str(file.node), "storage", file.storage, "content", file.volume)
    step = Step("remove", f"Remove {file.volume} from node {file.node}", "DELETE", path)
    return Plan((step,), {"volid": file.volume, "node": file.node, "size": found.get("size")}, {})


def _sum(file: File) -> str | None:
    return f"{file.algorithm}:{file.checksum}" if file.checksum else None


def _check_version(client: Client, file: File) -> None:
    if file.content == "import" and client.version() < _IMPORT_SINCE:
        major, minor = client.version()
        raise NotSupported(
            attempted=f"{file.name} could not be put on storage '{file.storage}'",
            answer=f"PVE {major}.{minor} has no storage content for images to import, it came with 8.3",
            next_step="Clone a template that is there, or make one on a node with qm disk import",
            reason="content import",
            dispatched=False,
        )


def _look(client: Client, file: File) -> Mapping[str, Any] | None:
    rows = client.get("nodes", str(file.node), "storage", file.storage, "content", content=file.content)
    return next((row for row in rows or [] if row.get("volid") == file.volume), None)


def _fetch(client: Client, file: File, step: Step, timeout: int) -> tuple[str, ...] | None:
    """Fetch the file and return the warnings of PVE's task, or None where somebody else was faster.

    A download that an earlier run left is waited for.
    """
    attempted = f"Could not download {file.shown_url} to {file.volume} on node {file.node}"
    running = _running(client, file)
    if running:
        return _said(step, client.wait(running, timeout=timeout, attempted=attempted))

    def happened() -> str | None:
        """After a lost answer: the task that the request began, or that the file is there."""
        return _running(client, file) or (file.volume if _look(client, file) else None)

    try:
        result = client.task(
            step.method, *step.path, data=step.data, attempted=attempted, timeout=timeout, happened=happened
        )
    except Conflict as error:
        if error.reason == "exists" and _look(client, file):
            return None
        raise
    except FleetError as error:
        raise _explained(error, file) from error
    return _said(step, result)


def _said(step: Step, result: TaskResult) -> tuple[str, ...]:
    """Return the warnings of a task, each with what it was about."""
    return tuple(f"{step.summary}: {line}" for line in result.warnings)


def _explained(error: FleetError, file: File) -> FleetError:
    """Return the error with the next step that helps where PVE only tells how its downloader ended."""
    if "download failed" in error.answer and isinstance(error, TaskFailed):
        return error.on(next_step=f"Check the URL, and that node {file.node} reaches it; error.log has the details")
    return error


def _running(client: Client, file: File) -> str | None:
    """Return the UPID of a download of this file that runs now; PVE names the task after the file."""
    rows = client.get("nodes", str(file.node), "tasks", source="active", typefilter="download") or []
    return next((str(row["upid"]) for row in rows if row.get("id") == file.name and not row.get("endtime")), None)


def _remove(client: Client, file: File, step: Step, timeout: int) -> tuple[str, ...]:
    result = client.task(
        step.method,
        *step.path,
        attempted=f"Could not remove {file.volume} from node {file.node}",
        timeout=timeout,
        happened=lambda: None if _look(client, file) else file.volume,
    )
    return _said(step, result)


def _told(file: File, found: Mapping[str, Any] | None) -> dict[str, Any]:
    known = found or {}
    return {
        "volid": file.volume,
        "storage": file.storage,
        "node": file.node,
        "content": file.content,
        "filename": file.name,
        "format": known.get("format"),
        "size": known.get("size"),
        "ctime": known.get("ctime"),
    }


def _result(plan: Plan, volume: dict[str, Any] | None, check_mode: bool, warnings: tuple[str, ...]) -> Result:
    values = {"volume": volume, "plan": plan.summaries, "done": [] if check_mode else plan.summaries}
    return Result(plan.changed, values, {"before": dict(plan.before), "after": dict(plan.after)}, warnings)
