# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of Ceph's monitors, managers and metadata servers, and their refusals before the first
write (pve-manager: PVE/API2/Ceph/MON.pm, MGR.pm, MDS.pm, PVE/Ceph/Services.pm).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict
from ...._foundation.core.result import Result
from ...._foundation.resource import run as simple
from ...._foundation.resource.table import Call, DesiredResource, Field, Key, ResourceChange, Table
from ...._foundation.resource.values import send_set

FORCE = "Wait until Ceph can lose it, or set force=true"
Check = Callable[[Api, str, str, str], None]
"""Raises Conflict if Ceph cannot lose the daemon. Arguments: client, node, name, attempted."""

_TITLES = {"mon": "Ceph monitor", "mgr": "Ceph manager", "mds": "Ceph metadata server"}
_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?")  # Services.pm, SERVICE_REGEX
_LONGEST = 200
# 192.0.2.1:6789/0, [2001:db8::1]:6789/0, or several with their protocols: [v2:...,v1:...]
_ADDRESS = re.compile(r"(?:^|[\[,])(?:v\d+:)?(?:\[([0-9a-fA-F:]+)\]|([0-9.]+))")


def read_safety(client: Api, node: str, service: str, name: str, action: str) -> Mapping[str, Any]:
    """Return Ceph's answer whether it can lose a daemon; one request.

    `service` is mon, mds or osd, `action` is stop or destroy (pve-manager: PVE/API2/Ceph.pm,
    cmd_safety).
    """
    answer: Mapping[str, Any] = client.get(
        *("nodes", node, "ceph", "cmd-safety"),
        params={"service": service, "id": name, "action": action},
        attempted=f"Could not ask Ceph if it can lose {service}.{name}",
    )
    return answer


def require_safe(answer: Mapping[str, Any], attempted: str, next_step: str = FORCE) -> None:
    """Raise Conflict if Ceph does not call an action safe (pure)."""
    if answer.get("safe"):
        return
    raise Conflict(
        f"{attempted}: Ceph cannot lose it now: {answer.get('status') or 'it gives no reason'}",
        next_step,
        "not safe",
    )


def daemon_name(value: str, option: str) -> str:
    """Return the name of a daemon. Raises ValidationFailed."""
    text = str(value)
    if not _NAME.fullmatch(text) or len(text) > _LONGEST:
        raise validate.refused(
            option, text, "is not the name of a daemon", "Use letters, digits and hyphens"
        )
    return text


def mds_name(value: str, option: str) -> str:
    """Return the name of a metadata server. Raises ValidationFailed for a name that begins with a
    digit, which Proxmox VE refuses (MDS.pm, createmds).
    """
    text = daemon_name(value, option)
    if text[0].isdigit():
        raise validate.refused(
            option, text, "begins with a digit", "Set a name that begins with a letter"
        )
    return text


def addresses(text: Any) -> frozenset[str]:
    """Return the IP addresses in Ceph's text of a daemon's address."""
    return frozenset(six or four for six, four in _ADDRESS.findall(str(text or "")))


def _wanted_addresses(value: Iterable[Any]) -> frozenset[str]:
    return frozenset(validate.address(str(one), None, "mon_address") for one in value)


def _kept_addresses(
    known: frozenset[str], wanted: frozenset[str], _desired: DesiredResource
) -> frozenset[str]:
    """Return the addresses after a task; Ceph may show only one of several addresses."""
    return known if known and known <= wanted else wanted


