# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the desired backups from the options of module backup (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...._foundation.cluster.find.owner import OwnerScope, owner_of
from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.parallel import ConcurrencyLimits
from ...snapshot.names import seconds
from ..job.table import BACKUP_JOB, FLEECING, fleecing, retention
from ..select import is_named

_PLAIN = {
    "mode": "mode",
    "compress": "compress",
    "notes_template": "notes-template",
    "bwlimit": "bwlimit",
    "pbs_change_detection_mode": "pbs-change-detection-mode",
}
# Options with the values and parameters of a backup job.
_AS_IN_JOB = frozenset(
    "ionice zstd pigz performance exclude_path stdexcludes lockwait stopwait tmpdir script"
    " notification_mode mailto mailnotification".split()
)


@dataclass(frozen=True)
class DesiredBackup:
    """The desired backups. `data` are parameters of PVE, `max_age` and `timeout` are seconds.

    `keep` is None if no archive is removed. `now` is the time of the run.
    """

    owner: OwnerScope
    storage: str
    data: Mapping[str, Any]
    keep: Mapping[str, str] | None
    max_age: int | None
    limits: ConcurrencyLimits
    timeout: int
    now: float

    def describe_limits(self) -> str:
        """Return the limits of concurrent backups in words."""
        text = f"at most {self.limits.all} at the same time, {self.limits.node} on a node"
        if self.limits.storage:
            text += f", {self.limits.storage} to storage {self.storage}"
        return text


def read_desired(params: Mapping[str, Any], now: float) -> DesiredBackup:
    """Return the desired backups. Raises ValidationFailed."""
    owner = owner_of(params)
    if not is_named(params) and not any((owner.tag, params.get("tags"), params.get("pool"))):
        raise ValidationFailed(
            "No guest was chosen: none of name, vmid, vms, tenant, tags and pool is given",
            "Give one of them",
            "no guest",
        )
    storage = validate.storage(params["storage"])
    # With `remove`, PVE would apply the rule of the storage or node, without a preview.
    data: dict[str, Any] = {"storage": storage, "remove": 0}
    for option, name in _PLAIN.items():
        if params.get(option) not in (None, ""):
            data[name] = params[option]
    for field in BACKUP_JOB.fields:
        if field.option in _AS_IN_JOB and params.get(field.option) not in (None, ""):
            value = field.send(field.want(params[field.option]))
            data.update({} if value is None else {field.property: value})
    if params.get("protected"):
        data["protected"] = 1
    if params.get("fleecing"):
        data["fleecing"] = FLEECING.send(fleecing(params["fleecing"]))
    max_age = params.get("max_age")
    per_storage = params.get("parallel_per_storage") or 0
    limits = ConcurrencyLimits(
        all=validate.count(params.get("parallel"), 4, "parallel"),
        node=1,  # pve-manager: PVE/VZDump.pm, getlock
        storage=validate.number(per_storage, 0, 1000, "parallel_per_storage"),
    )
    return DesiredBackup(
        owner=owner,
        storage=storage,
        data=data,
        keep=_read_keep(params.get("keep")),
        max_age=None if max_age is None else seconds(str(max_age), "max_age"),
        limits=limits,
        timeout=validate.count(params.get("task_timeout"), 10800, "task_timeout"),
        now=now,
    )


def _read_keep(keep: Mapping[str, Any] | None) -> Mapping[str, str] | None:
    """Return the retention. Raises ValidationFailed for an empty retention."""
    if keep is None:
        return None
    found = retention(keep)
    if not found:
        raise validate.refused("keep", {}, "has no rule", "Set keep_last, or leave out keep")
    return found
