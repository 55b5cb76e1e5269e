"""Creates containers from templates, restores them from backups, and destroys them.

Source: pve-container, API2/LXC.pm (create_vm, destroy_vm) and LXC.pm (destroy_lxc_container).
"""

from __future__ import annotations

import asyncio
import copy
import re
from typing import Any

from ..cluster.pools import add_to_pool
from ..cluster.replication import drop_jobs
from ..config.checks import check_key_lines, check_protection, check_volume_access
from ..config.hardware import clamp_cpuunits
from ..core.api import Ctx, api
from ..core.state import Archive, Container
from ..core.tasks import Task
from ..errors import ApiError, PermError, PveError
from ..guests.backup_jobs import drop_from_jobs
from ..guests.vzdump import find_archive
from ..ha.records import add_resource, drop_resource
from ..schema.units import parse_size
from ..volumes.drives import split_volid
from ..volumes.mounts import (
    check_rootdir,
    is_mount,
    is_net,
    is_unused,
    make_volumes,
    mounts_of,
    print_mount,
    remove_volume,
    source_of,
    with_address,
    with_host_managed,
)
from ..volumes.volumes import check_enabled, find_volume, free, storage_path
from .config import Change, check_lock
from .power import start_container, stop
from .rights import Rights, check_bridge

_CALL = (
    "node",
    "vmid",
    "ostemplate",
    "storage",
    "password",
    "ssh-public-keys",
    "pool",
    "force",
    "restore",
    "unique",
    "start",
    "ha-managed",
    "bwlimit",
    "ignore-unpack-errors",
    "unprivileged",
)
_SYSTEMS = (
    "debian",
    "devuan",
    "ubuntu",
    "centos",
    "fedora",
    "opensuse",
    "archlinux",
    "alpine",
    "gentoo",
    "nixos",
)
_LIKE_CENTOS = ("almalinux", "rockylinux", "oraclelinux", "rhel")
_ARCHITECTURE = re.compile(r"_(amd64|i386|arm64|armhf|riscv32|riscv64)\.")
_DEFAULT_GIB = 4
_DIGITS = re.compile(r"\d+(?:\.\d+)?\Z")


@api("POST /nodes/{node}/lxc")
def create(ctx: Ctx, p: dict[str, Any]) -> str:
    """Create a container: the ID is taken at once, volumes are made by the task."""
    call = {name: p.pop(name) for name in _CALL if name in p}
    return Creation(ctx, call, {name: str(value) for name, value in p.items()}).start()


