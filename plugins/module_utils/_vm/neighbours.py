# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A new VM's place, looked at again once others can see the VM (docs/decisions/0010-places-of-several-runs.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from .._cluster.picture import Picture, fill_names
from .._cluster.placement import Needs, why_not
from .._cluster.rules import Rules
from .._cluster.scene import Scene
from .._core.errors import Conflict, FleetError
from .model import Desired

# Why a VM that was made is gone again.
PLACE_TAKEN = "place taken"
# Seconds for which a VM waits until those with higher numbers have given way to it.
PATIENCE = 10.0


def shared_rules(desired: Desired) -> Rules | None:
    """Return those rules of a wish that VMs made by others at the same time can break, or None (pure)."""
    rules = replace(desired.rules, nodes=(), exclude=frozenset(), min_free_memory=None)
    near = rules.required and (rules.affinity or rules.anti_affinity)
    full = (rules.max_vms, rules.cpu_overcommit, rules.memory_overcommit)
    return rules if not desired.node and (near or any(limit is not None for limit in full)) else None


def why_crowded(picture: Picture, node: str, needs: Needs, rules: Rules) -> str | None:
    """Return why a VM should not be on the node it is on, as far as other VMs are the reason, or None (pure)."""
    if node not in picture.nodes or not picture.nodes[node].online:
        return None
    return why_not(picture, node, replace(needs, storages={}, only=None, cpus=0), rules)


def keep_place(
    scene: Scene,
    desired: Desired,
    needs: Needs,
    node: str,
    label: str,
    *,
    known: frozenset[int],
    remove: Callable[[], None],
) -> None:
    """Return when the new VM's place is right although others made VMs at the same time; one request, mostly.

    Where it is not, the VM with the highest number gives way: if that is this one, `remove` is called and Conflict
    raised. Else the others are waited for, and this one gives way too when they do not. `known` are the VMs that were
    there when this run began; they never give way. `needs` bears the VM's number.
    """
    rules = shared_rules(desired)
    if rules is None:
        return
    client, number = scene.client, needs.vmid or 0
    deadline = client.clock.monotonic() + PATIENCE
    pause = 0.25
    while True:
        picture = scene.now()
        if rules.needs_names:
            picture = fill_names(client, picture)
        reason = why_crowded(picture, node, needs, rules)
        if reason is None:
            return
        ahead = {vmid: row for vmid, row in picture.vms.items() if vmid in known or vmid < number}
        if why_crowded(replace(picture, vms=ahead), node, needs, rules) or client.clock.monotonic() > deadline:
            break
        client.clock.sleep(pause)
        pause = min(2.0, pause * 1.5)
    try:
        remove()
    except FleetError as failure:
        raise failure.on(
            attempted=f"{label} could not be removed again, and is where it should not be ({reason})",
            next_step="Remove it by hand, or move it: another run took its place meanwhile",
        ) from failure
    raise Conflict(
        attempted=f"{label} was removed again",
        answer=f"another run took its place meanwhile: {reason}",
        next_step="Run this again: the node is chosen anew",
        reason=PLACE_TAKEN,
        details={"removed": number},
    )
