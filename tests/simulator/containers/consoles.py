"""Consoles of containers and their statistics; nothing listens behind a ticket.

Source: pve-container, API2/LXC.pm (vmdiridx, rrd, rrddata, vncproxy, termproxy, spiceproxy).
"""

from __future__ import annotations

from typing import Any

from ..cluster.status import console_ticket, points
from ..core.api import Ctx, api
from ..errors import ApiError

_SUBDIRS = (
    "config pending status vncproxy termproxy vncwebsocket spiceproxy migrate clone rrd rrddata"
    " firewall snapshot resize interfaces"
)


@api("GET /nodes/{node}/lxc/{vmid}")
def index(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts of a container."""
    ctx.cluster.container_at(p["node"], p["vmid"])
    return [{"subdir": name} for name in _SUBDIRS.split()]


@api("GET /nodes/{node}/lxc/{vmid}/rrddata")
def statistics(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, int]]:
    """Points in time without figures."""
    ctx.cluster.container_at(p["node"], p["vmid"])
    return points(ctx, p["timeframe"])


@api("GET /nodes/{node}/lxc/{vmid}/rrd")
def picture(_ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """The file of a picture of the statistics."""
    name = str(p["ds"]).replace(",", "_")
    file = f"/var/lib/rrdcached/db/pve-vm-9.0/{p['vmid']}_{name}.png"
    return {"filename": file, "image": ""}


@api("POST /nodes/{node}/lxc/{vmid}/vncproxy")
def vnc(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """A VNC ticket."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    return {**console_ticket(ctx, container, "vncproxy"), "cert": ctx.sim.ca_pem}


@api("POST /nodes/{node}/lxc/{vmid}/termproxy")
def terminal(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """A ticket of a terminal."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    return console_ticket(ctx, container, "vncproxy")


@api("POST /nodes/{node}/lxc/{vmid}/spiceproxy")
def spice(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The settings of a SPICE client that shows a shell."""
    container = ctx.cluster.container_at(p["node"], p["vmid"])
    proxy = p.get("proxy") or ctx.cluster.nodes[container.node].ip
    return {
        "type": "spice",
        "title": f"CT {container.vmid}",
        "host": f"pvespiceproxy:{int(ctx.cluster.now()):08X}:{container.vmid}:{container.node}",
        "proxy": f"http://{proxy}:3128",
        "tls-port": 61000,
        "password": ctx.cluster.uuid(),
        "delete-this-file": 1,
        "toggle-fullscreen": "Shift+F11",
        "release-cursor": "Ctrl+Alt+R",
        "secure-attention": "Ctrl+Alt+Ins",
        "ca": ctx.sim.ca_pem,
        "host-subject": f"OU=PVE Cluster Node,O=Proxmox Virtual Environment,CN={container.node}",
    }


@api("GET /nodes/{node}/lxc/{vmid}/vncwebsocket")
def websocket(_ctx: Ctx, _p: dict[str, Any]) -> None:
    """Refused: nothing listens behind a simulated console."""
    raise ApiError(401, "permission denied - invalid PVEVNC ticket\n")
