"""The guest agent: addresses, facts about the guest, commands."""

from __future__ import annotations

import base64
import copy
import ipaddress
from typing import Any

from ..config.hotplug import has_system
from ..core.api import Ctx, api
from ..core.state import Vm
from ..errors import PermError, PveError
from ..running import commands
from ..running.power import quit_vm
from ..schema.named_hashes import IPCONFIG
from ..schema.units import parse_props
from ..volumes.drives import agent_enabled, drives_of, is_cloudinit, option_key, parse_net

BASE = "/nodes/{node}/qemu/{vmid}/agent"
_NO_STATISTICS = {
    "rx-bytes": 0,
    "rx-dropped": 0,
    "rx-errs": 0,
    "rx-packets": 0,
    "tx-bytes": 0,
    "tx-dropped": 0,
    "tx-errs": 0,
    "tx-packets": 0,
}
_COMMANDS = (
    "guest-ping",
    "guest-info",
    "guest-network-get-interfaces",
    "guest-exec",
    "guest-exec-status",
    "guest-shutdown",
)
_INDEX = (
    "exec",
    "exec-status",
    "file-read",
    "file-write",
    "fsfreeze-freeze",
    "fsfreeze-status",
    "fsfreeze-thaw",
    "fstrim",
    "get-fsinfo",
    "get-host-name",
    "get-memory-block-info",
    "get-memory-blocks",
    "get-osinfo",
    "get-time",
    "get-timezone",
    "get-users",
    "get-vcpus",
    "info",
    "network-get-interfaces",
    "ping",
    "set-user-password",
    "shutdown",
    "suspend-disk",
    "suspend-hybrid",
    "suspend-ram",
)
_POWER = ("shutdown", "suspend-disk", "suspend-hybrid", "suspend-ram")


def ready(ctx: Ctx, p: dict[str, Any]) -> Vm:
    """The machine, if its agent answers."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    if "agent" not in vm.conf:
        raise PveError("No QEMU guest agent configured")
    if vm.run is None:
        raise PveError(f"VM {vm.vmid} is not running")
    answers = agent_enabled(vm.conf) and vm.agent == "running" and has_system(ctx.cluster, vm)
    if not answers or vm.run.qmpstatus != "running":
        raise PveError("QEMU guest agent is not running")
    return vm


def interfaces(ctx: Ctx, vm: Vm) -> list[dict[str, Any]]:
    """The interfaces of the guest: static addresses from cloud-init, else an address as DHCP would
    give.
    """
    result = [
        {
            "name": "lo",
            "hardware-address": "00:00:00:00:00:00",
            "ip-addresses": [_address("127.0.0.1", 8), _address("::1", 128)],
            "statistics": dict(_NO_STATISTICS),
        }
    ]
    nets = sorted(
        (name for name in vm.conf if name.startswith("net") and name[3:].isdigit()), key=option_key
    )
    for index, name in enumerate(nets):
        mac = parse_net(ctx.sim.schema, vm.conf[name]).get("macaddr", "").lower()
        settings = parse_props(IPCONFIG, vm.conf.get(f"ipconfig{name[3:]}", ""))
        result.append(
            {
                "name": f"eth{index}",
                "hardware-address": mac,
                "ip-addresses": _addresses(vm, int(name[3:]), mac, settings),
                "statistics": dict(_NO_STATISTICS),
            }
        )
    return result


def _address(text: str, prefix: int) -> dict[str, Any]:
    kind = "ipv6" if ":" in text else "ipv4"
    return {"ip-address": text, "ip-address-type": kind, "prefix": prefix}


def _addresses(vm: Vm, card: int, mac: str, settings: dict[str, str]) -> list[dict[str, Any]]:
    found = []
    v4 = settings.get("ip", "dhcp")
    if v4 == "dhcp":
        low = vm.vmid % 62500
        found.append(_address(f"10.{99 + card}.{low // 250}.{1 + low % 250}", 24))
    elif "/" in v4:
        address, prefix = v4.split("/")
        found.append(_address(address, int(prefix)))
    v6 = settings.get("ip6", "")
    if "/" in v6:
        address, prefix = v6.split("/")
        found.append(_address(str(ipaddress.ip_address(address)), int(prefix)))
    elif v6 in ("dhcp", "auto"):
        found.append(_address(f"fd00::{vm.vmid:x}", 64))
    parts = [int(part, 16) for part in mac.split(":")] if mac.count(":") == 5 else [0] * 6
    parts[0] ^= 2
    low64 = [*parts[:3], 0xFF, 0xFE, *parts[3:]]
    groups = ":".join(f"{low64[i] << 8 | low64[i + 1]:x}" for i in range(0, 8, 2))
    found.append(_address(str(ipaddress.ip_address(f"fe80::{groups}")), 64))
    return found


# The answers that are the same for each machine.
_FIXED: dict[str, Any] = {
    "get-osinfo": {
        "id": "debian",
        "name": "Debian GNU/Linux",
        "pretty-name": "Debian GNU/Linux 12 (bookworm)",
        "version": "12 (bookworm)",
        "version-id": "12",
        "machine": "x86_64",
        "kernel-release": "6.1.0",
        "kernel-version": "#1",
    },
    "get-fsinfo": [],
    "get-users": [],
    "get-vcpus": [],
    "get-memory-blocks": [],
    "get-timezone": {"zone": "UTC", "offset": 0},
    "fstrim": {"paths": []},
}


def answer(ctx: Ctx, vm: Vm, command: str) -> Any:
    """The agent's answer to a command without parameters."""
    if command == "network-get-interfaces":
        return interfaces(ctx, vm)
    if command == "get-host-name":
        # Only cloud-init tells the guest its name.
        named = any(is_cloudinit(drive) for _dummy, drive in drives_of(ctx.sim.schema, vm.conf))
        return {"host-name": vm.conf["name"] if named and "name" in vm.conf else f"vm{vm.vmid}"}
    if command == "info":
        return {
            "version": ctx.cluster.qemu,
            "supported_commands": [
                {"name": name, "enabled": True, "success-response": True} for name in _COMMANDS
            ],
        }
    if command == "fsfreeze-status":
        return "frozen" if vm.run and vm.run.frozen else "thawed"
    if command in ("fsfreeze-freeze", "fsfreeze-thaw"):
        if vm.run:
            vm.run.frozen = command == "fsfreeze-freeze"
        return 1
    if command == "get-time":
        return int(ctx.cluster.now() * 1e9)
    return copy.deepcopy(_FIXED.get(command, {}))


