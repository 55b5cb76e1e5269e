# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules disk and disk_info."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.api.root import require_root
from ...._foundation.cluster.each_node import answered, read_each_node, result_of_nodes
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict, ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.resource.manage import PlannedStep, WorkerTask, run_planned
from ...._foundation.resource.plan import Plan, Step
from .disks import Row, disks_of, find_disk, find_uses
from .read import query, read_disks, read_groups

INITIALIZED, WIPED = "initialized", "wiped"


@dataclass(frozen=True)
class DesiredDisk:
    """The desired state of a disk."""

    node: str
    path: str
    state: str
    serial: str = ""

    @property
    def label(self) -> str:
        return f"disk {self.path} of node {self.node}"

    @property
    def attempted(self) -> str:
        return f"Disk {self.path} of node {self.node} was not {self.state}"


def run_disk(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Initialize or wipe a disk and return the outcome; check mode writes nothing."""
    desired = read_desired(params)
    if desired.state == WIPED:
        require_root(client.login, desired.attempted)

    def read() -> PlannedStep:
        """Return the plan for the present disk; one request, and more if the disk is wiped."""
        disks = read_disks(client, desired.node)
        disk = find_disk(disks, desired.path, desired.node, desired.attempted)
        uses: Sequence[str] = ()
        if desired.state == WIPED and not is_wiped(disk):
            used = [str(part["used"]) for part in (disk, *disk["partitions"])]
            uses = find_uses(disk, disks, read_groups(client, desired.node, used))
        return plan_disk(desired, disk, uses)

    return run_planned(client, desired.label, read, check_mode)


def read_desired(params: Mapping[str, Any]) -> DesiredDisk:
    """Return the desired state (pure). Raises ValidationFailed for a wipe without a serial."""
    desired = DesiredDisk(
        validate.node(params["node"]), params["disk"], params["state"], params.get("confirm") or ""
    )
    if desired.state == WIPED and not desired.serial:
        raise ValidationFailed(
            f"{desired.attempted}: a wipe destroys the data of the disk",
            "Set confirm to the serial number of the disk; pve.fleet.disk_info has it",
            "confirm",
        )
    return desired


def run_disk_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the disks of a node or of all nodes. Nothing is written."""
    smart = bool(params.get("smart"))
    parameters = query(smart=smart)
    path = ("disks", "list")
    answers = read_each_node(client, params.get("node"), "disks", *path, params=parameters)
    disks: list[dict[str, Any]] = []
    for node, rows in answered(answers).items():
        disks += disks_of(node, rows or [], smart=smart)
    return result_of_nodes(answers, "disks", [describe_disk(disk) for disk in disks])


def describe_disk(disk: Row) -> dict[str, Any]:
    """Return a disk as results show it (pure)."""
    return {name: value for name, value in disk.items() if name != "osd_parts"}


def is_wiped(disk: Row) -> bool:
    """Return whether a disk has neither a use nor a partition table (pure)."""
    return not disk["gpt"] and disk["used"] is None


def plan_disk(desired: DesiredDisk, disk: Row, uses: Sequence[str]) -> PlannedStep:
    """Return the plan of a disk; `uses` are its present uses (pure).

    Raises Conflict if the serial number is not the confirmed one, or if the disk is in use.
    """
    require_serial(desired, disk)
    if desired.state == WIPED:
        is_done, method, call, task = is_wiped(disk), "PUT", "wipedisk", "wipedisk"
        after = {**disk, "gpt": False, "used": None, "partitions": []}
    else:
        is_done, method, call, task = disk["gpt"], "POST", "initgpt", "diskinit"
        after = {**disk, "gpt": True}
        uses = [disk["used"]] if disk["used"] else []
    if is_done:
        return PlannedStep(Plan(), {"disk": describe_disk(disk)})
    require_unused(desired, uses)
    # The call accepts only the name of the device (Disks.pm, parameter disk).
    device = str(disk["device"])
    verb = "Wipe" if desired.state == WIPED else "Initialize"
    path = ("nodes", desired.node, "disks", call)
    step = Step(call, f"{verb} {desired.label}", method, path, {"disk": device})
    plan = Plan((step,), _compared(disk), _compared(after))
    worker = WorkerTask(desired.node, task, device.rpartition("/")[2])
    return PlannedStep(plan, {"disk": describe_disk(after)}, worker)


def _compared(disk: Row) -> dict[str, Any]:
    return {"gpt": disk["gpt"], "used": disk["used"]}


def require_serial(desired: DesiredDisk, disk: Row) -> None:
    """Raise Conflict if the disk is not the confirmed one (pure)."""
    if desired.serial in ("", disk["serial"]):
        return
    found = f"serial number {disk['serial']}" if disk["serial"] else "no serial number"
    raise Conflict(
        f"{desired.attempted}: it has {found}, and confirm is {desired.serial}",
        "Read disk_info: a device can have another name after each boot",
        "confirm",
    )


def require_unused(desired: DesiredDisk, uses: Sequence[str]) -> None:
    """Raise Conflict for a disk in use (pure)."""
    if uses:
        raise Conflict(
            f"{desired.attempted}: it is in use: {', '.join(uses)}",
            "Remove the use first: pve.fleet.disk_storage; or wipe leftover data",
            "in use",
            details={"uses": list(uses)},
        )
