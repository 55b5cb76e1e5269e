"""Who may set which option of a container (pve-container: LXC.pm, check_ct_modify_config_perm)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..config.checks import check_tags, check_volume_access, need_bridge
from ..errors import PermError
from ..volumes.mounts import (
    NEW_VOLUME,
    features_of,
    is_mount,
    is_net,
    parse_mount,
    parse_net,
    source_of,
)

if TYPE_CHECKING:
    from ..core.api import Ctx

_PRIVILEGE = {
    **dict.fromkeys(("cores", "cpuunits", "cpulimit"), "VM.Config.CPU"),
    **dict.fromkeys(("memory", "swap"), "VM.Config.Memory"),
    **dict.fromkeys(("nameserver", "searchdomain", "hostname"), "VM.Config.Network"),
}


class Rights:
    """The rights that one request needs on one container."""

    def __init__(
        self, ctx: Ctx, vmid: int, pool: str | None, old: Mapping[str, str], unprivileged: bool
    ) -> None:
        self.ctx = ctx
        self.vmid = vmid
        self.pool = pool
        self.old = old
        self.unprivileged = unprivileged

    def check_set(self, params: Mapping[str, Any]) -> None:
        """Refuse options that the caller may not set."""
        if self.ctx.who == "root@pam":
            return
        for name, value in params.items():
            self._check(name, str(value))

    def check_delete(self, names: Iterable[str]) -> None:
        """Refuse options that the caller may not delete."""
        if self.ctx.who == "root@pam":
            return
        for name in names:
            self._check(name, None)

    def _check(self, name: str, value: str | None) -> None:
        if is_mount(name):
            self._check_mount(name, value)
        elif is_net(name):
            self._need("VM.Config.Network")
            for text in (self.old.get(name), value):
                if text:
                    check_bridge(self.ctx, text)
        elif re.fullmatch(r"dev\d+", name):
            raise PermError("configuring device passthrough is only allowed for root@pam")
        elif name == "features":
            self._check_features(value)
        elif name == "hookscript":
            raise PermError("changing the hookscript is only allowed for root@pam")
        elif name == "tags":
            check_tags(self.ctx, self.vmid, self.old.get("tags", ""), value or "")
        else:
            self._need(_PRIVILEGE.get(name, "VM.Config.Options"))

    def _need(self, privilege: str) -> None:
        self.ctx.acl.require_vm(self.ctx.who, self.vmid, self.pool, [privilege])

    def _check_mount(self, name: str, value: str | None) -> None:
        self._need("VM.Config.Disk")
        if value is None:
            return
        volume = parse_mount(self.ctx.sim.schema, name, value)["volume"]
        source = source_of(volume)
        if source != "volume":
            raise PermError(f"mount point type {source} is only allowed for root@pam")
        new = NEW_VOLUME.match(volume)
        if new is not None:
            self.ctx.need(f"/storage/{new[1]}", "Datastore.AllocateSpace")
        elif ":" in volume:
            check_volume_access(self.ctx, self.vmid, volume, "images")

    def _check_features(self, value: str | None) -> None:
        if not self.unprivileged:
            raise PermError(
                "changing feature flags for privileged container is only allowed for root@pam"
            )
        schema = self.ctx.sim.schema
        old = features_of(schema, self.old.get("features"))
        new = features_of(schema, value)
        changed = {key for key in (*old, *new) if old.get(key, "") != new.get(key, "")}
        if changed - {"nesting"}:
            raise PermError("changing feature flags (except nesting) is only allowed for root@pam")
        if changed:
            self._need("VM.Allocate")


def check_bridge(ctx: Ctx, text: str) -> None:
    """Refuse a bridge that the caller may not use."""
    need_bridge(ctx, parse_net(ctx.sim.schema, text))
