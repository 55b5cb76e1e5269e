"""Cloud-init: pending changes of the drive, its generation, and the data that it would contain."""

from __future__ import annotations

import hashlib
import ipaddress
import urllib.parse
from collections.abc import Iterator
from typing import Any

from ..config.checks import CLOUDINIT, check_lock
from ..config.cloudinit_drive import renew_cloudinit
from ..config.hardware import is_windows
from ..config.vmconfig import HIDDEN, typed
from ..core.api import Ctx, api
from ..core.state import Vm
from ..schema.formats import split_list
from ..schema.named_hashes import IPCONFIG
from ..schema.units import parse_props
from ..volumes.drives import drives_of, is_cloudinit, parse_net


@api("GET /nodes/{node}/qemu/{vmid}/cloudinit")
def pending(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The cloud-init options, and their differences from the drive."""
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


@api("PUT /nodes/{node}/qemu/{vmid}/cloudinit")
async def regenerate(ctx: Ctx, p: dict[str, Any]) -> None:
    """Generate the cloud-init drive again."""
    async with ctx.sim.locks.hold(p["vmid"]):
        vm = ctx.cluster.vm_at(p["node"], p["vmid"])
        check_lock(vm)
        if any(is_cloudinit(drive) for _name, drive in drives_of(ctx.sim.schema, vm.conf)):
            renew_cloudinit(ctx, vm)
            ctx.cluster.write(vm)


@api("GET /nodes/{node}/qemu/{vmid}/cloudinit/dump")
def dump(ctx: Ctx, p: dict[str, Any]) -> str:
    """The data of one kind as text; custom files do not show here."""
    vm = ctx.cluster.vm_at(p["node"], p["vmid"])
    nocloud = (
        vm.conf.get("citype", "configdrive2" if is_windows(vm.conf) else "nocloud") == "nocloud"
    )
    network = _network(ctx, vm) if nocloud else _interfaces(ctx, vm)
    if p["type"] == "user":
        return _user(vm, hide=not ctx.may(f"/vms/{vm.vmid}", "VM.Config.Cloudinit"))
    if p["type"] == "network":
        return network
    ident = hashlib.sha1((_user(vm) + network).encode(), usedforsecurity=False).hexdigest()
    if nocloud:
        return f"instance-id: {ident}\n"
    return (
        f'{{\n     "uuid": "{ident}",\n     "network_config": {{ "content_path": "/content/0000"'
        " }\n}\n"
    )


def _user(vm: Vm, *, hide: bool = False) -> str:
    conf = vm.conf
    host = fqdn = conf.get("name", f"VM{vm.vmid}")
    if "." in host:
        host = host.partition(".")[0]
    elif conf.get("searchdomain"):
        fqdn = f"{host}.{conf['searchdomain']}"
    lines = ["#cloud-config", f"hostname: {host}", "manage_etc_hosts: true", f"fqdn: {fqdn}"]
    user = conf.get("ciuser")
    if user is not None:
        lines.append(f"user: {user}")
    if user == "root":
        lines.append("disable_root: False")
    if "cipassword" in conf:
        lines.append(f"password: {HIDDEN if hide else conf['cipassword']}")
    if "sshkeys" in conf:
        keys = [key for key in urllib.parse.unquote(conf["sshkeys"]).split("\n") if key.strip()]
        lines += ["ssh_authorized_keys:", *(f"  - {key}" for key in keys)]
    lines += ["chpasswd:", "  expire: False"]
    if user != "root":
        lines += ["users:", "  - default"]
    if conf.get("ciupgrade", "1") == "1":
        lines.append("package_upgrade: true")
    return "\n".join(lines) + "\n"


def _names(ctx: Ctx, vm: Vm) -> tuple[list[str], list[str]]:
    """(name servers, search domains): the machine's, else its node's."""
    host = ctx.cluster.nodes[vm.node].dns
    servers = vm.conf["nameserver"].split() if "nameserver" in vm.conf else []
    if "nameserver" not in vm.conf:
        servers = [host[key] for key in ("dns1", "dns2", "dns3") if host.get(key)]
    return servers, vm.conf.get("searchdomain", host.get("search", "")).split()


def _cards(vm: Vm) -> Iterator[tuple[str, str, dict[str, str]]]:
    """(number, setting, addresses) of the cards that have any."""
    for name in sorted(name for name in vm.conf if name.startswith("net") and name[3:].isdigit()):
        text = vm.conf.get(f"ipconfig{name[3:]}")
        if text:
            yield name[3:], vm.conf[name], parse_props(IPCONFIG, text)


def _address(value: str) -> tuple[str, str]:
    """(address, netmask) of an IPv4 network."""
    interface = ipaddress.IPv4Interface(value)
    return str(interface.ip), str(interface.netmask)


def _network(ctx: Ctx, vm: Vm) -> str:
    lines = ["version: 1", "config:"]
    for number, card, settings in _cards(vm):
        mac = parse_net(ctx.sim.schema, card).get("macaddr", "").lower()
        lines += [
            "    - type: physical",
            f"      name: eth{number}",
            f"      mac_address: '{mac}'",
            "      subnets:",
        ]
        v4, v6 = settings.get("ip"), settings.get("ip6")
        if v4 == "dhcp":
            lines.append("      - type: dhcp4")
        elif v4 and "/" in v4:
            address, mask = _address(v4)
            lines += [
                "      - type: static",
                f"        address: '{address}'",
                f"        netmask: '{mask}'",
            ]
            lines += [f"        gateway: '{settings['gw']}'"] if "gw" in settings else []
        if v6 == "dhcp":
            lines.append("      - type: dhcp6")
        elif v6 == "auto":
            lines.append("      - type: ipv6_slaac")
        elif v6 is not None:
            lines += ["      - type: static6", f"        address: '{v6}'"]
            lines += [f"        gateway: '{settings['gw6']}'"] if "gw6" in settings else []
    servers, domains = _names(ctx, vm)
    lines.append("    - type: nameserver")
    lines += ["      address:", *(f"      - '{server}'" for server in servers)] if servers else []
    lines += ["      search:", *(f"      - '{domain}'" for domain in domains)] if domains else []
    return "\n".join(lines) + "\n"


def _interfaces(ctx: Ctx, vm: Vm) -> str:
    """The network as a file for Debian's ifupdown, which all kinds but nocloud get."""
    lines = ["auto lo", "iface lo inet loopback", ""]
    servers, domains = _names(ctx, vm)
    lines += [f"        dns_nameservers {' '.join(servers)}"] if servers else []
    lines += [f"        dns_search {' '.join(domains)}"] if domains else []
    for number, _card, settings in _cards(vm):
        lines.append(f"auto eth{number}")
        v4, v6 = settings.get("ip"), settings.get("ip6")
        if v4 == "dhcp":
            lines.append(f"iface eth{number} inet dhcp")
        elif v4 and "/" in v4:
            address, mask = _address(v4)
            lines += [
                f"iface eth{number} inet static",
                f"        address {address}",
                f"        netmask {mask}",
            ]
            lines += [f"        gateway {settings['gw']}"] if "gw" in settings else []
        if v6 in ("auto", "dhcp"):
            lines.append(f"iface eth{number} inet6 {v6}")
        elif v6 is not None:
            address, _slash, prefix = v6.partition("/")
            lines += [
                f"iface eth{number} inet6 static",
                f"        address {address}",
                f"        netmask {prefix}",
            ]
            lines += [f"        gateway {settings['gw6']}"] if "gw6" in settings else []
    return "\n".join(lines) + "\n"
