# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module storage_download: downloads a file to a storage, or removes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.code_checks import owner_of
from ..._foundation.api.access.listed import Way, require_listed
from ..._foundation.api.interface import Api
from ..._foundation.cluster.placement import require_node, require_storage, unknown_storage
from ..._foundation.cluster.site import require_own_storages
from ..._foundation.cluster.state import ClusterState, StorageRow, fetch_cluster_state
from ..._foundation.core import validate
from ..._foundation.core.errors import (
    AlreadyExists,
    ConfigurationError,
    DownloadFailed,
    FleetError,
    NotFound,
    NotSupported,
)
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import Execution, StepResult, apply_plan, attempted, result_of
from ..._foundation.resource.manage import Hooks, Managed, Report
from ..._foundation.resource.plan import Plan, Step
from .desired import ENDINGS, DesiredFile, read_desired_file
from .precheck import require_unused_volume

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

DOWNLOAD = "download"
Row = Mapping[str, Any]
Planned = tuple[Callable[["Row | None"], Plan], Report["Row | None", Result]]
"""Returns the plan from PVE's row of a volume, and the report after it."""
# The first version whose storages can hold images to import (content=import).
_IMPORT_SINCE = (8, 3)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Make sure that a file is on a storage, or is not; check mode writes nothing."""
    desired = read_desired_file(params)
    timeout = validate.count(params.get("task_timeout"), 1800, "task_timeout")
    if desired.content == "import":
        require_version(desired, client.version())
    cluster = fetch_cluster_state(client, ())
    node = choose_node(desired, cluster, client.node_preference)
    file = replace(desired, node=node)
    require_own_storages(client.connection, [file.storage])
    is_wanted = params.get("state") != "absent"

    def report(plan: Plan, found: Row | None, execution: Execution | None) -> Result:
        if execution is not None:
            found = find_volume(client, file) if is_wanted else None
            plan = plan if execution.done else Plan()  # else another run did it first
        is_shown = is_wanted or (execution is None and plan.changed)
        volume = _described(file, found) if is_shown else None
        return result_of(plan, {"volume": volume}, execution)

    plan = partial(plan_present if is_wanted else plan_absent, file)
    stored = FileOnStorage(client, file, timeout, (plan, report))
    if not is_wanted and stored.reading is None:
        require_listed_volume(client, file)
    if stored.plan.changed and not (is_wanted or params.get("force")):
        require_unused_volume(client, file, cluster)
    return apply_plan(stored, check_mode)


class FileOnStorage(Managed[Result, "Row | None"]):
    """A file on a storage, which a node downloads or removes."""

    client: Client

    def __init__(self, client: Client, file: DesiredFile, timeout: int, planned: Planned) -> None:
        self.file = file
        hooks = Hooks["Row | None"](timeout, (AlreadyExists,))
        super().__init__(client, partial(find_volume, client, file), *planned, hooks)

    def send(self, step: Step) -> StepResult:
        """Send a step, or wait for the same download if an earlier run has left it running."""
        running = find_running(self.client, self.file) if step.action == DOWNLOAD else None
        if running is None:
            return super().send(step)
        result = self.client.wait(running, timeout=self.timeout, attempted=attempted(step.summary))
        return self.after_task(step, result)

    def find_task(self, step: Step) -> str | None:
        """Return the UPID of the running task of a step, None if no such task is known."""
        return find_running(self.client, self.file) if step.action == DOWNLOAD else None

    def is_done(self, step: Step, found: Row | None) -> bool:
        """Return whether PVE's row of the volume shows the effect of a step."""
        return (found is None) is (step.method == "DELETE")

    def confirm_write(self, step: Step) -> Callable[[], str | None]:
        """Return the check after a lost answer: the task's UPID, the finished volume, or None."""

        def confirm() -> str | None:
            upid = self.find_task(step)
            if upid is None and self.is_done(step, find_volume(self.client, self.file)):
                return self.file.volume
            return upid

        return confirm

    def failure(self, error: FleetError, done: Sequence[Step]) -> FleetError:
        if isinstance(error, DownloadFailed) and self.file.url:
            check = f"Check the URL, and that node {self.file.node} reaches it"
            error = error.on(next_step=f"{check}; error.log has the details")
        return super().failure(error, done)


def choose_node(file: DesiredFile, cluster: ClusterState, preferred: Sequence[str] = ()) -> str:
    """Return the node that downloads: the given node, or else a node with the storage (pure).

    Of several nodes, the first one in `preferred` is used, else the first by name. Raises
    ConfigurationError for a storage that is missing or does not accept the content.
    """
    if file.node:
        require_node(cluster, file.node)
        known = cluster.storage_on(file.storage, file.node)
        content = file.content or next(iter(known.content if known else ()), "")
        require_storage(cluster, file.storage, file.node, content)
        return file.node
    rows = [row for row in cluster.storages if row.storage == file.storage]
    able: list[str] = []
    for row in rows:
        node = cluster.nodes.get(row.node)
        is_online = node is not None and node.online
        if is_online and row.available and (not file.content or file.content in row.content):
            able.append(row.node)
    if not able:
        raise _unusable(file, cluster, rows)
    for name in preferred:
        if name in able:
            return name
    return min(able)


