"""The guest that a tunnel fills: its configuration, its volumes, its power state.

Source: qemu-server, PVE/API2/Qemu.pm (mtunnel: config, disk, start, resume); pve-container,
PVE/API2/LXC.pm (mtunnel); pve-guest-common, PVE/StorageTunnel.pm; pve-storage, PVE/Storage.pm
(volume_import_start) and the plugins (volume_export_formats, volume_import_formats).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..config.update import Update
from ..containers.config import Change
from ..containers.power import launch as launch_container
from ..containers.power import stop as stop_running_container
from ..containers.rights import Rights
from ..core.state import Cluster, Container, Guest, Storage, Vm
from ..errors import ApiError, ParamError, PveError
from ..running.power import launch, quit_vm
from ..volumes.drives import print_drive
from ..volumes.volumes import Wanted, allocate, default_format, find_volume, formats, is_path_based

if TYPE_CHECKING:
    from .tunnel import Worker

_SECTION = re.compile(r"\[(.+)\]\Z")


@dataclass(frozen=True)
class Kind:
    """The differences between machines and containers."""

    noun: str
    directory: str
    task: str
    socket: str
    content: str
    content_name: str
    at: Callable[[Cluster, str, int], Guest]
    make: Callable[[int, str], Guest]
    write: Callable[[Worker, dict[str, Any]], Awaitable[None]]

    def create(self, cluster: Cluster, vmid: int) -> None:
        """Take the VMID: an empty configuration with a lock."""
        guest = self.make(vmid, cluster.local)
        if isinstance(guest, Vm):
            cluster.vms[vmid] = guest
        else:
            cluster.containers[vmid] = guest
        cluster.write(guest)


def parse_config(text: str) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """The options of a configuration file, and its sections by name."""
    options: dict[str, str] = {}
    sections: dict[str, dict[str, str]] = {}
    current, notes = options, []
    for line in text.splitlines():
        header = _SECTION.match(line)
        if header:
            current = sections.setdefault(header[1], {})
        elif line.startswith("#"):
            if current is options:
                notes.append(line[1:])
        elif line:
            name, _colon, value = line.partition(": ")
            current[name] = value
    if notes:
        options["description"] = "\n".join(notes)
    return options, sections


# -- the configuration ---------------------------------------------------------------------------


async def _write_vm(worker: Worker, params: dict[str, Any]) -> None:
    """Write the configuration with the rights of the token; the lock becomes `migrate`.

    Snapshots and pending changes do not come along; the generation ID and the cloud-init data do.
    """
    ctx, vmid = worker.ctx, worker.vmid
    vm = ctx.cluster.vms[vmid]
    _write_firewall(worker, params)
    options, sections = parse_config(params["conf"])
    kept: dict[str, str] = {}
    for key in ("vmgenid", "meta"):
        if key in options:
            kept[key] = options.pop(key)
    for key in ("lock", "digest", "parent"):
        options.pop(key, None)
    vm.conf.pop("lock", None)
    ctx.cluster.write(vm)
    try:
        await Update(ctx, {**options, "node": vm.node, "vmid": vmid}).run()
    except ApiError:
        vm.conf["lock"] = "create"
        ctx.cluster.write(vm)
        raise
    vm.conf.update(kept, lock="migrate")
    vm.cloudinit = sections.get("special:cloudinit") or None
    ctx.cluster.write(vm)


async def _write_container(worker: Worker, params: dict[str, Any]) -> None:
    """The same; a privileged container needs Sys.Modify on /."""
    ctx, vmid = worker.ctx, worker.vmid
    container = ctx.cluster.containers[vmid]
    _write_firewall(worker, params)
    options, _sections = parse_config(params["conf"])
    unprivileged = options.pop("unprivileged", "0") == "1"
    arch = options.pop("arch", None)
    for key in [key for key in options if key in ("lock", "digest", "parent") or "." in key]:
        del options[key]
    before = dict(container.conf)
    container.conf.pop("lock", None)
    try:
        if not unprivileged:
            ctx.need("/", "Sys.Modify")
        Rights(ctx, vmid, None, {}, unprivileged).check_set(options)
        container.conf = {"arch": arch} if arch else {}
        if unprivileged:
            container.conf["unprivileged"] = "1"
        errors = Change(ctx, container).run(options, [], [])
        if errors:
            raise ParamError(errors)
    except ApiError:
        container.conf, container.pending, container.pending_delete = before, {}, {}
        ctx.cluster.write(container)
        raise
    container.conf["lock"] = "migrate"
    ctx.cluster.write(container)


def _write_firewall(worker: Worker, params: dict[str, Any]) -> None:
    if params.get("firewall-config"):
        worker.ctx.cluster.firewalls[worker.vmid] = params["firewall-config"]


def _new_vm(vmid: int, node: str) -> Vm:
    return Vm(vmid, node, {"lock": "create"})


def _new_container(vmid: int, node: str) -> Container:
    return Container(vmid, node, {"lock": "create"})


VM = Kind(
    "VM",
    "qemu",
    "qmtunnel",
    "/run/qemu-server/{}.mtunnel",
    "images",
    "vm images",
    Cluster.vm_at,
    _new_vm,
    _write_vm,
)
CT = Kind(
    "CT",
    "lxc",
    "vzmtunnel",
    "/run/pve/ct-{}.mtunnel",
    "rootdir",
    "CT rootdirs",
    Cluster.container_at,
    _new_container,
    _write_container,
)


# -- volumes -------------------------------------------------------------------------------------


def export_formats(storage: Storage, fmt: str, *, with_snapshots: bool) -> list[str]:
    """The streams that a storage can send a volume as, or receive it as."""
    if storage.kind == "zfspool":
        return ["zfs"]
    if not is_path_based(storage):
        return [] if with_snapshots else ["raw+size"]
    if with_snapshots:
        return [f"{fmt}+size"] if fmt in ("qcow2", "vmdk") else []
    return ["tar+size"] if fmt == "subvol" else ["raw+size"]


def allocate_for_nbd(worker: Worker, params: dict[str, Any]) -> dict[str, Any]:
    """A volume for a disk that a running machine copies (vm_migrate_alloc_nbd_disks)."""
    cluster = worker.ctx.cluster
    storage = cluster.storage(params["storage"])
    fmt = params["format"] if params["format"] in formats(storage) else default_format(storage)
    wanted = Wanted(worker.vmid, fmt, params["size"])
    volid = allocate(cluster, cluster.local, storage, wanted, say=worker.say)
    worker.volumes.append(volid)
    schema, slot = worker.ctx.sim.schema, params["slot"]
    text = print_drive(schema, slot, {**params["drive"], "file": volid})
    return {"volid": volid, "drivestr": text}


def start_import(worker: Worker, params: dict[str, Any]) -> dict[str, Any]:
    """A socket for the data of a volume, if both storages know a common form of it."""
    storage = worker.ctx.cluster.storage(params["storage"])
    fmt = params["format"]
    known = export_formats(storage, fmt, with_snapshots=bool(params.get("with_snapshots")))
    common = [form for form in params["export_formats"].split(",") if form in known]
    if not common:
        raise PveError(f"no matching import/export format found for storage '{storage.name}'")
    base = "/run/qemu-server/{}.storage" if worker.kind.noun == "VM" else "/run/pve/ct-{}.storage"
    socket = base.format(worker.vmid)
    worker.sockets[socket] = "disk-data"
    worker.received.pop("disk-data", None)
    worker.received["disk-import"] = params
    return {"socket": socket, "format": common[0]}


def query_import(worker: Worker) -> dict[str, Any]:
    """The volume as soon as its data has arrived; the error of the import otherwise."""
    params = worker.received.pop("disk-import", None)
    if params is None:
        raise PveError("no disk import running")
    data = worker.received.pop("disk-data", None)
    if data is None:
        return {"status": "error", "msg": "import process failed\n"}
    try:
        volid = _import(worker, params, data)
    except ApiError as error:
        return {"status": "error", "msg": f"{error.text}\n"}
    worker.volumes.append(volid)
    return {"status": "complete", "volid": volid}


def _import(worker: Worker, params: dict[str, Any], data: dict[str, Any]) -> str:
    cluster = worker.ctx.cluster
    storage, fmt = cluster.storage(params["storage"]), params["format"]
    own = params["volname"].rpartition("/")[2]
    stem = own.removesuffix(f".{fmt}")
    name: str | None = f"{stem}.{fmt}" if is_path_based(storage) else stem
    key = f"{worker.vmid}/{name}" if is_path_based(storage) else name
    if key in storage.on(cluster.local):
        if not params.get("allow_rename"):
            raise PveError(f"volume '{storage.name}:{key}' already exists")
        name = None
    wanted = Wanted(worker.vmid, fmt, data["size"], name)
    volid = allocate(cluster, cluster.local, storage, wanted, say=worker.say)
    volume = find_volume(cluster, cluster.local, volid)
    if volume is not None:
        volume.virtual_size, volume.used = data["virtual_size"], data["used"]
    return volid


# -- power ---------------------------------------------------------------------------------------


async def start_vm(worker: Worker, _params: dict[str, Any]) -> dict[str, Any]:
    """Start QEMU, which waits for the memory and runs nothing."""
    vm = worker.ctx.cluster.vms[worker.vmid]
    launch(worker.ctx, vm)
    if vm.run is not None:
        vm.run.qmpstatus = "inmigrate"
    socket = f"/run/qemu-server/{worker.vmid}.migrate"
    worker.sockets[socket] = "memory"
    return {"migrate": {"proto": "unix", "addr": socket}}


def memory_arrived(worker: Worker) -> None:
    """The machine has its memory, and is paused until the command `resume`."""
    vm = worker.ctx.cluster.vms.get(worker.vmid)
    if vm is not None and vm.run is not None:
        vm.run.qmpstatus = "paused"


def tunnel_closed(worker: Worker) -> None:
    """QEMU ends if the memory did not arrive: it exits when the migration of its input fails."""
    vm = worker.ctx.cluster.vms.get(worker.vmid)
    if vm is not None and vm.run is not None and vm.run.qmpstatus == "inmigrate":
        quit_vm(worker.ctx, vm)


async def stop_vm(worker: Worker, _params: dict[str, Any]) -> None:
    """End QEMU at once."""
    vm = worker.ctx.cluster.vms[worker.vmid]
    if vm.run is not None:
        quit_vm(worker.ctx, vm)


async def resume_vm(worker: Worker, _params: dict[str, Any]) -> None:
    """Let the machine run."""
    vm = worker.ctx.cluster.vms[worker.vmid]
    if vm.run is None:
        raise PveError(f"VM {worker.vmid} not running")
    vm.run.qmpstatus = "running"
    worker.ctx.cluster.touch(worker.vmid)


async def start_container(worker: Worker, _params: dict[str, Any]) -> None:
    """Start the container; the command `unlock` comes first."""
    container = worker.ctx.cluster.containers[worker.vmid]
    if container.conf.get("lock"):
        raise PveError(f"CT is locked ({container.conf['lock']})")
    launch_container(worker.ctx, container)


async def stop_container(worker: Worker, _params: dict[str, Any]) -> None:
    """Stop the container."""
    container = worker.ctx.cluster.containers[worker.vmid]
    if container.run is not None:
        stop_running_container(worker.ctx, container)
