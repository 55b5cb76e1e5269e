"""Checks of a machine's options and of the caller's rights, before a create, a change, or a
clone.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ParamError, PermError, PveError
from ..schema.formats import split_list
from ..schema.validate import hash_format, split_property_string
from ..volumes.drives import (
    NEW_DISK,
    Drive,
    is_cdrom,
    is_drive,
    is_unused,
    parse_drive,
    print_drive,
    split_volid,
)
from ..volumes.volumes import parse_volname
from .hardware import check_drive, check_import, volume_of_path

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.state import Guest, Vm

# Take an address for a NIC: arguments are its guest, its bridge and its MAC address. The room of
# virtual networks, which is above this room, fills the list.
TAKE_ADDRESS: list[Callable[[Ctx, Guest, str, str], None]] = []
_CPU = frozenset("cores cpu runningcpu cpulimit cpuunits numa smp sockets vcpus".split())
_MEMORY = frozenset("memory balloon shares allow-ksm".split())
_HARDWARE = frozenset(
    "acpi hotplug kvm machine runningmachine scsihw smbios1 tablet vga watchdog audio0 rng0".split()
)
_GENERAL = frozenset(
    "agent autostart bios description keyboard localtime migrate_downtime migrate_speed name onboot"
    " ostype protection reboot startdate startup tdf template".split()
)
_DISK = frozenset("boot bootdisk vmstatestorage".split())
CLOUDINIT = (
    "cicustom",
    "cipassword",
    "citype",
    "ciuser",
    "ciupgrade",
    "nameserver",
    "searchdomain",
    "sshkeys",
)
_SPECIAL = re.compile(r"(?:unused|serial|usb|hostpci|virtiofs)\d+\Z")
_KEY_TYPES = (
    "ssh-dss",
    "ssh-rsa",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


def check_ssh_keys(params: Mapping[str, Any]) -> None:
    """Refuse `sshkeys` that hold something else than public keys."""
    text = params.get("sshkeys")
    if text is not None:
        check_key_lines(urllib.parse.unquote(str(text)))


def check_key_lines(text: str) -> None:
    """Refuse lines that hold something else than public keys."""
    for line in text.split("\n"):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        words = line.split()
        if not any(
            word in _KEY_TYPES and index + 1 < len(words) for index, word in enumerate(words)
        ):
            raise PveError("SSH public key validation error")


def resolve_cdrom_alias(params: dict[str, Any]) -> None:
    """`cdrom` is a name for ide2."""
    value = params.pop("cdrom", None)
    if value is not None:
        params["ide2"] = value if "media=" in value else f"{value},media=cdrom"


def check_drive_params(ctx: Ctx, params: dict[str, Any]) -> None:
    """Refuse impossible drives; the others are written in PVE's form."""
    schema = ctx.sim.schema
    for name in sorted(params):
        if not is_drive(name):
            continue
        drive = parse_drive(schema, name, params[name])
        check_drive(name, drive)
        file = drive.get("file", "")
        new = NEW_DISK.match(file)
        if drive.get("import-from"):
            if new is None or float(new[2]) != 0:
                text = (
                    "'import-from' requires special syntax - use <storage"
                    " ID>:0,import-from=<source>"
                )
                raise ParamError({name: text})
            check_import(name, drive)
        if file in ("cdrom", "none"):
            drive.setdefault("media", "cdrom")
        elif not file.startswith("/dev/") and ":" not in file and not file.isdigit():
            file = _to_volume(ctx, name, drive)
        parts = split_volid(file)
        if parts and new is None and parts[1] != "cloudinit":
            parsed = parse_volname(ctx.cluster.storage(parts[0]), parts[1])
            if parsed.content == "iso" and drive.get("media") != "cdrom":
                raise ParamError({name: "explicit 'media=cdrom' is required for iso images"})
        params[name] = print_drive(schema, name, drive)


