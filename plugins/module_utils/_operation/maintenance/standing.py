# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the cluster can lose a node now, and whether a node came back complete (pure)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._foundation.api.tasks import CONSOLE_TASKS
from ..._foundation.cluster.state import ClusterState
from ..._foundation.core.formatting import first_of
from ..._infrastructure.node.record import PENDING, NodeRecord
from .ha_places import faulty
from .model import HaManagerState, MaintenanceOptions
from .read import CephState, MaintenanceFacts, NodeState
from .times.estimate import duration

# Flags of Ceph that keep it from repairing itself, or from taking the OSDs of the node back.
_HINDERING = frozenset(("nobackfill", "noin", "norebalance", "norecover", "noup", "pause"))
# Locks of operations with which a migration would collide.
_LOCKS = frozenset(("backup", "create", "clone", "migrate", "rollback", "snapshot"))
# Tasks that an interrupted run of a maintenance can leave running.
_OWN = frozenset(
    ("qmigrate", "vzmigrate", "hamigrate", "qmshutdown", "vzshutdown", "hastop", "qmstart")
)
_MOVES = frozenset(("qmigrate", "vzmigrate", "hamigrate"))
# States of an HA resource that moves; the HA manager starts the move after its task C(hamigrate)
# (pve-ha-manager: PVE/HA/Manager.pm).
_HA_MOVES = frozenset(("migrate", "relocate"))
_MAX_NAMES = 10
# Seconds by which two readings of a boot time can differ.
_BOOT_TOLERANCE = 30


def find_blockers(facts: MaintenanceFacts, node: str, extra_votes: int) -> list[str]:
    """Return the reasons why the cluster cannot lose the node now, each in a sentence."""
    return [*(_quorum(facts, node) or _votes(facts, extra_votes)), *_troubles(facts, node)]


def find_unrest(facts: MaintenanceFacts) -> list[str]:
    """Return the reasons why no guest should move now, each in a sentence."""
    return [*_quorum(facts, ""), *_troubles(facts, "")]


def _troubles(facts: MaintenanceFacts, node: str) -> list[str]:
    """Return the reasons about other maintenances, Ceph and the HA manager."""
    manager = [f"the HA manager is in trouble: {text}" for text in faulty(facts.ha)]
    return [*_records(facts, node), *_ceph(facts.ceph), *manager]


def find_balancing(ha: HaManagerState, ha_maintenance: bool) -> list[str]:
    """Return why HA resources could arrive on a node that is not in HA maintenance mode."""
    if ha_maintenance or not ha.balances or not ha.managed:
        return []
    option = "crs.ha_auto_rebalance"
    reason = f"the HA manager balances its resources ({option}) and could move some onto it"
    return [f"{reason} (use its maintenance mode with ha_maintenance, or disable {option})"]


def find_late(windows: Sequence[str], available: float | None, needed: float) -> list[str]:
    """Return why moves of `needed` seconds do not fit into the windows, which have `available`
    seconds.
    """
    if available is None:
        return []
    if available == 0:
        return [f"the time is outside of the windows {', '.join(windows)}"]
    if needed > available:
        end = duration(available)
        return [f"the moves take about {duration(needed)}, and the window ends in {end}"]
    return []


def _quorum(facts: MaintenanceFacts, node: str) -> list[str]:
    if not facts.quorate:
        return ["the cluster has no quorum"]
    offline = sorted(name for name, online in facts.members.items() if not online and name != node)
    if offline:
        return [f"node {first_of(offline, _MAX_NAMES)} is offline already"]
    return []


def _votes(facts: MaintenanceFacts, extra_votes: int) -> list[str]:
    """Return the reason if too few votes remain for a quorum; each node has one vote."""
    votes = len(facts.members) + extra_votes
    remaining = votes - 1
    if remaining * 2 <= votes:
        figures = f"without it, {remaining} of {votes} votes remain, not enough for a quorum"
        return [f"{figures} (set extra_votes if a QDevice has votes)"]
    return []


