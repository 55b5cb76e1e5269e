# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CPUs and the memory of a VM, its figures for a quota, the volume for its memory (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ....._foundation.cluster.quota import QuotaFigures
from ....._foundation.cluster.state import ClusterState
from ....._foundation.core.quantities import MIB, read_size
from ....._foundation.schema.formats import parse_option
from .actual import drives, is_disk, storage_of

# PVE's default for a configuration without the option.
_MEMORY = 512
# Bytes for the state of the devices (qemu-server: QemuConfig.pm, __snapshot_save_vmstate).
_DEVICES = 500 * MIB
# Kinds of storages with a path.
_FILES = frozenset("dir nfs cifs cephfs btrfs glusterfs".split())
_FALLBACK = "local"


def memory_of(config: Mapping[str, str]) -> int:
    """Return the bytes of memory that a configuration gives a VM."""
    values = parse_option("memory", config.get("memory", ""))
    size = int(values.get("current", _MEMORY))
    return size * MIB


def cpus_of(config: Mapping[str, str]) -> int:
    """Return the maximum number of CPUs of a VM, including CPUs that can be plugged in later."""
    return int(config.get("cores") or 1) * int(config.get("sockets") or 1)


def cores_of(config: Mapping[str, str]) -> int:
    """Return the cores that a configuration gives a VM, over all sockets."""
    return int(config["vcpus"]) if config.get("vcpus") else cpus_of(config)


def state_volume(config: Mapping[str, str], cluster: ClusterState, node: str) -> tuple[str, int]:
    """Return the storage and the bytes of the volume for the memory of a VM.

    PVE creates it for a snapshot with memory and for hibernation, twice as large as the memory
    (qemu-server: QemuConfig.pm, __snapshot_save_vmstate and find_vmstate_storage).
    """
    size = 2 * memory_of(config) + _DEVICES
    storage = config.get("vmstatestorage")
    if not storage:
        storage = _usual_storage(config, cluster, node)
    return storage, size


def _usual_storage(config: Mapping[str, str], cluster: ClusterState, node: str) -> str:
    """Return a shared storage of the disks, else a local storage; storages of files first."""
    chosen: dict[bool, str] = {}
    for name in _storages_of_disks(config):
        row = cluster.storage_on(name, node)
        is_shared = row is not None and row.shared
        is_of_files = row is not None and row.kind in _FILES
        is_first = is_shared not in chosen
        if is_first or is_of_files:
            chosen[is_shared] = name
    local = chosen.get(False, _FALLBACK)
    return chosen.get(True, local)


def _storages_of_disks(config: Mapping[str, str]) -> list[str]:
    """Return the storages of a VM's disks, sorted by name."""
    disks = filter(is_disk, drives(config).values())
    names = set(map(storage_of, disks))
    return sorted(filter(None, names))


def figures_of(
    config: Mapping[str, str], images: Mapping[str, int] | None = None, *, template: bool = False
) -> QuotaFigures:
    """Return the figures that a quota counts of a VM with that configuration.

    `images` are the bytes of imported images by slot.
    """
    disk = 0
    for slot, drive in drives(config).items():
        if not is_disk(drive):
            continue
        size = read_size(drive.get("size"))
        if not size and images:
            size = images.get(slot)
        disk += size or 0
    if template:
        return QuotaFigures(disk=disk)
    return QuotaFigures(vms=1, cores=cores_of(config), memory=memory_of(config), disk=disk)
