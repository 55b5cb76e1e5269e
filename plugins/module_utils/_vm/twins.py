# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A VM of the same name that was being made already when a run found none.

While PVE makes a clone nobody can tell its name: neither the listing nor its configuration has it, only the lock. Such
a clone may be what an interrupted run of ours left, or what another run makes at the same moment. To wait for all of
them would let runs wait for each other, so a run makes its own VM and then looks again, before anything starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from .._cluster.picture import Picture, ask_nodes
from .._cluster.scene import Scene
from .._cluster.tenant import parse_tags, tenants_of
from .._core.errors import Conflict, NotFound
from .marker import split_notes
from .model import Desired

# Why a VM that was made is gone again, although there is one of its name now.
TWIN = "made meanwhile"
# Seconds for which a VM waits until its twin with a higher number has given way to it.
PATIENCE = 10.0


def nameless(picture: Picture) -> frozenset[int]:
    """Return the VMs that are being made and whose names nobody can tell yet (pure)."""
    return frozenset(row.vmid for row in picture.vms.values() if row.lock in ("clone", "create") and not row.own_name)


def newcomers(picture: Picture, known: Collection[int], vmid: int) -> frozenset[int]:
    """Return the VMs with lower numbers than `vmid` that others made since `known` were seen (pure).

    Of two runs that make a VM of one name at the same moment, the one with the lower number keeps it.
    """
    return frozenset(row.vmid for row in picture.vms.values() if row.vmid < vmid and row.vmid not in known)


def yield_to_twin(
    scene: Scene, desired: Desired, vmid: int, suspects: Collection[int], remove: Callable[[], None]
) -> None:
    """Call `remove` and raise Conflict, with the twin's number in its details, where a suspect is the VM that is meant.

    Where the scene tells which VMs it is familiar with, all others are suspects: runs over lists do not meet at one
    number, so each looks once its VM can be seen. The VM with the higher number gives way at once. The other one waits
    for that, and gives way too where nothing happens: its twin looked before it was there, and stays. Makes no request
    without suspects; else one, one a node that has some, and one for each of that name.
    """
    familiar = scene.familiar()
    if desired.vmid is not None or not desired.name or (not suspects and familiar is None):
        return
    clock = scene.client.clock
    deadline, pause = clock.monotonic() + PATIENCE, 0.25
    while True:
        picture = scene.seen()
        others = frozenset() if familiar is None else picture.vms.keys() - familiar - {vmid}
        twin = _find_twin(scene, desired, picture, {*suspects, *others})
        if twin is None:
            return
        if twin in suspects or twin < vmid or clock.monotonic() > deadline:
            break
        clock.sleep(pause)
        pause = min(2.0, pause * 1.5)
    remove()
    raise Conflict(
        attempted=f"New {desired.label} ({vmid}) was removed again",
        answer=f"VM {twin} of that name was being made already",
        next_step="Run this again: it goes on with that one",
        reason=TWIN,
        details={"removed": vmid, "twin": twin},
    )


def _find_twin(scene: Scene, desired: Desired, picture: Picture, suspects: Collection[int]) -> int | None:
    """Return the lowest number of a suspect that is the VM that is meant, or None."""
    nodes = {row.node for row in picture.vms.values() if row.vmid in suspects}
    if not nodes:
        return None
    picture = ask_nodes(scene.client, picture, nodes)
    for row in sorted(picture.vms.values(), key=lambda one: one.vmid):
        if row.vmid not in suspects or row.name != desired.name:
            continue
        try:
            config = scene.client.get("nodes", row.node, "qemu", row.vmid, "config")
        except NotFound:
            continue  # it has given way
        if is_meant(config, desired):
            return row.vmid
    return None


def is_meant(config: Mapping[str, Any], desired: Desired) -> bool:
    """Tell whether a VM of the right name is the tenant's, or will be when it is finished (pure)."""
    marker = split_notes(config.get("description"))[1]
    if marker.building:
        return marker.tenant == desired.tenant_tag
    owners = tenants_of(parse_tags(str(config.get("tags") or "")), desired.tenant_prefix)
    return tuple(owners) == ((desired.tenant_tag,) if desired.tenant_tag else ())
