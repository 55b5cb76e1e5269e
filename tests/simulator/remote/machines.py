"""Migration of virtual machines to another cluster.

Source: qemu-server, PVE/API2/Qemu.pm (remote_migrate_vm), PVE/QemuMigrate.pm (prepare, phase1,
phase1_remote, phase2, phase2_cleanup, phase3_cleanup).
"""

from __future__ import annotations

from typing import Any

from ..config.checks import check_lock
from ..core.api import Ctx, api
from ..core.state import Vm, config_lines
from ..errors import ApiError, ParamError, PveError
from ..guests.create import owned_volumes
from ..ha.records import is_configured
from ..running.migration import local_devices, unmapped_devices
from ..running.migration_volumes import Local, local_volumes, scan
from ..running.power import quit_vm
from ..volumes.drives import (
    drives_of,
    is_cdrom,
    memory_mib,
    parse_drive,
    parse_net,
    print_drive,
    print_net,
)
from ..volumes.volumes import find_volume
from .endpoint import Endpoint
from .outgoing import Outgoing, has_replication, is_nic, maps_of, target_node

_NO_CONNTRACK = (
    "conntrack state migration not supported or disabled, active connections might get dropped"
)


@api("POST /nodes/{node}/qemu/{vmid}/remote_migrate")
async def remote_migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Check the machine and the other cluster, and start the task."""
    ctx.cluster.check_quorum()
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    check_lock(vm)
    if is_configured(ctx.cluster, vm.vmid):
        raise ParamError({"vmid": "cannot remote-migrate VM that is configured for HA"})
    endpoint = Endpoint(p["target-endpoint"])
    try:
        if not endpoint.fingerprint:
            await endpoint.call("GET", "/nodes/localhost/certificates/info")
        if has_replication(ctx, vm.vmid):
            raise PveError("cannot remote-migrate replicated VM")
        if vm.run is not None and not p.get("online"):
            raise PveError("can't migrate running VM without --online")
        maps_of(p)
        migration = MachineMigration(ctx, vm, p, endpoint)
        migration.node = await target_node(endpoint)
    except ApiError:
        await endpoint.close()
        raise
    return ctx.task(vm.node, "qmigrate", vm.vmid, migration.run)


class MachineMigration(Outgoing):
    """The phases of a machine."""

    directory = "qemu"

    def __init__(self, ctx: Ctx, vm: Vm, p: dict[str, Any], endpoint: Endpoint) -> None:
        super().__init__(ctx, vm, p, endpoint)
        self.vm = vm
        self.volumes: list[Local] = []
        self.running = False
        self.paused = False
        self.phase2_failed = False

    async def migrate(self) -> None:
        """The phases; the machine is locked from the first one, and stays so on its old cluster."""
        await self.interruptible(self._prepare)
        try:
            await self.interruptible(self._phase1)
        except PveError as error:
            self.error(error.text)
            await self._phase1_cleanup()
            raise
        if self.running:
            try:
                await self.interruptible(self._phase2)
            except PveError as error:
                self.has_errors = self.phase2_failed = True
                self.error(f"online migrate failure - {error.text}")
                await self.logged(self._phase2_cleanup())
        if not self.phase2_failed:
            await self.logged(self._phase3_cleanup())

    # -- preparation -----------------------------------------------------------------------------

    async def _prepare(self) -> None:
        """Conditions that must hold before anything is copied. A tunnel that is open when one of
        the last ones fails is not cleaned up: its locked, empty guest stays.
        """
        ctx, vm = self.ctx, self.vm
        if ctx.cluster.vms.get(vm.vmid) is not vm:
            raise PveError(
                f"Configuration file 'nodes/{vm.node}/qemu-server/{vm.vmid}.conf' does not exist"
            )
        check_lock(vm)
        if vm.run is not None:
            if not self.p.get("online"):
                raise PveError("can't migrate running VM without --online")
            self.running = True
            self.paused = vm.run.qmpstatus == "paused"
            self.say(f"WARNING: {_NO_CONNTRACK}")
        self._check_devices()
        storages = set()
        for volid in local_volumes(ctx, vm, remote=True):
            store = volid.partition(":")[0]
            if ctx.cluster.storage(store).disabled:
                raise PveError(f"storage '{store}' is disabled")
            storages.add(self.storages.target(store))
        bridges = self.bridges_of(vm.conf, lambda text: parse_net(ctx.sim.schema, text))
        await self.open_tunnel(storages, bridges)

    def _check_devices(self) -> None:
        """Devices are checked with the mappings of this cluster, by the name of the other node: a
        mapped device is refused too, unless a node here has the same name.
        """
        blocking, mapped = local_devices(self.ctx, self.vm)
        blocking = [name for name in blocking if name not in mapped]
        if blocking:
            raise PveError(f"can't migrate VM which uses local devices: {', '.join(blocking)}")
        if mapped and self.node not in self.ctx.cluster.nodes:
            raise PveError("Can't use an undefined value as an ARRAY reference")
        missing = unmapped_devices(self.ctx, mapped, self.node) if mapped else []
        if missing:
            names = ", ".join(missing)
            raise PveError(f"can't migrate to '{self.node}': missing mapped devices {names}")

    # -- phase 1: disks and the configuration ----------------------------------------------------

    async def _phase1(self) -> None:
        ctx, vm = self.ctx, self.vm
        host = self.endpoint.host
        self.say(f"starting migration of VM {vm.vmid} to node '{self.node}' ({host})")
        vm.conf["lock"] = "migrate"
        ctx.cluster.write(vm)
        self.volumes = scan(ctx, vm, True, self.task, remote=True)
        offline = [local for local in self.volumes if not self._is_online(local)]
        if offline:
            self.say("copying local disk images")
        else:
            await self.task.work(0.5)
        for local in offline:
            new = await self.send_volume(local.volid, 0.5 / len(offline), keeps_name=local.memory)
            self.volume_map[local.volid] = new
        await self._hand_over()

    def _is_online(self, local: Local) -> bool:
        """Whether QEMU copies the disk itself while the machine runs."""
        return self.running and local.ref == "attached"

    async def _hand_over(self) -> None:
        """Write the configuration on the other side."""
        conf = dict(self.vm.conf)
        self._rename_volumes(conf)
        self._rename_bridges(conf)
        for local in self.volumes:
            if self._is_online(local):
                await self._allocate(conf, local)
        text = config_lines(conf)
        if self.vm.cloudinit:
            text += "\n[special:cloudinit]\n" + config_lines(self.vm.cloudinit)
        await self.write("config", conf=text, **self.firewall())

    def _rename_volumes(self, conf: dict[str, str]) -> None:
        schema = self.ctx.sim.schema
        for name, drive in list(drives_of(schema, conf, unused=True)):
            new = self.volume_map.get(drive.get("file", ""))
            if new is None:
                continue
            if name.startswith("unused"):
                conf[name] = new
                continue
            fresh = parse_drive(schema, name, conf[name])
            fresh["file"] = new
            fresh.pop("format", None)
            conf[name] = print_drive(schema, name, fresh)

    def _rename_bridges(self, conf: dict[str, str]) -> None:
        for name in sorted(filter(is_nic, conf)):
            nic = parse_net(self.ctx.sim.schema, conf[name])
            if nic.get("bridge"):
                old, nic["bridge"] = nic["bridge"], self.bridges.target(nic["bridge"])
                self.say(f"mapped: {name} from {old} to {nic['bridge']}")
                conf[name] = print_net(self.ctx.cluster, nic)

    async def _allocate(self, conf: dict[str, str], local: Local) -> None:
        schema, cluster = self.ctx.sim.schema, self.ctx.cluster
        drive = parse_drive(schema, local.drive, conf[local.drive])
        store = self.storages.target(local.volid.partition(":")[0])
        volume = find_volume(cluster, self.vm.node, local.volid)
        if is_cdrom(drive) or volume is None:
            return
        self.say(f"Allocating volume for drive '{local.drive}' on remote storage '{store}'..")
        rest = {key: value for key, value in drive.items() if key not in ("file", "format")}
        answer = await self.write(
            "disk",
            format=volume.fmt,
            storage=store,
            drive=rest,
            slot=local.drive,
            size=volume.virtual_size or volume.size,
        )
        self.say(f"volume '{local.volid}' is '{answer['volid']}' on the target")
        conf[local.drive] = answer["drivestr"]
        self.volume_map[local.volid] = answer["volid"]

    async def _phase1_cleanup(self) -> None:
        self.say("aborting phase 1 - cleanup resources")
        self._unlock()
        await self.logged(self.finish(cleanup=True))

    def _unlock(self) -> None:
        self.vm.conf.pop("lock", None)
        try:
            self.ctx.cluster.write(self.vm)
        except PveError as error:
            self.error(error.text)

    # -- phase 2: the memory of a running machine ------------------------------------------------

    async def _phase2(self) -> None:
        socket = (await self.write("start"))["migrate"]["addr"]
        self.say(f"Setting up tunnel for '/run/qemu-server/{self.vmid}.migrate'")
        if any(self._is_online(local) for local in self.volumes):
            self.say("starting storage migration")
        self.say(f"starting online/live migration on unix:/run/qemu-server/{self.vmid}.migrate")
        await self.task.copy(memory_mib(self.vm.conf) * 1024 * 1024, 0.5)
        if self.tunnel is None:
            raise PveError("no tunnel")
        try:
            await self.tunnel.send(socket, {})
        except PveError:
            self.say("migration status error: failed - Unable to write to socket: Broken pipe")
            raise PveError("aborting") from None
        self.say("migration status: completed")

    async def _phase2_cleanup(self) -> None:
        """The machine runs on where it is; a tunnel that is broken leaves the other side alone."""
        self.say("aborting phase 2 - cleanup resources")
        self.say("migrate_cancel")
        self._unlock()
        await self.write("stop")
        await self.logged(self.finish(cleanup=True))

    # -- phase 3: the other side takes over ------------------------------------------------------

    async def _phase3_cleanup(self) -> None:
        """Resume there, stop here. The lock here stays, so the machine cannot be started twice."""
        if self.running:
            self.say("stopping NBD storage migration server on target.")
            await self.logged(self.write("nbdstop"))
            if not self.paused:
                await self.logged(self.write("resume"))
        if self.vm.run is not None:
            quit_vm(self.ctx, self.vm)
        await self.write("unlock")
        await self.finish()
        if self.p.get("delete"):
            self.destroy_source(owned_volumes(self.ctx, self.vm))