def _to_volume(ctx: Ctx, name: str, drive: Drive) -> str:
    """Turn a path into the volume that lies there."""
    found = volume_of_path(ctx, drive["file"])
    if found is None:
        raise ParamError({name: f"unable to associate path '{drive['file']}' to any storage"})
    content, drive["file"] = found
    if content == "iso":
        drive.setdefault("media", "cdrom")
    wanted = {"disk": "images", "cdrom": "iso"}.get(drive.get("media", ""))
    if wanted and wanted != content:
        raise ParamError({name: f"unexpected media type ({content} != {wanted})"})
    return drive["file"]


def check_volume_access(ctx: Ctx, vmid: int | None, volid: str, content: str | None = None) -> None:
    """Refuse the use of a volume that the caller has no right to.

    `vmid` is the machine that is to use it, if any.
    """
    parts = split_volid(volid)
    if parts is None:
        if ctx.who != "root@pam":
            raise PveError(
                "Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm"
                " line 651."
            )
        return
    parsed = parse_volname(ctx.cluster.storage(parts[0]), parts[1])
    if content and parsed.content != content:
        raise PveError(f"unable to use volume {volid} - content type needs to be '{content}'")
    path, owner = f"/storage/{parts[0]}", parsed.vmid
    if ctx.may(path, "Datastore.Allocate"):
        return
    if parsed.content in ("iso", "vztmpl", "import"):
        ctx.need(path, "Datastore.AllocateSpace", "Datastore.Audit", any_of=True)
    elif owner is not None and owner == vmid:
        return
    elif owner is not None and parsed.content in ("backup", "images"):
        backup = parsed.content == "backup"
        ctx.need(path, "Datastore.AllocateSpace" if backup else "Datastore.Audit")
        ctx.need(f"/vms/{owner}", "VM.Backup" if backup else "VM.Config.Disk")
    else:
        raise PveError(f"missing privileges to access {volid}")


def check_storage_access(
    ctx: Ctx, vmid: int, params: Mapping[str, Any], default: str | None = None
) -> None:
    """Refuse disks on storages that hold no disks or on which the caller may not allocate."""
    schema = ctx.sim.schema
    for name in sorted(params):
        if not is_drive(name) or params[name] is None:
            continue
        drive = parse_drive(schema, name, params[name])
        _check_drive_access(ctx, vmid, name, drive, default)
        source = drive.get("import-from")
        if source:
            _check_import(ctx, vmid, name, source)
    for name in sorted(params):
        if is_unused(name):
            drive = split_property_string(
                {"file": {"default_key": 1}, "volume": {"alias": "file"}}, params[name]
            )
            check_volume_access(ctx, vmid, drive.get("file", ""), "images")
    if params.get("vmstatestorage") is not None:
        ctx.need(f"/storage/{params['vmstatestorage']}", "Datastore.AllocateSpace")


def _check_drive_access(ctx: Ctx, vmid: int, name: str, drive: Drive, default: str | None) -> None:
    file = drive.get("file", "")
    parts = split_volid(file)
    if not file or file in ("none", "cloudinit") or (parts and parts[1] == "cloudinit"):
        return
    new = NEW_DISK.match(file)
    if is_cdrom(drive) and file == "cdrom":
        ctx.need("/", "Sys.Console")
    elif not is_cdrom(drive) and new:
        store = new[1] or default
        if not store:
            raise PveError("no storage ID specified (and no default storage)")
        ctx.need(f"/storage/{store}", "Datastore.AllocateSpace")
        if "images" not in ctx.cluster.storage(store).content:
            raise ParamError({"storage": f"storage '{store}' does not support vm images"})
    else:
        check_volume_access(ctx, vmid, file)
        if parts:
            content = parse_volname(ctx.cluster.storage(parts[0]), parts[1]).content
            if content not in ("images", "iso"):
                raise ParamError({name: "content type needs to be 'images' or 'iso'"})