def pick(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the daemon with this name on this node, keyed like the parameters of requests."""
    row = _named(answer, keys["name"])
    if row is None or row.get("host") != keys["node"]:
        return None
    return _described(row)


def _described(row: Mapping[str, Any]) -> dict[str, Any]:
    return {**row, "mon-address": row.get("addr")}


def describe_daemons(table: Table, rows: Any) -> list[dict[str, Any]]:
    """Return the daemons of a listing in the form of results, sorted by name."""
    found = []
    for row in sorted(rows or [], key=lambda one: str(one["name"])):
        keys = {"node": row.get("host") or "", "name": row["name"]}
        found.append(table.show(keys, table.values(_described(row))))
    return found


def _named(rows: Any, name: str) -> Mapping[str, Any] | None:
    return next((row for row in rows or [] if row.get("name") == name), None)


def require_new(rows: Any, name: str, attempted: str) -> None:
    """Raise Conflict if a daemon of that name exists on another node (pure)."""
    row = _named(rows, name)
    if row is not None:
        raise Conflict(
            f"{attempted}: {name} exists on node {row.get('host') or 'unknown'}",
            "Set another name",
            "name in use",
        )


def require_other_manager(rows: Any, name: str, attempted: str) -> None:
    """Raise Conflict if no other manager is active or on standby (pure)."""
    others = [row for row in rows or [] if row.get("name") != name]
    if not any(row.get("state") in ("active", "standby") for row in others):
        raise Conflict(
            f"{attempted}: Ceph has no other manager",
            "Create a manager on another node first, or set force=true",
            "last manager",
        )


def _require_spare_monitor(client: Api, node: str, name: str, attempted: str) -> None:
    """Refuse to remove the last monitor, or a monitor that the quorum needs."""
    answer = read_safety(client, node, "mon", name, "destroy")
    require_safe(answer, attempted, "Create or start another monitor first")


def _require_spare_manager(client: Api, node: str, name: str, attempted: str) -> None:
    rows = client.get("nodes", node, "ceph", "mgr", attempted=attempted)
    require_other_manager(rows, name, attempted)


def _require_spare_metadata_server(client: Api, node: str, name: str, attempted: str) -> None:
    """Refuse to remove a metadata server that a file system needs."""
    require_safe(read_safety(client, node, "mds", name, "stop"), attempted)


def _precheck(
    service: str, check: Check, client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal before the first write; one request, none for a forced removal."""
    node, name = desired.keys["node"], desired.keys["name"]
    label = f"{_TITLES[service]} '{name}' of node {node}"
    if change.creates:
        attempted = f"{label} was not created"
        rows = client.get("nodes", node, "ceph", service, attempted=attempted)
        require_new(rows, name, attempted)
    elif change.deletes and not desired.force:
        check(client, node, name, f"{label} was not deleted")
    return ()


def _table(
    service: str, check: Check, fields: tuple[Field, ...], name: Callable[[str, str], str]
) -> Table:
    """Return the table of one kind of daemon."""
    place = ("nodes", "{node}", "ceph", service)
    one = Call((*place, "{name}"), is_task=True)
    return Table(
        kind=f"ceph_{service}",
        title=_TITLES[service],
        label_as=f"{_TITLES[service]} '{{name}}' of node {{node}}",
        keys=(Key("node", "host", validate.node), Key("name", "name", name)),
        fields=fields,
        read_only=(Field("state", "state"), Field("version", "ceph_version_short")),
        list_call=Call(place),
        read_call=Call(place),
        create_call=one,
        update_call=one,
        delete_call=one,
        pick=pick,
        precheck=partial(_precheck, service, check),
    )


_MON_ADDRESS = Field(
    "mon_address",
    "mon-address",
    want=_wanted_addresses,
    read=addresses,
    send=send_set(),
    fixed=True,
    merge=_kept_addresses,
    show=sorted,
)
MON = _table("mon", _require_spare_monitor, (_MON_ADDRESS,), daemon_name)
MGR = _table("mgr", _require_spare_manager, (), daemon_name)
MDS = _table("mds", _require_spare_metadata_server, (), mds_name)


def run_daemon(
    table: Table, params: Mapping[str, Any], client: Api, check_mode: bool = False
) -> Result:
    """Bring a daemon to the desired state; its name is the name of the node by default."""
    named = {**params, "name": params.get("name") or params["node"]}
    return simple.run(table, named, client, check_mode)


run_mon = partial(run_daemon, MON)
run_mgr = partial(run_daemon, MGR)
run_mds = partial(run_daemon, MDS)
