"""The cluster-wide list of everything, which lags behind the events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster, Container, Guest, NodeInfo, Report, Storage
from ..ha.records import is_configured
from ..ha.status import listed_state, node_states
from ..volumes.activation import is_active
from ..volumes.space import used_bytes
from .containers import container_status
from .status import has_host_figures, load_of, used_memory, vm_status

# Seconds that pmxcfs keeps statistics which are not renewed (pve-cluster, src/pmxcfs/status.c,
# cfs_rrd_dump).
STATISTICS_KEPT = 300
# Rows of rooms above this one, by the type that the caller asks for.
MORE_ROWS: list[Callable[[Ctx, str | None], list[dict[str, Any]]]] = []


def refresh(cluster: Cluster) -> None:
    """Make the status daemons report changes that are old enough."""
    if not cluster.due:
        return
    now = cluster.now()
    ready = [vmid for vmid, due in cluster.due.items() if due <= now]
    for vmid in ready:
        del cluster.due[vmid]
        guest = cluster.guest(vmid)
        if guest is None:
            continue
        if not cluster.nodes[guest.node].online and vmid in cluster.reports:
            cluster.due[vmid] = now + max(cluster.lag, 0.1)
            continue
        cluster.reports[vmid] = _report(cluster, guest)


def _report(cluster: Cluster, guest: Guest) -> Report:
    # The daemon reports QEMU's state of a machine, such as paused (pve-manager, pvestatd.pm,
    # update_qemu_status); `status` of the node's list has running for all of them.
    if isinstance(guest, Container):
        status = container_status(cluster, guest)
        state = status["status"]
    else:
        status = vm_status(cluster, guest, full=True)
        state = status["qmpstatus"]
    return Report(
        name=status["name"],
        status=state,
        template=1 if guest.template else 0,
        maxcpu=status["cpus"],
        maxmem=status["maxmem"],
        maxdisk=status["maxdisk"],
        started=guest.run.started if guest.run else 0.0,
    )


def _reported_until(cluster: Cluster, guest: Guest, report: Report) -> float:
    """When the statistics were written last: every few seconds as long as the guest and its node
    are there.
    """
    if report.guest_gone:
        return report.guest_gone
    node = cluster.nodes[guest.node]
    if not node.online:
        return node.down_at
    return cluster.now()


def guest_stats(cluster: Cluster, guest: Guest) -> dict[str, Any]:
    """The last report of the status daemon about the guest that has, or had, this VMID.

    PVE keys the statistics by VMID only (pve-manager, API2Tools.pm, extract_vm_stats): a VM with a
    VMID that was freed a moment ago is listed under the former guest's name, state and size until
    the daemon has run.
    """
    vmid, kind = guest.vmid, guest.kind
    entry: dict[str, Any] = {"id": f"{kind}/{vmid}", "node": guest.node, "type": kind, "vmid": vmid}
    report = cluster.reports.get(vmid)
    if report is None:
        return {**entry, "status": "unknown"}
    until = _reported_until(cluster, guest, report)
    if cluster.now() - until > STATISTICS_KEPT:
        return {**entry, "status": "unknown"}
    running = report.status != "stopped"
    up = max(0, int(until - report.started)) if running else 0
    mem = used_memory(guest, report.maxmem) if running else 0
    entry.update(
        name=report.name,
        status=report.status,
        template=report.template,
        maxcpu=report.maxcpu,
        maxmem=report.maxmem,
        maxdisk=report.maxdisk,
        cpu=round(load_of(guest, until), 6) if running else 0,
        mem=mem,
        disk=0,
        uptime=up,
        netin=up * 1200,
        netout=up * 900,
        diskread=up * 2048,
        diskwrite=up * 4096,
    )
    if has_host_figures(cluster):
        entry["memhost"] = 0 if kind == "lxc" else mem
    return entry


def guest_entry(cluster: Cluster, guest: Guest) -> dict[str, Any]:
    """The machine or container in the listing: values from the nodes' reports are late, values from
    its configuration are not.
    """
    vmid = guest.vmid
    entry = guest_stats(cluster, guest)
    conf = guest.conf
    for key in ("lock", "tags"):
        if conf.get(key):
            entry[key] = conf[key]
    pool = cluster.pool_of.get(vmid)
    if pool is not None:
        entry["pool"] = pool
    if guest.kind == "qemu" and is_configured(cluster, vmid):
        entry["hastate"] = listed_state(cluster, vmid)
    return entry


def pool_entry(cluster: Cluster, name: str) -> dict[str, Any]:
    """A pool with the sum of its running machines' figures."""
    entry: dict[str, Any] = {"id": f"/pool/{name}", "type": "pool", "pool": name}
    for vmid in cluster.pools[name]["vms"]:
        guest, report = cluster.guest(vmid), cluster.reports.get(vmid)
        if guest is None or report is None or report.status != "running":
            continue
        stats = guest_stats(cluster, guest)
        if not stats.get("uptime"):
            continue
        cpus = entry.get("maxcpu", 0)
        entry["uptime"] = max(entry.get("uptime", 0), stats["uptime"])
        entry["mem"] = entry.get("mem", 0) + stats["mem"]
        entry["maxmem"] = entry.get("maxmem", 0) + stats["maxmem"]
        used = entry.get("cpu", 0) * cpus + stats["cpu"] * stats["maxcpu"]
        entry["maxcpu"] = cpus + stats["maxcpu"]
        entry["cpu"] = used / entry["maxcpu"]
    return entry


