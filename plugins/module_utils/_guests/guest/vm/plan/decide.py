# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The needs of a VM on its node, its moves, and the refusals that only VMs have (pure).

A VM is refused if its node lacks storages, CPUs or the formats of its disks: PVE itself would
notice half way, or at the start of the VM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from ....._foundation.api.settings import ConnectionSettings
from ....._foundation.cluster.find.lookup import volume_owner
from ....._foundation.cluster.placement import PlacementNeeds, require_node, require_storage
from ....._foundation.cluster.site import require_own_storages
from ....._foundation.cluster.state import ClusterState
from ....._foundation.cluster.storages.types import RAW_ONLY
from ....._foundation.core.errors import ConfigurationError, NotSupported, ValidationFailed
from ....._foundation.core.propstring import parse
from ....._foundation.schema.formats import sub_keys_of
from ....kinds.config.change import Relocation
from ....kinds.hardware import DesiredVm
from ....kinds.model import Actual
from ....kinds.vm.config.actual import FIRMWARE, cpus_of, drives, is_cloud_init, is_disk, storage_of
from ....kinds.vm.config.changes import ConfigChange
from ...plan.intent import Facts, Intent
from ...plan.origin import require_origin
from ...plan.planner import GuestRules
from ...plan.refusals import remark_on_similar
from .refusals.disks import (
    require_images,
    require_no_snapshots,
    require_own_volumes,
    require_snippets,
    with_new_volumes,
)
from .refusals.options import require_rights_of_root, require_version
from .refusals.start import require_machine, require_startable

VmIntent: TypeAlias = Intent[DesiredVm]


_CPU_KEYS = frozenset(("cores", "sockets", "vcpus"))


def needs_of(intent: VmIntent) -> PlacementNeeds:
    """Return the needs of a VM on its node, except the room for its disks."""
    config, source, template = intent.after, intent.source, intent.template
    like = "" if source is None else source.home
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        if slot in intent.change.gone:
            continue
        is_allocated = is_disk(drive) or is_cloud_init(drive)
        storage = storage_of(drive) or "/"
        is_path = storage.startswith("/")
        if is_allocated and not is_path:
            storages[storage] = "images"
    storages.update(intent.change.drives.storages)
    return replace(
        intent.needs,
        storages=storages,
        cpus=cpus_of(config) if intent.guest.state == "started" else 0,
        arch=intent.kind.arch_in(config),
        like=like if template is None else template.node,
    )


def require_creatable(desired: DesiredVm, cluster: ClusterState) -> None:
    """Raise FleetError for a VM that cannot be created, as far as the task and the listing show."""
    if not desired.guest.name and desired.guest.source is None and not desired.hardware.disks:
        raise ValidationFailed(
            f"{desired.guest.label} was not created: there is no such VM, and the task does not "
            "describe one",
            "Check the vmid, or give name and source or disks",
            "unknown VM",
        )
    if desired.guest.node:
        require_node(cluster, desired.guest.node)
    _require_content(desired, cluster)
    require_own_volumes(desired, cluster)


def _require_content(desired: DesiredVm, cluster: ClusterState) -> None:
    """Raise ValidationFailed for a VM with neither a source nor a disk that the task does not call
    blank: usually the name of an existing VM is misspelt.
    """
    guest = desired.guest
    slots = {disk.slot for disk in desired.hardware.disks if disk.state == "present"}
    if guest.blank or guest.source is not None or slots - set(FIRMWARE):
        return
    raise ValidationFailed(
        f"{guest.label} was not created: there is no such VM, and the task has neither source nor "
        f"disks{remark_on_similar(guest, cluster)}",
        "Correct name and tenant, add source or disks, or set blank=true for an empty VM",
        "blank",
    )


def adopted(desired: DesiredVm, actual: Actual, cluster: ClusterState) -> DesiredVm:
    """Return the desired VM for an existing VM. Raises Conflict for a VM of another origin."""
    if desired.guest.source is not None:
        require_origin(desired.guest, actual, cluster)
    if actual.marker.building:
        # The VM still has the password of its source.
        return desired.with_hardware(update_password="always")
    return desired


def refuse_listed(intent: VmIntent, cluster: ClusterState, connection: ConnectionSettings) -> None:
    """Raise FleetError for storages that the node lacks, as far as the listing shows."""
    if intent.uses_node:
        require_storages(intent.change, intent.node, cluster, connection)
    for volume in sorted(snippets_to_check(intent)):
        storage = _storage_of(volume)
        if any(row.storage == storage for row in cluster.storages):
            require_storage(cluster, storage, intent.node, "snippets")


