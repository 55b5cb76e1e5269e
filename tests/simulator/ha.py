"""HA resources and rules, and what the HA manager does with them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .api import Ctx, api
from .errors import ParamError, PveError
from .formats import split_list
from .state import Cluster

if TYPE_CHECKING:
    from .tasks import Task


def _sid(text: str) -> str:
    return f"vm:{text}" if text.isdigit() else text


def is_configured(cluster: Cluster, vmid: int) -> bool:
    """Whether the machine is an HA resource, ignored ones included."""
    return f"vm:{vmid}" in cluster.ha_resources


def is_managed(cluster: Cluster, vmid: int) -> bool:
    """Whether the HA manager acts on the machine."""
    resource = cluster.ha_resources.get(f"vm:{vmid}")
    return resource is not None and resource.get("state", "started") != "ignored"


def _digest(data: dict[str, Any]) -> str:
    return hashlib.sha1(json.dumps(data, sort_keys=True).encode(), usedforsecurity=False).hexdigest()


def add_resource(cluster: Cluster, sid: str, options: dict[str, Any]) -> None:
    """Put a machine under the HA manager."""
    cluster.ha_resources[sid] = dict(options)
    cluster.ha_awake = True
    cluster.revision += 1


def drop_resource(cluster: Cluster, sid: str) -> None:
    """Take a machine from the HA manager and out of its rules."""
    cluster.ha_resources.pop(sid, None)
    for name in list(cluster.ha_rules):
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
    return cluster.nodes[node].online and not cluster.nodes[node].maintenance


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


def service_status(cluster: Cluster, vmid: int) -> dict[str, Any]:
    """The HA part of a machine's status."""
    resource = cluster.ha_resources.get(f"vm:{vmid}")
    if resource is None or not is_managed(cluster, vmid):
        return {"managed": 0}
    status: dict[str, Any] = {"managed": 1, "state": resource.get("state", "started")}
    if resource.get("group"):
        status["group"] = resource["group"]
    return status


# -- resources -----------------------------------------------------------------------------------


def _resource(cluster: Cluster, sid: str, name: str) -> dict[str, Any]:
    resource = cluster.ha_resources[sid]
    return {**resource, "sid": sid, "type": name}


def _may_see(ctx: Ctx, sid: str) -> bool:
    return ctx.may("/", "Sys.Audit") or ctx.may(f"/vms/{sid.partition(':')[2]}", "VM.Audit")


@api("GET /cluster/ha")
def ha_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of HA."""
    return [{"id": "status"}, {"id": "resources"}, {"id": "groups"}, {"id": "rules"}]


@api("GET /cluster/ha/resources")
def resources(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines under HA."""
    digest = _digest(ctx.cluster.ha_resources)
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
    sid = _sid(p.pop("sid"))
    kind, _dummy, name = sid.partition(":")
    if p.pop("type", kind) != kind:
        raise PveError(f"types does not match '{kind}'")
    vm = cluster.vms.get(int(name)) if name.isdigit() else None
    if sid in cluster.ha_resources:
        raise PveError(f"create resource failed: resource ID '{sid}' already defined")
    if vm is None:
        raise PveError(f"resource '{sid}' does not exist in cluster")
    if kind != "vm":
        raise PveError(f"resource '{sid}' - guest with ID {name} is not a container")
    if p.get("group"):
        raise PveError("create resource failed: HA groups have been migrated to rules")
    add_resource(cluster, sid, p)
    if ctx.cluster.ha_active:
        enforce(ctx, vm.vmid)


def _known(ctx: Ctx, sid: str, text: str) -> dict[str, Any]:
    found = ctx.cluster.ha_resources.get(sid)
    if found is None:
        raise PveError(text)
    return found


