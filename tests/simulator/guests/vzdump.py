"""Backs guests up: an archive has the configuration, the sizes of the disks and the firewall.

Source: pve-manager, API2/VZDump.pm and VZDump.pm; qemu-server, VZDump/QemuServer.pm.
"""

from __future__ import annotations

import copy
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ..config.checks import check_volume_access
from ..core.api import Ctx, api
from ..core.state import Archive, ArchivedDisk, Guest, Run, Storage, Vm, Volume, config_lines
from ..errors import ApiError, ParamError, PermError, PveError
from ..schema.formats import split_list
from ..schema.named_hashes import HASHES
from ..schema.units import human
from ..schema.validate import split_property_string
from ..storage.content import guest_kind
from ..storage.prune import entries_of
from ..volumes.drives import drives_of, is_cdrom, is_unused, split_volid
from ..volumes.mounts import mounts_of, source_of
from ..volumes.volumes import check_enabled, find_volume, parse_volname, storage_path

if TYPE_CHECKING:
    from ..core.tasks import Task

_SUFFIX = {"zstd": ".zst", "gzip": ".gz", "1": ".lzo", "lzo": ".lzo"}
_LABEL = {"qemu": "VM", "lxc": "CT"}
# The share of an archive in the space that its disks use.
_PACKED = 3


@api("POST /nodes/{node}/vzdump")
def vzdump(ctx: Ctx, p: dict[str, Any]) -> str:
    """Back up guests of the node; guests of other nodes are skipped."""
    check_choice(p)
    check_rights(ctx, p)
    if p.get("prune-backups") and not p.get("dumpdir"):
        ctx.need(f"/storage/{p.get('storage') or 'local'}", "Datastore.Allocate")
    if p.get("stop") and not ctx.cluster.version["release"].startswith("8"):
        ctx.need(f"/nodes/{p['node']}", "Sys.Modify")
    if p.get("stop") and not any(p.get(name) for name in ("vmid", "all", "pool")):
        return "OK"
    if not p.get("dumpdir"):
        ctx.need(f"/storage/{p.get('storage') or 'local'}", "Datastore.AllocateSpace")
    vmids = _chosen(ctx, p)
    if not vmids and not p.get("all"):
        return "OK"

    async def work(task: Task) -> None:
        backup = _Backup(ctx, p, task)
        storage = backup.prepare(vmids)
        async with _only_backup_of(ctx, task):
            await backup.run(vmids, storage)

    return ctx.task(p["node"], "vzdump", vmids[0] if len(vmids) == 1 else "", work)


def check_choice(p: dict[str, Any]) -> None:
    """Source: VZDump.pm, verify_vzdump_parameters."""
    for name in ("all", "exclude", "pool"):
        if p.get(name) and p.get("vmid"):
            raise ParamError({name: "option conflicts with option 'vmid'"})
    if p.get("exclude") and not p.get("pool"):
        p["all"] = True
    if not any(p.get(name) for name in ("all", "stop", "pool", "vmid")):
        raise ParamError({"vmid": "property is missing"})


def check_rights(ctx: Ctx, p: dict[str, Any]) -> None:
    """Source: API2/Backup.pm, assert_param_permission_common; API2/VZDump.pm, vzdump. A real
    Proxmox VE was seen to answer so.
    """
    for name in ("tmpdir", "dumpdir", "script", "job-id"):
        if p.get(name) and ctx.who != "root@pam":
            raise ParamError({name: "Only root may set this option."})
    if any(p.get(name) is not None for name in ("bwlimit", "ionice", "performance")):
        ctx.need("/", "Sys.Modify")
    fleecing = split_property_string(HASHES["backup-fleecing"], str(p.get("fleecing") or ""))
    if fleecing.get("storage"):
        ctx.need(f"/storage/{fleecing['storage']}", "Datastore.AllocateSpace")
    if p.get("stdout"):
        raise ParamError({"stdout": "option is only allowed on the command line interface."})


