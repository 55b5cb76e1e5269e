# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Guests that a restore is writing: they have neither name nor tags until it ends.

While Proxmox VE restores a backup, the configuration of the VM contains only C(memory: 128), and a
lock if the backup is on a backup server. A failed restore leaves this configuration, or an empty
one if it failed early (qemu-server: PVE/QemuServer.pm, restore_vma_archive and
restore_proxmox_backup_archive; PVE/API2/Qemu.pm, create_vm). At the beginning of a restore, and of
a container until its end, the configuration contains only a lock, as during a creation (also
pve-container: PVE/API2/LXC.pm, create_vm; PVE/LXC.pm, destroy_lxc_container). Only the task shows
the restore. It is visible to the user who started it, and with Sys.Audit on the node (pve-manager:
PVE/API2/Tasks.pm).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.clock import poll
from ...core.errors import BeingRestored, FleetError, RestoreFailed
from ...core.formatting import first_of
from ..state import ClusterState, VmRow, query_nodes, read_config
from ..tenant import tenants_of

if TYPE_CHECKING:
    from ...api.client import Client

_MIB = 1024**2
_WRITTEN = ({"memory": "128"}, {"memory": "128", "lock": "create"})
_LOCKED = {"lock": "create"}
# Memory, disk and lock that a node lists for a bare configuration. PVE lists its defaults for an
# empty one, and for a container without a root file system 4 GiB.
_BARE: Collection[tuple[int, int, str | None]] = (
    (128 * _MIB, 0, None),
    (128 * _MIB, 0, "create"),
    (512 * _MIB, 0, None),
    (512 * _MIB, 0, "create"),
    (512 * _MIB, 4096 * _MIB, "create"),
)
RESTORE_TASKS = frozenset(("qmrestore", "vzrestore"))
# During these tasks too, the configuration contains only a lock.
_CREATE_TASKS = frozenset(("qmcreate", "vzcreate"))
_AUDIT = "Sys.Audit"
_LONGEST_PAUSE = 1.0


def is_bare(config: Mapping[str, Any] | None) -> bool:
    """Return whether this is the configuration of a VM during or after a failed restore (pure).

    None stands for a VM that is gone.
    """
    return config is not None and _settings(config) in (*_WRITTEN, {})


def _is_being_written(config: Mapping[str, Any]) -> bool:
    """Return whether a restore can be writing the guest with this configuration (pure).

    Every VM that PVE creates has more options: a uuid, and how it was created (qemu-server:
    PVE/API2/Qemu.pm, create_vm).
    """
    return _settings(config) in (*_WRITTEN, _LOCKED)


def _settings(config: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(config[key]) for key in config.keys() - {"digest"}}


def seems_bare(row: VmRow) -> bool:
    """Return whether a restore can be writing the guest with this row (pure)."""
    if (row.memory, row.disk, row.lock) not in _BARE:
        return False
    return not any((row.tags, row.own_name, row.template, row.planned))


def suspects(
    cluster: ClusterState, tag: str | None, prefix: str, known: Collection[int] = ()
) -> list[VmRow]:
    """Return the VMs that seem bare and may belong to that tenant, sorted by VMID (pure).

    VMs whose VMIDs are `known` are left out. A VM keeps its pool during a restore: it does not
    belong to the tenant if only other tenants have VMs in that pool. Without a tenant, all VMs that
    seem bare are returned.
    """
    bare = {row.vmid: row for row in filter(seems_bare, cluster.vms.values())}
    if not bare:
        return []
    others = _pools_of_others(cluster, tag, prefix)
    rows = [bare[vmid] for vmid in sorted(bare.keys() - set(known))]
    return [row for row in rows if row.pool not in others]


def with_bare_queried(
    client: Client, cluster: ClusterState, tag: str | None, prefix: str
) -> ClusterState:
    """Return the cluster state with the rows of VMs that may be bare from their nodes; one request
    for each node of such a VM.

    The listing shows the current lock and tags of a VM, but its name and memory are some seconds
    old (pve-manager: PVE/API2/Cluster.pm, resources). So a new restore is listed as a VM without
    tags that still has its name. A running VM is not being restored.
    """
    others = _pools_of_others(cluster, tag, prefix)
    nodes: set[str] = set()
    for row in cluster.vms.values():
        has_more = bool(row.tags) or row.template or row.planned or row.status == "running"
        if has_more or row.pool in others or row.lock not in (None, "create"):
            continue
        nodes.add(row.node)
    return query_nodes(client, cluster, nodes - cluster.queried_nodes)


def _pools_of_others(cluster: ClusterState, tag: str | None, prefix: str) -> set[str | None]:
    own: set[str | None] = {None}
    others: set[str | None] = set()
    for row in cluster.vms.values():
        owners = tenants_of(row.tags, prefix)
        if tag in (None, *owners):
            own.add(row.pool)
        elif owners:
            others.add(row.pool)
    return others - own


def remark_on_restored(cluster: ClusterState) -> str:
    """Return the addition to a message about an unknown name if a VM seems restored (pure)."""
    places = [_label(row.path) for row in suspects(cluster, None, "")]
    if not places:
        return ""
    return f"; it may be what is being restored as {first_of(places)}"