def refuse(intent: VmIntent, facts: Facts, connection: ConnectionSettings) -> tuple[str, ...]:
    """Raise FleetError for a VM that its server, its node or the login does not allow.

    Returns warnings about snippets that could not be checked.
    """
    desired, start, change, node = intent.desired, intent.start, intent.change, intent.node
    if intent.starts or intent.restarts:
        require_startable(intent.label, intent.after)
    if intent.is_settled:
        return require_snippets(facts.snippets, node) if facts.snippets else ()
    require_version(intent.label, options_of(intent), facts.release)
    require_machine(intent.label, change.sets)
    require_rights_of_root(intent.label, change, intent.present, connection)
    if _counts_cpus(intent):
        require_cpus(intent.label, intent.after, node, facts.cluster)
    if intent.source is None:
        kinds = {row.storage: row.kind for row in facts.cluster.storages}
        require_movable(start, node, kinds, facts.migration, intent.after, change.relocation)
        require_no_snapshots(desired, start, change, facts.snapshots)
    require_images(new_volumes(intent), intent.first_node, facts.images)
    return require_snippets(facts.snippets, node)


def _counts_cpus(intent: VmIntent) -> bool:
    """Return whether the node must have the CPUs of the VM."""
    if intent.starts:
        return True
    is_concerned = intent.moves or bool(intent.change.keys & _CPU_KEYS)
    return intent.start.running and is_concerned


def options_of(intent: VmIntent) -> Mapping[str, str]:
    """Return the options that the server must know: PVE leaves others out when it restores a VM."""
    archived = intent.source.archived if intent.source is not None else None
    return {**(archived or {}), **intent.change.sets}


def new_volumes(intent: VmIntent) -> DesiredVm:
    """Return the desired VM with only the disks whose image or ISO is new to the VM."""
    return with_new_volumes(intent.desired, intent.present)


def snippets_to_check(intent: VmIntent) -> frozenset[str]:
    """Return the volumes of the snippets that the node must see: of a new VM if the task names
    snippets, of an existing VM if they change or their file is written.
    """
    snippet = intent.desired.hardware.snippet
    is_concerned = "cicustom" in intent.desired.hardware.property_strings
    if intent.source is None:
        is_written = snippet is not None and snippet.is_written
        is_concerned = "cicustom" in intent.change.keys or is_written
    if not is_concerned:
        return frozenset()
    snippets = parse(intent.after.get("cicustom", ""), sub_keys_of("cicustom"))
    return frozenset(filter(None, snippets.values()))


def require_storages(
    change: ConfigChange, node: str, cluster: ClusterState, connection: ConnectionSettings
) -> None:
    """Raise ConfigurationError unless the node has the storages that a change needs."""
    require_node(cluster, node)
    storages = set(change.drives.storages)
    for volume in change.drives.volumes:
        storages.add(_storage_of(volume))
    require_own_storages(connection, storages)
    for storage, content in sorted(change.drives.storages.items()):
        require_storage(cluster, storage, node, content)
    _require_formats(change, cluster)
    for volume, content in sorted(change.drives.volumes.items()):
        is_of_vm = volume_owner(volume) is not None
        if content == "import" and is_of_vm:
            content = "images"  # the disk of a VM, not a file
        if content == "import":
            _require_importable(cluster, volume, node)
        require_storage(cluster, _storage_of(volume), node, content)


def _storage_of(volume: str) -> str:
    storage, _colon, _name = volume.partition(":")
    return storage


def _require_formats(change: ConfigChange, cluster: ClusterState) -> None:
    """Raise NotSupported for a format that a storage does not have."""
    kinds = {row.storage: row.kind for row in cluster.storages}
    for slot, (storage, wanted) in sorted(change.drives.formats.items()):
        kind = kinds.get(storage)
        if wanted == "raw" or kind not in RAW_ONLY:
            continue
        raise NotSupported(
            f"Disk {slot} could not be planned in format {wanted}: storage {storage} ({kind}) has "
            "disks in format raw only",
            "Leave format out, or choose a storage of files",
            "format",
        )


def _require_importable(cluster: ClusterState, volume: str, node: str) -> None:
    """Raise NotSupported, with a workaround, if PVE cannot import from the storage of an image."""
    storage = _storage_of(volume)
    row = cluster.storage_on(storage, node)
    if row is None or not row.available:
        return
    if "import" in row.content:
        return
    raise NotSupported(
        f"{volume} could not be imported on node {node}: storage '{storage}' takes "
        f"{', '.join(sorted(row.content))}, not import, which PVE has since 8.3",
        (
            "Put the image on a storage with content import, or make a template of it once and"
            " clone that"
        ),
        "storage content",
    )