def _check_import(ctx: Ctx, vmid: int, name: str, source: str) -> None:
    parts = split_volid(source)
    if parts is None:
        check_volume_access(ctx, vmid, source)
        return
    parsed = parse_volname(ctx.cluster.storage(parts[0]), parts[1])
    if parsed.content not in ("images", "import"):
        raise ParamError(
            {name: f"{source} has wrong type '{parsed.content}' - needs to be 'images' or 'import'"}
        )
    if parsed.content == "import" and ".ova/" in parts[1]:  # needs_extraction
        ctx.need(f"/storage/{parts[0]}", "Datastore.AllocateSpace")
    if parsed.vmid is not None:
        ctx.need(f"/vms/{parsed.vmid}", "VM.Clone")
    else:
        check_volume_access(ctx, vmid, source)


def check_modify(ctx: Ctx, vmid: int, pool: str | None, names: Iterable[str]) -> None:
    """Refuse options for which the caller lacks the privilege."""
    if ctx.who == "root@pam":
        return
    for name in sorted(names):
        if is_drive(name) or name in ("cdrom", "tags") or _SPECIAL.match(name):
            continue
        if name in CLOUDINIT or re.fullmatch(r"ipconfig\d+", name):
            either = ["VM.Config.Cloudinit", "VM.Config.Network"]
            ctx.acl.require_vm(ctx.who, vmid, pool, either, True)
            continue
        needed = _needed_for(name)
        if not needed:
            raise PveError(f"only root can set '{name}' config")
        ctx.acl.require_vm(ctx.who, vmid, pool, needed)
        if name == "startup":
            ctx.need("/", "Sys.Modify")


def _needed_for(name: str) -> list[str]:
    """The privileges on the machine that an option needs, none if only root may set it."""
    by_option = (
        (_CPU, "VM.Config.CPU"),
        (_MEMORY, "VM.Config.Memory"),
        (_HARDWARE, "VM.Config.HWType"),
        (_GENERAL, "VM.Config.Options"),
        (("freeze",), "VM.PowerMgmt"),
        (_DISK, "VM.Config.Disk"),
        (("running-nets-host-mtu",), "VM.Config.Network"),
    )
    for options, privilege in by_option:
        if name in options:
            return [privilege]
    if re.fullmatch(r"numa\d+", name):
        return ["VM.Config.CPU"]
    if re.fullmatch(r"net\d+", name):
        return ["VM.Config.Network"]
    return ["VM.Config.Disk", "VM.PowerMgmt"] if name == "vmstate" else []


def check_device(
    ctx: Ctx, vmid: int, pool: str | None, name: str, value: str, verb: str = "set"
) -> None:
    """Refuse host devices to everybody but root@pam."""
    if ctx.who == "root@pam":
        return
    kind = name.rstrip("0123456789")
    if kind == "serial":
        if value != "socket":
            raise PveError(f"only root can {verb} '{name}' config for real devices")
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.Config.HWType"])
    elif kind == "usb":
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.Config.HWType"])
        _check_usb(ctx, name, _device(ctx, name, value))
    elif kind == "hostpci":
        device = _device(ctx, name, value)
        _check_hostpci(ctx, name, device)
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.Config.HWType"])
        if "romfile" in device:
            raise ParamError({name: "only root@pam can set 'romfile' option"})
    elif kind == "rng":
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.Config.HWType"])
        if _device(ctx, name, value).get("source") == "/dev/hwrng":
            ctx.need("/mapping/hwrng", "Mapping.Use")
    elif kind == "virtiofs":
        ctx.acl.require_vm(ctx.who, vmid, pool, ["VM.Config.Disk"])
        ctx.need(f"/mapping/dir/{_device(ctx, name, value).get('dirid', '')}", "Mapping.Use")


def _check_usb(ctx: Ctx, name: str, device: dict[str, str]) -> None:
    if device.get("host"):
        if device["host"].lower() != "spice":
            raise PveError(f"only root can set '{name}' config for real devices")
    elif device.get("mapping"):
        ctx.need(f"/mapping/usb/{device['mapping']}", "Mapping.Use")
    else:
        raise PveError("either 'host' or 'mapping' must be set.")


