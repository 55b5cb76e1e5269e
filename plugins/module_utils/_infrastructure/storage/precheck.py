# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds mistakes in a storage that PVE accepts or reports late, before the first write."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence

from ..._foundation.api.interface import Api
from ..._foundation.cluster.find.visible import require_all_guests_visible, sees_all_guests
from ..._foundation.cluster.state import ClusterState
from ..._foundation.cluster.storages.types import CONTENT, LOCAL, MAY_BE_EMPTY, SINCE
from ..._foundation.cluster.storages.volume_users import read_volume_users
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.errors import ConfigurationError, Conflict, NotSupported, ValidationFailed
from ..._foundation.resource.table import DesiredResource, ResourceChange
from .desired import DesiredFile
from .usage import StorageUsage, read_usage

_MAX_NAMES = 10


def precheck_storage(
    client: Api, desired: DesiredResource, change: ResourceChange
) -> tuple[str, ...]:
    """Raise any refusal before the first write, and return warnings.

    Sends requests only to check nodes, content, the version of PVE or a deletion.
    """
    name = desired.keys["name"]
    attempted = f"Storage '{name}' was not {change.verb}"
    if change.deletes:
        _require_removable(name, attempted)
        usage = StorageUsage() if desired.force else read_usage(client, name)
        require_unused(usage.users, attempted, "volumes are never deleted")
        return usage.warnings
    if change.creates:
        _require_secrets(desired, attempted)
    newer = change.sets.keys() & SINCE.keys()
    if newer:
        require_supported(sorted(newer), client.version(), attempted)
    if change.sets.get("nodes"):
        _require_unlimited(name, attempted)
        known = frozenset(str(row["node"]) for row in client.get("nodes") or [])
        require_nodes(change.sets["nodes"], known, attempted)
    if "content" in change.sets:
        kind = desired.values.get("type") or client.get("storage", name)["type"]
        require_content(kind, change.sets["content"], attempted)
    has_password = desired.values.get("type") == "cifs" and "server_password" in desired.secrets
    if change.creates and has_password and not desired.values.get("username"):
        return ("Proxmox VE ignores server_password, because username is not set",)
    return ()


def require_content(kind: str, content: frozenset[str], attempted: str) -> None:
    """Raise ValidationFailed for content types that PVE would drop without an error (pure)."""
    possible = CONTENT.get(kind)
    if possible is None:
        return
    unknown = sorted(content - possible)
    if unknown:
        raise ValidationFailed(
            f"{attempted}: a storage of type {kind} cannot hold {', '.join(unknown)}",
            f"Use {', '.join(sorted(possible))}",
            "content",
        )
    if not content and kind not in MAY_BE_EMPTY:
        raise ValidationFailed(
            f"{attempted}: a storage of type {kind} must hold something, and content is empty",
            f"Use {', '.join(sorted(possible))}, or disable the storage",
            "content",
        )


def _require_secrets(desired: DesiredResource, attempted: str) -> None:
    """Raise ValidationFailed for a new storage whose secrets PVE refuses."""
    if desired.values.get("type") == "esxi" and not desired.secrets.get("server_password"):
        raise ValidationFailed(
            f"{attempted}: server_password is required for a new storage of type esxi",
            "Set server_password",
            "server_password",
        )
    key = desired.secrets.get("encryption_key")
    if key and key != "autogen" and "data" not in _keys_of(key):
        raise ValidationFailed(
            f"{attempted}: encryption_key is not an encryption key",
            "Use the JSON text of a key file of proxmox-backup-client, or autogen",
            "encryption_key",
        )
    if desired.secrets.get("master_pubkey") and not desired.secrets.get("encryption_key"):
        raise ValidationFailed(
            f"{attempted}: master_pubkey has no effect without encryption_key",
            "Set encryption_key, or leave out master_pubkey",
            "master_pubkey",
        )


def _keys_of(text: str) -> Collection[str]:
    """Return the keys of an object as JSON, none for another text (pve-storage: PBSPlugin.pm)."""
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return found if isinstance(found, dict) else ()


def require_supported(options: Iterable[str], version: tuple[int, int], attempted: str) -> None:
    """Raise NotSupported for options that came with a newer version of PVE (pure)."""
    for option in options:
        since = SINCE[option]
        if version >= since:
            continue
        ours, theirs = (f"{major}.{minor}" for major, minor in (version, since))
        raise NotSupported(
            f"{attempted}: PVE {ours} does not have {option}, it came with {theirs}",
            f"Leave out {option}",
            option,
        )


def _require_unlimited(name: str, attempted: str) -> None:
    """Raise ConfigurationError for nodes of storage C(local), which PVE has on every node."""
    if name == LOCAL:
        raise ConfigurationError(
            f"{attempted}: Proxmox VE has storage 'local' on every node and drops its nodes",
            "Leave out nodes",
            "nodes",
        )


def require_nodes(nodes: frozenset[str], known: frozenset[str], attempted: str) -> None:
    """Raise ConfigurationError for nodes that the cluster does not have; PVE accepts them."""
    missing = sorted(nodes - known)
    if missing:
        raise ConfigurationError(
            f"{attempted}: there is no node {', '.join(missing)}; the cluster has "
            f"{', '.join(sorted(known))}{did_you_mean(missing[0], known)}",
            "Check the names in nodes",
            "unknown node",
            details={"nodes": missing},
        )


def _require_removable(name: str, attempted: str) -> None:
    """Raise Conflict for storage C(local), which PVE defines again."""
    if name == LOCAL:
        raise Conflict(
            f"{attempted}: Proxmox VE always has storage 'local' and defines it again",
            "Set disable=true instead",
            "built-in storage",
        )


def require_unused(users: Sequence[str], attempted: str, effect: str) -> None:
    """Raise Conflict if something uses a storage or a file, and name the users (pure).

    `effect` describes the effect of `force`.
    """
    if not users:
        return
    listed = list(users[:_MAX_NAMES])
    rest = len(users) - len(listed)
    if rest:
        listed.append(f"{rest} more")
    raise Conflict(
        f"{attempted}: it is used by {', '.join(listed)}",
        f"Move or remove these first, or set force=true; {effect}",
        "in use",
        details={"users": list(users)},
    )


def require_unused_volume(client: Api, file: DesiredFile, cluster: ClusterState) -> None:
    """Raise Conflict if a guest uses a volume, and PermissionDenied if a hidden guest may use it.

    Sends the requests of `read_volume_users`, and one more.
    """
    if file.content == "backup":  # no guest can use an archive
        return
    attempted = f"{file.volume} was not deleted"
    if file.content not in ("import", "vztmpl"):  # a guest is created from these, not run
        require_all_guests_visible(sees_all_guests(client), attempted)
    place = cluster.storage_on(file.storage, str(file.node))
    node = None if place is None else place.place or None
    users = read_volume_users(client, file.volume, node)
    effect = "they lose its data then, or do not start"
    require_unused([user.label for user in users], attempted, effect)
