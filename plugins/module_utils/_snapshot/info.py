# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module snapshot_info: the tree of snapshots of one VM or of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.picture import Picture, read_picture
from .._core.errors import FleetError
from .._core.parallel import side_by_side
from .._core.quantities import read_size
from .._core.result import Result
from .describe import describe_machine
from .model import Machine
from .read import read_machine
from .select import Owner, Target, is_selection, owner_of, targets
from .storages import disks_of

if TYPE_CHECKING:
    from .._api.client import Client

_WORKERS = 8


def gather(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the VMs that are meant with their snapshots. Nothing is written, in check mode or out of it.

    A VM that cannot be read, such as one on a node that is down, has its error instead; the only one that is meant
    fails the task.
    """
    is_selection(params)  # refuses a task that means no VM
    picture = read_picture(client)
    owner = owner_of(params)
    meant = targets(client, picture, params)

    def one(target: Target) -> dict[str, Any]:
        try:
            return _one(client, picture, owner, target, bool(params.get("details")))
        except FleetError as error:
            if len(meant) == 1:
                raise
            return _unread(target, owner, error)

    vms = side_by_side(one, meant, _WORKERS)
    warnings = [vm["error"]["msg"] for vm in vms if vm["error"]]
    return Result(False, {"vms": vms}, warnings=tuple(warnings))


def _one(client: Client, picture: Picture, owner: Owner, target: Target, details: bool) -> dict[str, Any]:
    if target.row is None:
        raise target.error or FleetError()
    machine = read_machine(client, target.row, picture)
    owner.guard(machine.label, machine.tags)
    target.check(machine.label, machine.name)
    shown = {**describe_machine(machine, prefix=owner.prefix), "error": None}
    if details:
        _add_sizes(client, machine, shown)
    return shown


def _unread(target: Target, owner: Owner, error: FleetError) -> dict[str, Any]:
    row = target.row if target.row is not None and owner.may_see(target.row, error) else None
    return {
        "vmid": row.vmid if row else None,
        "name": row.name if row else target.said,
        "node": row.node if row else None,
        "tenant": None,
        "tags": sorted(row.tags) if row else [],
        "status": row.status if row else None,
        "lock": row.lock if row else None,
        "snapshots": None,
        "current": None,
        "error": {**error.as_result()["error"], "msg": error.message},
    }


def _add_sizes(client: Client, machine: Machine, shown: dict[str, Any]) -> None:
    """Add what PVE knows of sizes: each disk as it was, and the volume with the memory."""
    base = ("nodes", machine.node, "qemu", machine.vmid, "snapshot")
    volumes: dict[str, str] = {}
    for row in shown["snapshots"]:
        config = {key: str(value) for key, value in client.get(*base, row["name"], "config").items()}
        row["disks"] = sizes_of(config)
        row["vmstate_size"] = None
        if config.get("vmstate"):
            volumes[row["name"]] = config["vmstate"]
    known: dict[str, int] = {}
    for storage in sorted({volume.partition(":")[0] for volume in volumes.values()}):
        content = client.get("nodes", machine.node, "storage", storage, "content", vmid=machine.vmid) or []
        known.update({item["volid"]: int(item.get("size") or 0) for item in content})
    for row in shown["snapshots"]:
        row["vmstate_size"] = known.get(volumes.get(row["name"], ""))


def sizes_of(config: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the disks of a snapshot's configuration with their sizes in bytes (pure)."""
    return [
        {"name": disk.slot, "volume": disk.volume, "storage": disk.storage, "size": _size(config[disk.slot])}
        for disk in disks_of(config, {})
    ]


def _size(drive: str) -> int | None:
    found = [part.partition("=")[2] for part in drive.split(",") if part.startswith("size=")]
    return read_size(found[0]) if found else None