@api(f"GET {BASE}")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The commands."""
    return [{"name": name} for name in _INDEX]


@api(
    *(
        f"GET {BASE}/{name}"
        for name in (
            "get-fsinfo",
            "get-host-name",
            "get-memory-block-info",
            "get-memory-blocks",
            "get-osinfo",
            "get-time",
            "get-timezone",
            "get-users",
            "get-vcpus",
            "info",
            "network-get-interfaces",
        )
    ),
    *(
        f"POST {BASE}/{name}"
        for name in (
            "fsfreeze-freeze",
            "fsfreeze-status",
            "fsfreeze-thaw",
            "fstrim",
            "ping",
            "shutdown",
            "suspend-disk",
            "suspend-hybrid",
            "suspend-ram",
        )
    ),
)
def simple(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """A command without parameters."""
    vm = ready(ctx, p)
    return run_command(ctx, vm, ctx.method.path.rpartition("/")[2])


def run_command(ctx: Ctx, vm: Vm, command: str) -> dict[str, Any]:
    """Carry the command out and wrap its result."""
    if command in _POWER:
        quit_vm(ctx, vm)
        return {"result": {}}
    return {"result": answer(ctx, vm, command)}


@api(f"POST {BASE}")
def generic(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Any command by its name."""
    if not ctx.may(f"/vms/{p['vmid']}", "VM.GuestAgent.Unrestricted"):
        raise PermError(f"/vms/{p['vmid']}, VM.GuestAgent.Unrestricted")
    return run_command(ctx, ready(ctx, p), p["command"])


@api(f"POST {BASE}/exec")
def execute(ctx: Ctx, p: dict[str, Any]) -> dict[str, int]:
    """Run a program in the guest; it echoes its command line, unless it is a real process."""
    vm = ready(ctx, p)
    command = p["command"] if isinstance(p["command"], list) else [p["command"]]
    directory = _directory(ctx, vm)
    if directory:
        return {"pid": commands.start(vm, directory, command, p.get("input-data"))}
    if vm.execs is None:
        vm.execs = {}
    pid = 1001 + len(vm.execs)
    vm.execs[pid] = {"command": command, "input": p.get("input-data")}
    return {"pid": pid}


def _directory(ctx: Ctx, vm: Vm) -> str | None:
    """The directory in which commands of the guest are real processes."""
    return vm.processes_in or ctx.cluster.processes_in


@api(f"GET {BASE}/exec-status")
def exec_status(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """How a program in the guest ended."""
    vm = ready(ctx, p)
    found = (vm.execs or {}).get(p["pid"])
    if found is None:
        raise PveError(f"Agent error: PID {p['pid']} does not exist")
    if "started" in found:
        return commands.status(vm, p["pid"], found["started"])
    return {"exited": 1, "exitcode": 0, "out-data": f"out of {' '.join(found['command'])}\n"}


@api(f"POST {BASE}/set-user-password")
def set_password(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Set a password in the guest."""
    ready(ctx, p)
    return {"result": {}}


@api(f"GET {BASE}/file-read")
def file_read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Read a file that was written before."""
    vm = ready(ctx, p)
    text = _content(ctx, vm, p["file"])
    start = p.get("offset", 0)
    part = text[start : start + p["count"]] if p.get("count") else text[start:]
    answer: dict[str, Any] = {"content": part.decode("utf-8", "replace"), "bytes-read": len(part)}
    if p.get("decode") == 0:
        answer["content"] = base64.b64encode(part).decode()
    if start + len(part) < len(text):
        answer["truncated"] = 1
    return answer


@api(f"POST {BASE}/file-write")
def file_write(ctx: Ctx, p: dict[str, Any]) -> None:
    """Write a file in the guest."""
    vm = ready(ctx, p)
    content = commands.content_of(p)
    directory = _directory(ctx, vm)
    if directory:
        commands.write(directory, p["file"], content)
        return
    if vm.execs is None:
        vm.execs = {}
    vm.execs.setdefault(0, {})[p["file"]] = content


def _content(ctx: Ctx, vm: Vm, name: str) -> bytes:
    directory = _directory(ctx, vm)
    if directory:
        return commands.read(directory, name)
    files: dict[str, bytes] = (vm.execs or {}).get(0, {})
    if name not in files:
        raise PveError(
            f"Agent error: failed to open file '{name}' (mode: 'r'): No such file or directory"
        )
    return files[name]
