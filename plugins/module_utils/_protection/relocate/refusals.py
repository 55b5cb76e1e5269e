# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The reasons why a guest cannot move to another cluster (pure).

Proxmox VE refuses each of them only after it has taken the VMID at the target, or loses something
silently (docs/decisions/0036-a-guest-moves-between-clusters.md).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._guests.kinds.model import Actual
from ..._guests.kinds.move import OFFLINE, ONLINE, RESTART
from ..restore.drill.isolate import find_obstacle
from .belongings import SiteObjects, sid_of

_FILES = frozenset("dir nfs cifs cephfs btrfs glusterfs".split())
_MEDIUM = "media=cdrom"
_EMPTY = ("none", "cdrom")
_HIBERNATED = "hibernated"


@dataclass(frozen=True)
class SourceFacts:
    """The source: its version, its objects and its storages. `storages` has PVE's type by storage."""

    version: tuple[int, int]
    objects: SiteObjects
    storages: Mapping[str, str] = field(default_factory=dict)
    rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def mode_of(actual: Actual) -> str:
    """Return how a guest moves."""
    if not actual.running:
        return OFFLINE
    return RESTART if actual.kind.has_rootfs else ONLINE


def find_refusals(actual: Actual, facts: SourceFacts) -> list[str]:
    """Return a sentence about each reason at the source, for every way."""
    problems: list[str] = []
    if actual.status == _HIBERNATED:
        problems.append("it is hibernated, and its memory does not move: start it, or stop it")
    problems += _find_ha_problems(actual, facts.objects)
    pending = {key for key in _keys(actual) if actual.live.get(key) != actual.target.get(key)}
    if pending:
        changes = ", ".join(sorted(pending))
        problems.append(f"its changes of {changes} wait for a reboot, and would be lost: reboot it")
    obstacle = find_obstacle(actual.kind, actual.target)
    if obstacle:
        problems.append(obstacle)
    for key, value in sorted(actual.target.items()):
        volume = str(value).partition(",")[0]
        if _MEDIUM in value and "cloudinit" not in volume and volume not in _EMPTY:
            problems.append(f"its {key} has the medium {volume}: eject it")
    return problems


def find_direct_refusals(actual: Actual, snapshots: Collection[str]) -> list[str]:
    """Return a sentence about each reason of C(remote_migrate) alone at the source."""
    problems: list[str] = []
    if snapshots:
        problems.append(f"it has the snapshots {', '.join(sorted(snapshots))}: delete them")
    for key, value in sorted(actual.target.items()):
        volume = str(value).partition(",")[0]
        if "/base-" in volume or ":base-" in volume:
            problems.append(f"its {key} is a linked clone of {volume}: move the disk first")
    return problems


def _find_ha_problems(actual: Actual, objects: SiteObjects) -> list[str]:
    """Return why an HA resource cannot leave HA now: the HA manager is about to start or stop it."""
    resource = objects.resources.get(sid_of(actual.kind, actual.vmid))
    if resource is None:
        return []
    wanted = str(resource.get("state") or "started")
    is_reached = actual.running == (wanted in ("started", "enabled"))
    if is_reached or wanted == "ignored":
        return []
    return [f"it is {actual.status}, and its HA resource must be {wanted}: wait for the HA manager"]


def _keys(actual: Actual) -> set[str]:
    return {*actual.live, *actual.target}


def find_format_problems(
    actual: Actual, storages: Mapping[str, str], types: Mapping[str, str], facts: SourceFacts
) -> list[str]:
    """Return why disks of a stopped guest cannot be copied to the storages of the target.

    `storages` is the map of storages, `types` has the types of the target's storages. Disks of a
    running VM are mirrored, whatever their format.
    """
    problems: list[str] = []
    if mode_of(actual) == ONLINE:
        return problems
    for slot, drive in sorted(actual.kind.disks_in(actual.target).items()):
        volume = drive.get("file", "")
        source = volume.partition(":")[0]
        target = storages.get(source, source)
        kind = types.get(target, "")
        if volume.endswith(".qcow2") and kind not in _FILES:
            problems.append(f"its {slot} is an image file, and {target} has no files (storage_map)")
        if facts.storages.get(source) == "zfspool" and kind != "zfspool":
            problems.append(f"its {slot} is on ZFS, and {target} is not (storage_map)")
    return problems
