# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules volume and volume_info: uploads, downloads, allocates, copies, changes or deletes
a volume, and writes a snippet to the directory of its storage.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.api.request import Upload
from ...._foundation.cluster.site import require_own_storages
from ...._foundation.cluster.snippets.files import LocalDirectory, SnippetDirectory
from ...._foundation.cluster.snippets.ssh import NodeDirectory, directory_of, read_login
from ...._foundation.cluster.snippets.visible import (
    SET_DIRECTORY,
    list_snippets,
    put_snippet,
    unchecked,
    why_elsewhere,
)
from ...._foundation.cluster.state import ClusterState, fetch_cluster_state
from ...._foundation.core import validate
from ...._foundation.core.errors import AlreadyExists, ConfigurationError, FleetError, TaskFailed
from ...._foundation.core.result import Result
from ...._foundation.entry.connection.pct import address_of
from ...._foundation.resource.engine import (
    Execution,
    FailureVerdict,
    StepResult,
    apply_plan,
    attempted,
    result_of,
)
from ...._foundation.resource.manage import Hooks, Managed
from ...._foundation.resource.plan import Plan, Step
from ..desired import DesiredFile
from ..download import (
    DOWNLOAD,
    FileOnStorage,
    choose_node,
    find_volume,
    require_listed_volume,
    require_version,
)
from ..precheck import require_unused_volume
from .desired import SNIPPETS, DesiredVolume, read_desired_volume, with_local_file
from .plan import (
    ALLOCATE,
    COPY,
    DELETE,
    DESCRIBE,
    PULL,
    UPLOAD,
    Row,
    describe,
    describe_row,
    find_template,
    plan_volume,
    require_copy,
    require_disk_name,
    require_images,
    require_space,
)


