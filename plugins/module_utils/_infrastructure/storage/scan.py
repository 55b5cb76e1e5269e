# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module storage_scan_info (pve-storage: PVE/API2/Storage/Scan.pm)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.core import validate
from ..._foundation.core.errors import ValidationFailed
from ..._foundation.core.result import Result

_OPTIONS = (
    "server",
    "portal",
    "vgname",
    "username",
    "server_password",
    "domain",
    "server_port",
    "fingerprint",
)
_PARAMETERS = {"vgname": "vg", "server_password": "password", "server_port": "port"}


@dataclass(frozen=True)
class StorageScan:
    """A scan for storages of one type.

    In a row of the answer, the key `field` has the value for option `option` of module storage, and
    the key `text` has a description.
    """

    path: str
    option: str
    field: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    text: str = ""


SCANS = {
    "cifs": StorageScan(
        "cifs",
        "share",
        "share",
        ("server",),
        ("username", "server_password", "domain"),
        "description",
    ),
    "iscsi": StorageScan("iscsi", "target", "target", ("portal",), text="portal"),
    "lvm": StorageScan("lvm", "vgname", "vg"),
    "lvmthin": StorageScan("lvmthin", "thinpool", "lv", ("vgname",)),
    "nfs": StorageScan("nfs", "export", "path", ("server",), text="options"),
    "pbs": StorageScan(
        "pbs",
        "datastore",
        "store",
        ("server", "username", "server_password"),
        ("server_port", "fingerprint"),
        "comment",
    ),
    "zfspool": StorageScan("zfs", "pool", "pool"),
}


def run(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the storages of a type that a node finds; one request. Nothing is written."""
    node, kind = validate.node(params["node"]), params["type"]
    scan, given = SCANS[kind], read_options(params)
    rows = client.get(
        "nodes",
        node,
        "scan",
        scan.path,
        params={_PARAMETERS.get(option, option): value for option, value in given.items()},
        attempted=f"Could not scan for storages of type {kind} on node {node}",
    )
    found = [describe(kind, given, row) for row in rows or ()]
    return Result(False, {"node": node, "found": found})


def read_options(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the scan (pure).

    Raises ValidationFailed for a missing option, and for an option that the type does not have.
    """
    kind = params["type"]
    scan = SCANS[kind]
    given = {name: params[name] for name in _OPTIONS if params.get(name) not in (None, "")}
    missing = [name for name in scan.required if name not in given]
    odd = [name for name in given if name not in (*scan.required, *scan.optional)]
    for names, verb, step in ((missing, "needs", "Set"), (odd, "does not have", "Leave out")):
        if names:
            raise ValidationFailed(
                f"The scan was refused: a scan for type {kind} {verb} {', '.join(names)}",
                f"{step} {', '.join(names)}",
                names[0],
            )
    return given


def describe(kind: str, given: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of the answer with the options of module storage that define it (pure).

    Sizes are in bytes. They are None for a ZFS pool, because Proxmox VE returns its free space as
    its size (Storage.pm, scan_zfs).
    """
    scan = SCANS[kind]
    known = {option: value for option, value in given.items() if option != "server_password"}
    size, free = row.get("size"), row.get("free")
    if kind == "lvmthin":
        size = row.get("lv_size")
        free = None if size is None else size - (row.get("used") or 0)
    if kind == "zfspool":
        size = free = None
    return {
        "storage": {"type": kind, **known, scan.option: row[scan.field]},
        "description": row.get(scan.text) or "",
        "size": size,
        "free": free,
    }