def _chosen(ctx: Ctx, p: dict[str, Any]) -> list[int]:
    """The chosen guests, without guests of other nodes; an unused VMID stays in the list."""
    cluster = ctx.cluster
    if p.get("vmid"):
        vmids = [int(word) for word in split_list(str(p["vmid"]))]
    elif p.get("pool"):
        if p["pool"] not in cluster.pools:
            raise PveError(f"pool '{p['pool']}' does not exist")
        vmids = sorted(cluster.pools[p["pool"]]["vms"])
    else:
        vmids = sorted(guest.vmid for guest in cluster.guests())
    left_out = {int(word) for word in split_list(str(p.get("exclude") or ""))}
    found = []
    for vmid in vmids:
        guest = cluster.guest(vmid)
        if vmid not in left_out and (guest is None or guest.node == p["node"]):
            found.append(vmid)
    return found


@asynccontextmanager
async def _only_backup_of(ctx: Ctx, task: Task) -> AsyncIterator[None]:
    """Wait until no other task backs guests up on the node (VZDump.pm, getlock)."""
    lock = ctx.cluster.nodes[task.node].backup_lock
    if lock.locked():
        task.say("INFO: trying to get global lock - waiting...")
        async with lock:
            task.say("INFO: got global lock")
            yield
        return
    async with lock:
        yield