def await_restored(
    client: Client, path: tuple[str | int, ...], *, seconds: float, attempted: str
) -> dict[str, Any] | None:
    """Return the configuration of a VM once no restore writes it; None if the VM is gone.

    `path` is the VM's path in the API. A returned configuration that is bare was left by a failed
    restore. Raises BeingRestored after `seconds`, and at least one reading.
    """
    config, restore = _watch_restore(client.direct(), path, seconds)
    _require_no_restore(restore, attempted, path)
    return config


def _watch_restore(
    client: Client, path: tuple[str | int, ...], seconds: float
) -> tuple[dict[str, Any] | None, _Restore | None]:
    """Return the last configuration, None if the VM is gone, and the restore that writes it."""
    node, vmid = str(path[1]), int(path[3])
    config: dict[str, Any] | None = None
    restore: _Restore | None = None
    for _remaining in poll(client.clock, seconds, longest=_LONGEST_PAUSE):
        config = read_config(client, path)
        if config is None or not _is_being_written(config):
            return config, None
        restore = _find_restore(client, vmid, node)
        if restore.is_finished:  # the configuration was read before the task
            return read_config(client, path), None
    return config, restore


def _require_no_restore(
    restore: _Restore | None, attempted: str, path: tuple[str | int, ...]
) -> None:
    if restore is not None:
        label, node = _label(path), path[1]
        answer = f"{label} is being restored, and has neither name nor tags until then"
        next_step = "Run this again when the restore is complete"
        if not restore.upid:
            answer = (
                f"{label} has neither name nor disks, as during a restore; its tasks are visible with"
                f" {_AUDIT} on /nodes/{node} only"
            )
            next_step = (
                f"Run this again later; if no restore of {_guest(path)} runs, one has failed: restore"
                " it again or remove it"
            )
        raise BeingRestored(
            f"{attempted}: {answer}",
            next_step,
            "being restored",
            upid=restore.upid,
            details={"vmid": path[3]},
        )


def require_restored(client: Client, rows: Iterable[VmRow], attempted: str) -> None:
    """Raise BeingRestored if a restore writes one of these VMs; one request for each, and two more
    for a VM that is bare.
    """
    for row in rows:
        await_restored(client, row.path, seconds=0, attempted=attempted)


def first_restored(client: Client, rows: Iterable[VmRow], attempted: str) -> BeingRestored | None:
    """Return the error about the first VM that a restore writes; as many requests as
    `require_restored`.
    """
    try:
        require_restored(client, rows, attempted)
    except BeingRestored as error:
        return error
    return None


def find_restored(client: Client, rows: Iterable[VmRow]) -> dict[int, str]:
    """Return a sentence about each of these VMs that a restore writes, by VMID; as many requests as
    `require_restored`. VMs that cannot be read are left out.
    """
    found: dict[int, str] = {}
    for row in rows:
        try:
            require_restored(client, [row], "")
        except BeingRestored as error:
            found[row.vmid] = error.message.rstrip(".")
        except FleetError:
            continue  # such as a VM on a node that is down
    return found


def require_no_restore(config: Mapping[str, Any], attempted: str, vmid: int, node: str) -> None:
    """Raise BeingRestored for a VM that is bare when it is read again before a write (pure)."""
    if not is_bare(config):
        return
    raise BeingRestored(
        f"{attempted}: VM {vmid} on node {node} has neither name nor disks any more: a restore "
        "has started",
        "Run this again when the restore is complete",
        "being restored",
        details={"vmid": vmid},
    )


def require_restore_succeeded(
    config: Mapping[str, Any] | None, attempted: str, vmid: int, node: str
) -> None:
    """Raise RestoreFailed for a VM that a failed restore left without name and disks (pure)."""
    if not is_bare(config):
        return
    raise RestoreFailed(
        f"{attempted}: VM {vmid} on node {node} has the VMID that follows from this name, and "
        "neither name nor disks: a restore of it has failed",
        f"Restore the backup again, or remove VM {vmid}",
        "restore failed",
        details={"vmid": vmid},
    )


@dataclass(frozen=True)
class _Restore:
    """The state of a restore in the tasks of a node. The task can be hidden from the caller."""

    upid: str = ""
    is_finished: bool = False


def _find_restore(client: Client, vmid: int, node: str) -> _Restore:
    """Return the state of the restore of a guest; one or two requests."""
    tasks = client.get("nodes", node, "tasks", vmid=vmid, source="active")
    for task in tasks:
        if task.get("endtime"):
            continue
        if task["type"] in RESTORE_TASKS:
            return _Restore(upid=str(task["upid"]))
        if task["type"] in _CREATE_TASKS:
            return _Restore(is_finished=True)
    path = f"/nodes/{node}"
    held = client.get("access", "permissions", path=path)
    return _Restore(is_finished=_AUDIT in held.get(path, {}))


def _label(path: tuple[str | int, ...]) -> str:
    return f"{_guest(path)} on node {path[1]}"


def _guest(path: tuple[str | int, ...]) -> str:
    noun = "container" if path[2] == "lxc" else "VM"
    return f"{noun} {path[3]}"
