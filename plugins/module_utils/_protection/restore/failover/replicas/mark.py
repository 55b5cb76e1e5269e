# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The mark of a failover in the comment of a replication job.

The job exists in the whole cluster, even while the node of its guest is lost. The mark is written
before the configuration of the guest is moved, and removed when the guest is up. With the mark, the
next run can complete an interrupted one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ....._foundation.resource.run import run
from ....._infrastructure.datacenter.replication import REPLICATION

if TYPE_CHECKING:
    from ....._foundation.api.client import Client

_MARK = re.compile(r" ?\[pve\.fleet: failover of=([\w.-]+) synced=(\d+) nics=([0-9a-f]+)\]\Z")


@dataclass(frozen=True)
class ReplicaMark:
    """The lost node of a guest, the time of the replica from which it comes up, and the fingerprint
    of its NICs after the tables are applied.
    """

    source: str
    synced: int
    nics: str


def guest_of(job: Mapping[str, Any]) -> int:
    """Return the VMID of a job's guest, or 0 if the job's ID contains no VMID (pure)."""
    vmid = str(job["id"]).partition("-")[0]
    return int(vmid) if vmid.isdigit() else 0


def mark_of(comment: object) -> ReplicaMark | None:
    """Return the mark in the comment of a job, or None (pure)."""
    found = _MARK.search(str(comment or ""))
    return None if found is None else ReplicaMark(found[1], int(found[2]), found[3])


def with_mark(comment: object, mark: ReplicaMark | None) -> str:
    """Return the comment of a job with this mark in place of any earlier one (pure)."""
    text = _MARK.sub("", str(comment or ""))
    if mark is None:
        return text
    values = f"of={mark.source} synced={mark.synced} nics={mark.nics}"
    return f"{text} [pve.fleet: failover {values}]".lstrip()


def write_mark(client: Client, job: str, comment: object, mark: ReplicaMark | None) -> list[str]:
    """Write or remove the mark of a job, and return the finished steps.

    The comment is the only field that is written: PVE swaps source and target of a job when its
    guest is on the target (pve-guest-common: PVE/ReplicationState.pm, job_status).
    """
    fields = tuple(one for one in REPLICATION.fields if one.option == "comment")
    comments = replace(REPLICATION, fields=fields, permanent=True)
    params = {"id": job, "comment": with_mark(comment, mark), "state": "present"}
    is_changed = run(comments, params, client).changed
    return [summary_of(job, mark)] if is_changed else []


def summary_of(job: str, mark: ReplicaMark | None) -> str:
    """Return the summary of the step that writes or removes a mark (pure)."""
    if mark is None:
        return f"Remove the mark of replication job {job}"
    return f"Mark replication job {job}: its guest is moved from node {mark.source}"