def _check_hostpci(ctx: Ctx, name: str, device: dict[str, str]) -> None:
    if device.get("host"):
        raise PveError(f"only root can set '{name}' config for non-mapped devices")
    if not device.get("mapping"):
        raise PveError("either 'host' or 'mapping' must be set.")
    ctx.need(f"/mapping/pci/{device['mapping']}", "Mapping.Use")


def check_mapping(ctx: Ctx, name: str, value: str) -> None:
    """Refuse to clone a device that the caller could not give to a machine."""
    kind = name.rstrip("0123456789")
    if ctx.who == "root@pam":
        return
    device = _device(ctx, name, value)
    if kind == "virtiofs":
        ctx.need(f"/mapping/dir/{device.get('dirid', '')}", "Mapping.Use")
    elif kind == "usb" and device.get("host"):
        if device["host"].lower() != "spice":
            raise PveError(f"only root can set '{name}' config for real devices")
    elif device.get("host"):
        raise PveError(f"only root can set '{name}' config for non-mapped devices")
    elif device.get("mapping"):
        ctx.need(f"/mapping/{'usb' if kind == 'usb' else 'pci'}/{device['mapping']}", "Mapping.Use")
    else:
        raise PveError("either 'host' or 'mapping' must be set.")


def check_cpu_model(ctx: Ctx, new: Mapping[str, Any], old: Mapping[str, Any]) -> None:
    """Refuse a custom CPU model that does not exist, or that the caller may not use (qemu-server:
    CPUConfig.pm; API2/Qemu.pm, check_cpu_model_access; its changelog for 9.1.13).
    """
    model = _cpu_model(ctx, new)
    if not model.startswith("custom-"):
        return
    models = ctx.cluster.sections.get("cpu-models")
    if models is None or model.removeprefix("custom-") not in models.entries:
        text = f"invalid format - Custom cputype '{model.removeprefix('custom-')}' not found\n"
        raise ParamError({"cpu": text})
    if model == _cpu_model(ctx, old):
        return
    if ctx.cluster.version["release"].startswith("8"):
        ctx.need("/nodes", "Sys.Audit")
    else:
        ctx.need(f"/mapping/cpu/{model.removeprefix('custom-')}", "Mapping.Use")


def _cpu_model(ctx: Ctx, conf: Mapping[str, Any]) -> str:
    return _device(ctx, "cpu", str(conf["cpu"])).get("cputype", "") if conf.get("cpu") else ""


def _device(ctx: Ctx, name: str, value: str) -> dict[str, str]:
    keys = hash_format(ctx.sim.schema.vm_options[name].get("format"))
    return split_property_string(keys or {}, value)


def check_devices(ctx: Ctx, vmid: int, pool: str | None, params: Mapping[str, Any]) -> None:
    """The same for every device among the options of a new machine, kind by kind."""
    for kind in ("serial", "usb", "hostpci", "rng", "virtiofs"):
        for name in sorted(params):
            if re.fullmatch(rf"{kind}\d+", name):
                check_device(ctx, vmid, pool, name, params[name])


def path_of_bridge(ctx: Ctx, name: str) -> str:
    """The path of the right to use a bridge or a virtual network (pve-guest-common:
    PVE/GuestHelpers.pm, check_vnet_access).
    """
    sdn = ctx.cluster.sections.get("sdn")
    vnet = sdn.entries("vnets").get(name) if sdn else None
    zone = "localnetwork" if vnet is None else vnet["zone"]
    return f"/sdn/zones/{zone}/{name}"


def check_bridges(ctx: Ctx, params: Mapping[str, Any]) -> None:
    """Refuse bridges that the caller may not use."""
    for name in sorted(params):
        if re.fullmatch(r"net\d+", name) and params[name]:
            net = split_property_string(ctx.sim.schema.vm_options["net0"]["format"], params[name])
            need_bridge(ctx, net)


