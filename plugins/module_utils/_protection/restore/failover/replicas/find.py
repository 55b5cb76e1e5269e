# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the guests of lost nodes with their replicas, and reasons not to move a guest (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ....._foundation.cluster.state import ClusterState
from ....._foundation.core.arguments.options import did_you_mean
from ....._foundation.core.errors import FleetError
from ....._foundation.core.times import iso
from ....backup.archive import Archive
from ...choose import KINDS, ChosenArchive
from ...drill.isolate import find_obstacle
from .lines import FOLDERS, FoundConfig, LostNodes
from .mark import guest_of

_MEDIA = "media=cdrom"
_NEVER_TOO_OLD = 1 << 62  # replica time of a guest without a replica: `oldest` does not exclude it
_NO_MEDIUM = ("none", "cdrom")


@dataclass(frozen=True)
class ReplicaFacts:
    """The cluster: whether it has a quorum, whether each node is online, the replication jobs, the
    ZFS pools by storage, and the IDs of the HA resources.
    """

    quorate: bool
    members: Mapping[str, bool]
    jobs: Sequence[Mapping[str, Any]]
    pools: Mapping[str, str]
    managed: frozenset[str]


@dataclass(frozen=True)
class LostGuest:
    """A guest of a lost node with its replication job; `problem` is why it cannot come up."""

    chosen: ChosenArchive
    source: str
    target: str = ""
    job: str = ""
    comment: str = ""
    problem: str = ""

    @property
    def vmid(self) -> int:
        """The VMID, which does not change."""
        return self.chosen.archive.vmid or 0

    def file_on(self, node: str) -> str:
        """Return the path of its configuration on a node."""
        folders = {kind: folder for folder, kind in FOLDERS.items()}
        folder = folders[self.chosen.archive.type]
        return f"/etc/pve/nodes/{node}/{folder}/{self.vmid}.conf"


def find_node_problems(
    replicas: LostNodes, facts: ReplicaFacts, cluster: ClusterState, *, rehearsal: bool
) -> list[str]:
    """Return a sentence about each reason why no guest of these nodes can be moved."""
    problems: list[str] = []
    if not facts.quorate:
        problems.append(
            "the cluster has no quorum, so that PVE moves no configuration: see pvecm expected"
        )
    for node in sorted({*replicas.lost, *replicas.newest} - facts.members.keys()):
        problems.append(f"there is no node {node}{did_you_mean(node, facts.members)}")
    if not rehearsal:
        problems += find_online(replicas, facts.members)
    for node in sorted(replicas.newest):
        if facts.members.get(node) is False:
            problems.append(f"node {node}, which has replicas, is offline")
    known = {(one.node, one.vmid) for one in replicas.configs}
    for row in cluster.guests:
        if row.node in replicas.lost and (row.node, row.vmid) not in known:
            problems.append(
                f"the configuration of guest {row.vmid} on node {row.node} is not given"
            )
    return problems


def find_online(replicas: LostNodes, members: Mapping[str, bool]) -> list[str]:
    """Return a sentence about each node that is not lost."""
    online = [node for node in sorted(replicas.lost) if members.get(node)]
    return [f"node {node} is online, so that its guests may run there" for node in online]


def find_lost(replicas: LostNodes, facts: ReplicaFacts, cluster: ClusterState) -> list[LostGuest]:
    """Return the guests whose configuration is still on a lost node, each with its best replica."""
    found: list[LostGuest] = []
    for one in replicas.configs:
        row = cluster.guest(one.vmid)
        if row is not None and row.node == one.node and one.node in replicas.lost:
            found.append(_with_replica(one, replicas, facts, cluster))
    return found


def _with_replica(
    one: FoundConfig, replicas: LostNodes, facts: ReplicaFacts, cluster: ClusterState
) -> LostGuest:
    """Return a guest with its newest complete replica, or with the reason why there is none."""
    problems = [f"no replication job copies it to {', '.join(sorted(replicas.newest))}"]
    best: LostGuest | None = None
    for job in facts.jobs:
        target, is_own = str(job.get("target")), guest_of(job) == one.vmid
        if not is_own or job.get("remove_job") or target not in replicas.newest:
            continue
        times = _times_of(one, job, replicas.newest[target], facts.pools, cluster)
        if isinstance(times, str):
            problems.append(times)
            continue
        comment = str(job.get("comment") or "")
        chosen = chosen_of(one.type, one.vmid, one.config, str(job["id"]), times)
        problem = _obstacle(one, target, cluster)
        guest = LostGuest(chosen, one.node, target, str(job["id"]), comment, problem)
        if best is None or best.chosen.archive.time < times:
            best = guest
    if best is not None:
        return best
    chosen = chosen_of(one.type, one.vmid, one.config, "", _NEVER_TOO_OLD)
    return LostGuest(chosen, one.node, problem=problems[-1])


def chosen_of(
    type: str, vmid: int, config: Mapping[str, str], job: str, synced: int
) -> ChosenArchive:
    """Return a guest with its replica in the form from which a failover chooses guests: an archive
    whose time is the time of the replica.
    """
    return ChosenArchive(Archive(f"replica {job}", "", "", "", "", type, vmid, synced, 0), config)


def _times_of(
    one: FoundConfig,
    job: Mapping[str, Any],
    newest: Mapping[tuple[str, str], int],
    pools: Mapping[str, str],
    cluster: ClusterState,
) -> int | str:
    """Return the time of a replica of all local disks, or the reason why there is none."""
    target, times = job.get("target"), {}
    for slot, drive in KINDS[one.type].disks_in(one.config).items():
        storage, _colon, name = drive.get("file", "").partition(":")
        if slot.startswith("unused") or storage in cluster.shared_storages:
            continue
        dataset = f"{pools.get(storage)}/{name.rpartition('/')[2]}"
        time = newest.get((dataset, str(job["id"])))
        if time is None:
            return f"its {slot} ({storage}:{name}) has no replica of job {job['id']} on {target}"
        times[slot] = time
    if not times:
        return f"none of its disks is replicated by job {job['id']}"
    if len(set(times.values())) > 1:
        listed = ", ".join(f"{slot} of {iso(time)}" for slot, time in sorted(times.items()))
        return f"its replicas on {target} are of different times: {listed}"
    return min(times.values())


def _obstacle(one: FoundConfig, target: str, cluster: ClusterState) -> str:
    """Return why a guest cannot be started on another node, or an empty text."""
    lock = one.config.get("lock")
    if lock:
        return f"it has the lock {lock}, so that PVE does not start it"
    problem = find_obstacle(KINDS[one.type], one.config)
    if problem:
        return problem
    # No medium is replicated; PVE creates the cloud-init drive again (qemu-server: Cloudinit.pm,
    # commit_cloudinit_disk).
    for slot, value in sorted(one.config.items()):
        volume = value.partition(",")[0]
        storage = volume.partition(":")[0]
        is_medium = _MEDIA in value and "cloudinit" not in volume and volume not in _NO_MEDIUM
        if is_medium and storage not in cluster.shared_storages:
            return f"its {slot} has {volume}, which may be missing on node {target}: eject it"
    return ""


def why_no_place(error: FleetError, target: str) -> str:
    """Return why a guest has no place on the node with its replica."""
    reasons = error.details.get("nodes") or {}
    return str(reasons.get(target) or error.cause)