def _records(facts: MaintenanceFacts, node: str) -> list[str]:
    started = [name for name, one in facts.records.items() if one.phase != PENDING and name != node]
    return [
        f"the maintenance of node {name} is not finished (run it for {name} first, or return its"
        " guests with state=returned)"
        for name in sorted(started)
    ]


def _ceph(ceph: CephState | None) -> list[str]:
    if ceph is None:
        return []
    found: list[str] = []
    hindering = sorted(ceph.flags & _HINDERING)
    if hindering:
        found.append(f"Ceph has the flags {', '.join(hindering)}, with which it does not recover")
    # The flag noout itself makes Ceph warn.
    is_healthy = ceph.health == "HEALTH_OK" or (
        ceph.health == "HEALTH_WARN" and "noout" in ceph.flags
    )
    if not is_healthy:
        found.append(f"Ceph is not healthy ({ceph.health})")
    return found


def own_tasks(tasks: Iterable[Mapping[str, Any]], record: NodeRecord | None) -> list[str]:
    """Return the running tasks that an interrupted run has left on guests of the record."""
    if record is None:
        return []
    known = {str(vmid) for vmid in record.guests}
    own = [row for row in tasks if row.get("type") in _OWN and row.get("id") in known]
    return [str(row["upid"]) for row in own]


def find_busy(
    facts: MaintenanceFacts,
    node: str,
    cluster: ClusterState,
    record: NodeRecord | None,
    held: Mapping[int, str],
) -> list[str]:
    """Return the operations that run on the node, each in a sentence: backups, snapshots, moves.
    `held` has the target site of each source of a move to another cluster, by VMID.

    Moves of guests of the record belong to the maintenance itself: the HA manager makes them in its
    maintenance mode.
    """
    own = set(own_tasks(facts.tasks, record))
    leaving = record.guests if record is not None else {}
    found: list[str] = []
    for row in facts.tasks:
        kind = str(row.get("type") or "task")
        if kind not in CONSOLE_TASKS and row["upid"] not in own:
            about = f" of guest {row['id']}" if str(row.get("id") or "").isdigit() else ""
            found.append(f"a task {kind}{about} runs on it")
    for guest in sorted(cluster.guests, key=lambda one: one.vmid):
        is_own = guest.lock == "migrate" and guest.vmid in leaving
        if guest.node == node and guest.lock in _LOCKS and not is_own:
            label = f"{guest.own_name or 'guest'} ({guest.vmid})"
            text = f"{label} has the lock {guest.lock}"
            if guest.vmid in held:
                text += f" as the source of its move to site {held[guest.vmid]}: complete or undo"
                text += " the move with pve.fleet.relocate"
            found.append(text)
    return found


def find_moves(
    tasks: Iterable[Mapping[str, Any]], current: Iterable[Mapping[str, Any]]
) -> list[str]:
    """Return the moves in progress, each in a sentence, from running tasks and the HA manager's
    current states. The lock of a guest is set later than its task starts (QemuMigrate.pm, phase1).
    """
    guests = {f"guest {row.get('id')}" for row in tasks if row.get("type") in _MOVES}
    guests |= {f"HA resource {row['sid']}" for row in current if row.get("state") in _HA_MOVES}
    return [f"{guest} is being moved" for guest in sorted(guests)]


def find_missing(record: NodeRecord, state: NodeState, options: MaintenanceOptions) -> list[str]:
    """Return the parts that a node has lost since its maintenance began, each in a sentence."""
    version = options.version
    storages = sorted(set(record.storages) - set(state.storages))
    services = sorted(set(record.services) - set(state.services))
    found = [f"storage {name} is not available" for name in storages]
    found += [f"service {name} does not run" for name in services]
    if options.rebooted and state.booted <= record.booted + _BOOT_TOLERANCE:
        found.append("it has not rebooted since it was evacuated")
    if version and state.version != version:
        found.append(f"it has version {state.version}, and {version} is expected")
    elif numbers_of(state.version) < numbers_of(record.version):
        found.append(f"it has version {state.version}, which is older than {record.version}")
    return found


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare it."""
    return tuple(int(part) for part in re.findall(r"\d+", version))
