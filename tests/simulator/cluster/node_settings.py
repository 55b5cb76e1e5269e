"""The settings of a node: configuration, name servers, hosts file, time zone.

Follows PVE/NodeConfig.pm, PVE/API2/NodeConfig.pm and PVE/API2/Nodes.pm (pve-manager), and
PVE/INotify.pm (pve-common).
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Any

from ..core.api import Ctx, api
from ..core.state import NodeInfo
from ..errors import ParamError, PveError
from ..schema.debian import debian_names
from ..schema.formats import split_list
from ..schema.named_hashes import HASHES
from ..schema.validate import split_property_string

_MODIFIED = "detected modified configuration - file changed by other user? Try again."
_HOST_NAME = re.compile(r"[.\-a-zA-Z0-9]+")
_ZONES = debian_names()["zones"] | debian_names()["zone_links"]
_DOMAINS = 6


@api("GET /nodes/{node}/dns")
def get_dns(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """The name servers of the node."""
    return dict(ctx.cluster.nodes[p["node"]].dns)


@api("PUT /nodes/{node}/dns")
def put_dns(ctx: Ctx, p: dict[str, Any]) -> None:
    """Set the name servers; those that are not named are removed, and each is written once."""
    node = ctx.cluster.nodes[p.pop("node")]
    written: dict[str, str] = {}
    if p.get("search"):
        written["search"] = p["search"].split()[0]
    servers: list[str] = []
    for key in ("dns1", "dns2", "dns3"):
        server = p.get(key)
        if server and server != "0.0.0.0" and server not in servers:
            servers.append(server)
    for number, server in enumerate(servers, 1):
        written[f"dns{number}"] = server
    node.dns = written


def _hosts(ctx: Ctx, node: NodeInfo) -> str:
    if node.hosts is not None:
        return node.hosts
    lines = ["127.0.0.1 localhost"]
    for one in ctx.cluster.nodes.values():
        lines.append(f"{one.ip} {one.name}.{one.dns.get('search', 'local')} {one.name}")
    return "\n".join(lines) + "\n"


def _sha1(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


@api("GET /nodes/{node}/hosts")
def get_hosts(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """The hosts file."""
    text = _hosts(ctx, ctx.cluster.nodes[p["node"]])
    return {"data": text, "digest": _sha1(text)}


@api("POST /nodes/{node}/hosts")
def post_hosts(ctx: Ctx, p: dict[str, Any]) -> None:
    """Replace the hosts file; its addresses and names are checked."""
    node = ctx.cluster.nodes[p["node"]]
    if p.get("digest") and p["digest"] != _sha1(_hosts(ctx, node)):
        raise PveError(_MODIFIED)
    for line in p["data"].split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            _check_host(line)
    node.hosts = p["data"]


def _check_host(line: str) -> None:
    address, *names = re.split(r"\s+", line.rstrip())
    try:
        ipaddress.ip_address(address)
    except ValueError:
        raise ParamError({"data": f"Invalid IP '{address}'"}) from None
    for name in names:
        if not _HOST_NAME.fullmatch(name):
            raise ParamError({"data": f"Invalid Hostname '{name}'"})


@api("GET /nodes/{node}/time")
def get_time(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The clock of the node."""
    if not ctx.cluster.timedatectl:
        raise PveError(
            "command 'timedatectl show '--property=Timezone' --value' failed: exit code 1"
        )
    now = int(ctx.cluster.now())
    return {"time": now, "localtime": now, "timezone": ctx.cluster.nodes[p["node"]].timezone}


@api("PUT /nodes/{node}/time")
def put_time(ctx: Ctx, p: dict[str, Any]) -> None:
    """Set the time zone (pve-common: Systemd.pm, set_timezone)."""
    if not ctx.cluster.timedatectl:
        raise PveError("command 'timedatectl list-timezones' failed: exit code 1")
    zone = p["timezone"]
    if zone not in _ZONES:
        raise ParamError({"timezone": "No such timezone"})
    ctx.cluster.nodes[p["node"]].timezone = zone


def _raw(config: dict[str, str]) -> str:
    """The file of a node: the description as comments, then one line for each key."""
    lines = [f"#{line}" for line in config.get("description", "").split("\n") if line]
    lines += [f"{key}: {config[key]}" for key in sorted(config) if key != "description"]
    return "".join(f"{line}\n" for line in lines)


@api("GET /nodes/{node}/config")
def get_config(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The node's own settings; of an empty file nothing, not even the digest."""
    config = ctx.cluster.nodes[p["node"]].config
    raw = _raw(config)
    if not raw:
        return {}
    lines = [line for line in config.get("description", "").split("\n") if line]
    found = {**config, "description": "".join(f"{line}\n" for line in lines), "digest": _sha1(raw)}
    if p.get("property"):
        return {key: value for key, value in found.items() if key == p["property"]}
    return found


@api("PUT /nodes/{node}/config")
def put_config(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change the node's own settings."""
    node = ctx.cluster.nodes[p.pop("node")]
    config = dict(node.config)
    digest = p.pop("digest", None)
    raw = _raw(config)
    if digest and raw and digest != _sha1(raw):
        raise PveError(_MODIFIED)
    removed = split_list(p.pop("delete", None) or "")
    config.update({key: str(value) for key, value in p.items()})
    for name in removed:
        config.pop(name, None)
    _check_domains(config)
    for key, value in config.items():
        if key != "description" and "\n" in value:
            raise PveError(f"detected invalid newline inside property '{key}'")
    node.config = config


def _check_domains(config: dict[str, str]) -> None:
    """A domain of certificates is named once (NodeConfig.pm, get_acme_conf)."""
    holders: dict[str, str] = {}
    parts = dict(part.partition("=")[::2] for part in config.get("acme", "").split(","))
    for domain in parts.get("domains", "").split(";"):
        if domain.lower() in holders:
            raise PveError(f"duplicate domain '{domain.lower()}' in ACME config properties")
        if domain:
            holders[domain.lower()] = "acme"
    for number in range(_DOMAINS):
        key = f"acmedomain{number}"
        if key not in config:
            continue
        domain = split_property_string(HASHES["acmedomain"], config[key])["domain"]
        other = holders.get(domain.lower())
        if other:
            raise PveError(
                f"duplicate domain '{domain.lower()}' in ACME config properties '{key}' and"
                f" '{other}' at /usr/share/perl5/PVE/NodeConfig.pm line 302."
            )
        holders[domain.lower()] = key
