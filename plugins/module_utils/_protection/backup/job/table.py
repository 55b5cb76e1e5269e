# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of backup jobs (pve-manager: PVE/API2/Backup.pm).

PVE has no digest for them. A job is read from the list, because PVE answers 400 for the path of a
job that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import ValidationFailed
from ...._foundation.core.times import iso
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, Table
from ...._foundation.resource.values import (
    as_flag,
    as_list,
    as_set,
    flag_field,
    send_flag,
    set_field,
    text_field,
)
from ...._infrastructure.datacenter.property_strings import (
    PropertyString,
    SubKey,
    flag,
    number,
    show_flag,
    show_number,
    show_text,
)
from ...._infrastructure.storage.values import PRUNE_BACKUPS
from .precheck import CHOICES, precheck_job

_ONE = Call(("cluster", "backup", "{name}"))


FLEECING = PropertyString(
    "fleecing",
    (
        SubKey("enabled", "enabled", flag, show_flag),
        SubKey("storage", "storage", lambda value, _what: str(value).strip(), show_text),
    ),
)
PERFORMANCE = PropertyString(
    "performance",
    (
        SubKey("max_workers", "max-workers", number(1, 256, whole=True), show_number),
        SubKey("pbs_entries_max", "pbs-entries-max", number(1, whole=True), show_number),
    ),
)


def retention(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a retention by PVE's keys; no options result in an empty retention.

    Raises ValidationFailed for a retention that PVE would refuse. A retention with only zeros is
    refused too: PVE would keep everything (pve-storage: Storage.pm, prune_mark_backup_group).
    """
    found = {key: text for key, text in PRUNE_BACKUPS.want(options).items() if text}
    counts = {key: text for key, text in found.items() if key != "keep-all" and text != "0"}
    keeps_all = found.get("keep-all") == "1"
    if keeps_all and counts:
        raise validate.refused(
            PRUNE_BACKUPS.option,
            "keep_all",
            "keeps everything, so that other numbers have no meaning",
            "Leave out keep_all, or the other numbers",
        )
    if found and not counts and not keeps_all:
        raise validate.refused(
            PRUNE_BACKUPS.option,
            0,
            "would keep every backup, as Proxmox VE reads a rule without a number above 0",
            "Set a number of at least 1, or keep_all=true",
        )
    return {"keep-all": "1"} if keeps_all else {**found, **counts}


def fleecing(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the fleecing settings by PVE's keys. Raises ValidationFailed."""
    found = {key: text for key, text in FLEECING.want(options).items() if text}
    if found.get("enabled") == "1" and "storage" not in found:
        raise validate.refused(
            "fleecing", "enabled", "needs a storage for the images", "Set fleecing.storage"
        )
    return found


def performance(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the performance settings by PVE's keys."""
    return {key: text for key, text in PERFORMANCE.want(options).items() if text}


def _string(string: PropertyString, want: Callable[[Mapping[str, Any]], dict[str, str]]) -> Field:
    return Field(
        string.option,
        string.option.replace("_", "-"),
        want=want,
        read=string.read,
        send=string.send,
        show=string.show,
    )


def _guests_field(option: str, name: str) -> Field:
    def want(value: Any) -> frozenset[int]:
        return frozenset(validate.vmid(one, option) for one in as_set()(value))

    def send(value: frozenset[int]) -> str | None:
        return ",".join(str(vmid) for vmid in sorted(value)) or None

    return Field(option, name, want=want, read=want, send=send, show=sorted)


def _number(option: str, default: int, maximum: float = float("inf")) -> Field:
    check = number(0, maximum, whole=True)

    def want(value: Any) -> int:
        return int(check(value, option) or default)

    def read(value: Any) -> int:
        return default if value in (None, "") else int(value)

    return Field(option, option, want=want, read=read, send=int)


def resolve(_client: Api, desired: DesiredResource) -> DesiredResource:
    """Return the desired job with the selection of guests that PVE would store (pure).

    A new selection replaces the former one (API2/Backup.pm, update_job). Raises ValidationFailed
    for a selection that PVE refuses.
    """
    values = dict(desired.values)
    chosen = [option for option in CHOICES if values.get(option)]
    given = [option for option in (*CHOICES, "exclude") if option in values]
    if not given or not desired.present:
        return desired
    attempted = "The guests of the backup job were refused"
    if len(chosen) > 1:
        raise ValidationFailed(
            f"{attempted}: a job has only one of {', '.join(chosen)}",
            "Set one of all, vms and pool",
            "guests of the job",
        )
    excludes = bool(values.get("exclude"))
    if excludes and chosen not in (["all"], ["pool"]):
        raise ValidationFailed(
            f"{attempted}: exclude needs all=true or a pool to leave guests out of",
            "Set all=true or pool in the same task, or leave out exclude",
            "guests of the job",
        )
    if not chosen and set(given) != {"exclude"}:
        raise ValidationFailed(
            f"{attempted}: the job would have no guests",
            "Set all=true, a pool, or at least one VMID in vms; enabled=false stops a"
            " job, and state=absent deletes it",
            "guests of the job",
        )
    if chosen:
        choice = chosen[0]
        values.update({"all": False, "vms": frozenset(), "pool": "", choice: values[choice]})
        if choice == "vms":
            values["exclude"] = frozenset()
    return DesiredResource(**{**vars(desired), "values": values})


def _of_name(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    rows = {str(row["id"]): row for row in answer or []}
    return rows.get(keys["name"])


BACKUP_JOB = Table(
    kind="backup_job",
    title="backup job",
    keys=(Key("name", "id", validate.config_id),),
    fields=(
        Field("schedule", "schedule", want=validate.schedule, required=True),
        flag_field("enabled", True),
        Field("all", "all", want=bool, read=as_flag(False), send=lambda value: int(value) or None),
        _guests_field("vms", "vmid"),
        text_field("pool"),
        _guests_field("exclude", "exclude"),
        text_field("node"),
        text_field("storage", always=True),
        text_field("mode"),
        text_field("compress"),
        _string(PRUNE_BACKUPS, retention),
        Field("remove", "remove", want=bool, read=as_flag(True), send=send_flag),
        text_field("notes_template"),
        flag_field("protected"),
        _string(FLEECING, fleecing),
        _number("bwlimit", 0),
        _number("ionice", 7, 8),
        _number("zstd", 1),
        _number("pigz", 0),
        _string(PERFORMANCE, performance),
        text_field("pbs_change_detection_mode"),
        Field(
            "exclude_path",
            "exclude-path",
            want=as_list("\0"),
            read=as_list("\0"),
            send=lambda value: list(value) or None,
            show=list,
        ),
        flag_field("stdexcludes", True),
        _number("lockwait", 180),
        _number("stopwait", 10),
        text_field("tmpdir"),
        text_field("script"),
        text_field("notification_mode"),
        set_field("mailto"),
        text_field("mailnotification"),
        flag_field("repeat_missed"),
        text_field("comment"),
    ),
    read_only=(Field("next_run", "next-run", read=lambda value: iso(int(value or 0))),),
    read_call=Call(("cluster", "backup")),
    create_call=Call(("cluster", "backup"), {"id": "{name}"}),
    update_call=_ONE,
    delete_call=_ONE,
    pick=_of_name,
    resolve=resolve,
    precheck=precheck_job,
)
