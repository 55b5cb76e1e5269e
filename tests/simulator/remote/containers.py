"""Migration of containers to another cluster, stopped or with a restart.

Source: pve-container, PVE/API2/LXC.pm (remote_migrate_vm), PVE/LXC/Migrate.pm (prepare, phase1,
phase1_cleanup, final_cleanup).
"""

from __future__ import annotations

from typing import Any

from ..containers.config import check_lock
from ..containers.power import launch, stop
from ..core.api import Ctx, api
from ..core.state import Container, config_lines
from ..errors import ApiError, ParamError, PveError
from ..ha.records import is_configured
from ..volumes.mounts import mounts_of, parse_net, print_mount, source_of, volumes_of
from ..volumes.volumes import check_enabled, parse_volname
from .endpoint import Endpoint
from .outgoing import Outgoing, has_replication, is_nic, maps_of, target_node

_MOVABLE = ("dir", "zfspool", "lvmthin", "lvm", "btrfs", "cifs", "nfs", "rbd")


@api("POST /nodes/{node}/lxc/{vmid}/remote_migrate")
async def remote_migrate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Check the container and the other cluster, and start the task."""
    ctx.cluster.check_quorum()
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    check_lock(container)
    if container.run is not None and not (p.get("online") or p.get("restart")):
        raise PveError("can't migrate running container without --online or --restart")
    if is_configured(ctx.cluster, container.vmid):
        raise ParamError({"vmid": "cannot remote-migrate CT that is configured for HA"})
    endpoint = Endpoint(p["target-endpoint"])
    try:
        if not endpoint.fingerprint:
            await endpoint.call("GET", "/nodes/localhost/certificates/info")
        maps_of(p)
        migration = ContainerMigration(ctx, container, p, endpoint)
        migration.node = await target_node(endpoint)
    except ApiError:
        await endpoint.close()
        raise
    return ctx.task(container.node, "vzmigrate", container.vmid, migration.run)


class ContainerMigration(Outgoing):
    """The phases of a container."""

    directory = "lxc"

    def __init__(
        self, ctx: Ctx, container: Container, p: dict[str, Any], endpoint: Endpoint
    ) -> None:
        super().__init__(ctx, container, p, endpoint)
        self.container = container
        self.was_running = False
        self.is_handed_over = False

    async def migrate(self) -> None:
        """The phases; a failed one starts the container again where it was."""
        await self.interruptible(self._prepare)
        try:
            await self.interruptible(self._phase1)
        except PveError as error:
            self.error(error.text)
            self.say("aborting phase 1 - cleanup resources")
            for volid in self.volume_map.values():
                self.error(f"found stale volume copy '{volid}' on node '{self.node}'")
            await self.logged(self.finish(cleanup=True))
            self._take_back()
            raise
        await self.logged(self._final_cleanup())

    async def _prepare(self) -> None:
        """Check, open the tunnel, and shut the container down."""
        ctx, container = self.ctx, self.container
        check_lock(container)
        if container.run is not None:
            if self.p.get("online"):
                raise PveError("lxc live migration is currently not implemented")
            if not self.p.get("restart"):
                raise PveError("running container can only be migrated in restart mode")
            self.was_running = True
        storages = set()
        for name, mount in mounts_of(ctx.sim.schema, container.conf, unused=True):
            source = source_of(mount["volume"])
            if source != "volume":
                if mount.get("shared") != "1":
                    raise PveError(f"cannot migrate local {source} mount point '{name}'")
                continue
            store = mount["volume"].partition(":")[0]
            if "rootdir" not in check_enabled(ctx.cluster, store, container.node).content:
                raise PveError(f"content type 'rootdir' is not available on storage '{store}'")
            storages.add(self.storages.target(store))
        bridges = self.bridges_of(container.conf, lambda text: parse_net(ctx.sim.schema, text))
        await self.open_tunnel(storages, bridges)
        if self.was_running:
            self.say(f"shutdown CT {container.vmid}")
            stop(ctx, container)

    async def _phase1(self) -> None:
        ctx, container = self.ctx, self.container
        host = self.endpoint.host
        self.say(f"starting migration of CT {container.vmid} to node '{self.node}' ({host})")
        container.conf["lock"] = "migrate"
        ctx.cluster.write(container)
        volids = self._checked_volumes()
        if has_replication(ctx, container.vmid):
            raise PveError("cannot remote-migrate replicated VM")
        for volid in volids:
            try:
                self.volume_map[volid] = await self.send_volume(volid, 1 / len(volids))
            except PveError as error:
                store = self.storages.target(volid.partition(":")[0])
                text = f"storage migration for '{volid}' to storage '{store}' failed"
                raise PveError(f"{text} - {error.text}") from None
        await self.write("config", conf=config_lines(self._new_config()), **self.firewall())
        self.is_handed_over = True

    def _checked_volumes(self) -> list[str]:
        """The volumes of the configuration; refused with a volume that cannot be copied."""
        ctx, container = self.ctx, self.container
        faults: dict[str, str] = {}
        for saved in container.snapshots.values():
            for volid in volumes_of(ctx.sim.schema, saved):
                kind = ctx.cluster.storage(volid.partition(":")[0]).kind
                text = "remote migration with snapshots not supported yet"
                faults[volid] = (
                    text if kind in ("zfspool", "btrfs") else "non-migratable snapshot exists"
                )
        found = sorted(set(volumes_of(ctx.sim.schema, container.conf, unused=True)))
        for volid in found:
            storage = ctx.cluster.storage(volid.partition(":")[0])
            base = parse_volname(storage, volid.partition(":")[2]).base
            if storage.kind not in _MOVABLE:
                faults.setdefault(volid, f"storage type '{storage.kind}' not supported")
            elif base:
                faults.setdefault(volid, f"clone of '{base}'")
            self.say(f"found local volume '{volid}' (in current VM config)")
        for volid, fault in sorted(faults.items()):
            self.say(f"WARNING: can't migrate local volume '{volid}': {fault}")
        if faults:
            raise PveError("can't migrate CT - check log")
        return found

    def _new_config(self) -> dict[str, str]:
        """The configuration with the volumes and bridges of the other side."""
        schema, conf = self.ctx.sim.schema, dict(self.container.conf)
        for name, mount in list(mounts_of(schema, conf, unused=True)):
            new = self.volume_map.get(mount["volume"])
            if new is not None and name.startswith("unused"):
                conf[name] = new
            elif new is not None:
                conf[name] = print_mount(schema, name, {**mount, "volume": new})
        for name in sorted(filter(is_nic, conf)):
            nic = parse_net(schema, conf[name])
            if nic.get("bridge"):
                old, nic["bridge"] = nic["bridge"], self.bridges.target(nic["bridge"])
                self.say(f"mapped: {name} from {old} to {nic['bridge']}")
                conf[name] = ",".join(f"{key}={value}" for key, value in nic.items())
        return conf

    def _take_back(self) -> None:
        """Remove the lock here, and start the container that was shut down for the move."""
        self.say("start final cleanup")
        self.container.conf.pop("lock", None)
        try:
            self.ctx.cluster.write(self.container)
        except PveError as error:
            self.error(error.text)
        if self.was_running:
            self.say("start container on source node")
            launch(self.ctx, self.container)

    async def _final_cleanup(self) -> None:
        """Unlock and start it there. The lock here stays, so it cannot be started twice."""
        self.say("start final cleanup")
        try:
            await self.write("unlock")
        except PveError as error:
            self.error(f"Failed to clear migrate lock - {error.text}")
        if self.was_running:
            self.say("start container on target node")
            await self.write("start")
        if self.p.get("delete"):
            schema = self.ctx.sim.schema
            self.destroy_source(volumes_of(schema, self.container.conf, unused=True))
        await self.finish()
