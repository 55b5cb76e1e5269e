"""The configuration of a container: reading it, changing it, pending changes.

Source: pve-container, API2/LXC/Config.pm and LXC/Config.pm (update_pct_config,
vmconfig_hotplug_pending, vmconfig_apply_pending).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..config.checks import check_protection, take_address, unique_tags
from ..config.hardware import clamp_cpuunits
from ..core.api import Ctx, api
from ..core.state import Container
from ..errors import ApiError, ParamError, PveError
from ..schema.formats import split_list
from ..schema.units import format_size
from ..volumes.drives import split_volid
from ..volumes.mounts import (
    NEW_VOLUME,
    add_unused,
    in_use,
    is_net,
    is_unused,
    make_volumes,
    parse_mount,
    parse_net,
    print_mount,
    remove_volume,
    source_of,
    volumes_of,
    with_address,
)
from ..volumes.volumes import find_volume, volume_size
from .rights import Rights

MODIFIED = "detected modified configuration - file changed by other user? Try again."
_REQUIRED = ("memory", "rootfs", "ostype")
# Options that a running container takes over at once, without any work (LXC/Config.pm).
_FAST = frozenset(
    {
        "description",
        "onboot",
        "startup",
        "protection",
        "hostname",
        "hookscript",
        "cores",
        "tags",
        "lock",
    }
)
_CGROUP = frozenset({"cpulimit", "cpuunits", "memory", "swap"})
_MOUNT_POINT = re.compile(r"mp\d+\Z")


def typed(ctx: Ctx, conf: dict[str, str]) -> dict[str, Any]:
    """The settings with integers and booleans as numbers (LXC/Config.pm, check_type)."""
    options = ctx.sim.schema.container_options
    result: dict[str, Any] = {}
    for key, text in conf.items():
        is_number = options.get(key, {}).get("type") in ("integer", "boolean") or key == "snaptime"
        result[key] = int(text) if is_number and text.isdigit() else text
    if result.get("description"):
        result["description"] += "\n"
    return result


def check_lock(container: Container) -> None:
    """Refuse if the container is locked."""
    lock = container.conf.get("lock")
    if lock:
        raise PveError(f"CT is locked ({lock})")


def check_digest(ctx: Ctx, container: Container, digest: str | None) -> None:
    """Refuse a change if the state differs from the one the caller read."""
    if digest and digest != ctx.cluster.digest(container):
        raise PveError(MODIFIED)


def _readable(ctx: Ctx, vmid: int, conf: dict[str, str]) -> dict[str, str]:
    """Leave out options that only a caller who may change them may read (LXC.pm,
    delete_read_restricted_options).
    """
    if "env" not in conf or ctx.may(f"/vms/{vmid}", "VM.Config.Options"):
        return conf
    return {key: value for key, value in conf.items() if key != "env"}


@api("GET /nodes/{node}/lxc/{vmid}/config")
def config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The configuration with pending changes, the current configuration, or a snapshot's."""
    if p.get("snapshot") and p.get("current"):
        text = "cannot use 'snapshot' parameter with 'current'"
        raise ParamError({"snapshot": text, "current": text})
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    conf = dict(container.conf)
    if p.get("snapshot"):
        conf = dict(snapshot_of(container, p["snapshot"]))
    elif not p.get("current"):
        conf.update(container.pending)
        for name in container.pending_delete:
            conf.pop(name, None)
    shown = typed(ctx, _readable(ctx, container.vmid, conf))
    shown["digest"] = ctx.cluster.digest(container)
    return shown


def snapshot_of(container: Container, name: str) -> dict[str, str]:
    """The configuration that a snapshot saved."""
    found = container.snapshots.get(name)
    if found is None:
        raise PveError(f"snapshot '{name}' does not exist")
    return found


