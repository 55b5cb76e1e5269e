# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A resource of a test, stored as a job that synchronizes a realm (pve-access-control: PVE/API2/Jobs/RealmSync.pm)."""

from __future__ import annotations

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    Call,
    Key,
    Table,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.values import (
    flag_field,
    text_field,
)

_JOB = Call(("cluster", "jobs", "realm-sync", "{name}"))
BOOKMARK = Table(
    kind="bookmark",
    title="bookmark",
    keys=(Key("name", "id", validate.config_id),),
    fields=(
        text_field("realm", fixed=True, required=True),
        text_field("schedule", required=True, always=True),
        text_field("scope", required=True),
        flag_field("enabled", default=True),
        text_field("comment"),
    ),
    list_call=Call(("cluster", "jobs", "realm-sync")),
    read_call=_JOB,
    create_call=_JOB,
    update_call=_JOB,
    delete_call=_JOB,
)