def require_cpus(label: str, config: Mapping[str, str], node: str, cluster: ClusterState) -> None:
    """Raise ConfigurationError for more CPUs than the node has, ValidationFailed for more `vcpus`
    than CPUs.

    Such a VM does not start (qemu-server: config_to_command).
    """
    cores = int(config.get("cores") or 1)
    sockets = int(config.get("sockets") or 1)
    wanted = cores * sockets
    in_use = int(config.get("vcpus") or 0)
    if in_use > wanted:
        raise ValidationFailed(
            f"{label} could not be planned to run: it would have {wanted} CPUs, and vcpus is "
            f"{in_use}",
            "Give it more cores or sockets, or fewer vcpus",
            "too many vcpus",
        )
    row = cluster.nodes.get(node)
    if row is None or row.cores <= 0:
        return
    if row.cores < wanted:
        raise ConfigurationError(
            f"{label} could not be planned to run on node {node}: it would have {wanted} CPUs, "
            f"and a VM on that node can have {row.cores}",
            "Give it fewer cores or sockets, or choose a larger node",
            "too many CPUs",
        )


VM_RULES = GuestRules(needs_of, refuse_listed, refuse)


# A volume that depends on a base volume, such as base-9000-disk-0/vm-101-disk-0.
_LINKED = re.compile(r"(?:^|/)base-\d+-[^/]+/")
# Storages whose volumes PVE sends to another node without their snapshots.
_KEEPS_NO_SNAPSHOTS = frozenset(("lvm", "lvmthin"))
# The storage kind whose volumes can be replicated to the other node: then they also move while the
# VM runs.
_REPLICATES = "zfspool"


def require_movable(
    actual: Actual,
    target: str,
    kinds: Mapping[str, str],
    answer: Mapping[str, Any] | None,
    after: Mapping[str, str] | None = None,
    relocation: Relocation | None = None,
) -> None:
    """Raise NotSupported, with PVE's reason, if PVE could not migrate the VM.

    `answer` is the answer to C(GET .../migrate), None if the VM does not move; `kinds` are the
    types of the storages; `after` is the configuration that is written before the VM moves, and
    `relocation` are the moves of its volumes.
    """
    if answer is None:
        return
    rest = without(answer, actual, after)
    if relocation is not None:
        rest = _relocated(rest, actual, relocation, target)
    reason = why_not_move(rest, target, kinds)
    if reason is None:
        return
    preconditions = {key: answer[key] for key in _REPORTED if answer.get(key)}
    raise NotSupported(
        f"{actual.label} could not be planned to move to node {target}: {reason}",
        ("Take away what ties it to its node, choose another node, or leave it where it is"),
        "cannot migrate",
        details={"preconditions": preconditions, "node": target},
    )


def without(
    answer: Mapping[str, Any], actual: Actual, after: Mapping[str, str] | None
) -> dict[str, Any]:
    """Return the answer without volumes and devices that the update before the move removes (pure).

    A CD is ejected at once; other volumes and devices are removed before the move only if the VM is
    off.
    """
    rest = dict(answer)
    if after is None:
        return rest
    gone: set[str | None] = set()
    for drive in drives(actual.target).values():
        stays_for_now = actual.running and is_disk(drive)
        if not stays_for_now:
            gone.add(drive.get("file"))
    for drive in drives(after).values():
        gone.discard(drive.get("file"))
    disks = _listed(answer, "local_disks")
    rest["local_disks"] = [disk for disk in disks if disk.get("volid") not in gone]
    if actual.running:
        return rest
    devices = _listed(answer, "local_resources")
    rest["local_resources"] = [key for key in devices if key in after]
    refused: dict[str, Any] = {}
    for node, reasons in (answer.get("not_allowed_nodes") or {}).items():
        if not isinstance(reasons, Mapping):  # of a newer version
            refused[node] = reasons
            continue
        lacking = [key for key in _listed(reasons, "unavailable-resources") if key in after]
        refused[node] = {**reasons, "unavailable-resources": lacking}
    rest["not_allowed_nodes"] = refused
    return rest


