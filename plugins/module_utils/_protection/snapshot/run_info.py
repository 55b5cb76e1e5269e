# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot_info: the tree of snapshots of one VM or of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.cluster.find.restoring import find_restored
from ..._foundation.cluster.state import fetch_cluster_state
from ..._foundation.core.errors import FleetError, ForeignTenant, UnknownVm
from ..._foundation.core.parallel import side_by_side
from ..._foundation.core.result import Result
from ..._guests.kinds.words import kind_name
from .describe import describe_vm
from .model import SnapshotVm
from .read import read_vm
from .select import GuestTarget, is_selection, restored_rows, targets
from .storages import disks_of

if TYPE_CHECKING:
    from ..._foundation.api.client import Client


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs with their snapshots. Nothing is written, with or without check mode.

    A VM that cannot be read, for example on an offline node, is returned with its error; if it is
    the only VM, the task fails.
    """
    by_selection = is_selection(params)
    cluster = fetch_cluster_state(client)
    owner = owner_of(params)
    chosen = targets(client, cluster, params)
    details = bool(params.get("details"))

    def read_target(target: GuestTarget) -> dict[str, Any] | None:
        try:
            vm = read_vm(client, target.require_row(), cluster)
            owner.require_owned(vm.label, vm.tags, unnamed=vm.unnamed)
            target.require_name(vm.label, vm.name)
            described = {**describe_vm(vm, prefix=owner.prefix), "error": None}
            if details:
                _add_sizes(client, vm, described)
            return described
        except FleetError as error:
            if by_selection and isinstance(error, (ForeignTenant, UnknownVm)):
                return None  # it left the tenant or was removed after the selection
            if len(chosen) == 1:
                raise
            return _unread(target, owner, error)

    read = side_by_side(read_target, chosen)
    vms = [vm for vm in read if vm is not None]
    warnings = [vm["error"]["msg"] for vm in vms if vm["error"]]
    if by_selection:
        warnings += find_restored(client, restored_rows(client, cluster, owner)).values()
    return Result(False, {"vms": vms}, warnings=tuple(warnings))


def _unread(target: GuestTarget, owner: OwnerScope, error: FleetError) -> dict[str, Any]:
    """Return the visible values of a VM that could not be read."""
    described: dict[str, Any] = {
        "kind": None,
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
        described.update(kind=kind_name(row.type), vmid=row.vmid, name=row.name, node=row.node)
        described.update(tags=sorted(row.tags), status=row.status, lock=row.lock)
    return described


def _add_sizes(client: Client, vm: SnapshotVm, described: dict[str, Any]) -> None:
    """Add the sizes of the disks at the time of each snapshot, and of the volume of its memory."""
    volumes: dict[str, str] = {}
    for row in described["snapshots"]:
        name = row["name"]
        answer = client.get(*vm.path, "snapshot", name, "config")
        config = {key: str(value) for key, value in answer.items()}
        row["disks"] = [
            {"name": disk.slot, "volume": disk.volume, "storage": disk.storage, "size": disk.size}
            for disk in disks_of(vm.kind.disks_in(config), {})
        ]
        volumes[name] = config.get("vmstate", "")
    storages = {volume.partition(":")[0] for volume in volumes.values() if volume}
    sizes: dict[str, int] = {}
    for storage in sorted(storages):
        path = ("nodes", vm.node, "storage", storage, "content")
        content = client.get(*path, vmid=vm.vmid) or []
        for item in content:
            sizes[item["volid"]] = int(item.get("size") or 0)
    for row in described["snapshots"]:
        volume = volumes[row["name"]]
        row["vmstate_size"] = sizes.get(volume)
