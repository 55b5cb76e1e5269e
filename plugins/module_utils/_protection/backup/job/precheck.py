# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks of backup jobs that PVE does not make itself, before the first write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.api.root import require_root
from ...._foundation.cluster.state import ClusterState, cluster_state_of
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.core.formatting import first_of
from ...._foundation.resource.table import DesiredResource, ResourceChange
from ...._guests.kinds.words import TYPES

CHOICES = ("all", "vms", "pool")
"""The options that choose the guests of a job: PVE accepts exactly one of them."""
_REFERENCES = ("vms", "exclude", "pool", "node", "storage", "fleecing")
ROOT_ONLY = ("tmpdir", "script")


def precheck_job(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal before the first write; return warnings.

    One request if the task adds a guest, pool, node or storage to the job: PVE accepts unknown
    names, and the job fails when it runs.
    """
    if change.deletes:
        return ()
    attempted = f"Backup job '{desired.keys['name']}' was not {change.verb}"
    require_root_for(change.sets, client.login, attempted)
    if change.creates:
        _require_complete(change.sets, attempted)
    references = {name: change.sets[name] for name in _REFERENCES if change.sets.get(name)}
    if not references:
        return ()
    rows = client.get("cluster", "resources", attempted="Could not list the cluster") or []
    cluster = cluster_state_of(rows, TYPES)
    require_references(references, cluster, attempted)
    named = {*references.get("vms", ()), *references.get("exclude", ())}
    missing = sorted(named - cluster.taken)
    if not missing:
        return ()
    text = first_of(missing, 10)
    return (
        f"{attempted.partition(' was')[0]} names guests that do not exist or are hidden: {text}",
    )


def require_root_for(options: Collection[str], login: str, attempted: str) -> None:
    """Raise PermissionDenied for options that only root may set (API2/Backup.pm,
    assert_param_permission_common).
    """
    causes = {name: f"only root may set {name}" for name in ROOT_ONLY if name in options}
    if causes:
        require_root(login, attempted, f"leave out {', '.join(causes)}", causes)


def _require_complete(sets: Mapping[str, Any], attempted: str) -> None:
    """Raise ValidationFailed for a new job without guests, or without a storage that it needs."""
    if not any(sets.get(option) for option in CHOICES):
        raise ValidationFailed(
            f"{attempted}: it has no guests", "Set all=true, vms or pool", "guests of the job"
        )
    needy = [option for option in ("notes_template", "protected") if sets.get(option)]
    if needy and not sets.get("storage"):
        raise ValidationFailed(f"{attempted}: {needy[0]} needs a storage", "Set storage", needy[0])


def require_references(
    references: Mapping[str, Any], cluster: ClusterState, attempted: str
) -> None:
    """Raise ConfigurationError for a pool, node or storage that cannot be used (pure)."""
    backup = {row.storage for row in cluster.storages if "backup" in row.content}
    images = {row.storage for row in cluster.storages if "images" in row.content}
    if "pool" in references:
        _require("pool", [references["pool"]], cluster.pools, attempted)
    if "node" in references:
        _require("node", [references["node"]], cluster.nodes, attempted)
    if "storage" in references:
        _require("storage with content backup", [references["storage"]], backup, attempted)
    fleecing = references.get("fleecing", {}).get("storage")
    if fleecing:
        _require("storage with content images", [fleecing], images, attempted)


def _require(kind: str, names: Iterable[str], known: Collection[str], attempted: str) -> None:
    missing = sorted(set(names) - set(known))
    if not missing:
        return
    raise ConfigurationError(
        f"{attempted}: there is no {kind} '{missing[0]}', or it is not "
        f"visible{did_you_mean(missing[0], known)}",
        f"Name one of {first_of(sorted(known), 10) or 'none'}",
        f"unknown {kind.partition(' ')[0]}",
    )
