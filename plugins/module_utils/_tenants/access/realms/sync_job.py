# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of jobs that synchronize realms (pve-access-control: API2/Jobs/RealmSync.pm)."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ...._foundation.resource.values import flag_field, text_field
from .realm import kinds_of_realms, require_directory

_JOB = Call(("cluster", "jobs", "realm-sync", "{name}"))
_NOTHING = "none"


def _vanished(value: Any) -> frozenset[str] | None:
    """Return the parts to remove, None for a job that leaves them to the realm."""
    return None if value is None else frozenset(str(value).split(";")) - {_NOTHING}


def _send_vanished(parts: frozenset[str] | None) -> str | None:
    return None if parts is None else ";".join(sorted(parts)) or _NOTHING


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal of a new job before the first write; two requests."""
    if change.creates:
        attempted = f"{REALM_SYNC_JOB.label(desired.keys)} was not created"
        require_directory(kinds_of_realms(client), desired.values["realm"], attempted)
        backups = client.get("cluster", "backup", attempted="Could not list the backup jobs") or []
        require_free(desired.keys["name"], {str(row["id"]) for row in backups}, attempted)
    return ()


def require_free(name: str, backups: Collection[str], attempted: str) -> None:
    """Raise Conflict for the name of a backup job (pure)."""
    if name in backups:
        raise Conflict(
            f"{attempted}: a backup job has this name, and Proxmox VE keeps both kinds in one file",
            "Choose another name",
            "name in use",
        )


REALM_SYNC_JOB = Table(
    kind="realm_sync_job",
    title="realm sync job",
    keys=(Key("name", "id", validate.config_id),),
    fields=(
        text_field("realm", fixed=True, required=True),
        text_field("schedule", required=True, always=True, want=validate.schedule),
        text_field("scope", required=True),
        Field(
            "remove_vanished",
            "remove-vanished",
            want=frozenset,
            read=_vanished,
            send=_send_vanished,
            show=lambda parts: None if parts is None else sorted(parts),
        ),
        Field(
            "enable_new",
            "enable-new",
            want=bool,
            read=lambda value: None if value is None else bool(int(value)),
            send=lambda value: None if value is None else int(value),
        ),
        flag_field("enabled", default=True),
        text_field("comment"),
    ),
    list_call=Call(("cluster", "jobs", "realm-sync")),
    read_call=_JOB,
    create_call=_JOB,
    update_call=_JOB,
    delete_call=_JOB,
    precheck=precheck,
)
