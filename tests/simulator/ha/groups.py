"""HA groups, which PVE 9 has made rules of.

Source: pve-ha-manager 4, API2/HA/Groups.pm and HA/Groups.pm.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster
from ..errors import PveError
from ..schema.formats import split_list
from .records import check_digest, digest_of

_OPTIONS = ("nodes", "comment", "nofailback", "restricted")
_BOOLEANS = ("nofailback", "restricted")


def has_groups(ctx: Ctx) -> bool:
    """Whether the version served has groups."""
    return ctx.sim.schema.is_8


def _need_groups(ctx: Ctx, verb: str) -> None:
    if not has_groups(ctx):
        raise PveError(f"cannot {verb}: ha groups have been migrated to rules")


def _shown(cluster: Cluster, name: str, error: str) -> dict[str, Any]:
    group = cluster.ha_groups.get(name)
    if group is None:
        raise PveError(f"{error}no such ha group '{name}'")
    return {**group, "group": name, "type": "group", "digest": digest_of(cluster.ha_groups)}


def _written(given: dict[str, Any]) -> dict[str, Any]:
    """The options as the file has them: a node once, numbers as such."""
    written = dict(given)
    for name in _BOOLEANS:
        if name in written:
            written[name] = int(written[name])
    if "nodes" in written:
        written["nodes"] = ",".join(dict.fromkeys(split_list(written["nodes"])))
    return written


def _store(ctx: Ctx, name: str, group: dict[str, Any]) -> None:
    ctx.cluster.ha_groups[name] = group
    ctx.cluster.revision += 1


@api("GET /cluster/ha/groups")
def index(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """All groups."""
    _need_groups(ctx, "index groups")
    return [_shown(ctx.cluster, name, "") for name in ctx.cluster.ha_groups]


@api("POST /cluster/ha/groups")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a group."""
    _need_groups(ctx, "create group")
    ctx.cluster.check_quorum()
    name = p.pop("group")
    p.pop("type", None)
    if name in ctx.cluster.ha_groups:
        raise PveError(f"create ha group failed: ha group ID '{name}' already defined")
    _store(ctx, name, _written(p))


@api("GET /cluster/ha/groups/{group}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One group."""
    _need_groups(ctx, "read group")
    return _shown(ctx.cluster, p["group"], "")


@api("PUT /cluster/ha/groups/{group}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a group."""
    _need_groups(ctx, "update group")
    cluster, prefix = ctx.cluster, "update ha group failed"
    name, delete = p.pop("group"), split_list(p.pop("delete", None) or "")
    check_digest(cluster.ha_groups, p.pop("digest", None), prefix)
    _shown(cluster, name, f"{prefix}: ")
    group = {**cluster.ha_groups[name], **_written(p)}
    for key in delete:
        if key not in _OPTIONS:
            raise PveError(f"{prefix}: no such option '{key}'")
        if key == "nodes":
            raise PveError(f"{prefix}: unable to delete required option 'nodes'")
        group.pop(key, None)
    _store(ctx, name, group)


@api("DELETE /cluster/ha/groups/{group}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a group that no resource has; a missing group is not an error."""
    _need_groups(ctx, "delete group")
    cluster = ctx.cluster
    for sid, resource in cluster.ha_resources.items():
        if resource.get("group") == p["group"]:
            raise PveError(f"delete ha group failed: ha group is used by service '{sid}'")
    cluster.ha_groups.pop(p["group"], None)
    cluster.revision += 1