class Creation:
    """One call: its checks and the work of its task."""

    def __init__(self, ctx: Ctx, call: dict[str, Any], params: dict[str, str]) -> None:
        self.ctx = ctx
        self.call = call
        self.params = params
        self.node: str = call["node"]
        self.vmid: int = call["vmid"]
        self.restore = bool(call.get("restore"))
        self.storage: str = call.get("storage") or "local"
        self.template: str = call["ostemplate"]
        verb = "restore" if self.restore else "create"
        self.label = f"unable to {verb} CT {self.vmid} -"
        self.mounts: dict[str, str] = {}
        self.delayed: dict[str, str] = {}
        self.made: list[str] = []
        self.changed = False  # whether the container has more than a lock from this call

    @property
    def existing(self) -> Container | None:
        """The container that is overwritten."""
        found = self.ctx.cluster.containers.get(self.vmid)
        overwrites = found is not None and found.node == self.node
        return found if overwrites and self.restore and self.call.get("force") else None

    def start(self) -> str:
        """Check, take the number with a lock, and start the worker."""
        ctx, params = self.ctx, self.params
        ctx.cluster.check_quorum()
        if "cpuunits" in params:
            params["cpuunits"] = clamp_cpuunits(params["cpuunits"])
        unprivileged = self.call.get("unprivileged")
        if not self.restore:
            unprivileged = self._is_unprivileged(unprivileged)
        if self.call.get("ha-managed"):
            ctx.need("/", "Sys.Console")
        self._check_number()
        keys = self.call.get("ssh-public-keys")
        if keys is not None:
            check_key_lines(keys)
        self._check_place()
        Rights(ctx, self.vmid, self.call.get("pool"), {}, bool(unprivileged)).check_set(params)
        self._check_template()
        options = self._split()
        conf = Container(self.vmid, self.node, {})
        Change(ctx, conf).run(options, [], [])
        if unprivileged:
            conf.conf["unprivileged"] = "1"
        return self._reserve(conf.conf)

    def _is_unprivileged(self, given: Any) -> bool:
        """Whether a new container is unprivileged. Before 6.0.6, the default was a privileged one,
        which needed no privilege of its own (commits 103068a and 4cc73b7).
        """
        is_8 = self.ctx.sim.schema.is_8
        unprivileged = not is_8 if given is None else bool(given)
        if not unprivileged and not is_8:
            self.ctx.need("/", "Sys.Modify")
        return unprivileged

    def _check_number(self) -> None:
        existing = self.existing
        if existing is not None:
            if existing.run is not None:
                raise PveError("can't overwrite running container")
            check_protection(existing, f"unable to restore CT {self.vmid}")
            return
        taken = self.ctx.cluster.guest(self.vmid)
        if taken is not None:
            what = "CT" if taken.kind == "lxc" else "VM"
            raise PveError(f"{what} {self.vmid} already exists on node '{taken.node}'")

    def _check_place(self) -> None:
        ctx, pool = self.ctx, self.call.get("pool")
        if pool is not None and pool not in ctx.cluster.pools:
            raise PermError(f"pool '{pool}' does not exist")
        if ctx.may(f"/vms/{self.vmid}", "VM.Allocate"):
            return
        if pool and ctx.may(f"/pool/{pool}", "VM.Allocate"):
            return
        if self.existing is None or not ctx.may(f"/vms/{self.vmid}", "VM.Backup"):
            raise PermError
        if self.existing.conf.get("unprivileged") == "1" and self.call.get("unprivileged") is False:
            if ctx.sim.schema.is_8:
                raise PermError("cannot change from unprivileged to privileged without VM.Allocate")
            ctx.need("/", "Sys.Modify")

    def _check_template(self) -> None:
        if self.template == "-":
            raise PveError("pipe requires cli environment")
        check_volume_access(
            self.ctx, self.vmid, self.template, "backup" if self.restore else "vztmpl"
        )

    def _split(self) -> dict[str, str]:
        """Note the volumes, check their storages, and return the other options."""
        ctx, schema = self.ctx, self.ctx.sim.schema
        options: dict[str, str] = {}
        for name, value in self.params.items():
            if is_mount(name):
                self.mounts[name] = f"{self.storage}:{value}" if _DIGITS.match(value) else value
            elif not is_unused(name):
                options[name] = value
        if self.mounts and "rootfs" not in self.mounts:
            raise PveError("mount points configured, but 'rootfs' not set - aborting")
        for _name, mount in mounts_of(schema, self.mounts):
            if source_of(mount["volume"]) != "volume":
                if ctx.who != "root@pam":
                    raise PveError("Only root can pass arbitrary filesystem paths.")
                continue
            parts = split_volid(mount["volume"])
            if parts is None:
                raise PveError(f"unable to parse volume ID '{mount['volume']}'")
            self._check_storage(parts[0])
        if not self.mounts:
            self._check_storage(self.storage)
        return options

    def _check_storage(self, name: str) -> None:
        check_enabled(self.ctx.cluster, name, self.node)
        check_rootdir(self.ctx, name)
        self.ctx.need(f"/storage/{name}", "Datastore.AllocateSpace")

    def _reserve(self, conf: dict[str, str]) -> str:
        cluster = self.ctx.cluster
        existing = self.existing
        container = existing or Container(self.vmid, self.node, {})
        check_lock(container)
        container.conf["lock"] = "create"
        cluster.containers[self.vmid] = container
        cluster.write(container)

        async def work(task: Task) -> None:
            try:
                async with self.ctx.sim.locks.hold(self.vmid, log=task.say):
                    await self._fill(container, conf, task)
            except (ApiError, asyncio.CancelledError) as error:
                for volid in self.made:
                    free(cluster, self.node, volid)
                self._give_up(existing)
                text = error.text if isinstance(error, ApiError) else "interrupted by signal"
                raise PveError(f"{self.label} {text}") from None
            self._afterwards(container)

        return self.ctx.task(
            self.node, "vzrestore" if self.restore else "vzcreate", self.vmid, work
        )

    def _give_up(self, existing: Container | None) -> None:
        """Destroy the configuration after a failure, and leave the membership in a pool; a
        container that was not changed yet only loses its lock (API2/LXC.pm, create_vm).
        """
        cluster = self.ctx.cluster
        if existing is None or self.changed:
            cluster.remove_guest(self.vmid, leaves_pool=False)
            return
        existing.conf.pop("lock", None)
        cluster.write(existing)

    async def _fill(self, container: Container, conf: dict[str, str], task: Task) -> None:
        """Make the volumes and write the configuration."""
        cluster = self.ctx.cluster
        archive = self._archive(task) if self.restore else None
        if archive is not None:
            conf = self._restored(archive, conf)
        if not self.mounts:
            self.mounts = self._default_mounts(archive)
        self.changed = True
        volumes, self.made = make_volumes(self.ctx, container, self.mounts, task.say)
        if len(container.conf) > 1:
            _free_volumes(self.ctx, container, task)
            # as PVE/LXC.pm, destroy_lxc_container replaces the configuration
            container.conf, container.pending, container.snapshots = {"lock": "create"}, {}, {}
            cluster.write(container)
        await task.transfer()
        if archive is None:
            conf.update(self._unpack(conf, task))
        template = conf.pop("template", None)
        container.conf = {**conf, **volumes, **self.delayed}
        container.conf.setdefault("hostname", f"CT{self.vmid}")
        container.conf.setdefault("memory", "512")
        container.conf.setdefault("swap", "512")
        container.pending, container.pending_delete, container.snapshots = {}, {}, {}
        if template:
            container.conf["template"] = template
        cluster.write(container)
        if self.call.get("pool"):
            add_to_pool(cluster, self.call["pool"], self.vmid)
            self.ctx.acl.changed()

    def _unpack(self, conf: dict[str, str], task: Task) -> dict[str, str]:
        """Find out the system of the template by its name, which has both (LXC/Setup.pm)."""
        store, _colon, name = self.template.partition(":")
        if find_volume(self.ctx.cluster, self.node, self.template) is None:
            raise PveError(f"volume '{self.template}' does not exist")
        path = storage_path(self.ctx.cluster.storage(store), name)
        found: dict[str, str] = {}
        if name.endswith(".tar"):
            task.say("Detected OCI archive")
            found |= self._of_image(conf, task)
        else:
            task.say(f"extracting archive '{path}'")
            task.say("Total bytes read: 2058240 (2.0MiB, 251MiB/s)")
        if "ostype" not in conf:
            found["ostype"] = _system_of(name.rpartition("/")[2])
        if "arch" not in conf:
            architecture = _ARCHITECTURE.search(name)
            found["arch"] = architecture[1] if architecture else "amd64"
            task.say(f"Detected container architecture: {found['arch']}")
        return found

    def _of_image(self, conf: dict[str, str], task: Task) -> dict[str, str]:
        """The settings of an OCI image, which replace those of the call (pve-container:
        LXC/Create.pm, restore_oci_archive). Its command and its variables are made up.
        """
        found = {"entrypoint": "/bin/sh", "cmode": "console", "env": "PATH=/usr/bin:/bin"}
        for name in filter(is_net, sorted(conf)):
            device = with_host_managed(self.ctx.sim.schema, conf[name])
            if device != conf[name]:
                task.say(f"Auto-Enabling host-managed network for network device {name}.")
                found[name] = device
        return found

    # -- restoring -------------------------------------------------------------------------------

    def _archive(self, task: Task) -> Archive:
        task.say(f"recovering backed-up configuration from '{self.template}'")
        volume = find_archive(self.ctx, self.node, self.template)
        archive = volume.archive if volume is not None else None
        if archive is None or archive.kind != "lxc":
            task.say("tar: This does not look like a tar archive")
            raise PveError("ERROR: archive contains no configuration file")
        for name, value in archive.conf.items():
            if is_net(name) and name not in self.params:
                check_bridge(self.ctx, value)
        return archive

    def _restored(self, archive: Archive, given: dict[str, str]) -> dict[str, str]:
        conf = {
            name: value
            for name, value in archive.conf.items()
            if not is_mount(name) and not is_unused(name) and name not in ("lock", "parent")
        }
        if self.call.get("unprivileged") is not None:
            conf.pop("unprivileged", None)
        conf.update(given)
        if conf.get("unprivileged") != "1":
            self._check_privileged()
        if self.call.get("unique"):
            for name in [name for name in conf if is_net(name)]:
                conf[name] = with_address(self.ctx, conf[name], new=True)
        firewall = archive.firewall
        if firewall is not None:
            self.ctx.cluster.firewalls[self.vmid] = copy.deepcopy(firewall)
        return conf

    def _check_privileged(self) -> None:
        """Check the rights to restore a privileged container. Before 6.0.6, only the replacement of
        an unprivileged one needed any (commit 4cc73b7).
        """
        if not self.ctx.sim.schema.is_8:
            self.ctx.need("/", "Sys.Modify")
        elif self.existing is not None and self.existing.conf.get("unprivileged") == "1":
            self.ctx.need(f"/vms/{self.vmid}", "VM.Allocate")

    def _default_mounts(self, archive: Archive | None) -> dict[str, str]:
        """The default volumes of a call: 4 GiB, or all volumes of the archived configuration, also
        if the archive has no data of them: these are created empty. Mount points of a directory or
        a device follow after the extraction, for root only.
        """
        if archive is None:
            return {"rootfs": f"{self.storage}:{_DEFAULT_GIB}"}
        schema = self.ctx.sim.schema
        mounts: dict[str, str] = {}
        if "rootfs" not in archive.conf:
            raise PveError(
                "rootfs configuration could not be recovered, please check and specify manually!"
            )
        for name, mount in mounts_of(schema, archive.conf):
            kind = source_of(mount["volume"])
            if kind != "volume":
                self._delay(name, kind, archive.conf[name])
                continue
            size = parse_size(mount.pop("size", ""))
            if size is None:
                raise PveError(f"unable to detect disk size - please specify {name} (size)")
            mount["volume"] = f"{self.storage}:{size / 1024**3:g}"
            mounts[name] = print_mount(schema, name, mount)
        return mounts

    def _delay(self, name: str, kind: str, mount: str) -> None:
        if name == "rootfs":
            raise PveError(
                f"restoring rootfs to {kind} mount is only possible by specifying -rootfs manually!"
            )
        if self.ctx.who != "root@pam":
            raise PveError(f"restoring '{name}' to {kind} mount is only possible for root")
        self.delayed[name] = mount

    def _afterwards(self, container: Container) -> None:
        if self.call.get("start"):
            start_container(self.ctx, self.node, self.vmid)
        if self.call.get("ha-managed"):
            state = "started" if self.call.get("start") else "stopped"
            add_resource(self.ctx.cluster, f"ct:{self.vmid}", {"type": "ct", "state": state})


