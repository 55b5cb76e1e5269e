"""The control plane: changes that no API call can make, faults on purpose, and the log of
requests.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from aiohttp import web

from ..cluster.replication import run_job
from ..config.disks import add_unused
from ..core.faults import BadFault, parse_fault
from ..core.state import Archive, ArchivedDisk, Container, Guest, NodeInfo, Run, Vm, Volume
from ..core.tasks import Task
from ..errors import ApiError
from ..ha.manager import set_maintenance
from ..initial.clusterfile import Builder
from ..options import UsageError, parse_task_ms
from ..running.power import quit_vm
from ..upkeep.disks import add_disks
from ..upkeep.reboots import come_back, come_back_with, go_down, reboot, set_quorum
from ..volumes.drives import is_net, with_mac
from ..volumes.volumes import find_volume, parse_volname, set_active

if TYPE_CHECKING:
    from .server import Server


class Refused(Exception):
    """The control request makes no sense; the text says why."""


_SETTINGS = (
    "latency_ms",
    "lag_s",
    "list_ms",
    "cleanup_s",
    "task_ms",
    "auth_delay_s",
    "processes_in",
    "tunnel_version",
)


def _task_durations(value: Any) -> dict[str, float]:
    """Milliseconds by task type: from the text that the option `--task-ms` takes, or from an
    object.
    """
    if isinstance(value, str):
        try:
            return parse_task_ms(value)
        except UsageError as error:
            raise Refused(str(error).replace("--task-ms", "task_ms")) from None
    return {name: float(ms) for name, ms in value.items()}


def _archive(data: dict[str, Any]) -> Archive:
    """The content of a backup as GET /volumes has it, perhaps from another simulator."""
    disks = {name: ArchivedDisk(**disk) for name, disk in data["disks"].items()}
    return Archive(data["kind"], data["conf"], disks, data.get("firewall"))


class Control:
    """Answers the control plane's requests; see docs/simulator.md for the list."""

    def __init__(self, server: Server, rebuild: Callable[[], None]) -> None:
        self.server = server
        self.rebuild = rebuild
        server.steer = self.steer

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        try:
            body = await request.read()
            data = json.loads(body) if body.strip() else None
            parts = [part for part in request.rel_url.path.split("/") if part]
            result = self.run(request.method, parts, data)
            if isinstance(result, Coroutine):
                result = await result
        except (Refused, BadFault, ApiError) as error:
            text = error.message if isinstance(error, ApiError) else str(error)
            return web.json_response({"error": text.strip()}, status=400)
        except (AttributeError, ValueError, TypeError, KeyError) as error:
            return web.json_response({"error": f"bad request: {error}"}, status=400)
        return web.json_response(result)

    def steer(self, method: str, path: str, body: Any) -> None:
        """Carry out the request of a fault rule; a request that is no longer possible, such as a
        change of a machine that is gone, is skipped.
        """
        with contextlib.suppress(Refused, ApiError):
            result = self.run(method.upper(), [part for part in path.split("/") if part], body)
            if isinstance(result, Coroutine):
                self.server.sim.background(result)

    def run(self, method: str, parts: list[str], data: Any) -> Any:
        """Carry a request out and return the answer."""
        what = parts[0] if parts else ""
        route: dict[tuple[str, str], Callable[[list[str], Any], Any]] = {
            ("PUT", "vms"): self._put_vm,
            ("GET", "vms"): self._get_vm,
            ("POST", "vms"): self._create_vm,
            ("DELETE", "vms"): self._delete_vm,
            ("GET", "containers"): self._get_containers,
            ("PUT", "containers"): self._put_container,
            ("POST", "containers"): self._create_container,
            ("DELETE", "containers"): self._delete_container,
            ("PUT", "guests"): self._put_guests,
            ("PUT", "nodes"): self._put_node,
            ("PUT", "cluster"): self._put_cluster,
            ("PUT", "directories"): self._put_directory,
            ("GET", "volumes"): self._volumes,
            ("PUT", "volumes"): self._put_volume,
            ("PUT", "replication"): self._run_job,
            ("GET", "replicas"): lambda _p, _d: self.server.sim.cluster.sections.get(
                "replicas", {}
            ),
            ("GET", "pools"): lambda _p, _d: self.server.sim.cluster.pools,
            ("GET", "tasks"): self._forgotten_tasks,
            ("DELETE", "tasks"): self._forget_tasks,
            ("PUT", "settings"): self._put_settings,
            ("PUT", "clock"): self._put_clock,
            ("GET", "log"): lambda _p, _d: self.server.log.as_list(),
            ("DELETE", "log"): self._reset_log,
            ("GET", "counts"): lambda _p, _d: dict(self.server.log.counts),
            ("GET", "faults"): lambda _p, _d: [rule.as_dict() for rule in self.server.faults.rules],
            ("POST", "faults"): self._add_faults,
            ("PUT", "faults"): self._set_faults,
            ("DELETE", "faults"): self._clear_faults,
            ("POST", "reset"): self._reset,
            ("GET", "state"): self._state,
        }
        handler = route.get((method, what))
        if handler is None:
            known = ", ".join(sorted(f"{verb} /{name}" for verb, name in route))
            raise Refused(f"unknown control request {method} /{'/'.join(parts)}; there are {known}")
        return handler(parts[1:], data)

    # -- machines --------------------------------------------------------------------------------

    def _vm(self, parts: list[str]) -> Vm:
        vmid = int(parts[0])
        vm = self.server.sim.cluster.vms.get(vmid)
        if vm is None:
            raise Refused(f"there is no VM {vmid}")
        return vm

    def _get_vm(self, parts: list[str], _data: Any) -> Any:
        if not parts:
            vms = self.server.sim.cluster.vms.values()
            return [self._show(vm) for vm in sorted(vms, key=lambda vm: vm.vmid)]
        return self._show(self._vm(parts))

    def _show(self, vm: Vm) -> dict[str, Any]:
        return {
            "vmid": vm.vmid,
            "node": vm.node,
            "running": vm.run is not None,
            "config": vm.conf,
            "pending": vm.pending,
            "delete": sorted(vm.pending_delete),
            "snapshots": vm.snapshots,
            "agent": vm.agent,
        }

    def _put_vm(self, parts: list[str], data: dict[str, Any]) -> Any:
        vm = self._vm(parts)
        cluster = self.server.sim.cluster
        for key, value in data.items():
            if key in ("acpi", "system", "busy", "qmpstatus", "processes_in"):
                _set_in_guest(vm, key, value)
            elif key == "lock":
                self._change(vm, {"lock": value or None})
            elif key == "agent":
                if value not in ("silent", "running"):
                    raise Refused("agent is 'silent' or 'running'")
                vm.agent = value
            elif key == "config":
                self._change(vm, value)
            elif key == "node":
                self._move(vm, value)
            elif key == "running":
                self._power(vm, bool(value))
            elif key == "restored":
                self._restore(vm, bool(value))
            else:
                raise Refused(
                    f"unknown key '{key}'; known are lock, agent, acpi, system, config, node,"
                    " running, busy, qmpstatus, restored, processes_in"
                )
        vm.file()
        vm.digest = None
        cluster.touch(vm.vmid)
        return {"ok": True}

    def _change(self, vm: Vm, changes: dict[str, Any]) -> None:
        """Change the configuration behind everybody's back."""
        for name, value in changes.items():
            if value is None:
                vm.conf.pop(name, None)
            elif is_net(name):
                vm.conf[name] = with_mac(self.server.sim.cluster, str(value))
            elif name.startswith("unused"):
                add_unused(vm, str(value))
            else:
                vm.conf[name] = str(value)

    def _move(self, vm: Vm, node: str) -> None:
        """The HA manager's reaction to a failed node: the machine appears on another node."""
        cluster = self.server.sim.cluster
        if node not in cluster.nodes:
            raise Refused(f"there is no node '{node}'")
        vm.node = node
        if vm.run is not None:
            cluster.nodes[node].next_pid += 1
            vm.run = Run(cluster.nodes[node].next_pid, cluster.now())

    def _restore(self, vm: Vm, begins: bool) -> None:
        """Root restores the machine from a backup of just now, until the next such request ends it.

        The lock on the configuration file is not held: writes that a client sends meet the digest.
        """
        if begins and vm.aside is None:
            vm.aside = (vm.conf, vm.pending, vm.pending_delete, vm.snapshots, vm.run)
            vm.conf, vm.pending, vm.pending_delete, vm.snapshots = {"memory": "128"}, {}, {}, {}
            vm.run = None

            async def work(_task: Task) -> None:
                while vm.aside is not None:
                    await asyncio.sleep(0.02)

            tasks = self.server.sim.cluster.tasks
            tasks.start(vm.node, "qmrestore", vm.vmid, "root@pam", work)
        elif not begins and vm.aside is not None:
            vm.conf, vm.pending, vm.pending_delete, vm.snapshots, vm.run = vm.aside
            vm.aside = None

    def _power(self, vm: Vm, running: bool) -> None:
        """The guest powers itself on or off."""
        cluster = self.server.sim.cluster
        if running and vm.run is None:
            cluster.nodes[vm.node].next_pid += 1
            vm.run = Run(cluster.nodes[vm.node].next_pid, cluster.now())
            set_active(cluster, self.server.sim.schema, vm, vm.node)
        elif not running and vm.run is not None:
            quit_vm(self.server.context(), vm)

    def _create_vm(self, parts: list[str], data: dict[str, Any]) -> Any:
        """Another client made a machine; the body is an entry of `vms` of a cluster file."""
        try:
            Builder(self.server.sim, {}).add_vm({**data, "vmid": int(parts[0])}, f"VM {parts[0]}")
        except UsageError as error:
            raise Refused(str(error)) from None
        self.server.sim.cluster.touch(int(parts[0]))
        self.server.sim.acl.changed()
        return {"ok": True}

    def _delete_vm(self, parts: list[str], _data: Any) -> Any:
        """The machine is gone, as if another client had destroyed it."""
        self._delete(self._vm(parts))
        return {"ok": True}

    def _delete(self, guest: Guest) -> None:
        sim = self.server.sim
        for storage in sim.cluster.storages.values():
            volumes = storage.on(guest.node)
            for name in [name for name, volume in volumes.items() if volume.vmid == guest.vmid]:
                del volumes[name]
        sim.cluster.remove_guest(guest.vmid)
        sim.acl.changed()

    # -- containers ------------------------------------------------------------------------------

    def _container(self, parts: list[str]) -> Container:
        container = self.server.sim.cluster.containers.get(int(parts[0]))
        if container is None:
            raise Refused(f"there is no container {parts[0]}")
        return container

    def _get_containers(self, _parts: list[str], _data: Any) -> Any:
        containers = self.server.sim.cluster.containers
        return [self._show_container(containers[vmid]) for vmid in sorted(containers)]

    def _show_container(self, container: Container) -> dict[str, Any]:
        return {
            "vmid": container.vmid,
            "node": container.node,
            "running": container.run is not None,
            "config": container.conf,
            "pending": container.pending,
            "delete": sorted(container.pending_delete),
            "snapshots": container.snapshots,
        }

    def _create_container(self, parts: list[str], data: dict[str, Any]) -> Any:
        """Another client made a container; the body is an entry of `containers` of a cluster
        file.
        """
        entry = {**data, "vmid": int(parts[0])}
        try:
            Builder(self.server.sim, {}).add_container(entry, f"container {parts[0]}")
        except UsageError as error:
            raise Refused(str(error)) from None
        self.server.sim.cluster.touch(int(parts[0]))
        self.server.sim.acl.changed()
        return {"ok": True}

    def _put_container(self, parts: list[str], data: dict[str, Any]) -> Any:
        """Its configuration or its power state changes, as if by another client."""
        container = self._container(parts)
        unknown = sorted(data.keys() - {"config", "node", "running"})
        if unknown:
            raise Refused(f"unknown key '{unknown[0]}'; known are config, node, running")
        if "running" in data:
            self._power_container(container, bool(data["running"]))
        container.node = data.get("node", container.node)
        for name, value in data.get("config", {}).items():
            if value is None:
                container.conf.pop(name, None)
            else:
                container.conf[name] = str(value)
        container.digest = None
        self.server.sim.cluster.touch(container.vmid)
        return {"ok": True}

    def _power_container(self, container: Container, running: bool) -> None:
        cluster = self.server.sim.cluster
        if not running:
            container.run = None
        elif container.run is None:
            node = cluster.nodes[container.node]
            node.next_pid += 1
            container.run = Run(node.next_pid, cluster.now())

    def _delete_container(self, parts: list[str], _data: Any) -> Any:
        """The container is gone, as if another client had destroyed it."""
        self._delete(self._container(parts))
        return {"ok": True}

    def _put_guests(self, _parts: list[str], data: dict[str, Any]) -> Any:
        for key, value in data.items():
            if key not in ("acpi", "system"):
                raise Refused(f"unknown key '{key}'; known are acpi, system")
            setattr(self.server.sim.cluster, key, bool(value))
        return {"ok": True}

    # -- the cluster -----------------------------------------------------------------------------

    def _put_node(self, parts: list[str], data: dict[str, Any]) -> Any:
        cluster = self.server.sim.cluster
        node = cluster.nodes.get(parts[0] if parts else "")
        if node is None:
            raise Refused(f"there is no node '{parts[0] if parts else ''}'")
        for key, value in data.items():
            self._change_node(node, key, value)
        cluster.revision += 1
        return {"ok": True, "quorate": cluster.quorate}

    def _change_node(self, node: NodeInfo, key: str, value: Any) -> None:
        cluster = self.server.sim.cluster
        changes: dict[str, Callable[[], object]] = {
            "online": lambda: self._set_online(node, bool(value)),
            **dict.fromkeys(("memory", "cpus", "sockets"), lambda: setattr(node, key, int(value))),
            "arch": lambda: setattr(node, "arch", str(value)),
            "dbus_vmstate": lambda: setattr(node, "dbus_vmstate", bool(value)),
            "maintenance": lambda: self._set_maintenance(node, bool(value)),
            "reboot": lambda: reboot(self.server.context(), node.name),
            "disks": lambda: add_disks(node, value),
            "after_reboot": lambda: setattr(node, "after_reboot", dict(value)),
            **dict.fromkeys(
                ("version", "services", "lost_storages"),
                lambda: come_back_with(node, {key: value}, cluster.version),
            ),
        }
        if key not in changes:
            raise Refused(f"unknown key '{key}'; known are {', '.join(changes)}")
        changes[key]()

    def _set_maintenance(self, node: NodeInfo, wanted: bool) -> None:
        if not self.server.sim.cluster.ha_active:
            raise Refused("the HA manager does not run in this cluster")
        set_maintenance(self.server.context(), node.name, wanted)

    def _set_online(self, node: NodeInfo, online: bool) -> None:
        if online:
            come_back(self.server.context(), node)
        else:
            go_down(self.server.context(), node)

    def _put_cluster(self, _parts: list[str], data: dict[str, Any]) -> Any:
        cluster = self.server.sim.cluster
        for key, value in data.items():
            if key == "quorate":
                set_quorum(cluster, bool(value))
            elif key == "ceph":
                cluster.ceph = None if value is None else {"health": "HEALTH_OK", **value}
            else:
                raise Refused(f"unknown key '{key}'; known are quorate, ceph")
        return {"ok": True}

    def _put_directory(self, parts: list[str], data: dict[str, Any] | None) -> Any:
        """The directory that a realm is synchronized with; without one it cannot be reached."""
        directories = self.server.sim.cluster.directories
        unknown = sorted((data or {}).keys() - {"users", "groups"})
        if unknown:
            raise Refused(f"unknown key '{unknown[0]}'; known are users, groups")
        if data is None:
            directories.pop(parts[0], None)
        else:
            directories[parts[0]] = data
        return {"ok": True}

    def _volumes(self, _parts: list[str], _data: Any) -> Any:
        """Every volume that is there: node (empty on a shared storage), volid, size. A backup has
        its time and its content.
        """
        cluster = self.server.sim.cluster
        found = []
        for name, storage in cluster.storages.items():
            nodes = [""] if storage.shared else list(cluster.nodes)
            for node in nodes:
                for volume in storage.on(node).values():
                    row = {"node": node, "volid": f"{name}:{volume.name}", "size": volume.size}
                    if volume.archive is not None:
                        row["ctime"] = volume.ctime
                        row["archive"] = dataclasses.asdict(volume.archive)
                        row["notes"] = volume.notes
                    found.append(row)
        return found

    def _forgotten_tasks(self, _parts: list[str], _data: Any) -> Any:
        tasks = self.server.sim.cluster.tasks
        return {"forgotten": [task.upid for task in tasks.forgotten if task.running]}

    def _forget_tasks(self, _parts: list[str], _data: Any) -> Any:
        """No node knows its tasks any more: their files are gone from /var/log/pve/tasks."""
        self.server.sim.cluster.tasks.forget()
        return {"ok": True}

    def _put_volume(self, parts: list[str], data: dict[str, Any]) -> Any:
        """Make or remove a volume, or change its size or the attributes of a backup, below the API:
        PUT /volumes/NODE {volid, new|gone|size|notes|protected|encrypted|verification|archive}.
        """
        cluster = self.server.sim.cluster
        if data.get("new"):
            store, _dummy, name = data["volid"].partition(":")
            storage = cluster.storage(store)
            parsed = parse_volname(storage, name)
            storage.on(parts[0])[name] = Volume(
                name,
                parsed.content,
                parsed.fmt,
                int(data.get("size", 1)),
                int(data.get("ctime", cluster.now())),
                parsed.vmid,
            )
        volume = find_volume(cluster, parts[0], data["volid"])
        if volume is None:
            raise Refused(f"there is no volume '{data['volid']}' on {parts[0]}")
        if data.get("gone"):
            store = data["volid"].partition(":")[0]
            cluster.storages[store].on(parts[0]).pop(volume.name, None)
        if "size" in data:
            volume.size = int(data["size"])
        for name in ("notes", "protected", "encrypted", "verification"):
            if name in data:
                setattr(volume, name, data[name])
        if "archive" in data:
            volume.archive = _archive(data["archive"])
        return {"ok": True}

    def _run_job(self, parts: list[str], data: dict[str, Any]) -> Any:
        """A replication job runs: PUT /replication/JOB {synced, slots}."""
        run_job(self.server.context(), parts[0], int(data["synced"]), data.get("slots"))
        return {"ok": True}

    def _put_settings(self, _parts: list[str], data: dict[str, Any]) -> Any:
        server = self.server
        for key, value in data.items():
            if key == "latency_ms":
                server.latency = float(value) / 1000
            elif key == "lag_s":
                server.sim.cluster.lag = float(value)
            elif key == "list_ms":
                server.sim.cluster.list_time = float(value) / 1000
            elif key == "cleanup_s":
                server.sim.cluster.cleanup = float(value)
            elif key == "task_ms":
                server.sim.cluster.tasks.durations.update(_task_durations(value))
            elif key == "auth_delay_s":
                server.options.auth_delay_s = float(value)
            elif key == "processes_in":
                server.sim.cluster.processes_in = value
            elif key == "tunnel_version":
                server.sim.cluster.sections[key] = int(value)
            else:
                raise Refused(f"unknown key '{key}'; known are {', '.join(_SETTINGS)}")
        return {"ok": True}

    async def _put_clock(self, _parts: list[str], data: dict[str, Any]) -> Any:
        """Put the clock of the cluster forward, to the time `to` or by `seconds`; backup jobs that
        become due run on the way, one time after another.
        """
        cluster = self.server.sim.cluster
        moment = float(data["to"]) if "to" in data else cluster.now() + float(data["seconds"])
        if moment < cluster.now():
            raise Refused("the clock only goes forward")
        await self.server.sim.scheduler.forward(moment)
        return {"ok": True, "now": cluster.now()}

    # -- faults, log, reset ----------------------------------------------------------------------

    def _add_faults(self, _parts: list[str], data: Any) -> Any:
        rules = [parse_fault(item) for item in (data if isinstance(data, list) else [data])]
        self.server.faults.rules.extend(rules)
        return {"ok": True, "faults": len(self.server.faults.rules)}

    def _set_faults(self, parts: list[str], data: Any) -> Any:
        self.server.faults.rules.clear()
        return self._add_faults(parts, data)

    def _clear_faults(self, _parts: list[str], _data: Any) -> Any:
        self.server.faults.rules.clear()
        return {"ok": True}

    def _reset_log(self, _parts: list[str], _data: Any) -> Any:
        self.server.log.reset()
        return {"ok": True}

    def _reset(self, _parts: list[str], _data: Any) -> Any:
        self.rebuild()
        return {"ok": True}

    def _state(self, _parts: list[str], _data: Any) -> Any:
        cluster = self.server.sim.cluster
        return {
            "nodes": {name: node.online for name, node in cluster.nodes.items()},
            "quorate": cluster.quorate,
            "vms": len(cluster.vms),
            "running": sum(1 for vm in cluster.vms.values() if vm.run is not None),
            "requests": self.server.log.total,
            "faults": len(self.server.faults.rules),
        }


def _set_in_guest(vm: Vm, key: str, value: Any) -> None:
    """Set the behaviour of the guest and its QEMU."""
    if key == "acpi":
        vm.acpi = None if value is None else bool(value)
    elif key == "system":
        vm.system = None if value is None else bool(value)
    elif key == "busy":
        vm.stuck = set(value or ())
    elif key == "processes_in":
        vm.processes_in = value
    elif vm.run is not None:
        vm.run.qmpstatus = str(value)
