# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The permission checks in PVE's code, in the notation of the API's schema (pure).

They depend on parameters, and on the configuration of the guest. These kinds are not in the schema:
C(network) with the bridge and the VLAN of a NIC, C(root) with the cause of the refusal of any login
but root@pam, C(either), which refuses with the cause of its last part, C(since) with a release and
the checks from it on and before, C(moved) with a guest that leaves its pool, C(owner) with the
login of a task, C(state storage) with the storages of a VM, and C(tags) before and after.

Sources: qemu-server, API2/Qemu.pm; pve-container, LXC.pm and API2/LXC.pm; pve-manager,
API2/VZDump.pm, API2/Backup.pm, API2/Pool.pm, API2/Tasks.pm and API2/Ceph/Pool.pm; pve-storage,
Storage.pm (check_volume_access) and API2/Disks; pve-network, API2/Network/SDN/Vnets.pm and
Subnets.pm; pve-firewall, API2/Firewall/Helpers.pm.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.propstring import sub_keys

Check: TypeAlias = Sequence[Any]
Config: TypeAlias = Mapping[str, Any]

_GROUPS: Mapping[str, str] = {
    "VM.Config.CPU": "cores cpu cpulimit cpuunits numa sockets vcpus",
    "VM.Config.Memory": "memory balloon shares allow-ksm",
    "VM.Config.HWType": "acpi hotplug kvm machine scsihw smbios1 tablet vga watchdog audio0 rng0",
    "VM.Config.Options": "agent autostart bios description keyboard localtime name onboot ostype"
    " protection startdate startup tdf",
    "VM.Config.Disk": "boot bootdisk vmstatestorage",
}
_OF_VM = {name: group for group, names in _GROUPS.items() for name in names.split()}
_OF_FAMILY = {"net": "VM.Config.Network", "numa": "VM.Config.CPU"}
_OF_CONTAINER = {
    **dict.fromkeys(("cores", "cpulimit", "cpuunits"), "VM.Config.CPU"),
    **dict.fromkeys(("memory", "swap"), "VM.Config.Memory"),
    **dict.fromkeys(("hostname", "nameserver", "searchdomain"), "VM.Config.Network"),
}
_CLOUD_INIT = frozenset(
    "cicustom cipassword citype ciuser ciupgrade nameserver searchdomain sshkeys".split()
)
_OF_CALL = frozenset(
    "archive background_delay bwlimit delete digest force ha-managed ignore-unpack-errors"
    " import-working-storage live-restore ostemplate password pool restore revert skiplock"
    " ssh-public-keys start storage unique unprivileged vmid".split()
)
_DRIVE = re.compile(r"(?:ide|sata|scsi|virtio)\d+|efidisk0|tpmstate0")
_MOUNT = re.compile(r"rootfs|mp\d+")
_NIC = re.compile(r"net\d+")
_NEW_VOLUME = re.compile(r"([^:/]+):(?:\d+(?:\.\d+)?|cloudinit)")
_MAPPED = {"hostpci": ("pci", "mapping"), "usb": ("usb", "mapping"), "virtiofs": ("dir", "dirid")}
_SPACE = "Datastore.AllocateSpace"
_FILES = ("iso", "vztmpl", "import")
_LIMITS = frozenset(("bwlimit", "ionice", "performance"))


def checks_of(
    call: str, values: Mapping[str, str], data: Config, config: Config
) -> Iterator[Check]:
    """Return the checks of a call such as C(POST /nodes/{}/qemu), in the order of PVE.

    `values` are its parameters and the names in its path, `data` its parameters, and `config` is
    the configuration of the guest that it changes or copies.
    """
    checks = _CHECKS.get(call)
    return checks(values, data, config) if checks else iter(())


def _listed(text: Any) -> list[str]:
    return [word for word in re.split(r"[;,\s]+", str(text or "")) if word]


def _perm(path: str, *privileges: str, any_of: bool = False) -> Check:
    return ("perm", path, privileges, "any", any_of)


