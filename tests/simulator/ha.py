"""HA resources and rules, and what the HA manager does with them."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .api import Ctx, api
from .errors import NotImplementedHere, PveError
from .formats import split_list
from .state import Cluster

if TYPE_CHECKING:
    from .tasks import Task


RESOURCE_OPTIONS = ("state", "group", "comment", "failback", "max_restart", "max_relocate")
_KINDS = {"vm": "VM", "ct": "container"}
_MODIFIED = "detected modified configuration - file changed by other user? Try again."


def _sid(cluster: Cluster, text: str) -> str:
    """The resource meant, also where the number of the machine alone is given."""
    if not text.isdigit():
        return text
    if int(text) not in cluster.vms:
        raise PveError(f"unable to detect SID from VMID - VM/CT {text} does not exist")
    return f"vm:{text}"


def is_configured(cluster: Cluster, vmid: int) -> bool:
    """Whether the machine is an HA resource, ignored ones included."""
    return f"vm:{vmid}" in cluster.ha_resources


def is_managed(cluster: Cluster, vmid: int) -> bool:
    """Whether the HA manager acts on the machine."""
    resource = cluster.ha_resources.get(f"vm:{vmid}")
    return resource is not None and resource.get("state", "started") != "ignored"


def digest_of(data: dict[str, Any]) -> str:
    """What tells one state of a file from another."""
    return hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def check_digest(data: dict[str, Any], given: str | None, prefix: str) -> None:
    """Refuse a change of another state than the one that was read."""
    if given and given != digest_of(data):
        raise PveError(f"{prefix}: {_MODIFIED}")


def add_resource(cluster: Cluster, sid: str, options: dict[str, Any]) -> None:
    """Put a machine under the HA manager."""
    cluster.ha_resources[sid] = dict(options)
    cluster.ha_awake = True
    cluster.revision += 1


def drop_resource(cluster: Cluster, sid: str, *, purge: bool = True) -> None:
    """Take a machine from the HA manager and, when purging, out of its rules."""
    cluster.ha_resources.pop(sid, None)
    for name in list(cluster.ha_rules) if purge else ():
        rule = cluster.ha_rules[name]
        left = [item for item in split_list(rule["resources"]) if item != sid]
        if left:
            rule["resources"] = ",".join(left)
        else:
            del cluster.ha_rules[name]
    cluster.revision += 1


def request_start(ctx: Ctx, vmid: int) -> None:
    """Set what the manager is to bring about: it acts in its next round."""
    resource = ctx.cluster.ha_resources.get(f"vm:{vmid}")
    if resource is not None:
        resource["state"] = "started"
    enforce(ctx, vmid)


def request_stop(ctx: Ctx, vmid: int, timeout: int) -> None:
    """Leave the manager a command to stop the machine; until it reads that, nothing shows it."""

    def stop() -> None:
        resource = ctx.cluster.ha_resources.get(f"vm:{vmid}")
        if resource is not None:
            resource["state"] = "stopped"
            ctx.cluster.revision += 1
            _act(ctx, vmid, timeout)

    _in_next_round(ctx, stop)


def enforce(ctx: Ctx, vmid: int) -> None:
    """Let the manager start or stop the machine as its state asks for."""
    _in_next_round(ctx, lambda: _act(ctx, vmid, 60))


def _in_next_round(ctx: Ctx, act: Callable[[], object]) -> None:
    """The manager works in rounds (CRM.pm, LRM.pm): it takes what is set for tasks of type `ha` until it acts."""
    pause = ctx.cluster.tasks.duration("ha")

    async def later() -> None:
        await asyncio.sleep(pause)
        act()

    if pause > 0:
        ctx.sim.background(later())
    else:
        act()


def _act(ctx: Ctx, vmid: int, timeout: int) -> None:
    """Begin the task that brings the machine to its state; a shutdown ends by force (Resources/PVEVM.pm)."""
    from .power import do_start, do_stop

    resource = ctx.cluster.ha_resources.get(f"vm:{vmid}")
    vm = ctx.cluster.vms.get(vmid)
    if resource is None or vm is None:
        return
    state = resource.get("state", "started")
    if state in ("started", "enabled") and vm.run is None:

        async def start(task: Task) -> None:
            await do_start(ctx, vm.node, vmid, task)

        ctx.cluster.tasks.start(vm.node, "qmstart", vmid, "root@pam", start)
    elif state in ("stopped", "disabled") and vm.run is not None:

        async def stop(task: Task) -> None:
            await do_stop(ctx, vm.node, vmid, task, shutdown=timeout > 0, force=True, timeout=timeout)

        ctx.cluster.tasks.start(vm.node, "qmshutdown" if timeout else "qmstop", vmid, "root@pam", stop)


def request_move(ctx: Ctx, vmid: int, target: str) -> None:
    """Let the manager move the machine; it sends none to a node that is not at work."""
    from .migrate import _migrate

    vm = ctx.cluster.vms[vmid]
    if not at_work(ctx.cluster, target):
        ctx.cluster.tasks.note(ctx.cluster.local, "root@pam", f"crm command error - node not online: {target}", 3)
        return

    async def move(task: Task) -> None:
        await _migrate(ctx, vm, target, {}, True, task)

    _in_next_round(ctx, lambda: ctx.cluster.tasks.start(vm.node, "qmigrate", vmid, "root@pam", move))


def at_work(cluster: Cluster, node: str) -> bool:
    """Whether the manager gives the node anything to do."""
    return node in cluster.nodes and cluster.nodes[node].online and not cluster.nodes[node].maintenance


def set_maintenance(ctx: Ctx, node: str, wanted: bool) -> None:
    """Take the node from the HA manager, which moves its machines away, or give it back, and they return."""
    cluster = ctx.cluster
    info = cluster.nodes[node]
    if info.maintenance == wanted:
        return
    info.maintenance = wanted
    cluster.ha_awake = True
    cluster.revision += 1
    if not wanted:
        for vmid in [vmid for vmid, home in cluster.ha_homes.items() if home == node]:
            del cluster.ha_homes[vmid]
            if vmid in cluster.vms and is_managed(cluster, vmid) and cluster.vms[vmid].node != node:
                request_move(ctx, vmid, node)
        return
    target = next((name for name in cluster.nodes if at_work(cluster, name)), None)
    for vm in list(cluster.vms_on(node)):
        if target is not None and vm.run is not None and is_managed(cluster, vm.vmid):
            cluster.ha_homes[vm.vmid] = node
            request_move(ctx, vm.vmid, target)


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
    return [
        {**_resource(ctx.cluster, sid, sid.partition(":")[0]), "digest": digest}
        for sid in ctx.cluster.ha_resources
        if p.get("type") in (None, sid.partition(":")[0])
    ]


@api("POST /cluster/ha/resources")
def create_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Put a machine under HA."""
    cluster = ctx.cluster
    cluster.check_quorum()
    sid = _sid(cluster, p.pop("sid"))
    kind, _dummy, name = sid.partition(":")
    if p.pop("type", kind) != kind:
        raise PveError("types does not match")
    if "group" in p and not ctx.sim.schema.version.startswith("8"):
        raise PveError("invalid parameter 'group': ha groups have been migrated to rules")
    if kind not in _KINDS:
        raise PveError(f"unknown section type '{kind}'")
    if not re.fullmatch(r"[1-9][0-9]+", name):
        raise PveError("invalid VMID")
    if int(name) not in cluster.vms:
        raise PveError(f"resource '{sid}' does not exist in cluster")
    if kind != "vm":
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
    return {**_resource(ctx.cluster, sid, sid.partition(":")[0]), "digest": digest_of(ctx.cluster.ha_resources)}


