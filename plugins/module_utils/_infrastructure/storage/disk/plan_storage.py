# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of a disk storage, and the refusals before the first write (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._foundation.core import propstring, validate
from ...._foundation.core.errors import Conflict, FleetError, ValidationFailed
from ...._foundation.core.quantities import MIB, readable_size, render_size
from ...._foundation.resource.manage import PlannedStep, WorkerTask
from ...._foundation.resource.plan import Plan, Step
from .disks import Row
from .model import DIRECTORY, LVM, MOUNTS, THIN, ZFS, of_row

_TITLES = {
    "zfs": "ZFS pool",
    "lvm": "volume group",
    "lvmthin": "thin pool",
    "directory": "directory",
}
_OF_TYPE = {
    "raidlevel": ZFS,
    "ashift": ZFS,
    "compression": ZFS,
    "draid": ZFS,
    "filesystem": DIRECTORY,
    "volume_group": THIN,
}
# The minimum number of disks for each level (ZFS.pm, mindisks).
_MINIMUM = {
    "single": 1,
    "mirror": 2,
    "raid10": 4,
    "raidz": 3,
    "raidz2": 4,
    "raidz3": 5,
    "draid": 3,
    "draid2": 4,
    "draid3": 5,
}
# The minimum size of a disk in bytes: the smallest device of OpenZFS (SPA_MINDEVSIZE), and twice
# the metadata of a thin pool plus its reserve (LVMThin.pm).
_SIZES = {"zfs": 64 * MIB, "lvmthin": (2 * 1024 + 128 + 8) * MIB, "lvm": 8 * MIB}
_FUZZ = 16 * MIB  # maximum difference of disks in one vdev (OpenZFS, ZPOOL_FUZZ)
_USED_AS = {"zfs": ("ZFS", "ZFS reserved"), "lvm": ("LVM",), "lvmthin": ("LVM",)}
_FORMAT: propstring.Format = {"data": {}, "spares": {}}


@dataclass(frozen=True)
class DesiredStorage:
    """The desired state of a disk storage. `options` are the options of its type that are set."""

    node: str
    type: str
    name: str
    present: bool
    disks: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    add_storage: bool = False
    cleanup_config: bool = False
    cleanup_disks: bool = False

    @property
    def label(self) -> str:
        return f"{_TITLES[self.type]} {self.name} of node {self.node}"

    @property
    def volume_group(self) -> str:
        return self.options.get("volume_group") or self.name

    def refused(self, answer: str, next_step: str, reason: str, **details: Any) -> FleetError:
        """Return the error that refuses the task."""
        verb = "created" if self.present else "removed"
        return Conflict(
            f"{self.label[:1].upper()}{self.label[1:]} was not {verb}: {answer}",
            next_step,
            reason,
            details=details,
        )


def read_desired(params: Mapping[str, Any]) -> DesiredStorage:
    """Return the desired state. Raises ValidationFailed."""
    kind, name = params["type"], validate.storage(params["name"], "name")
    present = params["state"] == "present"
    options = {key: params[key] for key in _OF_TYPE if params.get(key) is not None}
    for key in options:
        if _OF_TYPE[key] != kind:
            raise _invalid(key, f"it is for type={_OF_TYPE[key]}", f"Leave out {key}")
    if not present and params.get("confirm") != name:
        answer = f"the removal destroys the data of the {_TITLES[kind]}"
        raise _invalid("confirm", answer, f"Set confirm={name}")
    return DesiredStorage(
        node=validate.node(params["node"]),
        type=kind,
        name=name,
        present=present,
        disks=tuple(dict.fromkeys(params.get("disks") or ())),
        options=options,
        add_storage=bool(params.get("add_storage")),
        cleanup_config=bool(params.get("cleanup_config")),
        cleanup_disks=bool(params.get("cleanup_disks")),
    )


def _invalid(option: str, answer: str, next_step: str) -> ValidationFailed:
    return ValidationFailed(f"The option {option} was refused: {answer}", next_step, option)


