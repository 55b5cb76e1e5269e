# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Short tables of resources of PVE. They show what the engine reaches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.pve.fleet.plugins.module_utils._foundation.core import validate
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.table import (
    Call,
    Field,
    Key,
    Table,
)
from ansible_collections.pve.fleet.plugins.module_utils._foundation.resource.values import (
    as_list,
    as_set,
    flag_field,
    send_list,
    send_set,
    set_field,
    text_field,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.resource import (
    HA_RESOURCE,
)
from ansible_collections.pve.fleet.plugins.module_utils._infrastructure.datacenter.ha.rule import (
    HA_RULE,
)

_STORAGE = Call(("storage", "{name}"))
STORAGE = Table(
    kind="storage",
    keys=(Key("name", "storage", validate.storage),),
    fields=(
        text_field("type", fixed=True, required=True),
        set_field("content"),
        set_field("nodes"),
        flag_field("disable"),
        flag_field("shared", variants=("dir", "lvm")),
        text_field("path", fixed=True, required=True, variants=("dir",)),
        text_field("server", fixed=True, required=True, variants=("nfs", "cifs", "pbs")),
        text_field("export", fixed=True, required=True, variants=("nfs",)),
        text_field("options", variants=("nfs", "cifs")),
        text_field("vgname", fixed=True, required=True, variants=("lvm", "lvmthin")),
        text_field("thinpool", fixed=True, required=True, variants=("lvmthin",)),
    ),
    variant="type",
    digest=("PUT",),
    list_call=Call(("storage",)),
    read_call=_STORAGE,
    create_call=Call(("storage",), {"storage": "{name}"}),
    update_call=_STORAGE,
    delete_call=_STORAGE,
)

_JOB = Call(("cluster", "backup", "{name}"))
BACKUP_JOB = Table(
    kind="backup_job",
    title="backup job",
    keys=(Key("name", "id", validate.config_id),),
    fields=(
        text_field("schedule", required=True),
        text_field("storage"),
        text_field("mode"),
        flag_field("enabled", default=True),
        text_field("comment"),
        Field("vms", "vmid", want=as_set(), read=as_set(), send=send_set(), show=sorted),
        Field("mail_to", "mailto", want=as_list(), read=as_list(), send=send_list(), show=list),
    ),
    list_call=Call(("cluster", "backup")),
    read_call=_JOB,
    create_call=Call(("cluster", "backup"), {"id": "{name}"}),
    update_call=_JOB,
    delete_call=_JOB,
)


def _zone(answer: Any, _keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return a zone as it will be: its values with the pending ones above them."""
    if answer.get("state") == "deleted":
        return None
    return {**answer, **answer.get("pending", {})}


_ZONE = Call(("cluster", "sdn", "zones", "{name}"))
SDN_ZONE = Table(
    kind="sdn_zone",
    title="SDN zone",
    keys=(Key("name", "zone", validate.config_id),),
    fields=(
        text_field("type", fixed=True, required=True),
        set_field("nodes"),
        text_field("bridge", required=True, variants=("vlan", "qinq")),
        Field("tag", "tag", want=int, read=lambda value: int(value or 0), variants=("qinq",)),
        Field(
            "peers",
            "peers",
            want=as_list(),
            read=as_list(),
            send=send_list(),
            show=list,
            variants=("vxlan",),
        ),
    ),
    variant="type",
    digest=("PUT",),
    pick=_zone,
    list_call=Call(("cluster", "sdn", "zones")),
    read_call=Call(_ZONE.path, {"pending": "1"}),
    create_call=Call(("cluster", "sdn", "zones"), {"zone": "{name}"}),
    update_call=_ZONE,
    delete_call=_ZONE,
    commit_call=Call(("cluster", "sdn"), is_task=True),
    is_pending=lambda answer, _keys: bool(answer.get("state")),
)

TABLES = (HA_RULE, HA_RESOURCE, STORAGE, BACKUP_JOB, SDN_ZONE)
