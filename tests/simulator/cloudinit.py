"""Cloud-init: what is pending for the drive, making it anew, and the data it would carry."""

from __future__ import annotations

import hashlib
import urllib.parse
from typing import Any

from .api import Ctx, api
from .drives import drives_of, is_cloudinit, option_key, parse_net
from .errors import PveError
from .formats import split_list
from .named_hashes import HASHES, IPCONFIG
from .state import Vm
from .units import parse_props
from .vmcheck import CLOUDINIT, check_lock
from .vmconfig import HIDDEN, typed
from .volumes import find_volume


@api("GET /nodes/{node}/qemu/{vmid}/cloudinit")
def pending(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The cloud-init options, and how they differ from what the drive holds."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    conf = typed(ctx, vm.conf)
    held = dict(vm.cloudinit or {})
    added = split_list(held.pop("added", ""))
    if "cipassword" in held:
        held["cipassword"] = HIDDEN
    result: list[dict[str, Any]] = [{"key": key, "pending": conf.get(key)} for key in added]
    for name in CLOUDINIT:
        # An option that is off counts as not set here.
        if name not in conf or conf[name] in (0, "0", "") or name in added:
            continue
        if name in held:
            result.append({"key": name, "value": held[name], "pending": conf[name]})
        else:
            result.append({"key": name, "value": conf[name]})
    result += [{"key": name, "delete": 1} for name in held if name not in conf]
    return result


def _drive_of(ctx: Ctx, vm: Vm) -> str | None:
    return next((name for name, drive in drives_of(ctx.sim.schema, vm.conf) if is_cloudinit(drive)), None)


def check_custom(ctx: Ctx, vm: Vm) -> dict[str, str]:
    """The custom files, refused when one is missing."""
    files = parse_props(HASHES["pve-qm-cicustom"], vm.conf.get("cicustom", ""))
    for volid in files.values():
        storage = ctx.cluster.storage(volid.partition(":")[0])
        if find_volume(ctx.cluster, vm.node, volid) is None:
            if "snippets" not in storage.content:
                raise PveError(f"storage '{storage.name}' is not configured for content-type 'snippets'")
            raise PveError(f"volume '{volid}' does not exist")
    return files


@api("PUT /nodes/{node}/qemu/{vmid}/cloudinit")
async def regenerate(ctx: Ctx, p: dict[str, Any]) -> None:
    """Make the cloud-init drive anew."""
    async with ctx.sim.locks.hold(p["vmid"]):
        vm = ctx.cluster.vm_at(p["node"], p["vmid"])
        check_lock(vm)
        if _drive_of(ctx, vm) is not None:
            check_custom(ctx, vm)
            vm.cloudinit = None
            ctx.cluster.write(vm)


@api("GET /nodes/{node}/qemu/{vmid}/cloudinit/dump")
def dump(ctx: Ctx, p: dict[str, Any]) -> str:
    """The data of one kind as text; custom files do not show here."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    kind = p["type"]
    if kind == "user":
        return _user(vm)
    if kind == "network":
        return _network(ctx, vm)
    text = _user(vm) + _network(ctx, vm)
    return f"instance-id: {hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()}\n"


def _user(vm: Vm) -> str:
    conf = vm.conf
    name = conf.get("name") or f"VM{vm.vmid}"
    lines = ["#cloud-config", f"hostname: {name}", "manage_etc_hosts: true"]
    domain = conf.get("searchdomain", "").strip()
    if domain:
        lines.append(f"fqdn: {name}.{domain}")
    if "ciuser" in conf:
        lines.append(f"user: {conf['ciuser']}")
    else:
        lines.append("disable_root: False")
    if "cipassword" in conf:
        lines.append(f"password: {conf['cipassword']}")
    keys = [key for key in urllib.parse.unquote(conf.get("sshkeys", "")).split("\n") if key.strip()]
    if keys:
        lines.append("ssh_authorized_keys:")
        lines += [f"  - {key}" for key in keys]
    lines += ["chpasswd:", "  expire: False", "users:", "  - default"]
    if conf.get("ciupgrade", "1") == "1":
        lines.append("package_upgrade: true")
    return "\n".join(lines) + "\n"


def _network(ctx: Ctx, vm: Vm) -> str:
    lines = ["version: 1", "config:"]
    nets = sorted((name for name in vm.conf if name.startswith("net") and name[3:].isdigit()), key=option_key)
    for name in nets:
        number = name[3:]
        mac = parse_net(ctx.sim.schema, vm.conf[name]).get("macaddr", "").lower()
        lines += ["    - type: physical", f"      name: eth{number}", f"      mac_address: '{mac}'", "      subnets:"]
        settings = parse_props(IPCONFIG, vm.conf.get(f"ipconfig{number}", ""))
        for key, gateway, dhcp in (("ip", "gw", "dhcp4"), ("ip6", "gw6", "dhcp6")):
            value = settings.get(key)
            if value == "dhcp":
                lines.append(f"      - type: {dhcp}")
            elif value == "auto":
                lines.append("      - type: ipv6_slaac")
            elif value and "/" in value:
                kind = "static" if key == "ip" else "static6"
                lines += [f"      - type: {kind}", f"        address: '{value}'"]
                if gateway in settings:
                    lines.append(f"        gateway: '{settings[gateway]}'")
    servers, domains = split_list(vm.conf.get("nameserver", "")), split_list(vm.conf.get("searchdomain", ""))
    if servers or domains:
        lines += ["    - type: nameserver", "      address:", *(f"      - '{server}'" for server in servers)]
        lines += ["      search:", *(f"      - '{domain}'" for domain in domains)]
    return "\n".join(lines) + "\n"
