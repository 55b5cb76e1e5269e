"""Disarms the HA manager and arms it again.

Source: pve-ha-manager 5.2, API2/HA/Status.pm (the calls queue a command), HA/Manager.pm
(update_crm_commands, handle_disarm) and HA/LRM.pm. A guest that moves delays the end of the
disarming; it is not simulated, because the simulated manager moves guests in one round.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from .manager import enforce, in_next_round


@api("POST /cluster/ha/status/disarm-ha")
def disarm_ha(ctx: Ctx, p: dict[str, Any]) -> None:
    """Queue the command that releases all watchdogs."""
    mode = p["resource-mode"]
    ctx.cluster.check_quorum()
    in_next_round(ctx, lambda: _disarm(ctx, mode))


@api("POST /cluster/ha/status/arm-ha")
def arm_ha(ctx: Ctx, _p: dict[str, Any]) -> None:
    """Queue the command that ends the disarming."""
    ctx.cluster.check_quorum()
    in_next_round(ctx, lambda: _arm(ctx))


def _disarm(ctx: Ctx, mode: str) -> None:
    """Begin to disarm: a second command is ignored, also if its mode is another one."""
    cluster = ctx.cluster
    if cluster.ha_disarm is not None:
        return
    disarm = {"mode": mode, "state": "disarming"}
    cluster.ha_disarm = disarm
    cluster.ha_awake = True
    cluster.revision += 1

    def released() -> None:
        disarm["state"] = "disarmed"
        cluster.revision += 1

    in_next_round(ctx, released)


def _arm(ctx: Ctx) -> None:
    """End the disarming: the manager starts and stops guests as their states ask for."""
    cluster = ctx.cluster
    if cluster.ha_disarm is None:
        return
    cluster.ha_disarm = None
    cluster.revision += 1
    for sid in list(cluster.ha_resources):
        enforce(ctx, int(sid.partition(":")[2]))
