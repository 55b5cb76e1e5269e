"""Restores a machine from a backup, as others see it during that.

Source: qemu-server, PVE/API2/Qemu.pm (create_vm with `archive`) and PVE/QemuServer.pm
(restore_vma_archive, restore_proxmox_backup_archive, restore_update_config_line).
"""

from __future__ import annotations

import asyncio
import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..cluster.pools import add_to_pool
from ..config.checks import check_bridges, check_lock, check_protection, check_volume_access
from ..config.cloudinit_drive import CLOUDINIT_SIZE
from ..config.disks import add_unused
from ..config.vmconfig import to_base
from ..core.state import Archive, ArchivedDisk, Storage, Vm, Volume
from ..errors import ApiError, ParamError, PermError, PveError
from ..ha.records import add_resource, is_configured
from ..running.power import launch
from ..schema.named_hashes import HASHES
from ..schema.units import parse_props, print_props
from ..volumes.drives import (
    drives_of,
    is_cdrom,
    is_cloudinit,
    is_drive,
    is_net,
    parse_drive,
    parse_net,
    print_drive,
    print_net,
)
from ..volumes.volumes import (
    Wanted,
    allocate,
    default_format,
    format_line,
    formats,
    free,
    is_path_based,
    storage_path,
    volume_owner,
)
from .power import start_vm
from .vzdump import find_archive

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.tasks import Task

# The configuration of a machine whose disks are being written. A backup server's keeps the lock.
_BETWEEN = {"memory": "128"}
# The share of the time that passes before the configuration is replaced.
_HEADER = 0.02
_LOCK_WAIT = 5.0


def check_archive(ctx: Ctx, vmid: int, node: str, archive: str, options: dict[str, Any]) -> None:
    """Refuse an unreadable backup, and options that cannot be combined with a backup."""
    for name in sorted(options):
        if is_drive(name):
            raise ParamError({name: "option conflicts with option 'archive'"})
    if archive == "-":
        raise PveError("pipe requires cli environment")
    check_volume_access(ctx, vmid, archive, "backup")
    find_archive(ctx, node, archive)


@dataclass(frozen=True)
class Target:
    """The target of a disk; without a disk it is a cloud-init drive, which is generated."""

    storage: Storage
    disk: ArchivedDisk | None

    @property
    def size(self) -> int:
        """Bytes."""
        return CLOUDINIT_SIZE if self.disk is None else self.disk.size

    @property
    def fmt(self) -> str:
        """The format that the archive names."""
        return "raw" if self.disk is None else self.disk.fmt