def run_volume(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make sure that a volume is on a storage, or is not; check mode writes nothing."""
    desired = with_local_file(read_desired_volume(params))
    timeout = validate.count(params.get("task_timeout"), 1800, "task_timeout")
    if desired.file.content == "import":
        require_version(desired.file, client.version())
    if desired.image:
        require_images(desired, client.version())
    cluster = fetch_cluster_state(client, ())
    node = choose_node(desired.file, cluster, client.node_preference)
    volume = replace(desired, file=replace(desired.file, node=node))
    place = cluster.storage_on(volume.file.storage, str(node))
    if place is not None:
        chains = place.kind == "lvm" and volume.is_new_disk and _has_chains(client, volume)
        require_disk_name(volume, place.kind, chains=chains)
    if desired.template and desired.present:
        volume = _with_template(client, volume)
    if desired.source and desired.present:
        name = volume.source.partition(":")[2].removeprefix(f"{volume.file.content}/")
        file = replace(volume.file, node=volume.source_node, name=name)
        choose_node(file, cluster)
        found = find_volume(client, file)
        volume = replace(volume, size=None if found is None else int(found.get("size") or 0))
    require_own_storages(client.connection, [volume.file.storage])
    if volume.data is not None and volume.file.content == SNIPPETS:
        files = _files_of(client, volume, params)
        return apply_plan(StoredSnippet(client, volume, volume.data, files), check_mode)
    return apply_plan(StoredVolume(client, volume, timeout, cluster), check_mode)


def _has_chains(client: Client, volume: DesiredVolume) -> bool:
    """Return whether snapshots of the disks of a storage are volumes; one request."""
    definition = client.get("storage", volume.file.storage)
    return str(definition.get("snapshot-as-volume-chain") or "0") == "1"


def _files_of(client: Client, volume: DesiredVolume, params: Mapping[str, Any]) -> SnippetDirectory:
    """Return the directory for snippets: mounted on this machine, or on the node over SSH."""
    if params.get("snippet_directory"):
        return LocalDirectory(str(params["snippet_directory"]))
    options, node = params["ssh"], str(volume.file.node)
    rows = [] if options.get("address") else client.get("cluster", "status")
    login = read_login(options, address_of(node, {}, rows))
    return NodeDirectory(login, directory_of(client.get("storage", volume.file.storage)))


def _with_template(client: Client, volume: DesiredVolume) -> DesiredVolume:
    """Return the volume of the newest version of its template."""
    rows = client.get(
        "nodes",
        str(volume.file.node),
        "aplinfo",
        attempted="Could not list the templates that the node can download",
    )
    name = find_template(rows or [], volume.template)
    return replace(volume, file=replace(volume.file, name=name), template=name)


class StoredVolume(FileOnStorage):
    """One volume on a storage."""

    def __init__(
        self, client: Client, volume: DesiredVolume, timeout: int, cluster: ClusterState
    ) -> None:
        self.volume = volume
        self.copies: frozenset[str] = frozenset()  # UPIDs of copies that ran before this one
        super().__init__(client, volume.file, timeout, (partial(plan_volume, volume), self._result))
        self.found = self.reading
        if not volume.present and self.found is None:
            require_listed_volume(client, volume.file)
        if self.plan.changed:
            step, file = self.plan.steps[0], volume.file
            if step.action == DELETE and not volume.force:
                require_unused_volume(client, file, cluster)
            place = cluster.storage_on(file.storage, str(file.node))
            if step.action == COPY:
                require_copy(volume, place, client.connection)
            if step.action in (UPLOAD, ALLOCATE, COPY):
                replaced = (self.found or {}).get("size") or 0
                free = None
                if place is not None and place.total:
                    free = place.total - place.used + replaced
                require_space(volume, free)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        volume = self.volume
        if any(step.action == UPLOAD for step in done):
            volume = replace(volume, force=False)
        return plan_volume(volume, self.read())

    def send(self, step: Step) -> StepResult:
        if step.action == COPY:
            self.copies = self._running_copies()
        if step.action != UPLOAD:
            return super().send(step)
        file = self.file
        result = self.client.task(
            step.method,
            *step.path,
            data=step.data,
            attempted=attempted(step.summary),
            timeout=self.timeout,
            confirm=self.confirm_write(step),
            upload=Upload(self.volume.src, file.name, f"{file.storage} on node {file.node}"),
        )
        return self.after_task(step, result)

    def find_task(self, step: Step) -> str | None:
        if step.action != COPY:
            return super().find_task(step)
        return min(self._running_copies() - self.copies, default=None)

    def _running_copies(self) -> frozenset[str]:
        """Return the UPIDs of the copies that run on the source node."""
        path = ("nodes", self.volume.source_node, "tasks")
        rows = self.client.get(*path, source="active", typefilter="imgcopy") or []
        return frozenset(str(row["upid"]) for row in rows if not row.get("endtime"))

    def is_done(self, step: Step, found: Row | None) -> bool:
        if found is None or step.action not in (COPY, UPLOAD, DESCRIBE):
            return (found is None) is (step.action == DELETE)
        if step.action == COPY:
            return bool(found.get("size") == self.volume.size)
        # A file of the same size that was there before may be the old one.
        is_same = step.action == UPLOAD and found == self.found
        return not is_same and not plan_volume(replace(self.volume, force=False), found).steps

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        if step.action == COPY and isinstance(error, TaskFailed):
            return FailureVerdict.STALE  # another run may have copied the volume first
        exists = step.action in (DOWNLOAD, ALLOCATE, PULL) and isinstance(error, AlreadyExists)
        return FailureVerdict.STALE if exists else FailureVerdict.FAILED

    def _result(self, plan: Plan, found: Row | None, execution: Execution | None) -> Result:
        if not self.volume.present:
            described = None
        elif execution is None:
            described = describe(self.volume, found)
            described.update((key, plan.after[key]) for key in described if key in plan.after)
        else:
            described = describe(self.volume, self.read())
        if execution is not None and not execution.done:
            plan = Plan()  # another run did it first
        return result_of(plan, {"volume": described}, execution)


class StoredSnippet(Managed[Result, "bytes | None"]):
    """One snippet. Its file is compared and written through `files`; PVE lists it."""

    client: Client

    def __init__(
        self, client: Client, volume: DesiredVolume, data: bytes, files: SnippetDirectory
    ) -> None:
        self.volume = replace(volume, size=len(data))
        self.data = data
        self.files = files
        self.found = find_volume(client, volume.file)
        plan = partial(plan_snippet, volume, data, files.path)
        read = partial(files.read, volume.file.name)
        super().__init__(client, read, plan, self._result, Hooks["bytes | None"]())
        if self.plan.changed or self.found is None:
            self.plan = replace(self.plan, warnings=self._require_place())

    def _require_place(self) -> tuple[str, ...]:
        """Return a warning if PVE does not list snippets to the caller.

        Raises ConfigurationError if the directory does not belong to the storage.
        """
        file = self.volume.file
        before = self.files.names()
        listed = list_snippets(self.client, str(file.node), file.storage)
        if listed is None:
            return (unchecked(self.volume.volid),)
        why = why_elsewhere(file.name, before, listed, self.files.names())
        if why:
            raise ConfigurationError(
                f"Snippet {self.volume.volid} was not written: {why}",
                SET_DIRECTORY,
                "snippet not visible",
            )
        return ()

    def send(self, step: Step) -> StepResult:
        """Write the file; no request is sent."""
        is_new = self.reading is None
        volume, node = self.volume.volid, str(self.volume.file.node)
        put_snippet(self.client, self.files, volume, node, self.data, is_new=is_new)
        return StepResult()

    def _result(self, plan: Plan, _now: bytes | None, execution: Execution | None) -> Result:
        found = self.found if execution is None else find_volume(self.client, self.volume.file)
        described = {**describe(self.volume, found), "size": self.volume.size}
        return result_of(plan, {"volume": described}, execution)


def plan_snippet(volume: DesiredVolume, data: bytes, place: str, now: bytes | None) -> Plan:
    """Return the plan of a snippet (pure). `now` is its present content, None if it is missing.

    A diff shows checksums, because user data may contain secrets.
    """
    if now == data:
        return Plan()
    summary = f"Write {volume.volid} to {place}"
    step = Step("snippet", summary, "FILE", (place, volume.file.name), is_task=False)
    before = {} if now is None else _checksum(volume, now)
    return Plan((step,), before, _checksum(volume, data))


def _checksum(volume: DesiredVolume, data: bytes) -> dict[str, str]:
    return {"volid": volume.volid, "sha256": hashlib.sha256(data).hexdigest()}


def run_volume_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the volumes of a storage, sorted by volume ID; two requests, nothing is written."""
    file = DesiredFile(
        storage=validate.storage(params["storage"]),
        content=params.get("content") or "",
        name="its volumes",
        node=params.get("node") or None,
    )
    cluster = fetch_cluster_state(client, ())
    file = replace(file, node=choose_node(file, cluster, client.node_preference))
    query = {"content": params.get("content"), "vmid": params.get("vmid")}
    path = ("nodes", str(file.node), "storage", file.storage, "content")
    rows = client.get(*path, params={key: one for key, one in query.items() if one is not None})
    place = {"storage": file.storage, "node": file.node}
    volumes = [{**place, **describe_row(row)} for row in rows or []]
    return Result(False, {"volumes": sorted(volumes, key=lambda one: str(one["volid"]))})