class _Backup:
    """One job."""

    def __init__(self, ctx: Ctx, p: dict[str, Any], task: Task) -> None:
        self.ctx = ctx
        self.p = p
        self.task = task

    def prepare(self, vmids: list[int]) -> Storage:
        """The storage, after the checks before the first guest."""
        storage = self._storage()
        for vmid in vmids:
            self._need(vmid)
        return storage

    async def run(self, vmids: list[int], storage: Storage) -> None:
        """Back up each of them; a failure does not stop the others."""
        shown = " ".join(str(vmid) for vmid in vmids)
        self.task.say(f"INFO: starting new backup job: vzdump {shown} {self._options()}")
        failed = False
        for vmid in vmids:
            try:
                await self._one(vmid, storage, 1 / len(vmids))
            except ApiError as error:
                failed = True
                text = error.text.rstrip()
                self.task.say(f"ERROR: Backup of VM {vmid} failed - {text}")
                self.task.say(f"INFO: Failed at {_clock(self.ctx.cluster.now())}")
        if failed:
            self.task.say("INFO: Backup job finished with errors")
            raise PveError("job errors")
        self.task.say("INFO: Backup job finished successfully")

    def _need(self, vmid: int) -> None:
        try:
            self.ctx.need(f"/vms/{vmid}", "VM.Backup")
        except PermError as error:
            raise PveError(f"{error.status} {error.message}") from None

    def _options(self) -> str:
        shown = []
        for name, value in self.p.items():
            if name == "vmid":
                continue
            text = str(int(value)) if isinstance(value, bool) else str(value)
            shown.append(f"--{name} '{text}'" if " " in text else f"--{name} {text}")
        return " ".join(shown)

    def _storage(self) -> Storage:
        if self.p.get("dumpdir"):  # the nodes have no file system here
            raise PveError(f"dumpdir '{self.p['dumpdir']}' does not exist")
        name = self.p.get("storage") or "local"
        cause = f"could not get storage information for '{name}': "
        try:
            storage = check_enabled(self.ctx.cluster, name, self.p["node"])
        except ApiError as error:
            first = f"could not activate storage '{name}': {error.text}\n"
            raise PveError(first + cause + error.text) from None
        if "backup" not in storage.content:
            raise PveError(f"{cause}can't use storage '{name}' for backups - wrong content type")
        return storage

    async def _one(self, vmid: int, storage: Storage, share: float) -> None:
        guest = self.ctx.cluster.guest(vmid)
        if guest is None or guest.node != self.p["node"]:
            raise PveError(f"unable to find VM '{vmid}'")
        started, label = self.ctx.cluster.now(), _LABEL[guest.kind]
        self._check_limits(guest, storage)
        self.task.say(f"INFO: Starting Backup of VM {vmid} ({guest.kind})")
        self.task.say(f"INFO: Backup started at {_clock(started)}")
        self.task.say(f"INFO: status = {'running' if guest.run else 'stopped'}")
        self.task.say(f"INFO: backup mode: {self.p.get('mode') or 'snapshot'}")
        self.task.say("INFO: ionice priority: 7")
        name = guest.conf.get("name") or guest.conf.get("hostname") or f"{label}{vmid}"
        self.task.say(f"INFO: {label} Name: {name}")
        archive = pack(self.ctx, guest)
        for line in _contents(self.ctx, guest, archive):
            self.task.say(f"INFO: {line}")
        await self._copy(guest, share)
        volume = self._file(guest, storage, archive, started)
        self.task.say(f"INFO: archive file size: {volume.size // 1024}KB")
        self._prune(guest, storage)
        took = time.strftime("%H:%M:%S", time.gmtime(self.ctx.cluster.now() - started))
        self.task.say(f"INFO: Finished Backup of VM {vmid} ({took})")
        self.task.say(f"INFO: Backup finished at {_clock(self.ctx.cluster.now())}")

    def _keep(self, storage: Storage) -> dict[str, int]:
        """The retention: that of the task or of the storage; everything is kept without one."""
        text = self.p.get("prune-backups") or storage.config.get("prune-backups") or "keep-all=1"
        keep = split_property_string(HASHES["prune-backups"], str(text))
        return {name: int(value) for name, value in keep.items()}

    def _removes(self, keep: dict[str, int]) -> bool:
        return bool(self.p.get("remove", True)) and not keep.get("keep-all")

    def _check_limits(self, guest: Guest, storage: Storage) -> None:
        """Refuse one archive too many (VZDump.pm, exec_backup_task)."""
        keep = self._keep(storage)
        limit = 0 if keep.get("keep-all") else sum(keep.values())
        own: list[Volume] = []
        for volume in storage.on(guest.node).values():
            is_archive = volume.content == "backup" and guest_kind(volume) == guest.kind
            if is_archive and volume.vmid == guest.vmid:
                own.append(volume)
        protected = sum(bool(volume.protected) for volume in own)
        if self.p.get("protected"):
            most = _most_protected(self.ctx, storage)
            if -1 < most <= protected:
                raise PveError(
                    f"The number of protected backups per guest is limited to {most} on storage"
                    f" '{storage.name}'\n"
                )
        elif limit and not self._removes(keep) and len(own) - protected >= limit:
            raise PveError(
                f"There is a max backup limit of {limit} enforced by the target storage or the"
                " vzdump parameters. Either increase the limit or delete old backups.\n"
            )

    def _prune(self, guest: Guest, storage: Storage) -> None:
        """Remove older archives of the guest by the retention (VZDump.pm, exec_backup_task)."""
        keep = self._keep(storage)
        if not self._removes(keep):
            return
        rule = ", ".join(f"{name}={keep[name]}" for name in sorted(keep))
        self.task.say(f"INFO: prune older backups with retention: {rule}")
        text = ",".join(f"{name}={count}" for name, count in keep.items())
        chosen: dict[str, Any] = {
            "node": guest.node,
            "storage": storage.name,
            "prune-backups": text,
        }
        chosen |= {"vmid": guest.vmid, "type": guest.kind}
        pruned = 0
        for entry in entries_of(self.ctx, chosen):
            if entry.mark == "remove":
                self.task.say(f"INFO: removing backup '{entry.volid}'")
                storage.on(guest.node).pop(entry.volume.name, None)
                pruned += 1
        reason = " not covered by keep-retention policy" if pruned else ""
        self.task.say(f"INFO: pruned {pruned} backup(s){reason}")

    async def _copy(self, guest: Guest, share: float) -> None:
        """Read the disks: the guest is locked, and a stopped machine has a process during that."""
        cluster, locks = self.ctx.cluster, self.ctx.sim.locks
        async with locks.hold(guest.vmid, log=self.task.say):
            lock = guest.conf.get("lock")
            if lock:
                raise PveError(f"{_LABEL[guest.kind]} is locked ({lock})")
            guest.conf["lock"] = "backup"
            cluster.write(guest)
        was_stopped = guest.run is None and isinstance(guest, Vm)
        if was_stopped:
            self.task.say("INFO: starting kvm to execute backup task")
            node = cluster.nodes[guest.node]
            node.next_pid += 1
            guest.run = Run(node.next_pid, cluster.now(), qmpstatus="prelaunch")
            cluster.touch(guest.vmid)
        try:
            if isinstance(guest, Vm):
                self.task.say("INFO: starting backup via QMP command")
            await self.task.transfer(share)
        finally:
            if was_stopped:
                self.task.say("INFO: stopping kvm after backup task")
                guest.run = None
            if guest.conf.get("lock") == "backup":
                del guest.conf["lock"]
                cluster.write(guest)

    def _file(self, guest: Guest, storage: Storage, archive: Archive, started: float) -> Volume:
        """Put the archive on the storage, named after a second that is the guest's own."""
        volumes = storage.on(guest.node)
        # A backup takes longer than the second that it is named after.
        earlier = [one for one in volumes.values() if one.archive and one.vmid == guest.vmid]
        newest = max((one.ctime for one in earlier), default=0)
        moment = max(int(started), newest + 1)
        name = self._name(guest, storage, moment)
        parsed = parse_volname(storage, name)
        size = max(1, sum(disk.size for disk in archive.disks.values()) // _PACKED)
        volume = Volume(name, "backup", parsed.fmt, size, moment, guest.vmid, archive=archive)
        volume.protected = bool(self.p.get("protected"))
        if self.p.get("notes-template"):
            self.task.say("INFO: adding notes to backup")
            volume.notes = self._notes(guest)
        target, what = storage_path(storage, name), "vzdump"
        if storage.kind == "pbs":  # VZDump.pm, exec_backup_task
            target, what = name.partition("/")[2], "Proxmox Backup Server"
        self.task.say(f"INFO: creating {what} archive '{target}'")
        volumes[name] = volume
        return volume

    def _name(self, guest: Guest, storage: Storage, moment: int) -> str:
        if storage.kind == "pbs":
            kind = "vm" if guest.kind == "qemu" else "ct"
            stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))
            return f"backup/{kind}/{guest.vmid}/{stamp}"
        stamp = time.strftime("%Y_%m_%d-%H_%M_%S", time.localtime(moment))
        form = "vma" if guest.kind == "qemu" else "tar"
        suffix = _SUFFIX.get(str(self.p.get("compress", "0")), "")
        return f"backup/vzdump-{guest.kind}-{guest.vmid}-{stamp}.{form}{suffix}"

    def _notes(self, guest: Guest) -> str:
        """Source: VZDump.pm, generate_notes."""
        values = {
            "cluster": self.ctx.cluster.name,
            "guestname": guest.conf.get("name") or guest.conf.get("hostname") or "",
            "node": guest.node,
            "vmid": str(guest.vmid),
        }
        text = str(self.p["notes-template"]).replace("\\n", "\n").replace("\\\\", "\\")
        for name, value in values.items():
            text = text.replace("{{" + name + "}}", value)
        return text