def plan_creation(desired: DesiredStorage, disks: Sequence[Row]) -> PlannedStep:
    """Return the plan that creates a disk storage on these disks. Raises Conflict."""
    require_count(desired, len(disks))
    if desired.volume_group != desired.name:
        raise _invalid(
            "volume_group", "a new thin pool has a group of its own name", "Leave it out"
        )
    for disk in disks:
        require_free(desired, disk)
    if desired.type == ZFS:
        require_equal(desired, [int(disk["size"] or 0) for disk in disks])
    paths = [str(disk["path"]) for disk in disks]
    data = {"name": desired.name, **_data(desired, paths)}
    if desired.add_storage:
        data["add_storage"] = 1
    path = ("nodes", desired.node, "disks", desired.type)
    step = Step("create", f"Create {desired.label}", "POST", path, data)
    row = {
        "name": desired.name,
        "lv": desired.name,
        "vg": desired.volume_group,
        "path": f"{MOUNTS}{desired.name}",
    }
    after = {
        **of_row(desired.node, desired.type, row),
        "raidlevel": desired.options.get("raidlevel"),
        "disks": sorted(paths),
    }
    if desired.type == DIRECTORY:
        after["filesystem"] = desired.options.get("filesystem", "ext4")
    plan = Plan((step,), {}, {key: after[key] for key in ("name", "disks", "raidlevel")})
    task = {"directory": "dircreate"}.get(desired.type, f"{desired.type}create")
    return PlannedStep(plan, {"disk_storage": after}, WorkerTask(desired.node, task, desired.name))


def _data(desired: DesiredStorage, paths: Sequence[str]) -> dict[str, Any]:
    keys = ("raidlevel", "ashift", "compression", "filesystem")
    data = {key: desired.options[key] for key in keys if key in desired.options}
    if desired.type != ZFS:
        return {"device": paths[0], **data}
    if desired.options.get("draid"):
        draid = {key: str(one) for key, one in desired.options["draid"].items() if one is not None}
        data["draid-config"] = propstring.render(draid, _FORMAT)
    return {"devices": ",".join(paths), **data}


def require_count(desired: DesiredStorage, count: int) -> None:
    """Raise ValidationFailed for a number of disks that the type or the RAID level does not allow,
    and for options that contradict the RAID level (ZFS.pm, create).
    """
    if desired.type != ZFS:
        if count != 1:
            raise _invalid("disks", f"type={desired.type} needs one disk", "Name one disk")
        return
    level = desired.options.get("raidlevel")
    if level is None:
        raise _invalid("raidlevel", "a new pool needs it", "Set raidlevel")
    if desired.options.get("draid") and not level.startswith("draid"):
        raise _invalid("draid", f"it is not for raidlevel={level}", "Leave out draid")
    draid = [one or 0 for one in (desired.options.get("draid") or {}).values()]
    minimum = max(_MINIMUM[level], _MINIMUM[level] - 2 + sum(draid))
    if count < minimum:
        raise _invalid("disks", f"raidlevel={level} needs at least {minimum} disks", "Add disks")
    if level == "single" and count > 1:
        raise _invalid("disks", "raidlevel=single needs one disk", "Name one disk")
    if level == "raid10" and count % 2:
        raise _invalid("disks", "raidlevel=raid10 needs an even number of disks", "Add a disk")


def require_free(desired: DesiredStorage, disk: Row) -> None:
    """Raise Conflict for a disk that is in use or too small."""
    if disk["used"]:
        raise desired.refused(
            f"disk {disk['path']} is in use: {disk['used']}",
            "Name an unused disk, or wipe this one: pve.fleet.disk",
            "in use",
        )
    needed = _SIZES.get(desired.type, 0)
    if (disk["size"] or 0) < needed:
        raise desired.refused(
            f"disk {disk['path']} has {render_size(disk['size'] or 0)}, and at least"
            f" {render_size(needed)} are needed",
            "Name a larger disk",
            "too small",
        )


def require_equal(desired: DesiredStorage, sizes: Sequence[int]) -> None:
    """Raise Conflict for disks of different sizes in one vdev, which zpool refuses in the task."""
    width = 2 if desired.options.get("raidlevel") == "raid10" else len(sizes)
    for place in range(0, len(sizes), width):
        vdev = sizes[place : place + width]
        if max(vdev) - min(vdev) > _FUZZ:
            raise desired.refused(
                f"the disks of one group have different sizes: {', '.join(map(str, vdev))}",
                "Name disks of the same size",
                "different sizes",
            )


