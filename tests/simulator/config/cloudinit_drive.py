"""The cloud-init drive of a machine: generating it, which fails when a custom file is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import PveError
from ..schema.named_hashes import HASHES
from ..schema.units import parse_props
from ..volumes.drives import drives_of, is_cloudinit, split_volid
from ..volumes.volumes import Wanted, allocate, check_enabled, find_volume, own_key, parse_volname

if TYPE_CHECKING:
    from ..core.api import Ctx
    from ..core.state import Vm

CLOUDINIT_SIZE = 4 * 1024 * 1024


def check_custom(ctx: Ctx, vm: Vm) -> None:
    """Refuse custom files that are none or not there."""
    files = parse_props(HASHES["pve-qm-cicustom"], vm.conf.get("cicustom", ""))
    for part in ("network", "user", "meta", "vendor"):
        volid = files.get(part)
        if volid is None:
            continue
        store, _colon, name = volid.partition(":")
        storage = ctx.cluster.storage(store)
        if parse_volname(storage, name).content != "snippets":
            raise PveError(f"{volid} is not in the snippets directory")
        check_enabled(ctx.cluster, store, vm.node)
        if find_volume(ctx.cluster, vm.node, volid) is None:
            raise PveError(f"volume '{volid}' does not exist")


def renew_cloudinit(ctx: Ctx, vm: Vm) -> None:
    """Generate the drive again, if there is one; a missing volume is created."""
    for _name, drive in drives_of(ctx.sim.schema, vm.conf):
        volid = drive.get("file", "")
        parts = split_volid(volid)
        if parts is None or not is_cloudinit(drive):
            continue
        check_custom(ctx, vm)
        if find_volume(ctx.cluster, vm.node, volid) is None:
            storage = check_enabled(ctx.cluster, parts[0], vm.node)
            name = own_key(storage, parts[1]).rpartition("/")[2]
            fmt = parse_volname(storage, parts[1]).fmt
            wanted = Wanted(vm.vmid, fmt, CLOUDINIT_SIZE, name)
            allocate(ctx.cluster, vm.node, storage, wanted)
    vm.cloudinit = None
