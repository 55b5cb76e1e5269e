"""The state of machines: one in full, or all of a node."""

from __future__ import annotations

import asyncio
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster, Guest, Vm
from ..errors import PveError
from ..ha.status import service_status
from ..volumes.drives import agent_enabled, boot_disk_size, memory_mib

PRESSURES = (
    "pressurecpusome",
    "pressurecpufull",
    "pressureiosome",
    "pressureiofull",
    "pressurememorysome",
    "pressurememoryfull",
)


def load_of(vm: Guest, now: float) -> float:
    """A steady, made-up CPU load of a running machine."""
    return ((vm.vmid * 2654435761 + int(now / 30) * 97) % 1000) / 5000


def used_memory(vm: Guest, most: int) -> int:
    """A steady, invented use of memory of a running machine: a fifth to seven tenths of its
    memory.
    """
    return int(most * (0.2 + (vm.vmid % 50) / 100))


def cpus_of(cluster: Cluster, vm: Vm) -> int:
    """The CPUs that the status tells: no more than the node has, unless vcpus says so."""
    conf = vm.conf
    cpus = int(conf.get("sockets", "1")) * int(conf.get("cores", "1"))
    cpus = min(cpus, cluster.nodes[vm.node].cpus)
    return int(conf.get("vcpus", "0")) or cpus


def has_host_figures(cluster: Cluster) -> bool:
    """Whether the release reports the host's memory and pressure of a guest: 9, not 8.4."""
    return not cluster.version["release"].startswith("8")


def vm_status(cluster: Cluster, vm: Vm, *, full: bool = False) -> dict[str, Any]:
    """The status of a machine as the node's list gives it, or in full."""
    conf, run = vm.conf, vm.run
    memory = memory_mib(conf) * 1024 * 1024
    status: dict[str, Any] = {
        "vmid": vm.vmid,
        "name": conf.get("name") or f"VM {vm.vmid}",
        "status": "running" if run else "stopped",
        "cpus": cpus_of(cluster, vm),
        "cpu": 0,
        "maxmem": memory,
        "mem": 0,
        "maxdisk": boot_disk_size(cluster.schema, conf),
        "disk": 0,
        "netin": 0,
        "netout": 0,
        "uptime": 0,
    }
    if has_host_figures(cluster):
        status["memhost"] = 0
    balloon = conf.get("balloon", "0")
    if balloon != "0":
        status["balloon_min"] = int(balloon) * 1024 * 1024
        status["shares"] = int(conf.get("shares", "1000"))
    if vm.template:
        status["template"] = 1
    if any(name.startswith("serial") and name[6:].isdigit() for name in conf):
        status["serial"] = 1
    for key in ("lock", "tags"):
        if conf.get(key):
            status[key] = conf[key]
    if run is not None:
        _running(cluster, vm, status, full)
    if full:
        status["qmpstatus"] = run.qmpstatus if run else "stopped"
    return status


def _running(cluster: Cluster, vm: Vm, status: dict[str, Any], full: bool) -> None:
    run = vm.run
    if run is None:
        return
    now = cluster.now()
    up = max(0, int(now - run.started))
    memory = status["maxmem"]
    used = used_memory(vm, memory)
    status.update(
        pid=run.pid,
        uptime=up,
        cpu=round(load_of(vm, now), 6),
        mem=used,
        netin=up * 1200,
        netout=up * 900,
    )
    if has_host_figures(cluster):
        status.update(dict.fromkeys(PRESSURES, 0), memhost=used + 50331648)
    if full:
        nets = [name for name in vm.conf if name.startswith("net") and name[3:].isdigit()]
        if nets:
            status["nics"] = {
                f"tap{vm.vmid}i{name[3:]}": {
                    "netin": up * 1200 // len(nets),
                    "netout": up * 900 // len(nets),
                }
                for name in nets
            }
        status["running-machine"] = run.machine
        status["running-qemu"] = cluster.qemu
        status["diskread"] = up * 2048
        status["diskwrite"] = up * 4096


