"""The zones of each node in the list of everything (pve-manager, PVE/API2/Cluster.pm)."""

from __future__ import annotations

from typing import Any

from ..cluster.resources import MORE_ROWS
from ..core.api import Ctx
from .config import sdn_of


def zones_of_nodes(ctx: Ctx, kind: str | None) -> list[dict[str, Any]]:
    """The zones of each node: `sdn` entries up to 8.x, `network` ones since."""
    old = ctx.sim.schema.version.startswith("8")
    if kind not in ((None, "sdn") if old else (None, "network")):
        return []
    result: list[dict[str, Any]] = []
    for node in ctx.cluster.nodes:
        for zone, status in {"localnetwork": "ok", **sdn_of(ctx).zones_on(node)}.items():
            if not ctx.may(f"/sdn/zones/{zone}", "SDN.Audit", "SDN.Use", any_of=True):
                continue
            entry = {"id": f"network/{node}/zone/{zone}", "network": zone, "network-type": "zone"}
            if old:
                entry = {"id": f"sdn/{node}/{zone}", "sdn": zone}
            kind_of_row = "sdn" if old else "network"
            result.append({**entry, "node": node, "status": status, "type": kind_of_row})
    return result


MORE_ROWS.append(zones_of_nodes)
