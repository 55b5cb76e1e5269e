"""Starts and stops containers, and shows the state of a running one.

Source: pve-container, API2/LXC/Status.pm and LXC.pm (vm_start, vm_stop, get_interfaces).
"""

from __future__ import annotations

import ipaddress
from typing import Any

from ..config.checks import take_address
from ..core.api import Ctx, api
from ..core.state import Container, Run
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..ha.manager import OTHER_KINDS, request_start, request_stop
from ..ha.records import is_managed
from ..volumes.drives import split_volid
from ..volumes.mounts import is_net, mounts_of, parse_net, source_of
from ..volumes.volumes import volume_size
from .config import Change, check_lock

_TIMEOUT = 60


def running(ctx: Ctx, node: str, vmid: int, noun: str = "CT") -> Container:
    """The container, if it runs on the node; PVE looks for its process, not for its file."""
    container = ctx.cluster.containers.get(vmid)
    if container is None or container.node != node or container.run is None:
        raise PveError(f"{noun} {vmid} not running")
    return container


def _refuse_running(ctx: Ctx, vmid: int) -> None:
    container = ctx.cluster.containers.get(vmid)
    if container is not None and container.run is not None:
        raise PveError(f"CT {vmid} already running")


@api("POST /nodes/{node}/lxc/{vmid}/status/start")
def start(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start a container."""
    ctx.root_only(p, "skiplock")
    return start_container(ctx, p["node"], p["vmid"], skiplock=bool(p.get("skiplock")))


def start_container(ctx: Ctx, node: str, vmid: int, *, skiplock: bool = False) -> str:
    """Start the worker that starts the container."""
    _refuse_running(ctx, vmid)
    ctx.cluster.check_quorum()
    if is_managed(ctx.cluster, vmid):

        async def request(task: Task) -> None:
            task.say(f"Requesting HA start for CT {vmid}")
            request_start(ctx, vmid)

        return ctx.task(node, "hastart", vmid, request)

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            if container.template:
                raise PveError("you can't start a CT if it's a template")
            if not skiplock and container.conf.get("lock") != "mounted":
                check_lock(container)
            await task.work()
            launch(ctx, container, task)

    return ctx.task(node, "vzstart", vmid, work)


def launch(ctx: Ctx, container: Container, task: Task | None = None) -> None:
    """Bring the container up after the checks that the start fails at; `task` gets its output."""
    cluster, schema = ctx.cluster, ctx.sim.schema
    if container.pending or container.pending_delete:
        Change(ctx, container).apply_all()
        cluster.write(container)
    for _name, mount in mounts_of(schema, container.conf):
        if mount.get("quota") == "1" and container.conf.get("unprivileged") == "1":
            raise PveError("Quotas are not supported by unprivileged containers.")
        if source_of(mount["volume"]) == "volume":
            _check_volume(ctx, container, mount["volume"])
    node = cluster.nodes[container.node]
    for name in sorted(filter(is_net, container.conf)):
        bridge = parse_net(schema, container.conf[name]).get("bridge")
        if bridge and not node.has_bridge(bridge):
            raise PveError(f"bridge '{bridge}' does not exist")
    _run_start_hook(ctx, container, task)
    node.next_pid += 1
    container.run = Run(node.next_pid, cluster.now())
    cluster.touch(container.vmid)


def _run_start_hook(ctx: Ctx, container: Container, task: Task | None) -> None:
    """LXC does not pass on the error of the hook (pve-container: lxc-pve-prestart-hook)."""
    vmid = container.vmid
    try:
        for name in sorted(filter(is_net, container.conf)):
            take_address(ctx, container, parse_net(ctx.sim.schema, container.conf[name]))
    except PveError:
        if task is not None:
            task.say("run_buffer: 571 Script exited with status 25")
            task.say(f'lxc_init: 845 Failed to run lxc.hook.pre-start for container "{vmid}"')
            task.say(f'__lxc_start: 2034 Failed to initialize container "{vmid}"')
        raise PveError(f"startup for container '{vmid}' failed") from None


def _check_volume(ctx: Ctx, container: Container, volid: str) -> None:
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"unable to parse volume ID '{volid}'")
    volume_size(ctx.cluster, container.node, volid)


def stop(ctx: Ctx, container: Container) -> None:
    """The container's processes are gone: pending changes take effect (lxc-pve-poststop-hook)."""
    container.run = None
    if container.pending or container.pending_delete:
        Change(ctx, container).apply_all()
        ctx.cluster.write(container)
    ctx.cluster.touch(container.vmid)


def _answers(ctx: Ctx) -> bool:
    """Whether the system in a container shuts down when it is asked to."""
    return ctx.cluster.system


async def _shut_down(ctx: Ctx, container: Container, task: Task, force: bool) -> None:
    await task.work()
    if not _answers(ctx) and not force:
        raise PveError("container did not stop")
    stop(ctx, container)


def _ha_stop(ctx: Ctx, node: str, vmid: int, timeout: int) -> str:
    async def work(task: Task) -> None:
        task.say(f"Requesting HA stop for CT {vmid}")
        request_stop(ctx, vmid, timeout)

    return ctx.task(node, "hastop", vmid, work)


@api("POST /nodes/{node}/lxc/{vmid}/status/stop")
def stop_now(ctx: Ctx, p: dict[str, Any]) -> str:
    """Stop a container at once."""
    ctx.root_only(p, "skiplock")
    node, vmid = p["node"], p["vmid"]
    running(ctx, node, vmid)
    if is_managed(ctx.cluster, vmid):
        if p.get("overrule-shutdown"):
            raise ParamError({"overrule-shutdown": "Not applicable for HA resources."})
        return _ha_stop(ctx, node, vmid, 0)

    async def work(task: Task) -> None:
        if p.get("overrule-shutdown"):
            _overrule(ctx, vmid, task)
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            if not p.get("skiplock") and container.conf.get("lock") != "mounted":
                check_lock(container)
            await task.work()
            stop(ctx, container)

    return ctx.task(node, "vzstop", vmid, work)


def _overrule(ctx: Ctx, vmid: int, task: Task) -> None:
    tasks = ctx.cluster.tasks
    overruled = tasks.running("vzshutdown", vmid)
    if overruled:
        task.say(f"overruled vzshutdown tasks: {', '.join(other.upid for other in overruled)}")
    for other in overruled:
        tasks.stop(other)


@api("POST /nodes/{node}/lxc/{vmid}/status/shutdown")
def shutdown(ctx: Ctx, p: dict[str, Any]) -> str:
    """Ask the system of a container to shut down."""
    node, vmid = p["node"], p["vmid"]
    running(ctx, node, vmid)
    if is_managed(ctx.cluster, vmid):
        return _ha_stop(ctx, node, vmid, int(p.get("timeout") or _TIMEOUT))

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            check_lock(container)
            await _shut_down(ctx, container, task, bool(p.get("forceStop")))

    return ctx.task(node, "vzshutdown", vmid, work)


@api("POST /nodes/{node}/lxc/{vmid}/status/reboot")
def reboot(ctx: Ctx, p: dict[str, Any]) -> str:
    """Shut the container down and start it again with its pending changes."""
    node, vmid = p["node"], p["vmid"]
    running(ctx, node, vmid, "VM")

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = ctx.cluster.container_at(node, vmid)
            await _shut_down(ctx, container, task, force=True)
            launch(ctx, container, task)

    return ctx.task(node, "vzreboot", vmid, work)


def _checkpoint(ctx: Ctx, node: str, vmid: int, kind: str, options: str) -> str:
    """The nodes have no CRIU, without which no container is suspended."""
    verb = "restore" if "-r" in options else "checkpoint"

    async def work(task: Task) -> None:
        await task.work()
        task.say(f"lxc-checkpoint: {vmid}: {verb}: execing criu failed, is it installed?")
        command = f"lxc-checkpoint -n {vmid} {options} -D /var/lib/vz/dump"
        raise PveError(f"command '{command}' failed: exit code 1")

    return ctx.task(node, kind, vmid, work)


@api("POST /nodes/{node}/lxc/{vmid}/status/suspend")
def suspend(ctx: Ctx, p: dict[str, Any]) -> str:
    """Suspend a container, which fails without CRIU."""
    running(ctx, p["node"], p["vmid"])
    return _checkpoint(ctx, p["node"], p["vmid"], "vzsuspend", "-s")


@api("POST /nodes/{node}/lxc/{vmid}/status/resume")
def resume(ctx: Ctx, p: dict[str, Any]) -> str:
    """Resume a container, which fails without CRIU."""
    _refuse_running(ctx, p["vmid"])
    return _checkpoint(ctx, p["node"], p["vmid"], "vzresume", "-r --foreground")


# -- actions of the HA manager --------------------------------------------------------------------


def _keep(ctx: Ctx, vmid: int, state: str, timeout: int) -> None:
    """Start or stop a container as its state asks for; a shutdown ends by force
    (pve-ha-manager: Resources/PVECT.pm).
    """
    container = ctx.cluster.containers.get(vmid)
    if container is None:
        return
    if state in ("started", "enabled") and container.run is None:

        async def start(task: Task) -> None:
            await task.work()
            launch(ctx, container, task)

        ctx.cluster.tasks.start(container.node, "vzstart", vmid, "root@pam", start)
    elif state in ("stopped", "disabled") and container.run is not None:

        async def halt(task: Task) -> None:
            await _shut_down(ctx, container, task, force=True)

        kind = "vzshutdown" if timeout else "vzstop"
        ctx.cluster.tasks.start(container.node, kind, vmid, "root@pam", halt)


OTHER_KINDS.append(_keep)


# -- addresses -----------------------------------------------------------------------------------


@api("GET /nodes/{node}/lxc/{vmid}/interfaces")
def interfaces(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The interfaces of a running container with their addresses; null if it does not run."""
    container = ctx.cluster.containers.get(p["vmid"])
    if container is None or container.node != p["node"] or container.run is None:
        return None
    loopback = ["127.0.0.1/8", "::1/128"]
    rows = [_interface("lo", "00:00:00:00:00:00", loopback)]
    for name in sorted(filter(is_net, container.conf)):
        net = parse_net(ctx.sim.schema, container.conf[name])
        mac = net.get("hwaddr", "").lower()
        rows.append(_interface(net["name"], mac, _addresses(ctx, container.vmid, name, net, mac)))
    return rows


def _addresses(ctx: Ctx, vmid: int, name: str, net: dict[str, str], mac: str) -> list[str]:
    if net.get("link_down") == "1":
        return []
    found = []
    ip, ip6 = net.get("ip", ""), net.get("ip6", "")
    if ip == "dhcp":
        found.append(f"10.{100 + int(name[3:]) % 100}.{vmid // 250 % 250}.{vmid % 250 + 1}/24")
    elif "/" in ip:
        found.append(ip)
    if "/" in ip6:
        found.append(ip6)
    if found:
        found.append(f"{_link_local(mac)}/64")
    return found


def _link_local(mac: str) -> str:
    octets = [int(part, 16) for part in mac.split(":")]
    octets[0] ^= 2
    interface = bytes([*octets[:3], 0xFF, 0xFE, *octets[3:]])
    return str(ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + interface))


def _interface(name: str, mac: str, addresses: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "hwaddr": mac, "hardware-address": mac}
    listed = []
    for text in addresses:
        address, _slash, prefix = text.partition("/")
        family = "inet6" if ":" in address else "inet"
        row.setdefault(family, text)
        listed.append({"ip-address": address, "ip-address-type": family, "prefix": prefix})
    row["ip-addresses"] = listed
    return row