@api("GET /nodes/{node}/qemu")
async def vmlist(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The machines of a node that the caller may see.

    PVE takes the numbers first and then reads one configuration after the other (qemu-server,
    QemuServer.pm, vmstatus): a machine that is removed or moved away in between, visible or not,
    makes the whole listing fail.
    """
    cluster, node = ctx.cluster, p["node"]
    known = [vm.vmid for vm in cluster.vms_on(node)]
    if cluster.list_time:
        await asyncio.sleep(cluster.list_time)
    machines = [cluster.vm_at(node, vmid) for vmid in known]
    return [
        vm_status(cluster, vm, full=bool(p.get("full")))
        for vm in machines
        if ctx.may(f"/vms/{vm.vmid}", "VM.Audit")
    ]


@api("GET /nodes/{node}/qemu/{vmid}/status/current")
def status_current(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The status of one machine."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    status = vm_status(ctx.cluster, vm, full=True)
    status["ha"] = service_status(ctx.cluster, vm.vmid)
    if _vga(vm).startswith(("virtio", "qxl")):
        status["spice"] = 1
    if "clipboard=vnc" in vm.conf.get("vga", ""):
        status["clipboard"] = "vnc"
    if agent_enabled(vm.conf):
        status["agent"] = 1
    return status


@api(
    "GET /nodes/{node}/qemu/{vmid}/rrddata",
    "GET /nodes/{node}/rrddata",
    "GET /nodes/{node}/storage/{storage}/rrddata",
)
def rrddata(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, int]]:
    """Points in time without figures: nothing is measured here."""
    if p.get("vmid"):
        ctx.cluster.vm_at(p["node"], p["vmid"])
    return points(ctx, p["timeframe"])


def points(ctx: Ctx, timeframe: str) -> list[dict[str, int]]:
    """The points in time of a timeframe."""
    step = {"hour": 60, "day": 1800, "week": 10800, "month": 43200, "year": 604800}.get(
        timeframe, 60
    )
    end = int(ctx.cluster.now()) // step * step
    return [{"time": end - step * index} for index in range(70, 0, -1)]


def _vga(vm: Vm) -> str:
    return vm.conf.get("vga", "").split(",")[0].removeprefix("type=")


@api("POST /nodes/{node}/qemu/{vmid}/vncproxy")
def vnc_proxy(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """A VNC ticket; nothing listens behind it.

    The ticket begins with the password. In PVE 8, only `generate-password` makes a password; since
    9.2, it is left out only for a serial console without a websocket. Source: qemu-server,
    API2/Qemu.pm, vncproxy; commit 282ec11d.
    """
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    answer = console_ticket(ctx, vm, "vncproxy")
    answer["cert"] = ctx.sim.ca_pem
    needed = p.get("generate-password")
    if not ctx.sim.schema.version.startswith("8"):
        needed = needed or not _vga(vm).startswith("serial") or p.get("websocket")
    if needed:
        password = "".join(chr(ctx.cluster.random.randrange(0x21, 0x61)) for _dummy in range(8))
        answer["password"] = password
        answer["ticket"] = f"{password}:{answer['ticket']}"
    return answer


@api("POST /nodes/{node}/qemu/{vmid}/termproxy")
def terminal_proxy(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """A ticket of a serial console; nothing listens behind it."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    if vm.run is None:
        raise PveError(f"VM {vm.vmid} not running")
    return console_ticket(ctx, vm, "termproxy")


def console_ticket(ctx: Ctx, vm: Guest, kind: str) -> dict[str, Any]:
    """Start the task of a console and return its ticket."""

    async def work(task: Any) -> None:
        await task.work()

    upid = ctx.task(vm.node, kind, vm.vmid, work)
    ticket = f"PVEVNC:{int(ctx.cluster.now()):08X}::simulated"
    return {"port": "5900", "ticket": ticket, "upid": upid, "user": ctx.who}
