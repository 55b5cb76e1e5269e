# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of replication jobs (pve-manager: PVE/API2/ReplicationConfig.pm)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.storages.volume_users import SLOT
from ..._foundation.cluster.tenant import owns, parse_tags, tenant_tag
from ..._foundation.core import propstring, validate
from ..._foundation.core.errors import (
    ConfigurationError,
    Conflict,
    ForeignTenant,
    NotSupported,
    UnknownVm,
)
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run
from ..._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ..._foundation.resource.values import flag_field, text_field

_ALL = Call(("cluster", "replication"))
_ONE = Call(("cluster", "replication", "{id}"))
_ID = re.compile(r"[1-9][0-9]{2,8}-[0-9]{1,9}")
Rows = Sequence[Mapping[str, Any]]
_DEFAULT_SCHEDULE = "*/15"
_REPLICATED = "zfspool"
_DRIVE = {"file": {"default_key": 1, "alias": ""}}


def job_id(value: str, what: str = "id") -> str:
    """Return the ID of a job: the VMID of its guest and a number."""
    if not _ID.fullmatch(value):
        raise validate.refused(
            what, value, "is not the ID of a replication job", "Write it as VMID-NUMBER: 100-0"
        )
    return value


def _schedule(value: Any) -> str:
    return validate.schedule(value) if str(value).strip() else _DEFAULT_SCHEDULE


def _rate(value: Any) -> str:
    """Return a rate in MB/s as PVE writes it, or an empty text if there is no limit."""
    text = str("" if value is None else value).strip()
    if not text:
        return ""
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 1 <= rate < float("inf"):
        raise validate.refused("rate", text, "is not a rate", "Use a number from 1 on, in MB/s")
    return f"{rate:g}"


def _is_leaving(row: Mapping[str, Any]) -> bool:
    """Return whether the next run of the node deletes the job."""
    return bool(row.get("remove_job"))