def plan_existing(desired: DesiredStorage, found: Row, disks: Sequence[Row]) -> PlannedStep:
    """Return the empty plan for an existing disk storage. Raises Conflict for a difference, which
    Proxmox VE cannot change.
    """
    for option in ("raidlevel", "filesystem"):
        value = desired.options.get(option)
        if value is not None and value != found[option]:
            raise _fixed(desired, option, found[option])
    if disks:
        if found["disks"] is None:  # Proxmox VE does not return the disk of a directory
            if found["filesystem"] not in [part["used"] for part in disks[0]["partitions"]]:
                raise _fixed(desired, "disks", "another disk")
        elif {str(disk["path"]) for disk in disks} != set(found["disks"]):
            raise _fixed(desired, "disks", ", ".join(found["disks"]))
    return PlannedStep(Plan(), {"disk_storage": dict(found)})


def _fixed(desired: DesiredStorage, option: str, value: Any) -> FleetError:
    return desired.refused(
        f"it exists with {option} {value}, and Proxmox VE cannot change that",
        f"Leave out {option}, or remove it first",
        option,
    )


def plan_removal(desired: DesiredStorage, found: Row, storages: Sequence[str]) -> PlannedStep:
    """Return the plan that removes a disk storage; `storages` are the definitions on it.

    Raises Conflict if definitions would remain.
    """
    if storages and not desired.cleanup_config:
        raise desired.refused(
            f"storages are on it: {', '.join(storages)}",
            "Delete them first: pve.fleet.storage; or set cleanup_config=true",
            "in use",
            storages=list(storages),
        )
    data: dict[str, Any] = {}
    ident = desired.name
    if desired.type == THIN:
        data["volume-group"] = desired.volume_group
        ident = f"{desired.volume_group}-{desired.name}"
    for option in ("cleanup_config", "cleanup_disks"):
        if getattr(desired, option):
            data[option.replace("_", "-")] = 1
    path = ("nodes", desired.node, "disks", desired.type, desired.name)
    step = Step("remove", f"Remove {desired.label}", "DELETE", path, data)
    plan = Plan((step,), {key: found[key] for key in ("name", "disks", "raidlevel")}, {})
    task = {"directory": "dirremove"}.get(desired.type, f"{desired.type}remove")
    return PlannedStep(plan, {"disk_storage": None}, WorkerTask(desired.node, task, ident))


def require_only_use(desired: DesiredStorage, found: Row, disks: Sequence[Row]) -> None:
    """Raise Conflict if a disk of the storage has other uses, such as the disk of the system.

    The disks of a thin pool do not matter unless they are wiped.
    """
    if desired.type == THIN and not desired.cleanup_disks:
        return
    own = _USED_AS.get(desired.type, ())
    for disk in disks:
        others = [part["used"] for part in disk["partitions"] if part["used"] not in (*own, None)]
        if disk["path"] in (found["disks"] or ()) and others:
            raise desired.refused(
                f"disk {disk['path']} has other uses: {', '.join(others)}",
                "The node may boot from it; remove it in a shell of the node",
                "in use",
            )


def require_empty(desired: DesiredStorage, volumes: int, used: int) -> None:
    """Raise Conflict for logical volumes that PVE would remove, or that would stop it half way.

    A volume group is removed with its volumes. The disks of a thin pool are wiped after the pool is
    removed, unless the group still has other volumes (LVMThin.pm, delete).
    """
    if desired.type == THIN:
        if used:
            text = readable_size(used)
            raise desired.refused(f"{text} of it are in use", "Remove its volumes", "in use")
        volumes = volumes - 1 if desired.cleanup_disks else 0
    elif desired.type != LVM:
        return
    if volumes > 0:
        raise desired.refused(
            f"the volume group has {volumes} other logical volumes",
            "Remove them first: guests, thin pools (type=lvmthin) or OSDs",
            "in use",
        )


def require_no_volumes(desired: DesiredStorage, volumes: Sequence[str]) -> None:
    """Raise Conflict for volumes of guests that the login does not see."""
    if volumes:
        raise desired.refused(
            "; ".join(volumes), "Remove these volumes first: pve.fleet.volume", "in use"
        )


def require_no_group(desired: DesiredStorage, groups: Sequence[Row]) -> None:
    """Raise Conflict if a volume group has the name of a new thin pool (LVMThin.pm, create)."""
    if desired.name in [group["name"] for group in groups]:
        raise desired.refused(
            f"there is a volume group {desired.name}", "Use another name", "volume group"
        )