class Restore:
    """One call. `options` replace options of the archive in the restored machine."""

    def __init__(self, ctx: Ctx, call: dict[str, Any], options: dict[str, str]) -> None:
        self.ctx = ctx
        self.call = call
        self.options = options
        self.node: str = call["node"]
        self.vmid: int = call["vmid"]
        self.label = f"unable to restore VM {self.vmid} -"
        store, _colon, self.volname = call["archive"].partition(":")
        self.storage: Storage = ctx.cluster.storage(store)
        self.made: dict[str, str] = {}
        self.has_data = False

    async def start(self) -> str:
        """Take the number with a lock, and start the worker."""
        try:
            async with self.ctx.sim.locks.hold(self.vmid, _LOCK_WAIT):
                self._reserve()
        except ApiError as error:
            raise PveError(f"{self.label} {error.text}") from None
        return self.ctx.task(self.node, "qmrestore", self.vmid, self.run)

    def _reserve(self) -> None:
        """Source: pve-guest-common, AbstractConfig.pm, create_and_lock_config."""
        cluster = self.ctx.cluster
        taken = cluster.guest(self.vmid)
        if taken is not None and not self.call.get("force"):
            what = "CT" if taken.kind == "lxc" else "VM"
            raise PveError(f"{what} {self.vmid} already exists on node '{taken.node}'")
        if taken is not None and (not isinstance(taken, Vm) or taken.node != self.node):
            file = f"/etc/pve/nodes/{self.node}/qemu-server/{self.vmid}.conf"
            raise PveError(f"close (rename) atomic file '{file}' failed: File exists")
        vm = taken or Vm(self.vmid, self.node, {})
        check_lock(vm)
        vm.conf["lock"] = "create"
        cluster.vms[self.vmid] = vm
        cluster.write(vm)

    async def run(self, task: Task) -> None:
        """Restore within the task; after a failure the machine stays in its present state."""
        try:
            await self._restore(task)
            await self._afterwards(task)
        except (ApiError, asyncio.CancelledError):
            self._unlock(task)
            if self.has_data:
                task.say(
                    "error after data was restored, VM disks should be OK but config may require"
                    f" adaptions. VM {self.vmid} state is NOT cleaned up."
                )
            else:
                task.say(
                    "error before or during data restore, some or all disks were not completely"
                    f" restored. VM {self.vmid} state is NOT cleaned up."
                )
            raise

    def _unlock(self, task: Task) -> None:
        vm = self.ctx.cluster.vms.get(self.vmid)
        if vm is None:
            return
        if vm.conf.get("lock") != "create":
            task.say("no lock found trying to remove 'create' lock")
            return
        del vm.conf["lock"]
        self.ctx.cluster.write(vm)

    async def _restore(self, task: Task) -> None:
        vm = self.ctx.cluster.vm_at(self.node, self.vmid)
        check_protection(vm, self.label)
        if vm.run is not None:
            raise PveError(f"{self.label} vm is running")
        async with self.ctx.sim.locks.hold(self.vmid, 1, log=task.say):
            archive = self._read(task)
            command = self._command(task)
            try:
                await self._extract(vm, archive, task)
            except ApiError as error:
                self._free(task)
                if command is None:
                    raise
                raise PveError(f"command '{command}' failed: {_text(error)}") from None
            except asyncio.CancelledError:
                self._free(task)
                raise
            self._finish(vm, archive, task)
            self.has_data = True
            if vm.template:
                task.say("Convert to template.")
                to_base(self.ctx, vm)

    def _read(self, task: Task) -> Archive:
        """The archive, if it is one of a machine. Source: Qemu.pm, `$realcmd`."""
        volume: Volume | None = find_archive(self.ctx, self.node, self.call["archive"])
        archive = volume.archive if volume is not None else None
        path = storage_path(self.storage, self.volname)
        if archive is not None and archive.kind == "qemu":
            try:
                check_bridges(self.ctx, {**archive.conf, **self.options})
            except PermError as error:
                raise PveError(_text(error)) from None
        if self.storage.kind != "pbs" and self.call.get("live-restore"):
            raise PveError(
                "live-restore is only compatible with backup images from a Proxmox Backup Server"
            )
        if archive is not None and archive.kind == "lxc":
            known = self.ctx.sim.schema.vm_options
            for name in sorted(archive.conf.keys() - known.keys()):
                text = f"unable to parse value of '{name}' - unknown setting '{name}'"
                task.say(f"vm {self.vmid} - {text}")
            raise PveError(f"ERROR: file '{path}' does not look like a QemuServer vzdump backup")
        if archive is None:
            raise PveError(f"unable to read archive '{path}'")
        return archive

    def _command(self, task: Task) -> str | None:
        """The pipe that extracts the archive; nothing for a backup server's."""
        if self.storage.kind == "pbs":
            return None
        path = storage_path(self.storage, self.volname)
        tmp = f"/var/tmp/vzdumptmp{task.pid}"
        reader, suffix = path, path.rpartition(".")[2]
        unpack = {"zst": "zstd -q -d -c", "gz": "zcat", "lzo": "lzop -d -c"}.get(suffix)
        command = f"vma extract -v -r {tmp}.fifo {reader if unpack is None else '-'} {tmp}"
        if unpack is not None:
            command = f"{unpack} {path} | {command}"
        task.say(f"restore vma archive: {command}")
        return f"set -o pipefail && {command}" if unpack is not None else command

    async def _extract(self, vm: Vm, archive: Archive, task: Task) -> None:
        """Replace the machine by an empty one and write its disks."""
        cluster = self.ctx.cluster
        await task.transfer(_HEADER)
        if archive.firewall is not None:
            cluster.firewalls[self.vmid] = copy.deepcopy(archive.firewall)
        targets = self._targets(archive)
        self._clear(vm, targets)
        for name, target in sorted(targets.items()):
            self.made[name] = self._allocate(target, task)
        for name, target in sorted(targets.items()):
            if target.disk is not None:
                path = storage_path(target.storage, self.made[name].partition(":")[2])
                task.say(f"map 'drive-{name}' to '{path}' (write zeros = 0)")
        await task.transfer(1 - _HEADER)

    def _targets(self, archive: Archive) -> dict[str, Target]:
        """The target of each disk. Source: QemuServer.pm, `$parse_backup_hints`."""
        wanted: dict[str, tuple[str, ArchivedDisk | None]] = {}
        for name, kept in archive.disks.items():
            wanted[name] = (kept.storage, kept)
        for name, drive in drives_of(self.ctx.sim.schema, archive.conf):
            if is_cloudinit(drive):
                wanted[name] = (drive["file"].partition(":")[0], None)
        targets = {}
        for name, (home, disk) in wanted.items():
            storage = self.ctx.cluster.storage(self.call.get("storage") or home)
            if "images" not in storage.content:
                raise PveError(
                    f"Content type 'images' is not available on storage '{storage.name}'"
                )
            self.ctx.need(f"/storage/{storage.name}", "Datastore.AllocateSpace")
            targets[name] = Target(storage, disk)
        return targets

    def _clear(self, vm: Vm, targets: dict[str, Target]) -> None:
        """Write the configuration of the time between, and remove the disks that are replaced.

        Source: QemuServer.pm, `$restore_cleanup_oldconf`.
        """
        cluster, old = self.ctx.cluster, vm.conf
        gone = [kept["vmstate"] for kept in vm.snapshots.values() if kept.get("vmstate")]
        for name, drive in drives_of(self.ctx.sim.schema, old):
            if name in targets and not is_cdrom(drive, no_cloudinit=True):
                gone.append(drive.get("file", ""))
        vm.conf = dict(_BETWEEN)
        if self.storage.kind == "pbs":
            vm.conf["lock"] = "create"
        vm.pending, vm.pending_delete, vm.snapshots, vm.cloudinit = {}, {}, {}, None
        cluster.write(vm)
        for volid in gone:
            if volume_owner(cluster, volid) == self.vmid:
                free(cluster, self.node, volid)

    def _allocate(self, target: Target, task: Task) -> str:
        cluster, storage = self.ctx.cluster, target.storage
        fmt = target.fmt if target.fmt in formats(storage) else default_format(storage)
        name = None
        if target.disk is None:
            name = f"vm-{self.vmid}-cloudinit" + (f".{fmt}" if is_path_based(storage) else "")
        wanted = Wanted(self.vmid, fmt, target.size, name)
        volid = allocate(cluster, self.node, storage, wanted, say=task.say)
        for line in format_line(storage, volid, fmt, target.size):
            task.say(line)
        task.say(f"new volume ID is '{volid}'")
        return volid

    def _free(self, task: Task) -> None:
        """Remove the new volumes. Source: QemuServer.pm, `$restore_destroy_volumes`."""
        for volid in self.made.values():
            free(self.ctx.cluster, self.node, volid)
            task.say(f"temporary volume '{volid}' successfully removed")
        self.made.clear()

    def _finish(self, vm: Vm, archive: Archive, task: Task) -> None:
        """Write the machine's own configuration, with the options of the call."""
        cluster = self.ctx.cluster
        conf = restored(self.ctx, archive.conf, self.made, unique=bool(self.call.get("unique")))
        conf.update(self.options)
        try:
            check_bridges(self.ctx, conf)
        except PermError as error:
            raise PveError(_text(error)) from None
        if self.call.get("live-restore"):
            conf["lock"] = "create"
        vm.conf = conf
        cluster.write(vm)
        task.say("rescan volumes...")
        self._rescan(vm, task)
        if self.call.get("pool"):
            add_to_pool(cluster, self.call["pool"], self.vmid)
            self.ctx.acl.changed()

    def _rescan(self, vm: Vm, task: Task) -> None:
        """Keep disks of the former machine that nothing names as unused ones."""
        cluster = self.ctx.cluster
        used = {drive.get("file") for _name, drive in drives_of(self.ctx.sim.schema, vm.conf)}
        for storage in cluster.storages.values():
            for volume in list(storage.on(self.node).values()):
                volid = f"{storage.name}:{volume.name}"
                is_own = volume.vmid == self.vmid and volume.content == "images"
                if not is_own or volid in used:
                    continue
                place = add_unused(vm, volid)
                task.say(f"VM {self.vmid} add unreferenced volume '{volid}' as '{place}' to config")
        cluster.write(vm)

    async def _afterwards(self, task: Task) -> None:
        cluster, vm = self.ctx.cluster, self.ctx.cluster.vm_at(self.node, self.vmid)
        live = bool(self.call.get("live-restore"))
        if live:
            task.say("starting VM for live-restore")
            launch(self.ctx, vm)
            vm.conf.pop("lock", None)
            cluster.write(vm)
        elif self.call.get("start"):
            task.say("Execute autostart")
            try:
                start_vm(self.ctx, self.node, self.vmid, {})
            except ApiError as error:
                task.say(error.text)
        if self.call.get("ha-managed") and not is_configured(cluster, self.vmid):
            state = "started" if live or self.call.get("start") else "stopped"
            task.say(f"Add HA resource with request-state '{state}'")
            add_resource(cluster, f"vm:{self.vmid}", {"state": state})


