# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that are not where they were: found again, known again, and what would stand in the way of moving one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.picture import node_of
from .._core.errors import Conflict, FleetError, NetworkError, NodeUnhealthy, NotFound, NotSupported
from .actual import drives, is_disk, read_actual
from .model import Actual

if TYPE_CHECKING:
    from .._api.client import Client


# A volume that is made of another one and cannot do without it, such as base-9000-disk-0/vm-101-disk-0.
_LINKED = re.compile(r"(?:^|/)base-\d+-[^/]+/")
# Storages of which PVE sends volumes to another node, but without their snapshots.
_KEEPS_NO_SNAPSHOTS = frozenset(("lvm", "lvmthin"))
# Where volumes may be on the other node already, and then also move while the VM runs.
_REPLICATES = "zfspool"


def is_elsewhere(error: FleetError) -> bool:
    """Tell whether an error may mean that the VM is not, or no longer, on the node that was asked."""
    if isinstance(error, NotFound):
        return error.reason == "unknown VM"
    return isinstance(error, NetworkError) and error.reason == "node unreachable"


def read_wherever(
    client: Client, vmid: int, node: str, *, status: str | None = None, pool: str | None = None
) -> Actual:
    """Return the VM as it is, on that node or on the one it was moved to meanwhile. Raises what the node said."""
    try:
        return read_actual(client, vmid, node, status=status, pool=pool)
    except (NotFound, NetworkError, NodeUnhealthy) as error:
        if not is_elsewhere(error):
            raise
        now = node_of(client, vmid)
        if now is None or now == node:
            raise
        return read_actual(client, vmid, now, status=status, pool=pool)


def require_same(known: Actual, seen: Actual) -> None:
    """Raise Conflict where the VM of that number is another one by now: PVE gives each a uuid of its own."""
    if known.live.get("smbios1") != seen.live.get("smbios1"):
        raise Conflict(
            attempted=f"{known.label} was left alone",
            answer=f"the VM of that number is now another one, {seen.label}",
            next_step="Somebody else replaced it meanwhile: check which one is meant and run again",
            reason="replaced",
        )


def check_move(
    client: Client, actual: Actual, target: str, kinds: Mapping[str, str], after: Mapping[str, str] | None = None
) -> None:
    """Raise NotSupported with PVE's own reason where it could not migrate the VM; one request.

    `kinds` are the types of the storages; `after` is the configuration that the VM is given before it moves.
    """
    answer = client.get(
        *actual.path, "migrate", params={"target": target},
        attempted=f"Could not ask whether {actual.label} can move to node {target}",
    )  # fmt: skip
    reason = why_not_move(without(answer, actual, after), target, kinds)
    if reason:
        raise NotSupported(
            attempted=f"{actual.label} could not be planned to move to node {target}",
            answer=reason,
            next_step="Take away what ties it to its node, choose another node, or leave it where it is",
            reason="cannot migrate",
            details={"preconditions": {key: answer[key] for key in _TOLD if answer.get(key)}},
        )


def without(answer: Mapping[str, Any], actual: Actual, after: Mapping[str, str] | None) -> dict[str, Any]:
    """Return the answer without what the update before the move takes away (pure).

    A disc is ejected at once, anything else is only taken for gone where the VM does not run.
    """
    rest = dict(answer)
    if after is None:
        return rest
    kept = {drive.get("file") for drive in drives(after).values()}
    gone = {
        drive.get("file")
        for drive in drives(actual.target).values()
        if drive.get("file") not in kept and (not actual.running or not is_disk(drive))
    }
    rest["local_disks"] = [disk for disk in answer.get("local_disks") or [] if disk.get("volid") not in gone]
    if not actual.running:
        rest["local_resources"] = [key for key in answer.get("local_resources") or [] if key in after]
    return rest


_TOLD = ("local_resources", "local_disks", "not_allowed_nodes", "allowed_nodes", "mapped-resources")


def why_not_move(answer: Mapping[str, Any], target: str, kinds: Mapping[str, str] | None = None) -> str | None:
    """Return why PVE would refuse to migrate a VM to a node, or None (pure; the answer of C(GET .../migrate))."""
    local = answer.get("local_resources") or []
    if local:
        return f"it uses devices of its node: {', '.join(map(str, local))}"
    refused = (answer.get("not_allowed_nodes") or {}).get(target) or {}
    if refused.get("unavailable_storages"):
        return f"node {target} lacks storage {', '.join(refused['unavailable_storages'])}"
    for key in ("unavailable-resources", "unavailable_resources"):
        if refused.get(key):
            return f"node {target} lacks the mapped devices {', '.join(map(str, refused[key]))}"
    blocking = refused.get("blocking-ha-resources") or []
    if blocking:
        names = [str(item.get("sid") if isinstance(item, Mapping) else item) for item in blocking]
        return f"a rule of the HA manager keeps it apart from {', '.join(names)} on node {target}"
    discs = [str(disk.get("volid")) for disk in answer.get("local_disks") or [] if disk.get("cdrom")]
    discs = [volume for volume in discs if "cloudinit" not in volume]
    if discs:
        return f"it holds an ISO that only its node has: {', '.join(discs)}"
    return _why_disks_stay(answer, kinds or {})


def _why_disks_stay(answer: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    """Return why a disk on a storage of the node cannot be carried over (QemuMigrate.pm, scan_local_volumes)."""
    for disk in answer.get("local_disks") or []:
        volume = str(disk.get("volid"))
        storage, _colon, name = volume.partition(":")
        if disk.get("cdrom") or disk.get("is_vmstate"):
            continue
        if _LINKED.search(name):
            return f"{volume} is a linked clone of a disk that stays on its node"
        if not disk.get("referenced_in_snapshot"):
            continue
        snapshots = ", ".join(sorted(disk["referenced_in_snapshot"]))
        if answer.get("running") and kinds.get(storage) != _REPLICATES:
            return f"{volume} is part of a snapshot ({snapshots}), and the VM runs"
        if kinds.get(storage) in _KEEPS_NO_SNAPSHOTS or name.endswith(".raw"):
            return f"{volume} is part of a snapshot ({snapshots}), which a storage of that type cannot send along"
    return None
