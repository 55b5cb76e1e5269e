# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of storages, and the work of module storage_info (pve-storage: PVE/API2/Storage/Config.pm and
the plugins of each type).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..._foundation.api.interface import Api
from ..._foundation.cluster.storages.types import FILES, NETWORKED, OVERRIDES
from ..._foundation.core import validate
from ..._foundation.core.result import Result
from ..._foundation.resource.run import run_info
from ..._foundation.resource.table import Call, Field, Key, Table, as_text
from ..._foundation.resource.values import (
    flag_field,
    plain_host,
    secret,
    send_text,
    set_field,
    text_field,
)
from ..datacenter.table import BWLIMIT
from ..storage import values
from .precheck import precheck_storage


def _fixed(option: str, *variants: str, **more: Any) -> Field:
    """Return a text field that a new storage of these types requires, and that is never changed."""
    check = values.required_text(more.pop("want", as_text), option)
    return text_field(option, want=check, fixed=True, required=True, variants=variants, **more)


_BASIC = (
    text_field("type", fixed=True, required=True),
    Field(
        "content",
        "content",
        want=values.content,
        read=values.read_content,
        send=values.send_content,
        show=sorted,
    ),
    set_field("nodes"),
    flag_field("disable"),
    flag_field("shared", variants=("btrfs", "dir", "esxi", "lvm")),
)
_FILES = (
    Field(
        "path",
        "path",
        want=values.path,
        read=values.read_path,
        fixed=True,
        required=("btrfs", "dir"),
        variants=FILES,
    ),
    Field(
        "content_dirs",
        "content-dirs",
        want=values.directories,
        read=values.read_directories,
        send=values.send_directories,
        show=dict,
        variants=OVERRIDES,
    ),
    Field(
        "prune_backups",
        "prune-backups",
        want=values.retention,
        read=values.read_retention,
        send=values.PRUNE_BACKUPS.send,
        show=values.show_retention,
        variants=(*FILES, "pbs"),
    ),
    Field(
        "max_protected_backups",
        "max-protected-backups",
        want=values.whole("max_protected_backups", -1, 999999999),
        send=send_text,
        show=values.show_number,
        variants=(*FILES, "pbs"),
    ),
    text_field("format", variants=FILES),
    text_field("preallocation", variants=("btrfs", "cifs", "dir", "nfs")),
    flag_field("create_base_path", default=True, variants=FILES),
    flag_field("create_subdirs", default=True, variants=FILES),
    Field(
        "is_mountpoint",
        "is_mountpoint",
        want=values.mountpoint_flag,
        read=lambda value: values.mountpoint_flag(value or ""),
        send=values.send_mountpoint_flag,
        variants=("btrfs", "dir"),
    ),
    flag_field("nocow", variants=("btrfs",)),
)
_REMOTE = (
    text_field(
        "server",
        fixed=("cifs", "nfs", "pbs"),
        required=True,
        want=values.required_text(plain_host, "server"),
        read=plain_host,
        variants=("cifs", "esxi", "nfs", "pbs"),
    ),
    Field(
        "server_port",
        "port",
        want=values.whole("server_port", 1, 65535),
        send=send_text,
        show=values.show_number,
        variants=("esxi", "pbs"),
    ),
    _fixed("export", "nfs", want=values.absolute_path["export"]),
    _fixed("share", "cifs"),
    text_field("subdir", want=values.absolute_path["subdir"], variants=("cephfs", "cifs")),
    text_field(
        "options", want=values.mount_options, read=values.read_mount_options, variants=NETWORKED
    ),
    text_field("username", required=("esxi",), variants=("cephfs", "cifs", "esxi", "pbs", "rbd")),
    text_field("domain", variants=("cifs",)),
    text_field("smbversion", variants=("cifs",)),
    flag_field("skip_cert_verification", variants=("esxi",)),
    _fixed("datastore", "pbs"),
    text_field("namespace", variants=("pbs", "rbd")),
    text_field(
        "fingerprint",
        want=lambda text: values.fingerprint(text).lower(),
        read=lambda text: str(text or "").lower(),
        variants=("pbs",),
    ),
)
_BLOCK = (
    _fixed("vgname", "lvm", "lvmthin", want=values.vg_name["vgname"]),
    _fixed("thinpool", "lvmthin", want=values.vg_name["thinpool"]),
    text_field("base", fixed=True, variants=("lvm",)),
    flag_field("saferemove", variants=("lvm",)),
    text_field("saferemove_stepsize", variants=("lvm",)),
    Field("saferemove_throughput", "saferemove_throughput", send=send_text, variants=("lvm",)),
    Field(
        "tagged_only",
        "tagged_only",
        want=bool,
        read=lambda value: bool(int(value or 0)),
        send=int,
        variants=("lvm",),
    ),
    flag_field(
        "snapshot_as_volume_chain",
        fixed=("cifs", "dir", "nfs"),
        variants=("cifs", "dir", "lvm", "nfs"),
    ),
    text_field(
        "pool",
        fixed=("zfs", "zfspool"),
        required=("zfs", "zfspool"),
        variants=("rbd", "zfs", "zfspool"),
    ),
    text_field(
        "blocksize",
        want=values.block_size,
        fixed=("zfs",),
        required=("zfs",),
        variants=("zfs", "zfspool"),
    ),
    flag_field("sparse", variants=("zfs", "zfspool")),
    text_field("mountpoint", want=values.absolute_path["mountpoint"], variants=("zfspool",)),
    _fixed("portal", "iscsi", "iscsidirect", "zfs"),
    _fixed("target", "iscsi", "iscsidirect", "zfs"),
    _fixed("iscsiprovider", "zfs"),
    flag_field("nowritecache", variants=("zfs",)),
    Field("comstar_hg", "comstar_hg", send=send_text, variants=("zfs",)),
    Field("comstar_tg", "comstar_tg", send=send_text, variants=("zfs",)),
    Field("lio_tpg", "lio_tpg", send=send_text, variants=("zfs",)),
    text_field("zfs_base_path", want=values.absolute_path["zfs_base_path"], variants=("zfs",)),
)
_CEPH = (
    Field(
        "monhost",
        "monhost",
        want=values.hosts,
        read=values.hosts,
        send=lambda items: " ".join(sorted(items)) or None,
        show=sorted,
        variants=("cephfs", "rbd"),
    ),
    text_field("data_pool", variants=("rbd",)),
    flag_field("krbd", variants=("rbd",)),
    flag_field("fuse", variants=("cephfs",)),
    text_field("fs_name", variants=("cephfs",)),
)
_BANDWIDTH = BWLIMIT.as_field(
    variants=(
        "cephfs",
        "cifs",
        "dir",
        "iscsi",
        "iscsidirect",
        "lvm",
        "lvmthin",
        "nfs",
        "rbd",
        "zfs",
        "zfspool",
    )
)

