"""The disks of nodes, and the two tasks that prepare one.

Source: pve-storage, PVE/API2/Disks.pm (list, initgpt, wipe_disk) and PVE/Diskmanage.pm (get_disks,
disk_is_used, is_mounted, has_holder, wipe_blockdev).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..core.tasks import Task
from ..errors import PveError
from ..schema.units import parse_size

Disk = dict[str, Any]

_DISK: Disk = {
    "vendor": "ATA",
    "model": "Demo_Disk",
    "serial": "unknown",
    "gpt": 0,
    "rpm": 0,
    "type": "ssd",
    "wwn": "unknown",
    "health": "PASSED",
    "wearout": 97,
    "osds": [],
    "used": None,
    "partitions": [],
}


def add_disks(info: NodeInfo, entries: Iterable[Mapping[str, Any]]) -> None:
    """Give a node the disks of its entry in the cluster file."""
    info.disks = {}
    info.on_disks = {kind: {} for kind in ("zfs", "lvm", "lvmthin", "directory")}
    for entry in entries:
        disk = {**_DISK, **entry, "size": _bytes(entry["size"])}
        disk["partitions"] = [
            {**part, "size": _bytes(part["size"]), "devpath": _part(disk["devpath"], number)}
            for number, part in enumerate(entry.get("partitions", ()), 1)
        ]
        info.disks[disk["devpath"]] = disk
        for part in [disk, *disk["partitions"]]:
            if part.get("vg"):
                group = info.on_disks["lvm"].setdefault(part["vg"], {"pvs": [], "lvcount": 0})
                group["pvs"].append(part["devpath"])
                group["lvcount"] = int(part.get("lvcount", 0))
            if part.get("thin"):
                row = {"lv": part["thin"], "vg": part["vg"], "lv_size": part["size"] // 2}
                info.on_disks["lvmthin"][f"{part['vg']}/{part['thin']}"] = row


def _bytes(value: Any) -> int:
    if isinstance(value, int):
        return value
    return parse_size(str(value).replace("iB", "")) or 0


def _part(devpath: str, number: int) -> str:
    return f"{devpath}p{number}" if devpath[-1].isdigit() else f"{devpath}{number}"


def found(node: NodeInfo, path: str) -> Disk:
    """The disk with this device path or this link (verify_blockdev_path)."""
    for disk in node.disks.values():
        if path in (disk["devpath"], disk.get("by_id_link")):
            return disk
    raise PveError("not a valid block device\n" if path.startswith("/dev/") else f"{path}\n")


def use_of(disk: Disk) -> str | None:
    """The use of a disk as `disk_is_used` sees it, with its partitions."""
    if disk["partitions"]:
        return "partitions"
    used: str | None = disk["used"]
    return used


def _row(disk: Disk, *, smart: bool, partitions: bool) -> dict[str, Any]:
    used = use_of(disk)
    if used == "partitions" and not partitions:
        used = next((part["used"] for part in disk["partitions"] if part.get("used")), used)
    osds = disk["osds"]
    row = {
        **{key: disk[key] for key in ("vendor", "model", "size", "serial", "gpt", "rpm", "type")},
        "wwn": disk["wwn"],
        "devpath": disk["devpath"],
        "health": disk["health"] if smart else "UNKNOWN",
        "wearout": disk["wearout"] if smart and disk["type"] in ("ssd", "nvme") else "N/A",
        "osdid": osds[-1] if osds else -1,
        "osdid-list": osds or None,
    }
    if disk.get("by_id_link"):
        row["by_id_link"] = disk["by_id_link"]
    if used:
        row["used"] = used
    if disk.get("mounted"):
        row["mounted"] = 1
    return row


def _partition(disk: Disk, part: Disk) -> dict[str, Any]:
    row = {
        "devpath": part["devpath"],
        "parent": disk["devpath"],
        "gpt": disk["gpt"],
        "type": "partition",
        "size": part["size"],
        "used": part.get("used"),
        "osdid": -1,
        "osdid-list": None,
    }
    return {**row, "mounted": 1} if part.get("mounted") else row


@api("GET /nodes/{node}/disks/list")
def listing(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The disks, also their partitions if the caller asks for them."""
    partitions = bool(p.get("include-partitions"))
    rows = []
    for disk in ctx.cluster.nodes[p["node"]].disks.values():
        row = _row(disk, smart=not p.get("skipsmart"), partitions=partitions)
        if p.get("type") != "unused" or not row.get("used"):
            rows.append(row)
        if partitions and p.get("type") != "unused":
            rows += [_partition(disk, part) for part in disk["partitions"]]
    return sorted(rows, key=lambda row: str(row["devpath"]))


@api("POST /nodes/{node}/disks/initgpt")
def initialize(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that writes a partition table on an unused disk."""
    disk = found(ctx.cluster.nodes[p["node"]], p["disk"])
    if use_of(disk):
        raise PveError(f"disk {disk['devpath']} already in use\n")

    async def work(task: Task) -> None:
        await task.work()
        if use_of(disk):
            raise PveError(f"disk {disk['devpath']} is already in use\n")
        disk["gpt"] = 1

    return ctx.task(p["node"], "diskinit", disk["devpath"].rpartition("/")[2], work)


@api("PUT /nodes/{node}/disks/wipedisk")
def wipe(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that wipes a disk, unless it is mounted or has a holder."""
    node = ctx.cluster.nodes[p["node"]]
    disk = found(node, p["disk"])
    parts = [disk, *disk["partitions"]]
    for part in parts:
        if part.get("mounted"):
            raise PveError(f"disk/partition '{part['devpath']}' is mounted\n")
    held = {path for group in node.on_disks["lvm"].values() for path in _active(group)}
    for part in parts:
        if part["devpath"] in held or part.get("used") == "Device Mapper":
            raise PveError(f"disk/partition '{part['devpath']}' has a holder\n")

    async def work(task: Task) -> None:
        task.say(f"wiping block device {disk['devpath']}")
        await task.work()
        clear(disk)

    return ctx.task(p["node"], "wipedisk", disk["devpath"].rpartition("/")[2], work)


def _active(group: Mapping[str, Any]) -> list[str]:
    """The physical volumes of a group that the kernel holds, because it has logical volumes."""
    return group["pvs"] if group["lvcount"] else []


def clear(disk: Disk) -> None:
    """Remove all labels, the partition table included."""
    disk.update(gpt=0, used=None, partitions=[], mounted=False)