def _unusable(
    file: DesiredFile, cluster: ClusterState, rows: Sequence[StorageRow]
) -> ConfigurationError:
    """Return the error for a storage that no node can use; `rows` are the rows of the storage."""
    attempted = f"Storage '{file.storage}' could not be used for {file.name}"
    if not rows:
        known = {row.storage for row in cluster.storages}
        return unknown_storage(attempted, file.storage, "the cluster", known)
    content: set[str] = set()
    content = content.union(*(row.content for row in rows))
    taken = ", ".join(sorted(filter(None, content)))
    return ConfigurationError(
        f"{attempted}: it takes {taken}, not {file.content}, or no node with it is online",
        f"Allow content {file.content} on it, or choose another storage",
        "storage content",
    )


def plan_present(file: DesiredFile, found: Mapping[str, Any] | None) -> Plan:
    """Return the steps that download the file (pure). An existing file of that name is kept.

    Raises NotFound if the file does not exist and has no URL.
    """
    if found is not None:
        return Plan()
    if not file.url:
        raise NotFound(
            f"{file.volume} was not found on node {file.node}: there is no such file, and no URL "
            "to fetch it from",
            "Give source_url and checksum, or upload the file",
            "unknown volume",
        )
    data: dict[str, Any] = {"content": file.content, "filename": file.name, "url": file.url}
    after = {"volid": file.volume, "node": file.node, "url": file.formatted_url}
    warnings: tuple[str, ...] = ()
    if file.checksum:
        data["checksum"] = file.checksum
        data["checksum-algorithm"] = file.algorithm
        after["checksum"] = f"{file.algorithm}:{file.checksum}"
    else:
        warning = (
            f"{file.formatted_url} is downloaded without a checksum, "
            "so damage or manipulation of the file goes unnoticed: "
            "set checksum to the one that its publisher gives"
        )
        warnings = (warning,)
    if file.compression:
        data["compression"] = file.compression
    if not file.verify:
        data["verify-certificates"] = 0
    path = ("nodes", str(file.node), "storage", file.storage, "download-url")
    summary = f"Download {file.formatted_url} to {file.volume} on node {file.node}"
    step = Step(DOWNLOAD, summary, "POST", path, data)
    return Plan((step,), {}, after, warnings=warnings)


def plan_absent(file: DesiredFile, found: Mapping[str, Any] | None) -> Plan:
    """Return the plan that removes the file (pure)."""
    if found is None:
        return Plan()
    path = ("nodes", str(file.node), "storage", file.storage, "content", file.volume)
    step = Step("remove", f"Remove {file.volume} from node {file.node}", "DELETE", path)
    return Plan((step,), {"volid": file.volume, "node": file.node, "size": found.get("size")}, {})


def require_version(file: DesiredFile, version: tuple[int, int]) -> None:
    """Raise NotSupported if PVE has no content type for images to import."""
    if version >= _IMPORT_SINCE:
        return
    major, minor = version
    raise NotSupported(
        f"{file.name} could not be put on storage '{file.storage}': PVE {major}.{minor} has no "
        "storage content for images to import, it came with 8.3",
        "Clone an existing template, or create one on a node with qm disk import",
        "content import",
    )


def find_running(client: Client, file: DesiredFile) -> str | None:
    """Return the UPID of a running download of this file; PVE names the task after the file."""
    path = ("nodes", str(file.node), "tasks")
    rows = client.get(*path, source="active", typefilter="download") or []
    for row in rows:
        if row.get("id") == file.name and not row.get("endtime"):
            return str(row["upid"])
    return None


def _described(file: DesiredFile, found: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the file as the module reports it."""
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


def require_listed_volume(client: Api, file: DesiredFile) -> None:
    """Raise PermissionDenied if PVE hides a volume from the caller, who may read the listing; one
    request (pve-storage: PVE/Storage.pm, check_volume_access).
    """
    if file.content in ENDINGS:  # whoever may read the listing sees them
        return
    path, owner = f"/storage/{file.storage}", owner_of(file.volume)
    ways: list[Way] = [((path, "Datastore.Allocate"),)]
    if owner:
        on_storage, on_guest = "Datastore.Audit", "VM.Config.Disk"
        if file.content == "backup":
            on_storage, on_guest = "Datastore.AllocateSpace", "VM.Backup"
        ways.insert(0, ((path, on_storage), (f"/vms/{owner}", on_guest)))
    require_listed(client.privileges(), file.volume, *ways)


def find_volume(client: Api, file: DesiredFile) -> dict[str, Any] | None:
    """Return PVE's row of the volume, or None."""
    query = {} if file.content == "images" else {"content": file.content}
    path = ("nodes", str(file.node), "storage", file.storage, "content")
    rows: list[dict[str, Any]] = client.get(*path, params=query) or []
    for row in rows:
        if row.get("volid") == file.volume:
            return row
    return None
