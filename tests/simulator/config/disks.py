"""Makes, detaches and frees the disks of machines."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ..core.state import Vm
from ..errors import ApiError, PveError
from ..schema.units import format_size, gib_to_kib
from ..volumes.drives import (
    NEW_DISK,
    Drive,
    drives_of,
    is_cdrom,
    is_cloudinit,
    is_unused,
    parse_drive,
    print_drive,
    split_volid,
)
from ..volumes.volumes import (
    Wanted,
    allocate,
    check_enabled,
    default_format,
    find_volume,
    format_line,
    formats,
    free,
    in_use,
    is_path_based,
    make_base,
    parse_volname,
    volume_owner,
    volume_size,
)
from .checks import check_volume_access
from .cloudinit_drive import CLOUDINIT_SIZE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.api import Ctx
    from ..core.state import Storage
    from ..core.tasks import Task

EFI_SIZE = 540672
TPM_SIZE = 4 * 1024 * 1024


class Maker:
    """Creates the new disks among the options of one machine.

    If one fails, the disks created before are freed.
    """

    def __init__(self, ctx: Ctx, vm: Vm, default: str | None, task: Task | None) -> None:
        self.ctx = ctx
        self.vm = vm
        self.default = default
        self.task = task
        self.made: list[str] = []
        self.result: dict[str, str] = {}

    def say(self, line: str) -> None:
        """Write to the log of the task, if there is one."""
        if self.task is not None:
            self.task.say(line)

    async def run(self, settings: Mapping[str, str], base: Mapping[str, str]) -> dict[str, str]:
        """The drives as they go into the configuration."""
        schema = self.ctx.sim.schema
        try:
            for name, drive in drives_of(
                schema, {k: v for k, v in settings.items() if v is not None}
            ):
                await self._one(name, drive, base)
        except (ApiError, asyncio.CancelledError):
            for volid in self.made:
                free(self.ctx.cluster, self.vm.node, volid)
            raise
        return self.result

    async def _one(self, name: str, drive: Drive, base: Mapping[str, str]) -> None:
        file = drive.get("file", "")
        parts = split_volid(file)
        if file in ("", "none", "cdrom"):
            drive.pop("size", None)
            self._put(name, drive)
        elif parts and parts[1] == "cloudinit":
            self._cloudinit(name, drive, parts[0], base)
        elif NEW_DISK.match(file):
            await self._new(name, drive, base)
        else:
            self._existing(name, drive, parts, base)

    def _put(self, name: str, drive: Drive) -> None:
        self.result[name] = print_drive(self.ctx.sim.schema, name, drive)

    def _other_cloudinit(self, name: str, base: Mapping[str, str]) -> None:
        schema = self.ctx.sim.schema
        for place in (base, self.vm.pending, self.result):
            for other, drive in drives_of(schema, place):
                if (
                    other != name
                    and is_cloudinit(drive)
                    and drive.get("file", "").partition(":")[2] != "cloudinit"
                ):
                    raise PveError(f"{name} - cloud-init drive is already attached at '{other}'")

    def _cloudinit(self, name: str, drive: Drive, store: str, base: Mapping[str, str]) -> None:
        self._other_cloudinit(name, base)
        cluster, vm = self.ctx.cluster, self.vm
        storage = check_enabled(cluster, store, vm.node)
        fmt = drive.pop("format", None) or ("qcow2" if is_path_based(storage) else "raw")
        volume = f"vm-{vm.vmid}-cloudinit" + (f".{fmt}" if is_path_based(storage) else "")
        wanted = Wanted(vm.vmid, fmt, CLOUDINIT_SIZE, volume)
        volid = allocate(cluster, vm.node, storage, wanted, say=self.say)
        self.made.append(volid)
        for line in format_line(storage, volid, fmt, CLOUDINIT_SIZE):
            self.say(line)
        drive.update(file=volid, media="cdrom")
        self._put(name, drive)
        self.say(f"{name}: successfully created disk '{self.result[name]}'")

    async def _new(self, name: str, drive: Drive, base: Mapping[str, str]) -> None:
        found = NEW_DISK.match(drive["file"])
        store = (found[1] if found else None) or self.default
        if not store or not found:
            raise PveError("no storage ID specified (and no default storage)")
        storage = check_enabled(self.ctx.cluster, store, self.vm.node)
        source = drive.pop("import-from", None)
        fmt = drive.pop("format", None)
        if source:
            volid, size = await self._import(name, source, storage, fmt)
        else:
            volid, size = self._blank(
                name, drive, storage, fmt or default_format(storage), found[2], base
            )
        if self.vm.template or base.get("template") == "1":
            volid = make_base(self.ctx.cluster, self.vm.node, volid)
        self.made.append(volid)
        drive.update(file=volid, size=format_size(size))
        if name == "efidisk0" and not source:
            self._note_certificates(drive)
        self._put(name, drive)
        self.say(f"{name}: successfully created disk '{self.result[name]}'")

    def _note_certificates(self, drive: Drive) -> None:
        """The firmware's own keys have Microsoft's certificates of 2023 (qemu-server, OVMF.pm,
        create_efidisk).
        """
        keys = self.ctx.sim.schema.vm_options["efidisk0"]["format"]
        if drive.get("pre-enrolled-keys") == "1" and "ms-cert" in keys:
            drive["ms-cert"] = "2023k"

    def _blank(
        self, name: str, drive: Drive, storage: Storage, fmt: str, gib: str, base: Mapping[str, str]
    ) -> tuple[str, int]:
        cluster, vm = self.ctx.cluster, self.vm
        size = gib_to_kib(gib) * 1024
        if name == "efidisk0":
            if not cluster.firmware:
                code = "OVMF_CODE_4M.fd" if drive.get("efitype") == "4m" else "OVMF_CODE.fd"
                raise PveError(f"EFI base image '/usr/share/pve-edk2-firmware//{code}' not found")
            size = EFI_SIZE if drive.get("efitype") == "4m" else 131072
        elif name == "tpmstate0":
            size = TPM_SIZE
        volid = allocate(cluster, vm.node, storage, Wanted(vm.vmid, fmt, size), say=self.say)
        for line in format_line(storage, volid, fmt, size):
            self.say(line)
        return volid, size

    async def _import(
        self, name: str, source: str, storage: Storage, fmt: str | None
    ) -> tuple[str, int]:
        cluster, vm = self.ctx.cluster, self.vm
        parts = split_volid(source)
        if parts is None:
            raise PveError(f"file '{source}' does not exist")
        volume = find_volume(cluster, vm.node, source)
        if volume is None:
            raise PveError(f"cannot import from '{source}' - volume '{source}' does not exist")
        size = volume.virtual_size or volume.size
        wanted = fmt or volume.fmt
        target = wanted if wanted in formats(storage) else default_format(storage)
        self.say(f"create full clone of drive ({source})")
        volid = allocate(cluster, vm.node, storage, Wanted(vm.vmid, target, size), say=self.say)
        for line in format_line(storage, volid, target, size):
            self.say(line)
        self.say(f"allocated target volume '{volid}'")
        if self.task is not None:
            try:
                await self.task.copy(size)
            except (ApiError, asyncio.CancelledError):
                free(cluster, vm.node, volid)
                raise
        return volid, size

    def _existing(
        self, name: str, drive: Drive, parts: tuple[str, str] | None, base: Mapping[str, str]
    ) -> None:
        file = drive["file"]
        check_volume_access(self.ctx, self.vm.vmid, file)
        if parts is not None:
            storage = self.ctx.cluster.storage(parts[0])
            parsed = parse_volname(storage, parts[1])
            wanted = drive.get("format")
            if wanted and wanted != parsed.fmt:
                raise PveError(
                    f"drive '{name}' - volume '{file}' - 'format={wanted}' option different from"
                    f" storage format '{parsed.fmt}'"
                )
            if is_cloudinit(drive):
                self._other_cloudinit(name, base)
            drive["size"] = format_size(volume_size(self.ctx.cluster, self.vm.node, file))
        self._put(name, drive)


def add_unused(vm: Vm, volid: str) -> str | None:
    """Keep the volume in the configuration as a detached disk; its name there."""
    for name, value in vm.conf.items():
        if is_unused(name) and value == volid:
            return name
    for index in range(256):
        name = f"unused{index}"
        if name not in vm.conf:
            vm.conf[name] = volid
            return name
    raise PveError("Too many unused volumes - please delete them first.")


def leave_unused(ctx: Ctx, vm: Vm, drive: Drive) -> None:
    """Keep the volume as a detached disk.

    A cloud-init drive, which can be generated again, is freed instead.
    """
    if not is_cloudinit(drive):
        add_unused(vm, drive["file"])
        return
    with suppress(ApiError):
        free(ctx.cluster, vm.node, drive["file"])


def drop_used(ctx: Ctx, vm: Vm) -> None:
    """A volume that is attached again is no longer an unused one."""
    used = {drive.get("file") for _dummy, drive in drives_of(ctx.sim.schema, vm.conf)}
    used |= {drive.get("file") for _dummy, drive in drives_of(ctx.sim.schema, vm.pending)}
    for name in [name for name, value in vm.conf.items() if is_unused(name) and value in used]:
        del vm.conf[name]


def register_unused(ctx: Ctx, vm: Vm, drive: Drive) -> None:
    """Detach a drive: a cloud-init drive is freed, a disk is kept as unused."""
    volid = drive.get("file", "")
    if is_cloudinit(drive):
        free(ctx.cluster, vm.node, volid)
        vm.cloudinit = None
    elif not is_cdrom(drive):
        parts = split_volid(volid)
        if (
            parts
            and parts[0] in ctx.cluster.storages
            and volume_owner(ctx.cluster, volid) == vm.vmid
        ):
            add_unused(vm, volid)


def deallocate(ctx: Ctx, vm: Vm, name: str, drive: Drive, force: bool) -> bool:
    """Free the volume of a drive that is removed for good; False when it is only to be detached."""
    if not (force or is_unused(name)) or is_cdrom(drive, no_cloudinit=True):
        return False
    volid = drive.get("file", "")
    if volume_owner(ctx.cluster, volid) == vm.vmid:
        ctx.need(f"/storage/{volid.partition(':')[0]}", "Datastore.AllocateSpace")
        if in_use(ctx.sim.schema, vm, name, volid):
            raise PveError(f"unable to delete '{volid}' - volume is still in use (snapshot?)")
        free(ctx.cluster, vm.node, volid)
    return True


def delete_or_detach(ctx: Ctx, vm: Vm, name: str, force: bool) -> None:
    """Carry out the removal of a drive from the configuration."""
    drive = parse_drive(ctx.sim.schema, name, vm.conf[name])
    if force:
        ctx.need(f"/vms/{vm.vmid}", "VM.Config.Disk")
        deallocate(ctx, vm, name, drive, True)
    else:
        register_unused(ctx, vm, drive)
