"""The state of containers: their rows in listings, and one in full."""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster, Container
from ..ha.status import service_status
from ..schema.units import parse_size
from .status import PRESSURES, has_host_figures, load_of, used_memory

# The size of a root file system whose entry has none, and the memory if none is set (pve-container,
# LXC.pm, vmstatus).
_ROOT = 4 * 1024**3
_MEMORY_MIB = 512


def _cpus(cluster: Cluster, container: Container) -> int | float:
    limit = container.conf.get("cores") or container.conf.get("cpulimit")
    if not limit or float(limit) == 0:
        return cluster.nodes[container.node].cpus
    return float(limit) if "." in limit else int(limit)


def _root_size(container: Container) -> int:
    for part in container.conf.get("rootfs", "").split(","):
        key, _dummy, value = part.partition("=")
        if key == "size":
            return parse_size(value) or _ROOT
    return _ROOT


def container_status(cluster: Cluster, container: Container) -> dict[str, Any]:
    """The status of a container in the list of its node (pve-container, LXC.pm, vmstatus)."""
    conf, run = container.conf, container.run
    status: dict[str, Any] = {
        "type": "lxc",
        "vmid": container.vmid,
        "name": conf.get("hostname") or f"CT{container.vmid}",
        "status": "running" if run else "stopped",
        "cpus": _cpus(cluster, container),
        "cpu": 0,
        "maxmem": int(conf.get("memory") or _MEMORY_MIB) * 1024**2,
        "mem": 0,
        "maxswap": int(conf.get("swap") or 0) * 1024**2,
        "swap": 0,
        "maxdisk": _root_size(container),
        "disk": 0,
        **dict.fromkeys(("diskread", "diskwrite", "netin", "netout", "uptime"), 0),
    }
    for key in ("lock", "tags"):
        if conf.get(key):
            status[key] = conf[key]
    if container.template:
        status["template"] = 1
    if run is not None:
        now = cluster.now()
        status.update(
            pid=run.pid,
            uptime=max(0, int(now - run.started)),
            cpu=round(load_of(container, now), 6),
            mem=used_memory(container, status["maxmem"]),
            disk=status["maxdisk"] // 8,
        )
        if has_host_figures(cluster):  # since 6.0.7 (commit 275807b)
            status.update(dict.fromkeys(PRESSURES, "0.00"))
    return status


@api("GET /nodes/{node}/lxc")
def containers_of(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The containers of a node that the caller may see (pve-container, API2/LXC.pm, vmlist)."""
    return [
        container_status(ctx.cluster, container)
        for container in ctx.cluster.containers.values()
        if container.node == p["node"] and ctx.may(f"/vms/{container.vmid}", "VM.Audit")
    ]


@api("GET /nodes/{node}/lxc/{vmid}/status/current")
def current(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The status of one container."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    status = container_status(ctx.cluster, container)
    return {**status, "ha": service_status(ctx.cluster, container.vmid)}