def restored(
    ctx: Ctx, conf: dict[str, str], made: dict[str, str], *, unique: bool
) -> dict[str, str]:
    """The configuration of an archive for the disks that were made of it.

    Source: QemuServer.pm, restore_update_config_line.
    """
    fresh: dict[str, str] = {}
    comments: list[str] = []
    for name, value in conf.items():
        if is_drive(name):
            drive = parse_drive(ctx.sim.schema, name, value)
            if drive.get("backup") == "0":
                comments.append(f"{name}: {value}")
                continue
            if name in made:
                drive.pop("format", None)
                value = print_drive(ctx.sim.schema, name, {**drive, "file": made[name]})
        elif is_net(name) and unique:
            value = _new_address(ctx, value)
        elif name == "vmgenid" and value != "0":
            value = ctx.cluster.uuid()
        elif name == "smbios1" and unique:
            keys = HASHES["pve-qm-smbios1"]
            value = print_props(keys, {**parse_props(keys, value), "uuid": ctx.cluster.uuid()})
        fresh[name] = value
    if comments:  # a line of the file with a # is a part of the notes
        notes = [fresh["description"]] if fresh.get("description") else []
        fresh["description"] = "\n".join([*notes, *comments])
    return fresh


def _new_address(ctx: Ctx, value: str) -> str:
    net = parse_net(ctx.sim.schema, value)
    net.pop("macaddr", None)
    return print_net(ctx.cluster, net)


def _text(error: ApiError) -> str:
    """The text of a refusal that another text goes around."""
    if isinstance(error, PermError):
        return f"{error.status} {error.message}"
    return error.text