def _most_protected(ctx: Ctx, storage: Storage) -> int:
    """The most protected archives of a guest, -1 for any number (pve-storage: Storage.pm,
    get_max_protected_backups).
    """
    configured = storage.config.get("max-protected-backups")
    if configured is not None:
        return int(configured)
    return -1 if ctx.may(f"/storage/{storage.name}", "Datastore.Allocate") else 5


def pack(ctx: Ctx, guest: Guest) -> Archive:
    """The content of an archive of the guest in its present state."""
    cluster, conf = ctx.cluster, {}
    for name, value in guest.conf.items():
        if name not in ("lock", "parent") and not is_unused(name):
            conf[name] = value
    disks = {}
    if guest.kind == "qemu":
        for name, drive in drives_of(ctx.sim.schema, conf):
            volume = find_volume(cluster, guest.node, drive.get("file", ""))
            is_unused_efi = name.startswith("efidisk") and conf.get("bios") != "ovmf"
            if is_cdrom(drive) or drive.get("backup") == "0" or is_unused_efi or volume is None:
                continue
            size = volume.virtual_size or volume.size
            disks[name] = ArchivedDisk(drive["file"].partition(":")[0], volume.fmt, size)
    else:
        disks = _packed_volumes(ctx, guest, conf)
    firewall = copy.deepcopy(cluster.firewalls.get(guest.vmid))
    return Archive(guest.kind, conf, disks, firewall)


