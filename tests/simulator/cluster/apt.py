"""The package repositories of nodes: the standard ones, in the files of a fresh installation. And
the pending updates.

Follows PVE/API2/APT.pm (pve-manager); the files are those of the installer of PVE 9.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..errors import PveError

_FOLDER = "/etc/apt/sources.list.d"
_NAMES = {
    "enterprise": "Enterprise",
    "no-subscription": "No-Subscription",
    "test": "Test",
    "ceph-squid-enterprise": "Ceph Squid Enterprise",
    "ceph-squid-no-subscription": "Ceph Squid No-Subscription",
    "ceph-squid-test": "Ceph Squid Test",
}

_PACKAGE = {
    "Arch": "amd64",
    "Description": "",
    "Origin": "unknown",
    "Priority": "optional",
    "Section": "admin",
}


_DEBIAN = {
    "Types": ["deb"],
    "URIs": ["http://deb.debian.org/debian/"],
    "Suites": ["trixie", "trixie-updates"],
    "Components": ["main", "contrib", "non-free-firmware"],
    "Enabled": 1,
    "FileType": "sources",
}


def _entry(handle: str) -> tuple[str, dict[str, Any]]:
    """The file of a standard repository, and its entry there."""
    kind = handle.removeprefix("ceph-squid-")
    is_ceph = kind != handle
    host = "https://enterprise" if kind == "enterprise" else "http://download"
    return f"{_FOLDER}/{'ceph' if is_ceph else 'proxmox'}.sources", {
        "Types": ["deb"],
        "URIs": [f"{host}.proxmox.com/debian/{'ceph-squid' if is_ceph else 'pve'}"],
        "Suites": ["trixie"],
        "Components": [kind if is_ceph else f"pve-{kind}"],
        "Enabled": 1,
        "FileType": "sources",
    }


def _files(node: NodeInfo) -> dict[str, list[dict[str, Any]]]:
    """The entries by file; a new node has the repositories of Debian, as the installer writes them,
    and the enterprise repositories.
    """
    if node.sources is None:
        node.sources = {f"{_FOLDER}/debian.sources": [dict(_DEBIAN)]}
        for handle in ("enterprise", "ceph-squid-enterprise"):
            path, entry = _entry(handle)
            node.sources[path] = [entry]
    return node.sources


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one["URIs"] == other["URIs"] and one["Components"] == other["Components"]


def _found(node: NodeInfo, handle: str) -> dict[str, Any] | None:
    path, entry = _entry(handle)
    return next((one for one in _files(node).get(path, []) if _same(one, entry)), None)


def _digest(node: NodeInfo) -> str:
    return hashlib.sha256(json.dumps(_files(node), sort_keys=True).encode()).hexdigest()


def _check_digest(node: NodeInfo, p: dict[str, Any]) -> None:
    if p.get("digest") and p["digest"] != _digest(node):
        raise PveError("detected modified configuration - file changed by other user? Try again.")


@api("GET /nodes/{node}/apt/repositories")
def repositories(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """All entries, and which standard repositories are among them."""
    node = ctx.cluster.nodes[p["node"]]
    standard = []
    for handle, name in _NAMES.items():
        row: dict[str, Any] = {"handle": handle, "name": name}
        entry = _found(node, handle)
        if entry is not None:
            row["status"] = entry["Enabled"]
        standard.append(row)
    return {
        "digest": _digest(node),
        "errors": [],
        "infos": [],
        "files": [
            {"path": path, "file-type": "sources", "digest": [0], "repositories": entries}
            for path, entries in _files(node).items()
        ],
        "standard-repos": standard,
    }


@api("PUT /nodes/{node}/apt/repositories")
def add(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a standard repository; one that is disabled is enabled."""
    node = ctx.cluster.nodes[p["node"]]
    handle = p["handle"]
    if handle not in _NAMES:
        raise PveError(f"unknown repository handle '{handle}'")
    _check_digest(node, p)
    entry = _found(node, handle)
    if entry is not None:
        entry["Enabled"] = 1
        return
    path, entry = _entry(handle)
    _files(node).setdefault(path, []).append(entry)


@api("POST /nodes/{node}/apt/repositories")
def change(ctx: Ctx, p: dict[str, Any]) -> None:
    """Enable or disable an entry."""
    node = ctx.cluster.nodes[p["node"]]
    _check_digest(node, p)
    entries = _files(node).get(p["path"])
    if entries is None:
        raise PveError(f"invalid path - {p['path']}")
    if not 0 <= p["index"] < len(entries):
        raise PveError(f"invalid index - {p['index']}")
    if p.get("enabled") is not None:
        entries[p["index"]]["Enabled"] = int(p["enabled"])


def with_defaults(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The pending updates of a node, with the fields that each has (APT.pm, assemble_pkginfo)."""
    return [{**_PACKAGE, "Title": row["Package"], **row} for row in rows]


@api("GET /nodes/{node}/apt/update")
def updates(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The pending updates (APT.pm, list_updates). A new required package has no OldVersion."""
    return ctx.cluster.nodes[p["node"]].updates
