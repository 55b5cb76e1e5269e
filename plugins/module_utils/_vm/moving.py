# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""VMs that are not where they were: found again, known again, and what would stand in the way of moving one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._cluster.picture import node_of
from .._core.errors import Conflict, FleetError, NetworkError, NodeUnhealthy, NotFound, NotSupported
from .actual import read_actual
from .model import Actual

if TYPE_CHECKING:
    from .._api.client import Client


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


def check_move(client: Client, actual: Actual, target: str) -> None:
    """Raise NotSupported with PVE's own reason where it could not migrate the VM; one request."""
    answer = client.get(
        "nodes", actual.node, "qemu", actual.vmid, "migrate", params={"target": target},
        attempted=f"Could not ask whether {actual.label} can move to node {target}",
    )  # fmt: skip
    reason = why_not_move(answer, target)
    if reason:
        raise NotSupported(
            attempted=f"{actual.label} could not be planned to move to node {target}",
            answer=reason,
            next_step="Take away what ties it to its node, choose another node, or leave it where it is",
            reason="cannot migrate",
            details={"preconditions": {key: answer[key] for key in _TOLD if answer.get(key)}},
        )


_TOLD = ("local_resources", "local_disks", "not_allowed_nodes", "allowed_nodes", "mapped-resources")


def why_not_move(answer: Mapping[str, Any], target: str) -> str | None:
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
    return f"it holds an ISO that only its node has: {', '.join(discs)}" if discs else None