def _relocated(
    answer: Mapping[str, Any], actual: Actual, relocation: Relocation, target: str
) -> dict[str, Any]:
    """Return the answer without disks that move before, and without storages that no disk needs on
    the target.
    """
    present = actual.kind.volumes_in(actual.target)
    moved = {present[slot] for slot in relocation.before}
    nodes = dict(answer.get("not_allowed_nodes") or {})
    refused = dict(nodes.get(target) or {})
    storages = _listed(refused, "unavailable_storages")
    refused["unavailable_storages"] = [one for one in storages if one not in relocation.left]
    nodes[target] = refused
    disks = _listed(answer, "local_disks")
    rest = [disk for disk in disks if disk.get("volid") not in moved]
    return {**answer, "local_disks": rest, "not_allowed_nodes": nodes}


def _listed(answer: Mapping[str, Any], key: str) -> list[Any]:
    """Return a list of the answer, an empty one if it is missing."""
    found: list[Any] = answer.get(key) or []
    return found


_REPORTED = (
    "local_resources",
    "local_disks",
    "not_allowed_nodes",
    "allowed_nodes",
    "mapped-resources",
)


def why_not_move(
    answer: Mapping[str, Any], target: str, kinds: Mapping[str, str] | None = None
) -> str | None:
    """Return why PVE would refuse to migrate a VM to a node, or None (pure).

    `answer` is the answer to C(GET .../migrate).
    """
    # PVE lists mapped devices too, and moves them with a VM that is off, or that can be migrated
    # live with them (qemu-server: QemuMigrate.pm, prepare).
    runs = bool(answer.get("running"))
    mapped: dict[str, Any] = dict.fromkeys(_listed(answer, "mapped-resources"), {})
    mapped |= answer.get("mapped-resource-info") or {}
    moving = {key for key, info in mapped.items() if not runs or info.get("live-migration")}
    listed = _listed(answer, "local_resources")
    local = [key for key in listed if key not in moving]
    if local:
        return f"it uses devices of its node: {_joined(local)}"
    refusals = answer.get("not_allowed_nodes") or {}
    refused = refusals.get(target) or {}
    reason = _why_node_refused(refused, target)
    if reason is not None:
        return reason
    cds: list[str] = []
    for disk in _listed(answer, "local_disks"):
        volume = str(disk.get("volid"))
        if "cloudinit" in volume:
            continue
        if disk.get("cdrom"):
            cds.append(volume)
    if cds:
        return f"it holds an ISO that only its node has: {_joined(cds)}"
    return _why_disks_stay(answer, kinds or {})


def _why_node_refused(refused: Mapping[str, Any], target: str) -> str | None:
    """Return the storage or device that a node lacks, or the HA rule that forbids it, or None."""
    storages = refused.get("unavailable_storages")
    if storages:
        return f"node {target} lacks storage {_joined(storages)}"
    for key in ("unavailable-resources", "unavailable_resources"):
        devices = _listed(refused, key)
        if devices:
            return f"node {target} lacks the mapped devices {_joined(devices)}"
    blocking = _listed(refused, "blocking-ha-resources")
    others = list(map(_ha_name, blocking))
    if others:
        return f"a rule of the HA manager keeps it apart from {_joined(others)} on node {target}"
    return None


def _ha_name(item: Any) -> Any:
    return item.get("sid") if isinstance(item, Mapping) else item


def _joined(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))


def _why_disks_stay(answer: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    """Return why a local disk cannot be migrated, or None (QemuMigrate.pm, scan_local_volumes)."""
    for disk in _listed(answer, "local_disks"):
        if disk.get("cdrom") or disk.get("is_vmstate"):
            continue
        runs = bool(answer.get("running"))
        reason = _why_disk_stays(disk, kinds, runs=runs)
        if reason is not None:
            return reason
    return None


def _why_disk_stays(disk: Mapping[str, Any], kinds: Mapping[str, str], *, runs: bool) -> str | None:
    volume = str(disk.get("volid"))
    storage, _colon, name = volume.partition(":")
    if _LINKED.search(name):
        return f"{volume} is a linked clone of a disk that stays on its node"
    snapshots = disk.get("referenced_in_snapshot")
    if not snapshots:
        return None
    part = f"{volume} is part of a snapshot ({', '.join(sorted(snapshots))})"
    kind = kinds.get(storage)
    if runs and kind != _REPLICATES:
        return f"{part}, and the VM runs"
    is_raw_file = name.endswith(".raw")
    if is_raw_file or kind in _KEEPS_NO_SNAPSHOTS:
        return f"{part}, which a storage of that type cannot send along"
    return None
