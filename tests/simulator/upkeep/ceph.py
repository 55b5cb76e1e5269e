"""Ceph as far as a maintenance needs it: its health and the flags of its OSDs.

Source: pve-manager, PVE/API2/Cluster/Ceph.pm (status, get_all_flags, set_flags, update_flag) and
PVE/Ceph/Tools.pm (check_ceph_inited). The answer of `status` is that of `ceph status`; the
simulator has its health alone.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import PveError

FLAGS = (
    "nobackfill",
    "nodeep-scrub",
    "nodown",
    "noin",
    "noout",
    "norebalance",
    "norecover",
    "noscrub",
    "notieragent",
    "noup",
    "pause",
)


def ceph_of(ctx: Ctx) -> dict[str, Any]:
    if ctx.cluster.ceph is None:
        raise PveError("binary not installed: /usr/bin/ceph-mon")
    return ctx.cluster.ceph


@api("GET /cluster/ceph/status", "GET /nodes/{node}/ceph/status")
def status(ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """The health of Ceph, with a check for flags that are set (Ceph: OSDMAP_FLAGS)."""
    ceph = ceph_of(ctx)
    checks: dict[str, Any] = {}
    if ceph.get("flags"):
        message = f"{','.join(ceph['flags'])} flag(s) set"
        summary = {"message": message, "count": len(ceph["flags"])}
        checks["OSDMAP_FLAGS"] = {"severity": "HEALTH_WARN", "summary": summary, "muted": False}
    return {"health": {"status": ceph["health"], "checks": checks, "mutes": []}}


@api("GET /cluster/ceph/flags")
def flags(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """All flags, with those that are set."""
    chosen = ceph_of(ctx).get("flags", ())
    return [{"name": name, "value": 1 if name in chosen else 0} for name in FLAGS]


@api("PUT /cluster/ceph/flags/{flag}")
def put_flag(ctx: Ctx, p: dict[str, Any]) -> None:
    """Set a flag, or clear it."""
    _switch(ceph_of(ctx), p["flag"], bool(p["value"]))


@api("PUT /cluster/ceph/flags")
def put_flags(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that sets and clears the flags of a request; others stay."""
    ceph = ceph_of(ctx)

    async def work(task: Task) -> None:
        for name in FLAGS:
            if p.get(name) is not None and bool(p[name]) != (name in ceph.get("flags", ())):
                task.say(f"{'set' if p[name] else 'unset'} {name}")
                _switch(ceph, name, bool(p[name]))

    return ctx.task(ctx.cluster.local, "cephsetflags", "", work)


def _switch(ceph: dict[str, Any], name: str, wanted: bool) -> None:
    others = set(ceph.get("flags", ())) - {name}
    ceph["flags"] = sorted(others | {name} if wanted else others)
