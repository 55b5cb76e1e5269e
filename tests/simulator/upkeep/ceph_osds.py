"""OSDs of Ceph: the tree, creation and removal, in and out, and their services.

Source: pve-manager 9.2, API2/Ceph/OSD.pm (index, createosd, destroyosd, in, out) and API2/Ceph.pm
(start, stop). The verdict on an OSD is the one of Ceph as far as the simulator has data: an OSD
that `holds` data can neither be stopped nor destroyed.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import ParamError, PveError
from .ceph import ceph_of
from .ceph_daemons import SAFETY, VERSION, daemons
from .disks import Disk, clear, found, use_of

Osd = dict[str, Any]
BASE = "/nodes/{node}/ceph/osd"


def _osds(ctx: Ctx) -> dict[str, Osd]:
    """The OSDs by number."""
    osds: dict[str, Osd] = ceph_of(ctx).setdefault("osds", {})
    return osds


def _osd(ctx: Ctx, number: object) -> Osd:
    osds = _osds(ctx)
    if str(number) not in osds:
        raise PveError(f"no such OSD '{number}'")
    return osds[str(number)]


@api(f"GET {BASE}")
def tree(ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """The CRUSH tree: a root, its hosts, their OSDs."""
    hosts: dict[str, list[dict[str, Any]]] = {}
    for number, osd in _osds(ctx).items():
        row = {
            "id": int(number),
            "name": f"osd.{number}",
            "type": "osd",
            "host": osd["host"],
            "status": "up" if osd["up"] else "down",
            "in": int(osd["in"]),
            "device_class": osd.get("class", "ssd"),
            "total_space": osd.get("size", 2**40),
            "bytes_used": 0,
            "ceph_version_short": VERSION,
            "leaf": 1,
        }
        hosts.setdefault(osd["host"], []).append(row)
    children = [
        {"id": -2 - place, "name": name, "type": "host", "leaf": 0, "children": rows}
        for place, (name, rows) in enumerate(hosts.items())
    ]
    root = {"id": -1, "name": "default", "type": "root", "leaf": 0, "children": children}
    return {"root": {"leaf": 0, "children": [root]}, "flags": _flags(ctx)}


def _flags(ctx: Ctx) -> str:
    """The flags in the words of Ceph, in which a pause is two flags (get_real_flag_name)."""
    chosen = ceph_of(ctx).get("flags", ())
    return ",".join([*chosen, "sortbitwise"]).replace("pause", "pauserd,pausewr")


def _devices(ctx: Ctx, p: dict[str, Any]) -> dict[str, Disk]:
    """The disks of a new OSD, which must be different ones (createosd)."""
    node, chosen = ctx.cluster.nodes[p["node"]], dict[str, Disk]()
    for kind in ("dev", "db_dev", "wal_dev"):
        if p.get(kind):
            disk = found(node, p[kind])
            if disk in chosen.values():
                raise ParamError({kind: f"cannot chose '{p[kind]}' for more than one type."})
            chosen[kind] = disk
    return chosen


def _check(chosen: dict[str, Disk]) -> None:
    """Refuse disks that are in use (test_disk_requirements)."""
    for kind, disk in chosen.items():
        used, path = use_of(disk), disk["devpath"]
        if kind == "dev" and used:
            raise PveError(f"device '{path}' is already in use")
        if used == "partitions" and not disk["gpt"]:
            raise PveError(f"device '{path}' is not GPT partitioned")
        if used not in (None, "partitions", "LVM"):
            raise PveError(f"device '{path}' is already in use and has no LVM on it")


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that creates an OSD with the lowest free number."""
    osds, node, chosen = _osds(ctx), p["node"], _devices(ctx, p)
    _check(chosen)

    async def work(_task: Task) -> None:
        _check(chosen)
        disk = chosen["dev"]
        number = next(one for one in range(len(osds) + 1) if str(one) not in osds)
        device_class = p.get("crush-device-class") or disk["type"]
        osds[str(number)] = {
            "host": node,
            "up": True,
            "in": True,
            "class": device_class,
            "size": disk["size"],
        }
        for one in chosen.values():
            one["used"] = one["used"] or "LVM"
        disk["osds"] = [number]

    return ctx.task(node, "cephcreateosd", chosen["dev"]["devpath"].removeprefix("/dev/"), work)


@api(f"DELETE {BASE}/{{osdid}}")
def destroy(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that destroys an OSD, which must be out and down (destroyosd)."""
    osds, number, node = _osds(ctx), p["osdid"], p["node"]
    if osds.get(str(number), {}).get("host") != node:
        raise PveError(f"OSD osd.{number} does not belong to node {node}!")
    osd = _osd(ctx, number)
    if osd["in"]:
        raise PveError("osd is in use (in == 1)")
    if osd["up"]:
        raise PveError("osd is still running (up == 1)")

    async def work(_task: Task) -> None:
        del osds[str(number)]
        for disk in ctx.cluster.nodes[node].disks.values():
            if number in disk["osds"]:
                disk["osds"] = []
                if p.get("cleanup"):
                    clear(disk)

    return ctx.task(node, "cephdestroyosd", f"osd.{number}", work)


@api(f"POST {BASE}/{{osdid}}/in", f"POST {BASE}/{{osdid}}/out")
def mark(ctx: Ctx, p: dict[str, Any]) -> None:
    """Mark an OSD in or out."""
    _osd(ctx, p["osdid"])["in"] = ctx.method.path.endswith("/in")


@api("POST /nodes/{node}/ceph/start", "POST /nodes/{node}/ceph/stop")
def service(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start or stop the service of a daemon (start, stop)."""
    word = ctx.method.path.rpartition("/")[2]
    kind, _dot, name = (p.get("service") or "ceph").partition(".")
    ceph_of(ctx)

    async def work(_task: Task) -> None:
        if kind == "osd":
            _osd(ctx, name)["up"] = word == "start"
        else:
            daemons(ctx, kind)[name]["running"] = word == "start"

    return ctx.task(p["node"], f"srv{word}", p.get("service") or "ceph", work)


def _osd_safety(ctx: Ctx, name: str, _action: str) -> str:
    """Why Ceph cannot lose an OSD."""
    osd = _osds(ctx).get(name, {})
    return f"OSD(s) {name} have 12 pgs currently mapped to them." if osd.get("holds") else ""


SAFETY["osd"] = _osd_safety
