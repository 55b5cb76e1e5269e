"""The ways into a running machine besides its network: keys, QEMU's monitor, consoles."""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Vm
from ..errors import ApiError, PveError

# Commands of QEMU's monitor by the privilege that they need (API2/Qemu/HMPPerms.pm).
_FREE = frozenset({"help", "?", "info"})
_MODIFY = frozenset(
    "announce_self backup_cancel balloon block_job_cancel block_job_complete block_job_pause"
    " block_job_resume block_job_set_speed block_resize block_set_io_throttle boot_set c"
    " calc_dirty_rate cancel_vcpu_dirty_limit chardev-send-break closefd commit cont cpu delvm"
    " eject exit_preconfig expire_password getfd gpa2hpa gpa2hva gva2gpa i loadvm log"
    " migrate_cancel migrate_continue migrate_pause migrate_set_capability migrate_set_parameter"
    " migrate_start_postcopy mouse_button mouse_move mouse_set one-insn-per-tb p print q qemu-io"
    " qom-get qom-list quit replay_break replay_delete_break replay_seek ringbuf_read ringbuf_write"
    " s savevm sendkey set_link set_password set_vcpu_dirty_limit snapshot_blkdev_internal"
    " snapshot_delete_blkdev_internal stop stopcapture sum sync-profile system_powerdown"
    " system_reset system_wakeup trace-event x x_colo_lost_heartbeat xp".split()
)
_ROOT = frozenset(
    "backup block_stream change chardev-add chardev-change chardev-remove client_migrate_info"
    " device_add device_del drive_add drive_backup drive_del drive_mirror dump-guest-memory dumpdtb"
    " gdbserver hostfwd_add hostfwd_remove logfile mce memsave migrate migrate_incoming"
    " migrate_recover nbd_server_add nbd_server_remove nbd_server_start nbd_server_stop netdev_add"
    " netdev_del nmi o object_add object_del pcie_aer_inject_error pmemsave qom-set savevm-end"
    " savevm-start screendump snapshot_blkdev watchdog_action wavcapture xen-event-inject"
    " xen-event-list".split()
)


def _running(ctx: Ctx, p: dict[str, Any]) -> Vm:
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    if vm.run is None:
        raise PveError(f"VM {vm.vmid} not running")
    return vm


@api("PUT /nodes/{node}/qemu/{vmid}/sendkey")
async def sendkey(ctx: Ctx, p: dict[str, Any]) -> None:
    """Send a key to the console."""
    ctx.root_only(p, "skiplock")
    async with ctx.sim.locks.hold(p["vmid"]):
        _running(ctx, p)


def _check_command(ctx: Ctx, text: str) -> None:
    words = text.split()
    if not text or text == "0":
        raise PveError("no command specified")
    if not words:
        raise PveError(f"unexpected command '{text}'")
    name = words[0]
    if name in _FREE or ctx.who == "root@pam":
        return
    if name in _MODIFY:
        ctx.need("/", "Sys.Modify")
    elif name in _ROOT:
        raise PveError(f"root-only command '{name}'")
    else:
        raise PveError(
            f"command '{name}' non-existent or not assigned a required permission yet, limiting to"
            " root user"
        )


@api("POST /nodes/{node}/qemu/{vmid}/monitor")
def monitor(ctx: Ctx, p: dict[str, Any]) -> str:
    """A command to QEMU's monitor; that the machine does not run is part of the text."""
    _check_command(ctx, p["command"])
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    if vm.run is None:
        return f"ERROR: VM {vm.vmid} not running\n"
    return f"{ctx.cluster.qemu}\n" if p["command"].split() == ["info", "version"] else ""


@api("POST /nodes/{node}/qemu/{vmid}/spiceproxy")
def spice(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Refused: no simulated machine has a SPICE port."""
    _running(ctx, p)
    raise PveError("no spice port")


@api("GET /nodes/{node}/qemu/{vmid}/vncwebsocket")
def websocket(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Refused: nothing listens behind a simulated console."""
    raise ApiError(401, "permission denied - invalid PVEVNC ticket\n")