def node_loads(cluster: Cluster) -> dict[str, tuple[float, int]]:
    """(CPU share, memory in use) of every node, from the guests that run there; calculated once a
    second.
    """
    key = (cluster.revision, int(cluster.now()))
    if cluster.loads is not None and cluster.loads[0] == key:
        return cluster.loads[1]
    refresh(cluster)
    cpu = dict.fromkeys(cluster.nodes, 0.02)
    mem = dict.fromkeys(cluster.nodes, 1610612736)
    now = cluster.now()
    for guest in cluster.guests():
        if guest.run is None:
            continue
        report = cluster.reports.get(guest.vmid)
        cpus, most = (report.maxcpu, report.maxmem) if report else (1, 0)
        cpu[guest.node] += load_of(guest, now) * cpus / cluster.nodes[guest.node].cpus
        mem[guest.node] += used_memory(guest, most)
    loads = {
        name: (round(min(cpu[name], 1.0), 6), min(mem[name], node.memory))
        for name, node in cluster.nodes.items()
    }
    cluster.loads = (key, loads)
    return loads


def node_load(cluster: Cluster, node: NodeInfo) -> tuple[float, int]:
    """The same for one node."""
    return node_loads(cluster)[node.name]


def node_entry(cluster: Cluster, node: NodeInfo, *, figures: bool = True) -> dict[str, Any]:
    """The node in the listing: everybody sees it, its figures need Sys.Audit on it."""
    entry: dict[str, Any] = {
        "id": f"node/{node.name}",
        "type": "node",
        "node": node.name,
        "level": "",
    }
    if figures:
        entry.update(maxcpu=node.cpus, maxmem=node.memory, maxdisk=node.disk)
    state = node_states(cluster).get(node.name)
    if state is not None:
        entry["hastate"] = state
    if node.arch != "x86_64":
        entry["host-arch"] = node.arch  # API2/Cluster.pm, resources; pvestatd leaves x86_64 out
    if not node.online:
        return {**entry, "cgroup-mode": 1, "status": "offline"}
    if not figures:
        return {**entry, "cgroup-mode": 1, "status": "online"}
    cpu, mem = node_load(cluster, node)
    up = int(cluster.now() - (node.booted_at or cluster.boot_time))
    return {
        **entry,
        "cgroup-mode": 1,
        "status": "online",
        "cpu": cpu,
        "mem": mem,
        "disk": 30928461824,
        "uptime": up,
    }


def plugin_content(storage: Storage) -> str:
    """The content types, or the meaning of an empty setting."""
    return ",".join(storage.content) or "none"


def storage_entry(cluster: Cluster, storage: Storage, node: str) -> dict[str, Any]:
    """The storage on a node as the list shows it.

    The status daemon reports active storages only (pve-manager: PVE/Service/pvestatd.pm,
    update_storage_status), and the others have no figures (PVE/API2Tools.pm,
    extract_storage_stats). The last report of a node stays for a while after the node is gone.
    """
    entry: dict[str, Any] = {
        "id": f"storage/{node}/{storage.name}",
        "type": "storage",
        "storage": storage.name,
        "node": node,
        "plugintype": storage.kind,
        "shared": 1 if storage.shared else 0,
        "content": ",".join(storage.content),
    }
    if storage.name in cluster.nodes[node].lost_storages or not is_active(cluster, storage):
        return {**entry, "status": "unknown"}
    return {
        **entry,
        "status": "available",
        "disk": used_bytes(storage, node),
        "maxdisk": storage.total,
    }


@api("GET /cluster/resources")
def resources(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """Machines, containers, nodes and storages that the caller may see."""
    cluster, kind = ctx.cluster, p.get("type")
    refresh(cluster)
    result: list[dict[str, Any]] = []
    if kind in (None, "vm"):
        everything = ctx.may("/", "VM.Audit") and not _restricted(ctx)
        for guest in cluster.guests():
            if everything or ctx.may(f"/vms/{guest.vmid}", "VM.Audit"):
                entry = guest_entry(cluster, guest)
                if "pool" in entry and not ctx.may(f"/pool/{entry['pool']}", "Pool.Audit"):
                    del entry["pool"]
                result.append(entry)
    if kind is None:
        result += [
            pool_entry(cluster, name)
            for name in cluster.pools
            if ctx.may(f"/pool/{name}", "Pool.Audit")
        ]
    result += _more_rows(ctx, kind)
    if kind in (None, "node"):
        result += [
            node_entry(cluster, node, figures=ctx.may(f"/nodes/{node.name}", "Sys.Audit"))
            for node in cluster.nodes.values()
        ]
    if kind in (None, "storage"):
        for storage in cluster.storages.values():
            if storage.disabled or not ctx.may(f"/storage/{storage.name}", "Datastore.Audit"):
                continue
            result += [
                storage_entry(cluster, storage, node)
                for node in cluster.nodes
                if storage.available_on(node)
            ]
    # The order means nothing, and differs each time.
    cluster.order.shuffle(result)
    return result


def _more_rows(ctx: Ctx, kind: str | None) -> list[dict[str, Any]]:
    result: list[dict[str, Any]] = []
    for rows_of in MORE_ROWS:
        result += rows_of(ctx, kind)
    return result


def _restricted(ctx: Ctx) -> bool:
    """Whether rights below /vms could take away privileges held on /."""
    if ctx.caller is not None and ctx.caller.user == "root@pam":
        token = ctx.acl.users.get("root@pam", {}).get("tokens", {}).get(ctx.who.partition("!")[2])
        return token is not None and bool(token.get("privsep", 1))
    return True


__all__ = ["guest_stats", "node_entry", "node_load", "plugin_content", "refresh", "storage_entry"]
