"""Changes a machine's configuration the way PVE does: into the pending section first, then applied
or plugged.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import ApiError, ParamError, PveError
from ..schema.formats import split_list
from ..schema.validate import check_prop
from ..volumes.drives import (
    boot_devices,
    is_cdrom,
    is_cloudinit,
    is_drive,
    is_net,
    is_unused,
    memory_mib,
    parse_drive,
    print_boot,
    with_mac,
)
from ..volumes.volumes import find_volume, volume_owner
from .checks import (
    check_bridges,
    check_cpu_model,
    check_device,
    check_drive_params,
    check_lock,
    check_modify,
    check_protection,
    check_ssh_keys,
    check_storage_access,
    check_tags,
    resolve_cdrom_alias,
    unique_tags,
)
from .disks import Maker, add_unused, deallocate, drop_used, register_unused
from .hardware import (
    check_machine,
    check_tpm,
    check_vga,
    clamp_cpuunits,
    is_windows,
    pinned_machine,
)
from .hotplug import apply_pending, cleanup_pending, hotplug_pending

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.state import Vm
    from ..core.tasks import Task

NO_OPTION = "unknown option '{}'"
_DEVICE = re.compile(r"(?:serial|usb|hostpci|rng|virtiofs)\d+\Z")


def encrypt_password(text: str) -> str:
    """A stand-in for a crypt(3) hash, in its form."""
    if re.match(r"\$(?:[156]|2[ay])(?:\$.+){2}", text):
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"$5${digest[:8]}${digest[8:51]}"


def _hookscript_fault(ctx: Ctx, node: str, volid: str) -> str:
    """The fault of a hook script.

    There is always a fault, since nothing here can be executed.
    """
    if ":snippets/" not in volid:
        return f"'{volid}' is not in the snippets directory\n"
    if find_volume(ctx.cluster, node, volid) is None:
        return f"script '{volid}' does not exist\n"
    return f"script '{volid}' is not executable\n"


class Update:
    """One PUT or POST of a configuration: checked when it is made, carried out under the machine's
    lock.
    """

    def __init__(self, ctx: Ctx, params: dict[str, Any]) -> None:
        self.ctx = ctx
        params = dict(params)
        self.node: str = params.pop("node")
        self.vmid: int = params.pop("vmid")
        self.digest: str | None = params.pop("digest", None)
        self.delay: int | None = params.pop("background_delay", None)
        params.pop("skip_cloud_init", None)
        params.pop("import-working-storage", None)
        self.words = " ".join(
            f"-{key} {'<hidden>' if key == 'cipassword' else params[key]}" for key in sorted(params)
        )
        ctx.root_only(params, "skiplock")
        self.skiplock = bool(params.pop("skiplock", None))
        delete, revert = params.pop("delete", None), params.pop("revert", None)
        self.force = bool(params.pop("force", None))
        check_ssh_keys(params)
        if not delete and not revert and not params:
            raise PveError("no options specified")
        resolve_cdrom_alias(params)
        self.unset = [key for key, value in params.items() if value is None]
        self.params: dict[str, str] = {
            key: str(value) for key, value in params.items() if value is not None
        }
        if "cpuunits" in self.params:
            self.params["cpuunits"] = clamp_cpuunits(self.params["cpuunits"])
        self.bootorder: list[str] = []
        self.revert = self._reverts(split_list(revert or ""))
        self.delete = self._deletes(split_list(delete or ""))
        self._check()

    def _reverts(self, names: list[str]) -> list[str]:
        for name in names:
            if not self._exists(name):
                raise ParamError({"revert": NO_OPTION.format(name)})
            if name in self.params:
                raise ParamError(
                    {"delete": f"you can't use '-{name}' and -revert {name}' at the same time"}
                )
        return names

    def _exists(self, name: str) -> bool:
        return name in self.ctx.sim.schema.vm_options or name in _INTERNAL

    def _deletes(self, names: list[str]) -> list[str]:
        result = []
        for name in names:
            name = "ide2" if name == "cdrom" else name
            if name in self.params:
                raise ParamError(
                    {"delete": f"you can't use '-{name}' and -delete {name}' at the same time"}
                )
            if name in self.revert:
                raise ParamError(
                    {
                        "revert": (
                            f"you can't use '-delete {name}' and -revert {name}' at the same time"
                        )
                    }
                )
            if not self._exists(name):
                raise ParamError({"delete": NO_OPTION.format(name)})
            result.append(name)
        return result

    def _check(self) -> None:
        ctx, params = self.ctx, self.params
        check_drive_params(ctx, params)
        for name in params:
            if is_net(name):
                params[name] = with_mac(ctx.cluster, params[name])
            elif name == "vmgenid" and params[name] == "1":
                params[name] = ctx.cluster.uuid()
            elif name == "hookscript":
                raise ParamError({name: _hookscript_fault(ctx, self.node, params[name])})
        check_modify(ctx, self.vmid, None, self.delete)
        check_modify(ctx, self.vmid, None, params)
        check_storage_access(ctx, self.vmid, params)
        check_bridges(ctx, params)
        vm = ctx.cluster.vms.get(self.vmid)
        check_cpu_model(ctx, params, vm.conf if vm is not None else {})

    def load(self) -> Vm:
        """The machine, if this change may be made to it now."""
        vm = self.ctx.cluster.vm_at(self.node, self.vmid)
        if self.digest and self.digest != self.ctx.cluster.digest(vm):
            raise PveError("checksum mismatch (file change by other user?)")
        suspended = "vmstate" in self.delete and vm.conf.get("lock") == "suspended"
        if not self.skiplock and not suspended:
            check_lock(vm)
        if self.params.get("memory") or "balloon" in self.params:
            memory = self.params.get("memory") or vm.pending.get("memory") or vm.conf.get("memory")
            balloon = self.params.get(
                "balloon", vm.pending.get("balloon") or vm.conf.get("balloon")
            )
            if balloon and int(balloon) > memory_mib({"memory": memory} if memory else {}):
                raise PveError("balloon value too large (must be smaller than assigned memory)")
        return vm

    # -- carrying it out -------------------------------------------------------------------------

    async def run(self, task: Task | None = None) -> None:
        """Make the change; the caller holds the machine's lock."""
        ctx = self.ctx
        vm = self.load()
        self._complete_delete(vm)
        if task is not None:
            task.say(f"update VM {self.vmid}: {self.words}")
        modified: set[str] = set()
        self.bootorder = boot_devices(vm.conf) or []
        for name in self.delete:
            with _unless_refused(vm):
                self._delete_one(vm, name, modified)
        for name in self.unset:
            raise PveError(f"unable to parse value of '{name}' - got undefined value")
        for name in sorted(self.params):
            with _unless_refused(vm):
                await self._set_one(vm, name, self.params[name], modified, task)
        if cleanup_pending(vm):
            ctx.cluster.write(vm)
        if not vm.pending and not vm.pending_delete:
            return
        if vm.run is not None:
            errors = hotplug_pending(ctx, vm, modified)
        else:
            errors = apply_pending(ctx, vm)
        drop_used(ctx, vm)
        ctx.cluster.write(vm)
        if errors:
            raise ParamError(errors)

    def _complete_delete(self, vm: Vm) -> None:
        """Delete the options of a revert, and the options that belong to the saved state."""
        for name in self.revert:
            if name in vm.conf:
                self.params[name] = vm.conf[name]
            elif name in vm.pending:
                self.delete.append(name)
        if "vmstate" in self.delete:
            if vm.conf.get("lock") == "suspended":
                self.delete.append("lock")
            self.delete += [
                key
                for key in ("runningmachine", "runningcpu", "running-nets-host-mtu")
                if key in vm.conf
            ]

    def _delete_one(self, vm: Vm, name: str, modified: set[str]) -> None:
        ctx = self.ctx
        value = vm.conf.get(name, vm.pending.get(name))
        if value is None:
            return
        modified.add(name)
        was_pending = vm.pending.pop(name, None) is not None
        if name in self.bootorder:
            self._reorder([device for device in self.bootorder if device != name], vm, modified)
        if is_unused(name) or name == "vmstate":
            self._delete_volume(vm, name, value)
            return
        if is_drive(name):
            check_protection(vm, f"can't remove drive '{name}'")
            self._need_drive(name, value)
            if was_pending:
                register_unused(ctx, vm, parse_drive(ctx.sim.schema, name, value))
        elif _DEVICE.match(name):
            check_device(ctx, vm.vmid, None, name, value, "delete")
        elif name == "tags":
            check_tags(ctx, vm.vmid, value, "")
            vm.conf.pop("tags", None)
            ctx.cluster.write(vm)
            return
        elif is_net(name) and name in vm.conf:
            check_bridges(ctx, {name: vm.conf[name]})
        vm.pending_delete[name] = self.force
        ctx.cluster.write(vm)

    def _reorder(self, devices: list[str], vm: Vm, modified: set[str]) -> None:
        self.bootorder = devices
        vm.pending["boot"] = print_boot(devices)
        modified.add("boot")

    def _delete_volume(self, vm: Vm, name: str, value: str) -> None:
        what = f"unused disk '{value}'" if is_unused(name) else f"vmstate '{value}'"
        check_protection(vm, f"can't remove {what}")
        self.ctx.need(f"/vms/{vm.vmid}", "VM.Config.Disk")
        if deallocate(self.ctx, vm, name, {"file": value}, name == "vmstate"):
            vm.conf.pop(name, None)
            self.ctx.cluster.write(vm)

    def _need_drive(self, name: str, value: str) -> None:
        drive = parse_drive(self.ctx.sim.schema, name, value)
        path = f"/vms/{self.vmid}"
        if is_cloudinit(drive):
            self.ctx.need(path, "VM.Config.Cloudinit", "VM.Config.CDROM")
        elif is_cdrom(drive, no_cloudinit=True):
            self.ctx.need(path, "VM.Config.CDROM")
        else:
            self.ctx.need(path, "VM.Config.Disk")

    async def _set_one(
        self, vm: Vm, name: str, value: str, modified: set[str], task: Task | None
    ) -> None:
        ctx = self.ctx
        modified.add(name)
        if vm.pending.get(name) == value:
            return
        if is_drive(name):
            await self._set_drive(vm, name, value, modified, task)
        elif name == "tags":
            check_tags(ctx, vm.vmid, vm.conf.get("tags", ""), value)
            vm.pending[name] = unique_tags(ctx, value)
        elif name == "cipassword":
            vm.conf[name] = value if is_windows(vm.conf) else encrypt_password(value)
        elif name == "ostype":
            self._set_ostype(vm, value, modified)
        elif name == "boot":
            self._set_boot(vm, value)
        else:
            self._check_one(vm, name, value)
            vm.pending[name] = value
        if not value and not self._survives(name):
            vm.pending.pop(name, None)
        vm.pending_delete.pop(name, None)
        ctx.cluster.write(vm)

    def _check_one(self, vm: Vm, name: str, value: str) -> None:
        """Check a value before it becomes pending."""
        ctx = self.ctx
        if is_unused(name):
            if volume_owner(ctx.cluster, value) == vm.vmid:
                add_unused(vm, value)
        elif _DEVICE.match(name):
            if name in vm.conf:
                check_device(ctx, vm.vmid, None, name, vm.conf[name], "modify")
            check_device(ctx, vm.vmid, None, name, value, "modify")
        elif name == "vga":
            check_vga(ctx.sim.schema, value)
        elif name == "machine":
            check_machine(ctx.sim.schema, value)
        elif is_net(name) and name in vm.conf:
            check_bridges(ctx, {name: vm.conf[name]})

    def _survives(self, name: str) -> bool:
        """Whether an emptied value, which the file holds as a blank, is still one when the file is
        read again.
        """
        errors: dict[str, str] = {}
        check_prop(" ", self.ctx.sim.schema.vm_options[name], name, errors)
        return not errors

    def _set_ostype(self, vm: Vm, value: str, modified: set[str]) -> None:
        """A machine that becomes a Windows gets a certain machine version."""
        vm.pending["ostype"] = value
        if "machine" in self.params or "machine" in vm.pending or "machine" in modified:
            return
        try:
            machine = pinned_machine(self.ctx.cluster, vm.conf.get("machine"), value)
        except PveError:
            return
        if machine:
            vm.pending["machine"] = machine

    async def _set_drive(
        self, vm: Vm, name: str, value: str, modified: set[str], task: Task | None
    ) -> None:
        ctx, schema = self.ctx, self.ctx.sim.schema
        if name in vm.conf:
            self._need_drive(name, vm.conf[name])
            if name == "tpmstate0":
                check_tpm(schema, vm.conf[name], value)
        self._need_drive(name, value)
        if name in vm.pending:
            register_unused(ctx, vm, parse_drive(schema, name, vm.pending[name]))
        vm.pending.update(await Maker(ctx, vm, None, task).run({name: value}, vm.conf))
        added = (
            is_cdrom(parse_drive(schema, name, value), no_cloudinit=True)
            and name not in self.bootorder
        )
        if self.bootorder and added:
            self._reorder([*self.bootorder, name], vm, modified)

    def _set_boot(self, vm: Vm, value: str) -> None:
        vm.pending["boot"] = value
        devices = boot_devices({"boot": value})
        if devices:
            for device in devices:
                known = device in vm.conf or device in vm.pending or device in self.params
                if not known or device in self.delete:
                    vm.pending.pop("boot", None)
                    raise PveError(f"invalid bootorder: device '{device}' does not exist'")
            vm.pending["boot"] = print_boot(devices)
            if "bootdisk" in vm.conf:
                vm.pending_delete["bootdisk"] = False


@contextmanager
def _unless_refused(vm: Vm) -> Iterator[None]:
    """Take back the changes of a refused step.

    The steps before it stay: they are already written.
    """
    conf, pending, delete = dict(vm.conf), dict(vm.pending), dict(vm.pending_delete)
    try:
        yield
    except ApiError:
        vm.conf, vm.pending, vm.pending_delete = conf, pending, delete
        raise


# Settings that can be deleted although no request can set them.
_INTERNAL = frozenset(
    {
        "lock",
        "vmstate",
        "parent",
        "snaptime",
        "runningmachine",
        "runningcpu",
        "running-nets-host-mtu",
        "meta",
    }
)