def need_bridge(ctx: Ctx, net: Mapping[str, str]) -> None:
    """Refuse the bridge of a NIC, or one of its VLANs (pve-guest-common: GuestHelpers.pm,
    check_vnet_access).
    """
    bridge = net.get("bridge")
    if not bridge or ctx.who == "root@pam":
        return
    path = path_of_bridge(ctx, bridge)
    vlans = [int(net["tag"])] if net.get("tag") else []
    for part in split_list(net.get("trunks", "")):
        first, _dummy, last = part.partition("-")
        vlans += range(int(first), int(last or first) + 1)
    for vlan in vlans:
        ctx.need(f"{path}/{vlan}", "SDN.Use")
    if not vlans:
        ctx.need(path, "SDN.Use")


def tag_style(ctx: Ctx) -> dict[str, str]:
    """The datacenter's rules about tags."""
    text = ctx.cluster.options.get("tag-style", "")
    return dict(part.split("=", 1) for part in text.split(",") if "=" in part)


def unique_tags(ctx: Ctx, text: str) -> str:
    """The tags in their stored form: once each, lower case and sorted unless the datacenter sets
    otherwise.
    """
    style = tag_style(ctx)
    tags = split_list(text)
    if style.get("case-sensitive") != "1":
        tags = [tag.lower() for tag in tags]
    unique = list(dict.fromkeys(tags))
    if style.get("ordering", "alphabetical") == "alphabetical":
        unique.sort()
    return ";".join(unique)


def allowed_tags(ctx: Ctx, *, privileged: bool) -> tuple[set[str], set[str], bool]:
    """(tags the caller may set, registered tags, whether any other may be set).

    Source: pve-guest-common, GuestHelpers.pm, get_allowed_tags.
    """
    cluster = ctx.cluster
    registered = set(split_list(cluster.options.get("registered-tags", "")))
    access = dict(
        part.split("=", 1)
        for part in cluster.options.get("user-tag-access", "").split(",")
        if "=" in part
    )
    mode = access.get("user-allow", "free")
    allowed: set[str] = set()
    if mode != "none" or privileged:
        allowed |= set(split_list(access.get("user-allow-list", "")))
    if mode in ("free", "existing") or privileged:
        for guest in cluster.guests():
            if guest.conf.get("tags") and (privileged or ctx.may(f"/vms/{guest.vmid}", "VM.Audit")):
                allowed |= set(split_list(guest.conf["tags"]))
    return allowed | registered if privileged else allowed - registered, registered, mode == "free"


def check_tags(ctx: Ctx, vmid: int, old: str, new: str) -> None:
    """Refuse tags that the datacenter keeps from the caller."""
    if ctx.who == "root@pam" or ctx.who.startswith("root@pam!") and ctx.may("/", "Sys.Modify"):
        return
    ctx.need(f"/vms/{vmid}", "VM.Config.Options")
    if ctx.may("/", "Sys.Modify"):
        return
    allowed, registered, free = allowed_tags(ctx, privileged=False)
    before, after = set(split_list(old)), set(split_list(new))
    for tag in sorted(before ^ after):
        if tag in allowed and tag not in registered:
            continue
        if tag in registered or not free:
            raise PermError(f"/, Sys.Modify for modifying tag '{tag}'")


def check_lock(vm: Vm) -> None:
    """Refuse when the machine is locked."""
    lock = vm.conf.get("lock")
    if lock:
        raise PveError(f"VM is locked ({lock})")


def check_protection(vm: Guest, what: str) -> None:
    """Refuse when the machine is protected against removal."""
    if vm.conf.get("protection") == "1":
        raise PveError(f"{what} - protection mode enabled")


def take_address(ctx: Ctx, guest: Guest, nic: Mapping[str, str]) -> None:
    """Take an address for a NIC before it is plugged in. Raises PveError if none is left."""
    for take in TAKE_ADDRESS:
        take(ctx, guest, nic.get("bridge", ""), nic.get("macaddr") or nic.get("hwaddr", ""))
