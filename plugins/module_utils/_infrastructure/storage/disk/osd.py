# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""OSDs of Ceph: the desired state, the refusals and the plan (pure).

Facts: pve-manager, PVE/API2/Ceph/OSD.pm and PVE/API2/Ceph.pm (start, stop).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict, NotFound, OsdUnplaced, ValidationFailed
from ...._foundation.resource.plan import Plan, Step
from .disks import Row, find_disk

CREATE, DESTROY, IN, OUT, START, STOP = "create", "destroy", "in", "out", "start", "stop"
_LEVELS = 12  # maximum depth of a tree of CRUSH buckets
# Options of a new OSD, with the parameters of the request.
_NEW = {
    "db_dev_size": "db_dev_size",
    "wal_dev_size": "wal_dev_size",
    "crush_device_class": "crush-device-class",
}
_PARTS = ("db_dev", "wal_dev")
# An OSD that does not exist yet.
_BLANK = {"osdid": None, "crush_device_class": "", "size": 0, "used": 0, "version": ""}


@dataclass(frozen=True)
class DesiredOsd:
    """The desired state of an OSD, which either its disk or its number identifies."""

    node: str
    dev: str = ""
    osdid: int | None = None
    present: bool = True
    is_in: bool | None = None
    running: bool | None = None
    cleanup: bool = False
    force: bool = False
    new: Mapping[str, Any] = field(default_factory=dict)  # options of a new OSD

    @property
    def label(self) -> str:
        name = f"OSD {self.osdid}" if self.osdid is not None else f"OSD on {self.dev}"
        return f"{name} of node {self.node}"


@dataclass(frozen=True)
class OsdState:
    """The disks of a node, and the OSDs of the cluster by number."""

    disks: tuple[Row, ...]
    osds: Mapping[int, Row]


def read_desired(params: Mapping[str, Any]) -> DesiredOsd:
    """Return the desired state. Raises ValidationFailed."""
    if (params.get("dev") is None) == (params.get("osdid") is None):
        raise ValidationFailed(
            "The OSD was not changed: either dev or osdid is required", "Set one of them", "dev"
        )
    new = {name: params[name] for name in (*_PARTS, *_NEW) if params.get(name) is not None}
    if params.get("encrypted"):
        new["encrypted"] = True
    for part in _PARTS:
        if f"{part}_size" in new and part not in new:
            size = new[f"{part}_size"]
            raise validate.refused(f"{part}_size", size, f"needs {part}", f"Set {part} as well")
    return DesiredOsd(
        node=validate.node(params["node"]),
        dev=params.get("dev") or "",
        osdid=params.get("osdid"),
        present=params.get("state") != "absent",
        is_in=params.get("in"),
        running=params.get("running"),
        cleanup=bool(params.get("cleanup")),
        force=bool(params.get("force")),
        new=new,
    )


def osds_of(answer: Any) -> dict[int, dict[str, Any]]:
    """Return the OSDs of PVE's tree by number, each in the form of results."""
    root = (answer or {}).get("root") or {}
    return {row["osdid"]: row for row in _leaves(root, _LEVELS)}


def _leaves(item: Row, levels: int) -> Iterator[dict[str, Any]]:
    if item.get("type") == "osd" and item.get("id") is not None:
        yield {
            "osdid": int(item["id"]),
            "node": item.get("host") or "",
            "in": bool(item.get("in")),
            "running": item.get("status") == "up",
            "crush_device_class": item.get("device_class") or "",
            "size": int(item.get("total_space") or 0),
            "used": int(item.get("bytes_used") or 0),
            "version": item.get("ceph_version_short") or "",
        }
    for child in (item.get("children") or ()) if levels else ():
        yield from _leaves(child, levels - 1)


def find_osd(desired: DesiredOsd, state: OsdState) -> int | None:
    """Return the number of the OSD, None if it does not exist.

    Raises NotFound for a disk that the node does not have, and Conflict for an OSD of another node
    and for a disk with several OSDs.
    """
    if desired.osdid is None:
        disk = find_disk(state.disks, desired.dev, desired.node, _attempted(desired))
        osds = disk["osds"]
        if len(osds) > 1:
            listed = ", ".join(map(str, osds))
            raise _conflict(
                desired, f"the disk has OSDs {listed}", "Set osdid instead", "several OSDs"
            )
        return osds[0] if osds else None
    row = state.osds.get(desired.osdid)
    if row is None:
        return None
    if row["node"] != desired.node:
        raise _conflict(
            desired, f"it belongs to node {row['node'] or 'unknown'}", "Set node", "other node"
        )
    return desired.osdid


def _attempted(desired: DesiredOsd) -> str:
    return f"{desired.label} was not {'changed' if desired.present else 'deleted'}"


def _conflict(desired: DesiredOsd, answer: str, next_step: str, reason: str) -> Conflict:
    return Conflict(f"{_attempted(desired)}: {answer}", next_step, reason)