@api("GET /nodes/{node}/lxc/{vmid}/pending")
def pending(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """Each setting with its pending value (pve-guest-common: GuestHelpers.pm,
    config_with_pending_array).
    """
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    now = typed(ctx, _readable(ctx, container.vmid, container.conf))
    later = typed(ctx, _readable(ctx, container.vmid, container.pending))
    now["digest"] = ctx.cluster.digest(container)
    rows: list[dict[str, Any]] = []
    for key, value in now.items():
        row: dict[str, Any] = {"key": key, "value": value}
        if key in later:
            row["pending"] = later[key]
        if key in container.pending_delete:
            row["delete"] = 1
        rows.append(row)
    rows += [{"key": key, "pending": value} for key, value in later.items() if key not in now]
    return rows


@api("PUT /nodes/{node}/lxc/{vmid}/config")
async def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change options, or note the change as pending if the container runs."""
    node, vmid, digest = p.pop("node"), p.pop("vmid"), p.pop("digest", None)
    if not p:
        raise PveError("no options specified")
    delete = split_list(p.pop("delete", "") or "")
    revert = split_list(p.pop("revert", "") or "")
    params = {name: str(value) for name, value in p.items()}
    if "cpuunits" in params:
        params["cpuunits"] = clamp_cpuunits(params["cpuunits"])
    async with ctx.sim.locks.hold(vmid):
        container = ctx.cluster.container_at(node, vmid)
        check_lock(container)
        check_digest(ctx, container, digest)
        rights = Rights(ctx, vmid, None, container.conf, container.conf.get("unprivileged") == "1")
        rights.check_delete(delete)
        rights.check_delete(revert)
        _check_names(ctx, params, delete, revert)
        rights.check_set(params)
        errors = Change(ctx, container).run(params, delete, revert)
        if errors:
            container.read_again()
            raise ParamError(errors)
        ctx.cluster.write(container)


def _check_names(ctx: Ctx, params: dict[str, str], delete: list[str], revert: list[str]) -> None:
    options = ctx.sim.schema.container_options
    for name in revert:
        if name not in options:
            raise ParamError({"revert": f"unknown option '{name}'"})
        if name in params:
            text = f"you can't use '-{name}' and '-revert {name}' at the same time"
            raise ParamError({"revert": text})
    for name in delete:
        if name not in options:
            raise ParamError({"delete": f"unknown option '{name}'"})
        if name in params:
            text = f"you can't use '-{name}' and -delete {name}' at the same time"
            raise ParamError({"delete": text})
        if name in revert:
            text = f"you can't use '-delete {name}' and '-revert {name}' at the same time"
            raise ParamError({"delete": text})


class Change:
    """One change of a container's configuration; the caller writes it."""

    def __init__(self, ctx: Ctx, container: Container) -> None:
        self.ctx = ctx
        self.container = container
        self.errors: dict[str, str] = {}

    def run(self, params: dict[str, str], delete: list[str], revert: list[str]) -> dict[str, str]:
        """Note the change as pending, then apply all possible changes; return the failures by
        option.
        """
        container = self.container
        if container.filed is None:
            container.file()
        for name in revert:
            container.pending.pop(name, None)
            container.pending_delete.pop(name, None)
        modified = {*params}
        for name in delete:
            if name in container.conf or name in container.pending:
                modified.add(name)
                self._check_delete(name)
                container.pending.pop(name, None)
                container.pending_delete[name] = False
        for name in sorted(params):
            container.pending[name] = self._checked(name, params[name])
            container.pending_delete.pop(name, None)
        self._clean()
        if container.run is not None:
            self._hotplug(modified)
        else:
            self._apply(modified)
        self._drop_used()
        return self.errors

    def apply_all(self) -> None:
        """Take over every pending change, as a start does."""
        self._apply({*self.container.pending, *self.container.pending_delete})
        self._drop_used()

    def _check_delete(self, name: str) -> None:
        if name in _REQUIRED:
            raise PveError(f"unable to delete required option '{name}'")
        if is_unused(name) or _MOUNT_POINT.match(name):
            check_protection(
                self.container, f"can't remove CT {self.container.vmid} drive '{name}'"
            )
        if name == "unprivileged":
            raise PveError(f"unable to delete read-only option: '{name}'")

    def _checked(self, name: str, value: str) -> str:
        if name == "rootfs" or _MOUNT_POINT.match(name):
            check_protection(
                self.container, f"can't update CT {self.container.vmid} drive '{name}'"
            )
            self._check_content(parse_mount(self.ctx.sim.schema, name, value)["volume"])
        elif name == "unprivileged":
            raise PveError(f"unable to modify read-only option: '{name}'")
        elif name == "tags":
            return unique_tags(self.ctx, value)
        elif is_net(name):
            self._check_net(name, parse_net(self.ctx.sim.schema, value))
        return value

    def _check_content(self, volume: str) -> None:
        parts = split_volid(volume)
        if source_of(volume) != "volume" or parts is None:
            return
        if "rootdir" not in self.ctx.cluster.storage(parts[0]).content:
            raise PveError(
                f"storage '{parts[0]}' does not allow content type 'rootdir' (Container)"
            )

    def _check_net(self, name: str, net: dict[str, str]) -> None:
        if "mtu" in net and "bridge" not in net:  # pve-common: PVE/Network.pm, read_bridge_mtu
            raise PveError("bridge '' does not exist")
        limit = self.ctx.cluster.nodes[self.container.node].mtu_of(net.get("bridge", ""))
        if int(net.get("mtu") or 0) > limit:
            raise PveError(f"{name}: MTU size '{net['mtu']}' is bigger than bridge MTU '{limit}'")
        is_up = net.get("link_down") != "1"
        if is_up and net.get("host-managed") == "1" and net.get("ip6") == "auto":
            raise PveError(
                f"{name}: SLAAC is not supported for host-managed network configuration."
            )

    def _clean(self) -> None:
        """Drop pending changes that change nothing (AbstractConfig.pm, cleanup_pending)."""
        container = self.container
        for name in [
            name for name, value in container.pending.items() if container.conf.get(name) == value
        ]:
            del container.pending[name]
        for name in [name for name in container.pending_delete if name not in container.conf]:
            del container.pending_delete[name]

    def _drop_used(self) -> None:
        """A volume that is used is not listed as unused (LXC/Config.pm, write_pct_config)."""
        container = self.container
        used = volumes_of(self.ctx.sim.schema, container.conf)
        for name in [name for name in container.conf if is_unused(name)]:
            if container.conf[name] in used:
                del container.conf[name]

    # -- taking over -----------------------------------------------------------------------------

    def _each(self, names: list[str], step: Callable[[str], bool], attempted: str) -> None:
        """Do a step for each option; note its refusal."""
        for name in names:
            try:
                step(name)
            except ApiError as error:
                self.errors[name] = f"{attempted.format(name)}{error.text}\n"

    def _hotplug(self, modified: set[str]) -> None:
        attempted = "unable to hotplug {}: "
        container = self.container
        for name in sorted(modified & _FAST & container.pending.keys()):
            container.conf[name] = container.pending.pop(name)
        gone = sorted(modified & container.pending_delete.keys())
        self._each(gone, self._unplug, attempted)
        added = sorted(modified & container.pending.keys())
        self._each(added, self._plug, attempted)

    def _unplug(self, name: str) -> bool:
        container = self.container
        if is_unused(name):
            self._free(name)
        elif not (name in _FAST or name in ("swap", "cpulimit", "cpuunits") or is_net(name)):
            return False
        container.conf.pop(name, None)
        container.pending_delete.pop(name, None)
        return True

    def _plug(self, name: str) -> bool:
        container = self.container
        if is_net(name):
            net = with_address(self.ctx, container.pending[name])
            self._take_address(name, net)
            container.conf[name] = net
            del container.pending[name]
            return True
        if name in _CGROUP or re.fullmatch(r"dev\d+", name):
            # Devices are added to running containers since 6.0.4 (commit c702167).
            is_device = name.startswith("dev")
            if is_device and (name in container.conf or self.ctx.sim.schema.is_8):
                return False
            container.conf[name] = container.pending.pop(name)
            return True
        if _MOUNT_POINT.match(name) and name not in container.conf:
            self._mount(name)
            return True
        return False

    def _apply(self, modified: set[str]) -> None:
        attempted = "unable to apply pending change {} : "
        container = self.container
        self._each(sorted(modified & container.pending_delete.keys()), self._remove, attempted)
        self._clean()
        self._each(sorted(modified & container.pending.keys()), self._take_over, attempted)

    def _remove(self, name: str) -> bool:
        container = self.container
        text = container.conf.get(name, "")
        if _MOUNT_POINT.match(name) and text:
            self._detach(parse_mount(self.ctx.sim.schema, name, text)["volume"], name)
        elif is_unused(name):
            self._free(name)
        container.conf.pop(name, None)
        container.pending_delete.pop(name, None)
        return True

    def _detach(self, volume: str, name: str) -> None:
        """Note a volume as unused; PVE does so whether or not a snapshot has it."""
        self.container.conf.pop(name, None)
        if source_of(volume) == "volume":
            add_unused(self.container, volume)

    def _free(self, name: str) -> None:
        volume = self.container.conf.get(name, "")
        if volume and not in_use(self.ctx.sim.schema, self.container, volume):
            remove_volume(self.ctx, self.container, volume)

    def _take_over(self, name: str) -> bool:
        container = self.container
        if _MOUNT_POINT.match(name):
            self._mount(name)
            return True
        if is_net(name):
            container.pending[name] = with_address(self.ctx, container.pending[name])
            self._take_address(name, container.pending[name])
        container.conf[name] = container.pending.pop(name)
        return True

    def _take_address(self, name: str, net: str) -> None:
        """Take an address for a new NIC, or a NIC with another bridge or MAC address
        (LXC/Config.pm, vmconfig_apply_pending; LXC.pm, update_net).
        """
        schema = self.ctx.sim.schema
        old, new = parse_net(schema, self.container.conf.get(name, "")), parse_net(schema, net)
        if any(old.get(key) != new.get(key) for key in ("bridge", "hwaddr")):
            take_address(self.ctx, self.container, new)

    def _mount(self, name: str) -> None:
        """Create the volume of a mount point, or note the size of an existing volume.

        Only a running container needs the volume at once: it is mounted (LXC/Config.pm,
        apply_pending_mountpoint; LXC.pm, mountpoint_hotplug).
        """
        ctx, container = self.ctx, self.container
        schema = ctx.sim.schema
        text = container.pending[name]
        mount = parse_mount(schema, name, text)
        if NEW_VOLUME.match(mount["volume"]):
            text = make_volumes(ctx, container, {name: text}, None)[0][name]
        elif source_of(mount["volume"]) == "volume":
            if container.run is not None:
                volume_size(ctx.cluster, container.node, mount["volume"])
            volume = find_volume(ctx.cluster, container.node, mount["volume"])
            if volume is not None:
                mount["size"] = format_size(volume.size)
            text = print_mount(schema, name, mount)
        else:
            text = print_mount(schema, name, mount)
        old = container.conf.get(name)
        if old is not None:
            old_volume = parse_mount(schema, name, old)["volume"]
            if old_volume != parse_mount(schema, name, text)["volume"]:
                self._detach(old_volume, name)
        container.pending.pop(name)
        container.conf[name] = text
