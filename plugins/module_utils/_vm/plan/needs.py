# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The needs of a VM on its node (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from ..._cluster.placement import Needs
from ..config.actual import bridges_of, drives, is_cloud_init, is_disk, storage_of
from ..config.changes import Change
from ..config.memory import cores_of, cpus_of, memory_of
from ..model import DesiredVm


def needs_of(
    desired: DesiredVm, config: Mapping[str, str], change: Change, *, vmid: int | None = None
) -> Needs:
    """Return the needs of a VM with this configuration on its node."""
    storages: dict[str, str] = {}
    for slot, drive in drives(config).items():
        if slot in change.gone:
            continue
        is_allocated = is_disk(drive) or is_cloud_init(drive)
        storage = storage_of(drive) or "/"
        is_path = storage.startswith("/")
        if is_allocated and not is_path:
            storages[storage] = "images"
    storages.update(change.drives.storages)
    memory = memory_of(config)
    cpus = 0
    running_memory = 0
    if desired.guest.state == "started":
        cpus = cpus_of(config)
        running_memory = memory
    return Needs(
        storages=storages,
        memory=memory,
        cores=cores_of(config),
        cpus=cpus,
        running_memory=running_memory,
        bridges=frozenset(bridges_of(config).values()),
        vmid=vmid,
        tenant_tag=desired.guest.tenant_tag,
        prefix=desired.guest.tenant_prefix,
        label=desired.guest.name or str(vmid or ""),
    )