def _new_guest(values: Mapping[str, str], data: Config) -> Iterator[Check]:
    """Return the checks of a guest that is created or restored."""
    if data.get("ha-managed"):
        yield _perm("/", "Sys.Console")
    if data.get("start"):
        yield _perm("/vms/{vmid}", "VM.PowerMgmt")
    allocate = _perm("/vms/{vmid}", "VM.Allocate")
    checks = [allocate, ("perm", "/pool/{pool}", ("VM.Allocate",), "require_param", "pool")]
    if data.get("force"):
        checks.append(_perm("/vms/{vmid}", "VM.Backup"))
    yield ("or", *checks)


def _new_vm(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    if data.get("storage"):
        yield _perm("/storage/{storage}", _SPACE)
    yield from _new_guest(values, data)
    if data.get("archive"):
        yield from _volume(values, str(data["archive"]))
        yield from _disks(data, config)
        yield from _copied(data, config)
    yield from _of_vm(values, data, config)
    for name in sorted(data):
        yield from _device(name, str(data[name]))
    yield from _networks(data)
    if data.get("tags"):
        yield from _tags("", str(data["tags"]))


def _changed_vm(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    deleted = _listed(data.get("delete"))
    yield from _of_vm(values, dict.fromkeys(deleted, ""), {})
    yield from _of_vm(values, data, config)
    yield from _networks(data)
    for name in deleted:
        old = str(config.get(name) or "")
        yield from _change(name, old, "")
        yield from _networks({name: old})
        is_disk = _DRIVE.fullmatch(name) and "media=cdrom" not in old and data.get("force")
        if old and (is_disk or name.startswith("unused")):
            yield _perm(f"/storage/{old.partition(':')[0]}", _SPACE)
    for name in sorted({*data} - _OF_CALL):
        yield from _change(name, str(config.get(name) or ""), str(data[name] or ""))


def _change(name: str, old: str, new: str) -> Iterator[Check]:
    """Return the checks of the values of an option of an existing VM; a missing value is empty."""
    if name == "tags":
        yield from _tags(old, new)
    else:
        yield from (*_value(name, old), *_value(name, new))


def _tags(old: str, new: str) -> Iterator[Check]:
    yield _perm("/vms/{vmid}", "VM.Config.Options")
    yield ("tags", _listed(old), _listed(new))


def _of_vm(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    """Return the checks of options by their names, of their storages and of the CPU model."""
    for name in sorted(data):
        yield from _group(name)
    for name in sorted(data):
        if _DRIVE.fullmatch(name) and data[name]:
            yield from _storage_of_drive(values, str(data[name]))
        if name.startswith("unused") and data[name]:
            yield from _volume(values, str(data[name]))
    if data.get("vmstatestorage"):
        yield _perm("/storage/{vmstatestorage}", _SPACE)
    model = _cpu_model(data)
    if model.startswith("custom-") and model != _cpu_model(config):
        yield ("since", (9, 2), _model_use(model), _perm("/nodes", "Sys.Audit"))


def _cpu_model(config: Config) -> str:
    return sub_keys(str(config.get("cpu") or ""), "cputype").get("cputype", "")


def _model_use(model: str) -> Check:
    """Return the check of the use of a custom CPU model since qemu-server 9.1.13, of Proxmox VE 9.2
    (debian/changelog).
    """
    return _perm(f"/mapping/cpu/{model.removeprefix('custom-')}", "Mapping.Use")


def _group(name: str) -> Iterator[Check]:
    """Return the checks of an option of a VM by its name."""
    family = name.rstrip("0123456789")
    if name in _CLOUD_INIT or family == "ipconfig":
        either = ("VM.Config.Cloudinit", "VM.Config.Network")
        yield _perm("/vms/{vmid}", *either, any_of=True)
    privilege = _OF_VM.get(name) or _OF_FAMILY.get(family)
    if privilege:
        yield _perm("/vms/{vmid}", privilege)
    if name == "startup":
        yield _perm("/", "Sys.Modify")


def _storage_of_drive(values: Mapping[str, str], text: str) -> Iterator[Check]:
    drive = sub_keys(text, "file")
    file = drive.get("file", "")
    new = _NEW_VOLUME.fullmatch(file)
    if file == "cdrom":
        yield _perm("/", "Sys.Console")
    elif new and not file.endswith(":cloudinit"):
        yield _perm(f"/storage/{new[1]}", _SPACE)
    elif file not in ("none", "cloudinit") and not file.endswith(":cloudinit"):
        yield from _volume(values, file)
    source = drive.get("import-from", "")
    if source:
        if _content_of(source) == "import" and ".ova/" in source:
            yield _perm(f"/storage/{source.partition(':')[0]}", _SPACE)
        owner = owner_of(source)
        is_disk = owner and _content_of(source) == "images"
        yield from ([_perm(f"/vms/{owner}", "VM.Clone")] if is_disk else _volume(values, source))


def _value(name: str, text: str) -> Iterator[Check]:
    """Return the checks of the value of an option of an existing VM, old or new."""
    if not text:
        return
    if name.startswith("unused"):
        yield _perm("/vms/{vmid}", "VM.Config.Disk")
    elif _DRIVE.fullmatch(name):
        drive = sub_keys(text, "file")
        privileges = ["VM.Config.Disk"]
        if drive.get("media") == "cdrom":
            privileges = ["VM.Config.CDROM"]
        if "cloudinit" in drive.get("file", ""):
            privileges = ["VM.Config.Cloudinit", "VM.Config.CDROM"]
        yield _perm("/vms/{vmid}", *privileges)
    else:
        yield from _device(name, text)


def _device(name: str, text: str) -> Iterator[Check]:
    """Return the checks of a device. Devices of the host are refused by their values elsewhere."""
    kind = name.rstrip("0123456789")
    word, key = _MAPPED.get(kind, ("", ""))
    if kind not in ("serial", "rng", *_MAPPED) or not text:
        return
    yield _perm("/vms/{vmid}", "VM.Config.Disk" if kind == "virtiofs" else "VM.Config.HWType")
    device = sub_keys(text, "source" if kind == "rng" else key)
    if word and device.get(key):
        yield _perm(f"/mapping/{word}/{device[key]}", "Mapping.Use")
    if device.get("source") == "/dev/hwrng":
        yield _perm("/mapping/hwrng", "Mapping.Use")


def _networks(config: Config) -> Iterator[Check]:
    for name in sorted(config):
        if _NIC.fullmatch(name) and config[name]:
            nic = sub_keys(str(config[name]))
            vlans = [nic["tag"]] if nic.get("tag") else []
            vlans += _vlans(nic.get("trunks", ""))
            for vlan in vlans or [""]:
                if nic.get("bridge"):
                    yield ("network", nic["bridge"], vlan)


def _vlans(trunks: str) -> list[str]:
    """Return the first VLAN of each range: PVE asks for each VLAN."""
    return [part.partition("-")[0] for part in trunks.split(";") if part]


def _copied(data: Config, config: Config) -> Iterator[Check]:
    """Return the checks of networks and devices that a restore or a clone takes over."""
    kept = {name: value for name, value in config.items() if name not in data}
    yield from _networks(kept)
    for name in sorted(kept):
        yield from (one for one in _device(name, str(kept[name])) if one[1].startswith("/mapping"))


def _clone(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    if any(sub_keys(str(value), "file").get("file") == "cdrom" for value in config.values()):
        yield _perm("/", "Sys.Console")
    yield from _disks(data, config)
    yield from _copied({}, config)
    model = _cpu_model(config)
    if model.startswith("custom-"):
        yield ("since", (9, 2), _model_use(model), None)


def _disks(data: Config, config: Config) -> Iterator[Check]:
    """Return the checks of the storages on which the disks of a guest are allocated."""
    for name in sorted(config):
        volume = sub_keys(str(config[name]), "file")
        is_disk = _DRIVE.fullmatch(name) or _MOUNT.fullmatch(name)
        storage, is_volume, _name = volume.get("file", "").partition(":")
        if is_disk and is_volume and volume.get("media") != "cdrom" and volume.get("backup") != "0":
            yield _perm(f"/storage/{data.get('storage') or storage}", _SPACE)
    if config.get("vmstatestorage"):
        yield _perm(f"/storage/{config['vmstatestorage']}", _SPACE)


def _new_container(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    is_restored = bool(data.get("restore"))
    is_privileged = "unprivileged" in data and not int(data["unprivileged"])
    if is_restored:
        is_privileged = is_privileged or not int(config.get("unprivileged") or 0)
    if is_privileged:
        yield _perm("/", "Sys.Modify")
    yield from _new_guest(values, data)
    yield from _of_container(values, data, {"unprivileged": "0" if is_privileged else "1"})
    yield from _volume(values, str(data.get("ostemplate") or ""))
    storage = data.get("storage") or "local"
    if "rootfs" not in data:
        yield _perm(f"/storage/{storage}", _SPACE)
    for name in sorted(data):
        if _MOUNT.fullmatch(name):
            yield _perm(f"/storage/{str(data[name]).partition(':')[0]}", _SPACE)
    if is_restored:
        yield from _copied(data, config)


def _changed_container(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    yield from _of_container(values, data, config)
    deleted = _listed(data.get("delete"))
    yield from _of_container(values, dict.fromkeys(deleted, ""), config)


def _of_container(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    """Return the checks of options of a container; an empty value is deleted."""
    for name, value in data.items():
        if name in _OF_CALL:
            continue
        text, old = str(value), str(config.get(name) or "")
        if _MOUNT.fullmatch(name):
            yield from _mount(values, text)
        elif name == "features":
            yield from _features(text, old, config)
        elif re.fullmatch(r"dev\d+", name):
            yield ("root", "configuring device passthrough is only allowed for root@pam")
        elif name == "tags":
            yield from _tags(old, text)
        elif name == "hookscript":
            yield ("root", "changing the hookscript is only allowed for root@pam")
        elif _NIC.fullmatch(name):
            yield _perm("/vms/{vmid}", "VM.Config.Network")
            yield from _networks({name: old})
            yield from _networks({name: text})
        else:
            yield _perm("/vms/{vmid}", _OF_CONTAINER.get(name, "VM.Config.Options"))


def _mount(values: Mapping[str, str], text: str) -> Iterator[Check]:
    yield _perm("/vms/{vmid}", "VM.Config.Disk")
    volume = sub_keys(text, "volume").get("volume", "")
    new = _NEW_VOLUME.fullmatch(volume)
    if new:
        yield _perm(f"/storage/{new[1]}", _SPACE)
    elif volume.startswith("/"):
        kind = "device" if volume.startswith("/dev/") else "bind"
        yield ("root", f"mount point type {kind} is only allowed for root@pam")
    elif ":" in volume:
        yield from _volume(values, volume)


def _features(text: str, old: str, config: Config) -> Iterator[Check]:
    if not int(config.get("unprivileged") or 0):
        cause = "changing feature flags for privileged container is only allowed for root@pam"
        yield ("root", cause)
    before, after = sub_keys(old), sub_keys(text)
    changed = {key for key in (*before, *after) if before.get(key, "") != after.get(key, "")}
    if changed - {"nesting"}:
        yield ("root", "changing feature flags (except nesting) is only allowed for root@pam")
    if changed:
        yield _perm("/vms/{vmid}", "VM.Allocate")


def _volume(values: Mapping[str, str], volume: str) -> Iterator[Check]:
    """Return the checks of the use of an existing volume (Storage.pm, check_volume_access)."""
    storage, is_volume, _name = volume.partition(":")
    if not is_volume:
        return
    path, content, owner = f"/storage/{storage}", _content_of(volume), owner_of(volume)
    all_rights = _perm(path, "Datastore.Allocate")
    if content in _FILES:
        # PVE names the privileges of a reader in its refusal
        yield _perm(path, _SPACE, "Datastore.Audit", any_of=True)
    elif owner and owner != values.get("vmid"):
        is_backup = content == "backup"
        yield ("either", all_rights, _perm(path, _SPACE if is_backup else "Datastore.Audit"))
        privilege = "VM.Backup" if is_backup else "VM.Config.Disk"
        yield ("either", all_rights, _perm(f"/vms/{owner}", privilege))


def _content_of(volume: str) -> str:
    name = volume.partition(":")[2]
    word = name.partition("/")[0]
    if word in ("backup", *_FILES):
        return word
    return "snippets" if word == "snippets" else "images"


def owner_of(volume: str) -> str:
    """Return the VMID in the name of a disk or a backup, or an empty text."""
    found = re.search(r"(?:vm|subvol|base|basevol|vzdump-(?:qemu|lxc|openvz))-(\d+)-", volume)
    found = found or re.search(r"backup/(?:vm|ct)/(\d+)/", volume)
    return found[1] if found else ""


def _move(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    target = data.get("target-vmid")
    if target:
        yield _perm(f"/vms/{target}", "VM.Config.Disk")
    slot = str(data.get("disk") or data.get("volume") or "")
    storage = data.get("storage") or str(config.get(slot) or "").partition(":")[0]
    if storage:
        yield _perm(f"/storage/{storage}", _SPACE)


def _migrate(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    given = str(data.get("targetstorage") or data.get("target-storage") or "")
    if given and given != "1":
        yield _perm("/vms/{vmid}", "VM.Config.Disk")
        for pair in given.split(","):
            yield _perm(f"/storage/{pair.rpartition(':')[2]}", _SPACE)


def _tunnel(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    for storage in _listed(data.get("storages")):
        yield _perm(f"/storage/{storage}", _SPACE)
    if "rootfs" in config and not int(config.get("unprivileged") or 0):
        yield _perm("/", "Sys.Modify")  # pve-container: API2/LXC.pm, mtunnel, config


def _resize(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    storage, is_volume, _name = str(config.get(str(data.get("disk"))) or "").partition(":")
    if is_volume:
        yield _perm(f"/storage/{storage}", _SPACE)


def _rollback(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    if data.get("start"):
        yield _perm("/vms/{vmid}", "VM.PowerMgmt")


def _suspend(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    if not data.get("todisk"):
        return
    yield _perm("/vms/{vmid}", "VM.Config.Disk")
    named = data.get("statestorage") or config.get("vmstatestorage")
    used = [str(check[1]).removeprefix("/storage/") for check in _disks({}, config)]
    yield ("state storage", [str(named)] if named else used)


def _backup(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    storage = data.get("storage") or "local"
    yield from _limits(data)
    if data.get("prune-backups"):
        yield _perm(f"/storage/{storage}", "Datastore.Allocate")
    if data.get("stop"):
        yield ("since", (9, 2), _perm("/nodes/{node}", "Sys.Modify"), None)
    yield _perm(f"/storage/{storage}", _SPACE)
    for vmid in _listed(data.get("vmid")):
        yield _perm(f"/vms/{vmid}", "VM.Backup")


def _limits(data: Config) -> Iterator[Check]:
    """Return the checks that backups and their jobs share (assert_param_permission_common)."""
    if _LIMITS & {*data}:
        yield _perm("/", "Sys.Modify")
    fleecing = sub_keys(str(data.get("fleecing") or "")).get("storage")
    if fleecing:
        yield _perm(f"/storage/{fleecing}", _SPACE)


def _job(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    """Return the checks of a backup job; `config` is the job before a change."""
    yield from _limits(data)
    if not config or data.get("storage") or "storage" in _listed(data.get("delete")):
        yield _perm(f"/storage/{data.get('storage') or 'local'}", "Datastore.Allocate")
    if data.get("pool"):
        yield _perm("/pool/{pool}", "VM.Backup")
    if config:
        yield _perm(f"/storage/{config.get('storage') or 'local'}", "Datastore.Allocate")


def _removed_volume(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    volume = values.get("volume", "")
    if ":" not in volume:
        volume = f"{values.get('storage', '')}:{volume}"
    path, owner = f"/storage/{volume.partition(':')[0]}", owner_of(volume)
    if _content_of(volume) == "backup" and owner:
        yield _perm(path, _SPACE)
        yield _perm(f"/vms/{owner}", "VM.Backup")
    else:
        yield _perm(path, "Datastore.Allocate")


def _used_volume(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    yield from _volume({}, values.get("volume", ""))


def _vnet(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    yield ("network", values["vnet"], "", "SDN.Allocate")


def _replication(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    newer = _perm(f"/vms/{values['id'].partition('-')[0]}", "VM.Replicate")
    yield ("since", (9,), newer, None)


def _members(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    for vmid in _listed(data.get("vms")):
        yield ("perm-modify", f"/vms/{vmid}")
        if data.get("allow-move"):
            yield ("moved", vmid)
    for storage in _listed(data.get("storage")):
        yield ("perm-modify", f"/storage/{storage}")


def _with_storage(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    switches = ("add_storage", "add_storages", "remove_storages")
    is_coded = "erasure-coding" in data and "add_storages" not in data
    if is_coded or any(int(data.get(name) or 0) for name in switches):
        yield _perm("/storage", "Datastore.Allocate")


def _stopped_task(values: Mapping[str, str], data: Config, config: Config) -> Iterator[Check]:
    yield ("owner", values["upid"].split(":")[-2])


_CHECKS: Mapping[str, Callable[[Mapping[str, str], Config, Config], Iterator[Check]]] = {
    "POST /nodes/{}/qemu": _new_vm,
    "PUT /nodes/{}/qemu/{}/config": _changed_vm,
    "POST /nodes/{}/qemu/{}/config": _changed_vm,
    "POST /nodes/{}/qemu/{}/clone": _clone,
    "POST /nodes/{}/qemu/{}/migrate": _migrate,
    "POST /nodes/{}/qemu/{}/mtunnel": _tunnel,
    "POST /nodes/{}/lxc/{}/mtunnel": _tunnel,
    "POST /nodes/{}/qemu/{}/move_disk": _move,
    "PUT /nodes/{}/qemu/{}/resize": _resize,
    "POST /nodes/{}/lxc": _new_container,
    "PUT /nodes/{}/lxc/{}/config": _changed_container,
    "POST /nodes/{}/lxc/{}/clone": _clone,
    "POST /nodes/{}/lxc/{}/migrate": _migrate,
    "POST /nodes/{}/lxc/{}/move_volume": _move,
    "PUT /nodes/{}/lxc/{}/resize": _resize,
    "POST /nodes/{}/qemu/{}/snapshot/{}/rollback": _rollback,
    "POST /nodes/{}/qemu/{}/status/suspend": _suspend,
    "POST /nodes/{}/vzdump": _backup,
    "DELETE /nodes/{}/storage/{}/content/{}": _removed_volume,
    "GET /nodes/{}/storage/{}/content/{}": _used_volume,
    "PUT /nodes/{}/storage/{}/content/{}": _used_volume,
    "POST /cluster/backup": _job,
    "PUT /cluster/backup/{}": _job,
    "PUT /pools": _members,
    "PUT /pools/{}": _members,
    "DELETE /nodes/{}/tasks/{}": _stopped_task,
    "POST /nodes/{}/ceph/pool": _with_storage,
    "DELETE /nodes/{}/ceph/pool/{}": _with_storage,
    "POST /nodes/{}/disks/directory": _with_storage,
    "POST /nodes/{}/disks/lvm": _with_storage,
    "POST /nodes/{}/disks/lvmthin": _with_storage,
    "POST /nodes/{}/disks/zfs": _with_storage,
    "PUT /cluster/sdn/vnets/{}/firewall/options": _vnet,
    "POST /cluster/sdn/vnets/{}/firewall/rules": _vnet,
    "PUT /cluster/sdn/vnets/{}/firewall/rules/{}": _vnet,
    "DELETE /cluster/sdn/vnets/{}/firewall/rules/{}": _vnet,
    "PUT /cluster/sdn/vnets/{}": _vnet,
    "DELETE /cluster/sdn/vnets/{}": _vnet,
    "POST /cluster/sdn/vnets/{}/subnets": _vnet,
    "PUT /cluster/sdn/vnets/{}/subnets/{}": _vnet,
    "DELETE /cluster/sdn/vnets/{}/subnets/{}": _vnet,
    "POST /cluster/replication": _replication,
    "PUT /cluster/replication/{}": _replication,
    "DELETE /cluster/replication/{}": _replication,
}
