"""The zones and fabrics of each node in the list of everything (pve-manager, PVE/API2/Cluster.pm
and PVE/Service/pvestatd.pm, update_network_status).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..cluster.resources import MORE_ROWS
from ..core.api import Ctx
from .config import Sdn, sdn_of


def networks_of_nodes(ctx: Ctx, kind: str | None) -> list[dict[str, Any]]:
    """The zones and fabrics of each node: rows of type `sdn` up to 8.x, of type `network` since."""
    if ctx.sim.schema.version.startswith("8"):
        rows = _zones(ctx, "sdn") if kind in (None, "sdn") else []
        return [{**row, "id": f"sdn/{row['node']}/{row['sdn']}", "type": "sdn"} for row in rows]
    if kind not in (None, "network"):
        return []
    rows = [{**row, "network-type": "zone"} for row in _zones(ctx, "network")]
    rows += _fabrics(ctx, sdn_of(ctx))
    return [
        {
            **row,
            "id": f"network/{row['node']}/{row['network-type']}/{row['network']}",
            "type": "network",
        }
        for row in rows
    ]


def _zones(ctx: Ctx, key: str) -> list[dict[str, Any]]:
    """The zones of each node; `key` has the name. The zone without SDN has no type."""
    sdn, rows = sdn_of(ctx), []
    for node in ctx.cluster.nodes:
        for zone, status in {"localnetwork": "ok", **sdn.zones_on(node)}.items():
            if not ctx.may(f"/sdn/zones/{zone}", "SDN.Audit"):
                continue
            row = {key: zone, "node": node, "status": status}
            running = sdn.running.get("zones", {}).get(zone)
            rows.append({**row, "zone-type": running["type"]} if running else row)
    return rows


def _fabrics(ctx: Ctx, sdn: Sdn) -> Iterator[dict[str, Any]]:
    """A fabric has a row on each of its nodes, and is `ok` if it has a route to another node
    (proxmox-perl-rs: pve-rs/src/sdn/status.rs, get_status).
    """
    members = list(sdn.running.get("fabric_nodes", {}).values())
    for member in members:
        name = member["fabric_id"]
        if not ctx.may(f"/sdn/fabrics/{name}", "SDN.Audit", "SDN.Allocate", any_of=True):
            continue
        linked = [
            one["node_id"]
            for one in members
            if one["fabric_id"] == name and one["node_id"] not in sdn.not_reloaded
        ]
        has_route = member["node_id"] in linked and len(linked) > 1
        yield {
            "network": name,
            "network-type": "fabric",
            "node": member["node_id"],
            "protocol": member["protocol"],
            "status": "ok" if has_route else "not ok",
        }


MORE_ROWS.append(networks_of_nodes)
