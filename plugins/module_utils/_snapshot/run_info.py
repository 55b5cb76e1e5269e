# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot_info: the tree of snapshots of one VM or of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.state import ClusterState, fetch_cluster_state
from .._core.errors import FleetError
from .._core.parallel import side_by_side
from .._core.quantities import read_size
from .._core.result import Result
from .._vm.config.actual import drives
from .describe import describe_machine
from .model import Machine
from .read import read_machine
from .select import Owner, Target, is_selection, owner_of, targets
from .storages import disks_of

if TYPE_CHECKING:
    from .._api.client import Client

_WORKERS = 8


def run(
    params: Mapping[str, Any],
    client: Client,
    check_mode: bool = False,
) -> Result:
    """Return the VMs with their snapshots. Nothing is written, in check mode or out of it.

    A VM that cannot be read, such as one on a node that is down, has its error instead; when it is
    the only one, the task fails.
    """
    is_selection(params)  # raises for a task without a VM
    cluster = fetch_cluster_state(client)
    owner = owner_of(params)
    chosen = targets(client, cluster, params)
    details = bool(params.get("details"))

    def read_target(target: Target) -> dict[str, Any]:
        try:
            machine = _read(client, cluster, owner, target)
            shown = {**describe_machine(machine, prefix=owner.prefix), "error": None}
            if details:
                _add_sizes(client, machine, shown)
            return shown
        except FleetError as error:
            if len(chosen) == 1:
                raise
            return _unread(target, owner, error)

    vms = side_by_side(read_target, chosen, _WORKERS)
    warnings = [vm["error"]["msg"] for vm in vms if vm["error"]]
    return Result(False, {"vms": vms}, warnings=tuple(warnings))


def _read(
    client: Client,
    cluster: ClusterState,
    owner: Owner,
    target: Target,
) -> Machine:
    if target.row is None:
        raise target.error or FleetError()
    machine = read_machine(client, target.row, cluster)
    owner.guard(machine.label, machine.tags, machine.vmid)
    target.check(machine.label, machine.name)
    return machine


def _unread(
    target: Target,
    owner: Owner,
    error: FleetError,
) -> dict[str, Any]:
    """Return what may be shown of a VM that could not be read."""
    shown: dict[str, Any] = {
        "vmid": None,
        "name": target.label,
        "node": None,
        "tenant": None,
        "tags": [],
        "status": None,
        "lock": None,
        "snapshots": None,
        "current": None,
        "error": {**error.as_result()["error"], "msg": error.message},
    }
    row = target.row
    if row is not None and owner.may_see(row, error):
        shown["vmid"] = row.vmid
        shown["name"] = row.name
        shown["node"] = row.node
        shown["tags"] = sorted(row.tags)
        shown["status"] = row.status
        shown["lock"] = row.lock
    return shown


def _add_sizes(
    client: Client,
    machine: Machine,
    shown: dict[str, Any],
) -> None:
    """Add the sizes: of each disk as it was, and of the volume with the memory."""
    volumes: dict[str, str] = {}
    for row in shown["snapshots"]:
        name = row["name"]
        answer = client.get(*machine.path, "snapshot", name, "config")
        config = {key: str(value) for key, value in answer.items()}
        row["disks"] = sizes_of(config)
        volumes[name] = config.get("vmstate", "")
    storages = {volume.partition(":")[0] for volume in volumes.values() if volume}
    sizes: dict[str, int] = {}
    for storage in sorted(storages):
        path = ("nodes", machine.node, "storage", storage, "content")
        content = client.get(*path, vmid=machine.vmid) or []
        for item in content:
            sizes[item["volid"]] = int(item.get("size") or 0)
    for row in shown["snapshots"]:
        volume = volumes[row["name"]]
        row["vmstate_size"] = sizes.get(volume)


def sizes_of(config: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the disks of a snapshot's configuration with their sizes in bytes (pure)."""
    sizes = []
    sub_keys = drives(config)
    for disk in disks_of(config, {}):
        sizes.append(
            {
                "name": disk.slot,
                "volume": disk.volume,
                "storage": disk.storage,
                "size": read_size(sub_keys[disk.slot].get("size")),
            }
        )
    return sizes