def _remaining(answer: Any, _keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    return None if _is_leaving(answer) else answer


REPLICATION = Table(
    kind="replication",
    title="replication job",
    keys=(Key("id", "id", job_id),),
    fields=(
        text_field("target", fixed=True, required=True),
        text_field("schedule", default=_DEFAULT_SCHEDULE, want=_schedule),
        Field("rate", "rate", want=_rate, read=_rate, send=lambda value: value or None),
        flag_field("disable"),
        text_field("comment"),
    ),
    read_only=(Field("source", "source"),),
    digest=("PUT",),
    list_call=_ALL,
    read_call=_ONE,
    create_call=Call(_ALL.path, {"id": "{id}", "type": "local"}),
    pick=_remaining,
    rows=lambda answer, _keys: [row for row in answer or [] if not _is_leaving(row)],
    derived=lambda keys: {"vmid": int(keys["id"].partition("-")[0])},
)


def run_replication(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring a replication job to the desired state and return the outcome."""
    table = replace(REPLICATION, precheck=partial(precheck, params.get("tenant")))
    if params.get("force"):
        table = replace(table, delete_call=replace(_ONE, data={"force": "1"}))
    return run(table, params, client, check_mode)


def precheck(
    tenant: str | None, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal before the first write.

    One request for a new job or a task with a tenant; for a new job, one each for the list of jobs,
    the configuration of the guest and the storages.
    """
    attempted = f"{REPLICATION.label(desired.keys)} was not changed"
    if change.creates or tenant is not None:
        rows = client.get("cluster", "resources", attempted="Could not list the guests") or []
        require_guest(desired.keys["id"], tenant, rows, attempted)
        if change.creates:
            require_target(desired, rows, attempted)
            jobs = client.get(*_ALL.path, attempted="Could not list the replication jobs") or []
            require_new(desired, jobs, attempted)
            guest = _guest(desired.keys["id"], rows) or {}
            path = ("nodes", str(guest["node"]), str(guest["type"]), str(guest["vmid"]), "config")
            config = client.get(*path, attempted="Could not read the configuration of the guest")
            storages = client.get("storage", attempted="Could not list the storages") or []
            require_replicable(config, storages, attempted)
    return ()


def require_replicable(config: Mapping[str, Any], storages: Rows, attempted: str) -> None:
    """Raise NotSupported for a local volume outside a ZFS pool, and if there is none at all (pure).

    Volumes on storages that the login may not see are left to PVE (qemu-server: QemuConfig.pm, and
    pve-container: LXC/Config.pm, get_replicatable_volumes).
    """
    known = {str(row["storage"]): row for row in storages}
    undecided = False
    for key in sorted(filter(SLOT.fullmatch, config)):
        values = propstring.parse(str(config[key]), _DRIVE, what=key)
        storage = known.get(values["file"].partition(":")[0])
        if values.get("media") == "cdrom" or values.get("replicate") == "0":
            continue
        is_local = storage is not None and not storage.get("shared")
        if is_local and storage is not None and storage.get("type") != _REPLICATED:
            raise _not_replicable(
                attempted,
                f"{key} is on storage {storage['storage']} of type {storage['type']}, and only"
                f" volumes of type {_REPLICATED} can be replicated",
                "Move it to such a storage, or exclude it with replicate=false",
            )
        undecided = undecided or is_local or storage is None
    if not undecided:
        answer = "the guest has no volume that can be replicated"
        raise _not_replicable(attempted, answer, f"Give it a disk on type {_REPLICATED}")


def _not_replicable(attempted: str, answer: str, next_step: str) -> NotSupported:
    return NotSupported(f"{attempted}: {answer}", next_step, "not replicable")


def _guest(job: str, rows: Rows) -> Mapping[str, Any] | None:
    vmid = job.partition("-")[0]
    return next((row for row in rows if str(row.get("vmid", "")) == vmid), None)


def require_guest(job: str, tenant: str | None, rows: Rows, attempted: str) -> None:
    """Raise UnknownVm if the guest does not exist, and ForeignTenant if it does not belong to the
    tenant of the task (pure).
    """
    guest = _guest(job, rows)
    vmid = job.partition("-")[0]
    if guest is None:
        raise UnknownVm(
            f"{attempted}: there is no guest {vmid} that this user or token may see",
            "Check the VMID at the beginning of id",
            "unknown VM",
        )
    if tenant is not None and not owns(tenant_tag(tenant), parse_tags(guest.get("tags"))):
        raise ForeignTenant(
            f"{attempted}: guest {vmid} does not belong to tenant {tenant}",
            f"Check its tag, which must be {tenant_tag(tenant)}",
            "another tenant",
        )


def require_target(desired: DesiredResource, rows: Rows, attempted: str) -> None:
    """Raise ConfigurationError for an unknown target, or if the guest is on the target (pure)."""
    nodes = sorted(str(row["node"]) for row in rows if row.get("type") == "node")
    target = desired.values["target"]
    guest = _guest(desired.keys["id"], rows) or {}
    if target in nodes and target != guest.get("node"):
        return
    if target in nodes:
        answer = f"the guest runs on {target} itself"
    else:
        answer = f"there is no node {target}; the cluster has {', '.join(nodes)}"
    raise ConfigurationError(f"{attempted}: {answer}", "Check target", "target")


def require_new(desired: DesiredResource, jobs: Rows, attempted: str) -> None:
    """Raise Conflict if the guest has a job with this target, or if the old job of this ID is
    still being deleted (pure).
    """
    name, target = desired.keys["id"], desired.values["target"]
    vmid = int(name.partition("-")[0])
    for job in jobs:
        if job["id"] == name:
            raise Conflict(
                f"{attempted}: the job of this ID is being deleted by its node",
                "Run this again in a minute, or delete it with force=true",
                "being deleted",
            )
        if int(job.get("guest", 0)) == vmid and job.get("target") == target:
            raise Conflict(
                f"{attempted}: job {job['id']} replicates this guest to {target}",
                f"Use the ID {job['id']}, or another target",
                "target in use",
            )
