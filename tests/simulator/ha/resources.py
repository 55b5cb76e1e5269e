"""HA resources: the machines that the HA manager must act on."""

from __future__ import annotations

import re
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster
from ..errors import PveError
from ..schema.formats import split_list
from .groups import has_groups
from .manager import enforce, request_move
from .records import add_resource, check_digest, digest_of, drop_resource, sid_of
from .rules import motion

RESOURCE_OPTIONS = ("state", "group", "comment", "failback", "max_restart", "max_relocate")
_KINDS = {"vm": "VM", "ct": "container"}


def _sid(cluster: Cluster, text: str) -> str:
    """The ID of the resource, also if only the VMID is given."""
    if not text.isdigit():
        return text
    if cluster.guest(int(text)) is None:
        raise PveError(f"unable to detect SID from VMID - VM/CT {text} does not exist")
    return sid_of(cluster, int(text))


# -- resources -----------------------------------------------------------------------------------


def _resource(cluster: Cluster, sid: str, name: str) -> dict[str, Any]:
    resource = cluster.ha_resources[sid]
    return {**resource, "sid": sid, "type": name}


@api("GET /cluster/ha")
def ha_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of HA."""
    return [{"id": "status"}, {"id": "resources"}, {"id": "groups"}, {"id": "rules"}]


@api("GET /cluster/ha/resources")
def resources(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines under HA."""
    digest = digest_of(ctx.cluster.ha_resources)
    found = [
        {**_resource(ctx.cluster, sid, sid.partition(":")[0]), "digest": digest}
        for sid in ctx.cluster.ha_resources
        if p.get("type") in (None, sid.partition(":")[0])
    ]
    for resource in found:
        group = resource.get("group")
        if group and group not in ctx.cluster.ha_groups:
            resource["errors"] = {"group": f"group '{group}' does not exist"}
    return found


@api("POST /cluster/ha/resources")
def create_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Put a machine under HA."""
    cluster = ctx.cluster
    cluster.check_quorum()
    sid = _sid(cluster, p.pop("sid"))
    kind, _dummy, name = sid.partition(":")
    if p.pop("type", kind) != kind:
        raise PveError("types does not match")
    if "group" in p and not has_groups(ctx):
        raise PveError("invalid parameter 'group': ha groups have been migrated to rules")
    if kind not in _KINDS:
        raise PveError(f"unknown section type '{kind}'")
    if not re.fullmatch(r"[1-9][0-9]+", name):
        raise PveError("invalid VMID")
    if cluster.guest(int(name)) is None:
        raise PveError(f"resource '{sid}' does not exist in cluster")
    if sid != sid_of(cluster, int(name)):
        raise PveError(f"resource '{sid}' - guest with ID {name} is not a {_KINDS[kind]}")
    if sid in cluster.ha_resources:
        raise PveError(f"create resource failed: resource ID '{sid}' already defined")
    add_resource(cluster, sid, p)
    if ctx.cluster.ha_active:
        enforce(ctx, int(name))


def _known(ctx: Ctx, sid: str, text: str) -> dict[str, Any]:
    found = ctx.cluster.ha_resources.get(sid)
    if found is None:
        raise PveError(text)
    return found


@api("GET /cluster/ha/resources/{sid}")
def get_resource(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One resource."""
    sid = _sid(ctx.cluster, p["sid"])
    _known(ctx, sid, f"no such resource '{sid}'")
    return {
        **_resource(ctx.cluster, sid, sid.partition(":")[0]),
        "digest": digest_of(ctx.cluster.ha_resources),
    }


def _check_group(ctx: Ctx, group: str) -> None:
    """Only a change verifies the group; a new resource with an unknown group is listed with an
    error.
    """
    if not has_groups(ctx):
        raise PveError("invalid parameter 'group': ha groups have been migrated to rules")
    if group not in ctx.cluster.ha_groups:
        raise PveError(f"HA group '{group}' does not exist")


@api("PUT /cluster/ha/resources/{sid}")
def update_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the manager's orders for a machine."""
    cluster, prefix = ctx.cluster, "update resources config failed"
    sid = _sid(cluster, p.pop("sid"))
    if p.pop("type", None) not in (None, sid.partition(":")[0]):
        raise PveError("types does not match")
    if p.get("group"):
        _check_group(ctx, p["group"])
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    check_digest(cluster.ha_resources, digest, prefix)
    resource = _known(ctx, sid, f"{prefix}: no such resource '{sid}'")
    odd = next((name for name in delete if name not in RESOURCE_OPTIONS), None)
    if odd:
        raise PveError(f"{prefix}: no such option '{odd}'")
    resource.update(p)
    for name in delete:
        resource.pop(name, None)
    ctx.cluster.revision += 1
    if ctx.cluster.ha_active:
        enforce(ctx, int(sid.partition(":")[2]))


@api("DELETE /cluster/ha/resources/{sid}")
def delete_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Take a machine from HA."""
    sid = _sid(ctx.cluster, p["sid"])
    _known(ctx, sid, f"cannot delete service '{sid}', not HA managed!")
    drop_resource(ctx.cluster, sid, purge=bool(p.get("purge", 1)))


@api("POST /cluster/ha/resources/{sid}/migrate", "POST /cluster/ha/resources/{sid}/relocate")
def move_resource(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Ask the manager to move a machine."""
    sid = _sid(ctx.cluster, p["sid"])
    if (
        sid not in ctx.cluster.ha_resources
        or ctx.cluster.ha_resources[sid].get("state") == "ignored"
    ):
        raise PveError(f"resource '{sid}' is not HA managed")
    request_move(ctx, int(sid.partition(":")[2]), p["node"])
    along, blocking = motion(ctx.cluster, sid)
    answer: dict[str, Any] = {"sid": sid, "requested-node": p["node"]}
    if along:
        answer["comigrated-resources"] = along
    if p["node"] in blocking:
        answer["blocking-resources"] = blocking[p["node"]]
    return answer