@api("PUT /cluster/ha/resources/{sid}")
def update_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change what the manager is to do with a machine."""
    cluster, prefix = ctx.cluster, "update resources config failed"
    sid = _sid(cluster, p.pop("sid"))
    if p.pop("type", None) not in (None, sid.partition(":")[0]):
        raise PveError("types does not match")
    if p.get("group") and not ctx.sim.schema.version.startswith("8"):
        raise PveError("invalid parameter 'group': ha groups have been migrated to rules")
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
    if sid not in ctx.cluster.ha_resources or ctx.cluster.ha_resources[sid].get("state") == "ignored":
        raise PveError(f"resource '{sid}' is not HA managed")
    request_move(ctx, int(sid.partition(":")[2]), p["node"])
    from .ha_rules import motion

    along, blocking = motion(ctx.cluster, sid)
    answer: dict[str, Any] = {"sid": sid, "requested-node": p["node"]}
    if along:
        answer["comigrated-resources"] = along
    if p["node"] in blocking:
        answer["blocking-resources"] = blocking[p["node"]]
    return answer


# -- groups --------------------------------------------------------------------------------------


def _no_groups(ctx: Ctx, verb: str) -> None:
    """Groups are a thing of the past since 9.0."""
    if not ctx.sim.schema.version.startswith("8"):
        raise PveError(f"cannot {verb}: ha groups have been migrated to rules")


@api("GET /cluster/ha/groups")
def groups(ctx: Ctx, _p: dict[str, Any]) -> list[Any]:
    """All groups; those of PVE 8 are not simulated."""
    _no_groups(ctx, "index groups")
    return []


@api("POST /cluster/ha/groups")
def create_group(ctx: Ctx, _p: dict[str, Any]) -> None:
    """Add a group."""
    _no_groups(ctx, "create group")
    raise NotImplementedHere("POST", "/cluster/ha/groups")


@api("GET /cluster/ha/groups/{group}")
def get_group(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One group."""
    _no_groups(ctx, "read group")
    raise PveError(f"no such ha group '{p['group']}'")


@api("PUT /cluster/ha/groups/{group}")
def update_group(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a group."""
    _no_groups(ctx, "update group")
    raise PveError(f"update ha group failed: no such ha group '{p['group']}'")


@api("DELETE /cluster/ha/groups/{group}")
def delete_group(ctx: Ctx, _p: dict[str, Any]) -> None:
    """Remove a group; one that is not there is fine."""
    _no_groups(ctx, "delete group")


__all__ = ["add_resource", "drop_resource", "enforce", "is_configured", "is_managed"]
