"""Servers that the nodes send metrics to; nothing is sent.

Source: pve-manager, API2/Cluster/MetricServer.pm and Status/Graphite.pm, InfluxDB.pm and
OpenTelemetry.pm.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..errors import PveError
from ..schema.formats import split_list
from .sections import SectionFile, SectionType

BASE = "/cluster/metrics/server"
_TYPES = {
    "graphite": SectionType(
        "graphite",
        frozenset({"server"}),
        frozenset({"port", "mtu", "proto", "timeout", "path", "disable"}),
    ),
    "influxdb": SectionType(
        "influxdb",
        frozenset({"server", "port"}),
        frozenset(
            {
                "mtu",
                "disable",
                "organization",
                "bucket",
                "token",
                "influxdbproto",
                "timeout",
                "max-body-size",
                "api-path-prefix",
                "verify-certificate",
            }
        ),
    ),
    "opentelemetry": SectionType(
        "opentelemetry",
        frozenset({"server"}),
        frozenset(
            {
                "port",
                "disable",
                "otel-protocol",
                "otel-path",
                "otel-timeout",
                "otel-headers",
                "otel-verify-ssl",
                "otel-max-body-size",
                "otel-resource-attributes",
                "otel-compression",
            }
        ),
    ),
}


def _file(ctx: Ctx) -> SectionFile:
    return ctx.cluster.sections.setdefault("metrics", SectionFile())


def _test(ctx: Ctx, entry: dict[str, Any]) -> None:
    """Refuse a server that does not answer; a server of datagrams cannot be checked."""
    is_there = entry["server"] in ctx.cluster.servers
    if entry["type"] == "opentelemetry":
        if not is_there:
            raise PveError(f"Connection test failed: 500 Can't connect to {_place(entry, 4318)}")
        return
    if entry.get("disable"):
        return
    if entry["type"] == "graphite" and entry.get("proto") == "tcp" and not is_there:
        port = entry.get("port", 2003)
        raise PveError(
            f"couldn't create carbon socket [{entry['server']}]:{port} - Connection refused"
        )
    if entry.get("influxdbproto") in ("http", "https") and not is_there:
        raise PveError(f"500 Can't connect to {_place(entry, 8086)} (Connection refused)")


def _place(entry: dict[str, Any], port: int) -> str:
    return f"{entry['server']}:{entry.get('port', port)}"


@api("GET /cluster/metrics")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts."""
    return [{"name": "server"}]


@api(f"GET {BASE}")
def listing(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The servers with their addresses."""
    rows = []
    for name, entry in sorted(_file(ctx).entries.items()):
        rows.append(
            {
                "id": name,
                "disable": entry.get("disable", 0),
                "type": entry["type"],
                "server": entry["server"],
                "port": entry.get("port"),
            }
        )
    return rows


@api(f"GET {BASE}/{{id}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One server, without its token."""
    entry = _file(ctx).entries.get(p["id"])
    if entry is None:
        raise PveError(f"status server entry '{p['id']}' does not exist")
    return dict(entry)


@api(f"POST {BASE}/{{id}}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a server that answers."""
    name, kind = p.pop("id"), _TYPES[p.pop("type")]
    p.pop("token", None)
    file = _file(ctx)
    if name in file.entries:
        raise PveError(f"Metric server '{name}' already exists")
    entry = kind.check(p, create=True)
    _test(ctx, entry)
    file.entries[name] = entry


@api(f"PUT {BASE}/{{id}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a server; it must answer."""
    name, digest = p.pop("id"), p.pop("digest", None)
    delete = split_list(p.pop("delete", None) or "")
    p.pop("token", None)
    file = _file(ctx)
    file.check_digest(digest)
    if name not in file.entries:
        raise PveError(f"no such server '{name}'")
    kind = _TYPES[file.entries[name]["type"]]
    entry = {**file.entries[name], **kind.check(p, create=False)}
    kind.delete(entry, [one for one in delete if one != "token"], p)
    _test(ctx, entry)
    file.entries[name] = entry


@api(f"DELETE {BASE}/{{id}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a server."""
    if _file(ctx).entries.pop(p["id"], None) is None:
        raise PveError("cannot lookup undefined type!")
