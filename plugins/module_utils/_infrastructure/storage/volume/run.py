# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module volume: uploads, downloads, allocates, copies, changes or deletes a volume."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.api.request import Upload
from ...._foundation.cluster.site import require_own_storages
from ...._foundation.cluster.snippets.files import LocalDirectory, SnippetDirectory
from ...._foundation.cluster.snippets.ssh import NodeDirectory, directory_of, read_login
from ...._foundation.cluster.state import ClusterState, fetch_cluster_state
from ...._foundation.core import validate
from ...._foundation.core.errors import AlreadyExists, FleetError, TaskFailed
from ...._foundation.core.result import Result
from ...._foundation.entry.connection.pct import address_of
from ...._foundation.resource.engine import Resource, apply_plan
from ...._foundation.resource.execute import Execution, FailureVerdict, StepResult, attempted
from ...._foundation.resource.plan import Plan, Step
from ...._foundation.resource.result import result_of
from ..download import DOWNLOAD, choose_node, find_running, require_version
from ..precheck import require_unused_volume
from .copy import COPY, require_copy
from .desired import DesiredVolume, read_desired_volume, with_local_file
from .plan import (
    ALLOCATE,
    DELETE,
    DESCRIBE,
    PULL,
    UPLOAD,
    Row,
    describe,
    find_template,
    plan_volume,
    require_disk_name,
    require_images,
    require_space,
)
from .read import find_volume
from .snippet import StoredSnippet
from .snippet_options import SNIPPETS


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
        volume = _with_source(client, volume, cluster)
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


def _with_source(client: Client, volume: DesiredVolume, cluster: ClusterState) -> DesiredVolume:
    """Return the volume with the size of its source, or with None if the source is missing."""
    name = volume.source.partition(":")[2].removeprefix(f"{volume.file.content}/")
    file = replace(volume.file, node=volume.source_node, name=name)
    choose_node(file, cluster)
    found = find_volume(client, file)
    return replace(volume, size=None if found is None else int(found.get("size") or 0))


class StoredVolume(Resource[Result]):
    """One volume on a storage."""

    client: Client

    def __init__(
        self, client: Client, volume: DesiredVolume, timeout: int, cluster: ClusterState
    ) -> None:
        self.client = client
        self.volume = volume
        self.timeout = timeout
        self.copies: frozenset[str] = frozenset()  # UPIDs of copies that ran before this one
        self.found = find_volume(client, volume.file)
        self.plan = plan_volume(volume, self.found)
        if self.plan.changed:
            self._require_possible(cluster)

    def _require_possible(self, cluster: ClusterState) -> None:
        """Raise FleetError for the removal of a used volume, a copy that PVE cannot make, or a
        volume without space for it; called before the first write.
        """
        step, file = self.plan.steps[0], self.volume.file
        if step.action == DELETE and not self.volume.force:
            require_unused_volume(self.client, file, cluster)
        place = cluster.storage_on(file.storage, str(file.node))
        if step.action == COPY:
            require_copy(self.volume, place, self.client.connection)
        if step.action in (UPLOAD, ALLOCATE, COPY):
            replaced = (self.found or {}).get("size") or 0
            free = None if place is None or not place.total else place.total - place.used + replaced
            require_space(self.volume, free)

    def replan(self, done: Sequence[Step], uncertain: bool) -> Plan:
        volume = self.volume
        if any(step.action == UPLOAD for step in done):
            volume = replace(volume, force=False)
        return plan_volume(volume, find_volume(self.client, volume.file))

    def send(self, step: Step) -> StepResult:
        """Send a step, or wait for the same download if an earlier run has left it running."""
        running = find_running(self.client, self.volume.file) if step.action == DOWNLOAD else None
        if running is not None:
            found = self.client.wait(
                running, timeout=self.timeout, attempted=attempted(step.summary)
            )
            return self.after_task(step, found)
        if step.action == COPY:
            self.copies = self._running_copies()
        if step.action != UPLOAD:
            return super().send(step)
        file = self.volume.file
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

    def confirm_write(self, step: Step) -> Callable[[], Any]:
        """Return the check after a lost answer: the task's UPID, the finished volume, or None."""

        def confirm() -> str | None:
            if step.action == DOWNLOAD:
                running = find_running(self.client, self.volume.file)
                if running is not None:
                    return running
            if step.action == COPY:
                new = self._running_copies() - self.copies
                if new:
                    return min(new)
            found = find_volume(self.client, self.volume.file)
            return self.volume.volid if self._is_done(step, found) else None

        return confirm

    def _running_copies(self) -> frozenset[str]:
        """Return the UPIDs of the copies that run on the source node."""
        path = ("nodes", self.volume.source_node, "tasks")
        rows = self.client.get(*path, source="active", typefilter="imgcopy") or []
        return frozenset(str(row["upid"]) for row in rows if not row.get("endtime"))

    def _is_done(self, step: Step, found: Row | None) -> bool:
        if step.action == DELETE:
            return found is None
        if found is None:
            return False
        if step.action == COPY:
            return bool(found.get("size") == self.volume.size)
        if step.action in (UPLOAD, DESCRIBE):
            # A file of the same size that was there before may be the old one.
            is_same = step.action == UPLOAD and found == self.found
            return not is_same and not plan_volume(replace(self.volume, force=False), found).steps
        return True

    def classify_failure(self, step: Step, error: FleetError) -> FailureVerdict:
        if step.action == COPY and isinstance(error, TaskFailed):
            return FailureVerdict.STALE  # another run may have copied the volume first
        exists = step.action in (DOWNLOAD, ALLOCATE, PULL) and isinstance(error, AlreadyExists)
        return FailureVerdict.STALE if exists else FailureVerdict.FAILED

    def preview(self) -> Result:
        return result_of(self.plan, {"volume": self._foreseen()})

    def _foreseen(self) -> dict[str, Any] | None:
        """Return the volume as it will be after the plan."""
        if not self.volume.present:
            return None
        described = describe(self.volume, self.found)
        known = {key: value for key, value in self.plan.after.items() if key in described}
        return {**described, **known}

    def report(self, execution: Execution) -> Result:
        plan = self.plan if execution.done else Plan()  # else another run did it first
        volume = None
        if self.volume.present:
            volume = describe(self.volume, find_volume(self.client, self.volume.file))
        return result_of(plan, {"volume": volume}, execution)