def plan_osd(desired: DesiredOsd, state: OsdState) -> Plan:
    """Return the plan. Raises every refusal that does not need an answer of Ceph."""
    osdid = find_osd(desired, state)
    if not desired.present:
        return _plan_absent(desired, osdid, state)
    if osdid is None:
        return _plan_new(desired, state)
    row = state.osds.get(osdid)
    if row is None:
        raise OsdUnplaced(
            f"{_attempted(desired)}: OSD {osdid} is not in the CRUSH map",
            "Check the flag noup, and that the service of the OSD runs",
            "no CRUSH entry",
        )
    require_class(desired, row)
    place = ("nodes", desired.node, "ceph")
    name = f"OSD {osdid} of node {desired.node}"
    steps: list[Step] = []
    after: dict[str, Any] = {}
    if desired.is_in not in (None, row["in"]):
        after["in"] = desired.is_in
        word = IN if desired.is_in else OUT
        path = (*place, "osd", str(osdid), word)
        steps.append(Step(word, f"Mark {name} {word}", "POST", path, is_task=False))
    if desired.running not in (None, row["running"]):
        after["running"] = desired.running
        word = START if desired.running else STOP
        data = {"service": f"osd.{osdid}"}
        steps.append(Step(word, f"{word.capitalize()} {name}", "POST", (*place, word), data))
    return Plan(tuple(steps), {key: row[key] for key in after}, after)


def require_class(desired: DesiredOsd, row: Row) -> None:
    """Raise Conflict if the OSD has another device class, which Proxmox VE cannot change."""
    device_class = desired.new.get("crush_device_class")
    if device_class not in (None, row["crush_device_class"]):
        answer = f"its device class is {row['crush_device_class']}"
        raise _conflict(desired, answer, "Leave out crush_device_class", "crush_device_class")


def _plan_new(desired: DesiredOsd, state: OsdState) -> Plan:
    """Return the plan that creates an OSD; further steps are planned after the creation."""
    if not desired.dev:
        raise NotFound(
            f"{_attempted(desired)}: there is no OSD {desired.osdid}",
            "Set dev to create an OSD on a disk",
            "unknown OSD",
        )
    devices: dict[str, str] = {}
    paths = {"dev": desired.dev}
    paths.update({name: desired.new[name] for name in _PARTS if name in desired.new})
    for option, path in paths.items():
        disk = find_disk(state.disks, path, desired.node, _attempted(desired))
        if disk["device"] in devices.values():
            raise validate.refused(option, path, "is used twice", "Set different disks")
        require_free(desired, option, disk)
        devices[option] = disk["device"]
    data = {**devices, **{_NEW[key]: desired.new[key] for key in _NEW if key in desired.new}}
    if desired.new.get("encrypted"):
        data["encrypted"] = 1
    place = ("nodes", desired.node, "ceph", "osd")
    step = Step(CREATE, f"Create {desired.label}", "POST", place, data, reread=True)
    after = {
        "node": desired.node,
        "in": desired.is_in is not False,
        "running": desired.running is not False,
    }
    return Plan((step,), {}, after)


def require_free(desired: DesiredOsd, option: str, disk: Row) -> None:
    """Raise Conflict for a disk that is in use (OSD.pm, test_disk_requirements).

    A database or a log can be on a disk that already has volume groups or a GPT.
    """
    used = disk["used"]
    can_share = option != "dev" and (used == "LVM" or (used == "partitions" and disk["gpt"]))
    if used and not can_share:
        raise Conflict(
            f"{desired.label} was not created: {option} {disk['device']} is in use: {used}",
            "Set a disk that disk_info shows as unused",
            "in use",
            details={"uses": [used]},
        )


def _plan_absent(desired: DesiredOsd, osdid: int | None, state: OsdState) -> Plan:
    row = None if osdid is None else state.osds.get(osdid)
    if row is None:
        return Plan()
    if row["in"] or row["running"]:
        found = "in" if row["in"] else "running"
        raise _conflict(
            desired,
            f"OSD {osdid} is still {found}",
            "Set in=false, wait until Ceph has moved its data, then set running=false",
            "not out and down",
        )
    path = ("nodes", desired.node, "ceph", "osd", str(osdid))
    data = {"cleanup": 1} if desired.cleanup else {}
    step = Step(DESTROY, f"Delete OSD {osdid} of node {desired.node}", "DELETE", path, data)
    return Plan((step,), dict(row), {})


def describe_osd(desired: DesiredOsd, state: OsdState, plan: Plan) -> dict[str, Any] | None:
    """Return the OSD after the plan, or None if it does not exist then."""
    if not desired.present:
        return None
    osdid = find_osd(desired, state)
    row = _BLANK if osdid is None else state.osds[osdid]
    return {**row, **plan.after}