@api("GET /cluster/ha/resources/{sid}")
def get_resource(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One resource."""
    sid = _sid(p["sid"])
    _known(ctx, sid, f"no such resource '{sid}'")
    return {**_resource(ctx.cluster, sid, sid.partition(":")[0]), "digest": _digest(ctx.cluster.ha_resources)}


@api("PUT /cluster/ha/resources/{sid}")
def update_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change what the manager is to do with a machine."""
    sid = _sid(p.pop("sid"))
    resource = _known(ctx, sid, f"update resources config failed: no such resource '{sid}'")
    digest, delete = p.pop("digest", None), split_list(p.pop("delete", None) or "")
    if digest and digest != _digest(ctx.cluster.ha_resources):
        raise PveError("detected modified configuration - file changed by other user? Try again.")
    resource.update(p)
    for name in delete:
        resource.pop(name, None)
    ctx.cluster.revision += 1
    if ctx.cluster.ha_active:
        enforce(ctx, int(sid.partition(":")[2]))


@api("DELETE /cluster/ha/resources/{sid}")
def delete_resource(ctx: Ctx, p: dict[str, Any]) -> None:
    """Take a machine from HA."""
    sid = _sid(p["sid"])
    _known(ctx, sid, f"cannot delete service '{sid}', not HA managed!")
    drop_resource(ctx.cluster, sid)


@api("POST /cluster/ha/resources/{sid}/migrate", "POST /cluster/ha/resources/{sid}/relocate")
def move_resource(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Ask the manager to move a machine."""
    sid = _sid(p["sid"])
    vmid = int(sid.partition(":")[2])
    if not is_managed(ctx.cluster, vmid):
        raise PveError(f"resource '{sid}' is not HA managed")
    if p["node"] not in ctx.cluster.nodes:
        raise PveError(f"no such cluster node '{p['node']}'")
    request_move(ctx, vmid, p["node"])
    return {"sid": sid, "requested-node": p["node"]}


# -- groups and rules ----------------------------------------------------------------------------


@api("GET /cluster/ha/groups")
def groups(ctx: Ctx, _p: dict[str, Any]) -> list[Any]:
    """Groups are a thing of the past since 9.0."""
    if ctx.sim.schema.version.startswith("8"):
        return []
    raise PveError("cannot index groups: ha groups have been migrated to rules")


@api("POST /cluster/ha/groups")
def create_group(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """The same for new ones."""
    raise PveError("create ha group failed: ha groups have been migrated to rules")


@api("GET /cluster/ha/rules")
def rules(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The affinity rules."""
    digest = _digest(ctx.cluster.ha_rules)
    return [
        {**rule, "rule": name, "digest": digest, "order": index}
        for index, (name, rule) in enumerate(ctx.cluster.ha_rules.items(), 1)
        if p.get("type") in (None, rule["type"])
        and (not p.get("resource") or _sid(p["resource"]) in split_list(rule["resources"]))
    ]


@api("GET /cluster/ha/rules/{rule}")
def get_rule(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One rule."""
    for index, (name, rule) in enumerate(ctx.cluster.ha_rules.items(), 1):
        if name == p["rule"]:
            return {**rule, "rule": name, "order": index, "digest": _digest(ctx.cluster.ha_rules)}
    raise PveError(f"no such ha rule '{p['rule']}'")


def _check_rule(ctx: Ctx, name: str, rule: dict[str, Any], prefix: str) -> None:
    cluster = ctx.cluster
    members = [_sid(item) for item in split_list(rule.get("resources", ""))]
    unknown = [item for item in members if item not in cluster.ha_resources]
    if unknown:
        raise PveError(f"{prefix}: cannot use unmanaged resource(s) {', '.join(unknown)}.")
    missing = [node for node in split_list(rule.get("nodes", "")) if node.partition(":")[0] not in cluster.nodes]
    if missing:
        raise PveError(f"{prefix}: cannot use non-existent node(s) {', '.join(n.partition(':')[0] for n in missing)}.")
    faults: list[str] = []
    others = {key: value for key, value in cluster.ha_rules.items() if key != name}
    if rule["type"] == "node-affinity":
        for item in members:
            if any(o["type"] == "node-affinity" and item in split_list(o["resources"]) for o in others.values()):
                faults.append(f"resource '{item}' is already used in another node affinity rule")
    else:
        if len(members) < 2:
            faults.append("rule is ineffective as there are less than two resources")
        used = {
            node.partition(":")[0]
            for o in others.values()
            if o["type"] == "node-affinity" and set(members) & set(split_list(o["resources"]))
            for node in split_list(o.get("nodes", ""))
        }
        available = sum(1 for node in cluster.nodes.values() if node.online) if cluster.ha_active else 0
        if rule.get("affinity") == "negative" and len(members) > available:
            faults.append("rule defines more resources than available nodes")
        priorities = [
            {part.partition(":")[2] or "0" for part in split_list(o.get("nodes", ""))}
            for o in others.values()
            if o["type"] == "node-affinity" and set(members) & set(split_list(o["resources"]))
        ]
        if used and any(len(found) > 1 for found in priorities):
            faults.append("resources are in node affinity rules with multiple priorities")
    if faults:
        raise PveError(f"{prefix}: 400 Rule '{name}' is invalid.\nresources: {', '.join(faults)}")


@api("POST /cluster/ha/rules")
def create_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a rule."""
    name = p.pop("rule")
    if name in ctx.cluster.ha_rules:
        raise PveError(f"create ha rule failed: HA rule '{name}' already defined")
    _check_rule(ctx, name, p, "create ha rule failed")
    p["resources"] = ",".join(_sid(item) for item in split_list(p["resources"]))
    ctx.cluster.ha_rules[name] = p


@api("PUT /cluster/ha/rules/{rule}")
def update_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a rule."""
    name = p.pop("rule")
    rule = ctx.cluster.ha_rules.get(name)
    if rule is None:
        raise PveError(f"update HA rules failed: HA rule '{name}' does not exist")
    delete = split_list(p.pop("delete", None) or "")
    p.pop("digest", None)
    kind = p.pop("type", rule["type"])
    if kind != rule["type"]:
        odd = next((key for key in sorted(p) if key in ("affinity", "nodes", "strict")), None)
        if odd:
            raise PveError(f"update HA rules failed: unexpected property '{odd}'")
        raise ParamError({"type": "cannot change the type of a rule"})
    changed = {**rule, **p}
    for key in delete:
        changed.pop(key, None)
    _check_rule(ctx, name, changed, "update HA rules failed")
    ctx.cluster.ha_rules[name] = changed


@api("DELETE /cluster/ha/rules/{rule}")
def delete_rule(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a rule; one that is not there is fine."""
    ctx.cluster.ha_rules.pop(p["rule"], None)


__all__ = ["add_resource", "drop_resource", "enforce", "is_configured", "is_managed"]