def _system_of(name: str) -> str:
    for system in _SYSTEMS:
        if name.startswith(system):
            return system
    if name.startswith(_LIKE_CENTOS):
        return "centos"
    return "unmanaged"


# -- destroying ----------------------------------------------------------------------------------


@api("DELETE /nodes/{node}/lxc/{vmid}")
def destroy(ctx: Ctx, p: dict[str, Any]) -> str:
    """Destroy a container with its volumes."""
    node, vmid = p["node"], p["vmid"]
    sid = f"ct:{vmid}"

    def check() -> Container:
        container = ctx.cluster.container_at(node, vmid)
        check_protection(container, f"can't remove CT {vmid}")
        check_lock(container)
        if not p.get("purge") and sid in ctx.cluster.ha_resources:
            raise PveError(
                f"unable to remove CT {vmid} - used in HA resources and purge parameter not set."
            )
        if container.run is not None and not p.get("force"):
            raise PveError(f"unable to destroy CT {vmid} - container is running")
        return container

    check()

    async def work(task: Task) -> None:
        async with ctx.sim.locks.hold(vmid, log=task.say):
            container = check()
            await task.work()
            if container.run is not None:
                task.say(f"forced to stop CT {vmid} before destroying!")
                stop(ctx, container)
            _free_volumes(ctx, container, task)
            if p.get("destroy-unreferenced-disks"):
                _free_unreferenced(ctx, container)
            ctx.acl.entries.pop(f"/vms/{vmid}", None)
            if p.get("purge"):
                task.say(f"purging CT {vmid} from related configurations..")
                drop_from_jobs(ctx.cluster, vmid)
                drop_jobs(ctx.cluster, vmid)
                if sid in ctx.cluster.ha_resources:
                    drop_resource(ctx.cluster, sid)
                    task.say(f"NOTE: removed CT {vmid} from HA resource configuration.")
            ctx.cluster.remove_guest(vmid)
            ctx.acl.changed()

    return ctx.task(node, "vzdestroy", vmid, work)


def _free_volumes(ctx: Ctx, container: Container, task: Task) -> None:
    places = (container.conf, container.pending)
    found: dict[str, None] = {}
    for place in places:
        for _name, mount in mounts_of(ctx.sim.schema, place, unused=True):
            found[mount["volume"]] = None
    for volid in found:
        remove_volume(ctx, container, volid, task.say)


def _free_unreferenced(ctx: Ctx, container: Container) -> None:
    for storage in ctx.cluster.storages.values():
        if storage.disabled or not storage.available_on(container.node):
            continue
        volumes = storage.on(container.node)
        for name in [
            name
            for name, volume in volumes.items()
            if volume.vmid == container.vmid and volume.content == "rootdir"
        ]:
            del volumes[name]