STORAGE = Table(
    kind="storage",
    keys=(Key("name", "storage", validate.storage),),
    fields=(*_BASIC, *_FILES, *_REMOTE, *_BLOCK, *_CEPH, _BANDWIDTH),
    secrets=(
        secret("server_password", "password", ("cifs", "esxi", "pbs")),
        secret("keyring", "keyring", ("cephfs", "rbd")),
        secret("encryption_key", "encryption-key", ("pbs",)),
        secret("master_pubkey", "master-pubkey", ("pbs",)),
    ),
    read_only=(Field("encryption_key_fingerprint", "encryption-key", variants=("pbs",)),),
    variant="type",
    digest=("PUT",),
    list_call=Call(("storage",)),
    read_call=Call(("storage", "{name}")),
    create_call=Call(("storage",), {"storage": "{name}"}),
    precheck=precheck_storage,
)


def run_storage_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the storages, all or the named one, each with its state per node.

    Two requests. Nothing is written.
    """
    found = run_info(STORAGE, params, client, check_mode)
    rows = client.get(
        "cluster",
        "resources",
        params={"type": "storage"},
        attempted="Could not read the state of the storages",
    )
    states = states_of(rows or [])
    listed = [{**one, "states": states.get(one["name"], [])} for one in found.values["storages"]]
    return Result(False, {"storages": listed})


def states_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the state of each storage on each node, sorted by node (pure)."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda one: str(one.get("node"))):
        if "storage" not in row or "vmid" in row:
            continue
        active = row.get("status") == "available"
        total = int(row.get("maxdisk") or 0) if active else None
        used = int(row.get("disk") or 0) if active else None
        free = None if total is None or used is None else max(0, total - used)
        found.setdefault(str(row["storage"]), []).append(
            {
                "node": str(row["node"]),
                "active": active,
                "shared": bool(int(row.get("shared") or 0)),
                "total": total,
                "used": used,
                "free": free,
            }
        )
    return found