def _contents(ctx: Ctx, guest: Guest, archive: Archive) -> Iterator[str]:
    """Lines of the log about volumes that a backup includes and excludes (qemu-server:
    VZDump/QemuServer.pm, prepare; pve-container: VZDump/LXC.pm, prepare).
    """
    schema = ctx.sim.schema
    if guest.kind == "qemu":
        for name, drive in drives_of(schema, archive.conf):
            packed, volume = archive.disks.get(name), drive.get("file", "")
            if packed is not None:
                yield f"include disk '{name}' '{volume}' {human(packed.size)}"
            elif not is_cdrom(drive):
                is_marked = drive.get("backup") == "0"
                reason = "backup=no" if is_marked else "efidisk but no OVMF BIOS"
                yield f"exclude disk '{name}' '{volume}' ({reason})"
        return
    for name, mount in mounts_of(schema, archive.conf):
        place, kind = mount.get("mp", "/"), source_of(mount["volume"])
        if name in archive.disks:
            yield f"including mount point {name} ('{place}') in backup"
            continue
        reason = "disabled" if kind == "volume" else "not a volume"
        yield f"excluding {kind} mount point {name} ('{place}') from backup ({reason})"


def _packed_volumes(ctx: Ctx, guest: Guest, conf: dict[str, str]) -> dict[str, ArchivedDisk]:
    """The root file system, and mount points that are marked for backups (pve-container,
    LXC/Config.pm, mountpoint_backup_enabled).
    """
    disks = {}
    for name, mount in mounts_of(ctx.sim.schema, conf):
        volume = find_volume(ctx.cluster, guest.node, mount["volume"])
        if volume is None or (name != "rootfs" and mount.get("backup") != "1"):
            continue
        store = mount["volume"].partition(":")[0]
        disks[name] = ArchivedDisk(store, volume.fmt, volume.size)
    return disks


def find_archive(ctx: Ctx, node: str, volid: str) -> Volume | None:
    """The backup of that name, as the node sees it; None for a snapshot on a backup server that
    is not there.
    """
    volume = find_volume(ctx.cluster, node, volid)
    parts = split_volid(volid)
    if parts is None:
        raise PveError(f"can't find file '{volid}'")
    if volume is None and ctx.cluster.storage(parts[0]).kind != "pbs":
        raise PveError(f"volume '{volid}' does not exist")
    return volume


@api("GET /nodes/{node}/vzdump/extractconfig")
def extract_config(ctx: Ctx, p: dict[str, Any]) -> str:
    """The configuration that a backup holds, as text."""
    check_volume_access(ctx, None, p["volume"], "backup")
    volume = find_archive(ctx, p["node"], p["volume"])
    if volume is not None and volume.encrypted:
        _check_key(ctx.cluster.storage(p["volume"].partition(":")[0]), volume.encrypted)
    if volume is None or volume.archive is None:
        raise PveError(f"unable to extract configuration of '{p['volume']}'")
    text = config_lines(volume.archive.conf)
    disks = volume.archive.disks if volume.archive.kind == "qemu" else {}
    for name, disk in disks.items():
        text += f"#qmdump#map:{name}:drive-{name}:{disk.storage}:{disk.fmt}:\n"
    return text


def _check_key(storage: Storage, fingerprint: str) -> None:
    """Refuse to read an encrypted snapshot without its key (pve-storage: PBSPlugin.pm,
    extract_vzdump_config; proxmox-backup: pbs-datastore/src/manifest.rs, check_fingerprint).
    """
    own = storage.config.get("encryption-key")
    failed = "proxmox-backup-client failed: Error:"
    if own is None:
        raise PveError(f"{failed} missing key - manifest was created with key {fingerprint}")
    if own != fingerprint:
        raise PveError(
            f"{failed} wrong key - manifest's key {fingerprint} does not match provided key {own}"
        )


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
