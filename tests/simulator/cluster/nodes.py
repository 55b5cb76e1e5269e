"""Nodes: list, status and tasks."""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, Result, api
from ..core.tasks import UPID, Task
from ..errors import ParamError, PveError
from ..schema.cpumodels import ABSTRACT, CPU_MODELS
from ..schema.formats import split_list
from .resources import node_entry, node_load

_CPU_FLAGS = (
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse"
    " sse2 ht"
)


@api("GET /nodes")
def nodes(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The members of the cluster."""
    result = []
    for node in ctx.cluster.nodes.values():
        entry = node_entry(ctx.cluster, node)
        entry.pop("cgroup-mode", None)
        entry["ssl_fingerprint"] = node.fingerprint
        if not ctx.may(f"/nodes/{node.name}", "Sys.Audit"):
            entry = {
                key: entry[key]
                for key in ("id", "type", "node", "status", "level", "ssl_fingerprint")
            }
            entry["level"] = ""
        result.append(entry)
    return result


@api("GET /nodes/{node}/status")
def status(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """How the node fares."""
    cluster = ctx.cluster
    node = cluster.nodes[p["node"]]
    cpu, mem = node_load(cluster, node)
    own = node.version or cluster.version
    kernel = {
        "sysname": "Linux",
        "release": cluster.kernel,
        "version": "#1 SMP PREEMPT_DYNAMIC",
        "machine": "x86_64",
    }
    return {
        "uptime": int(cluster.now() - (node.booted_at or cluster.boot_time)),
        "cpu": cpu,
        "wait": 0,
        "idle": 0,
        "loadavg": [f"{cpu * node.cpus:.2f}"] * 3,
        "memory": {
            "total": node.memory,
            "used": mem,
            "free": node.memory - mem,
            "available": node.memory - mem,
        },
        "swap": {"total": 0, "used": 0, "free": 0},
        "rootfs": {
            "total": node.disk,
            "used": 30928461824,
            "free": node.disk - 30928461824,
            "avail": node.disk - 30928461824,
        },
        "ksm": {"shared": 0},
        "boot-info": {"mode": "legacy-bios"},
        "cpuinfo": {
            "cpus": node.cpus,
            "cores": node.cpus // node.sockets,
            "sockets": node.sockets,
            "model": "AMD EPYC",
            "mhz": "2596.142",
            "hvm": "1",
            "user_hz": 100,
            "flags": _CPU_FLAGS,
            "family": "25",
            "vendor": "AuthenticAMD",
        },
        "kversion": f"Linux {cluster.kernel} #1 SMP PREEMPT_DYNAMIC",
        "current-kernel": kernel,
        "pveversion": f"pve-manager/{own['version']}/{own['repoid']}",
    }


@api("GET /nodes/{node}/version", "GET /version")
def version(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The version of the API."""
    node = ctx.cluster.nodes.get(p.get("node", ctx.cluster.local))
    result: dict[str, Any] = dict((node and node.version) or ctx.cluster.version)
    if "node" not in p and ctx.cluster.options.get("console"):
        result["console"] = ctx.cluster.options["console"]
    return result


@api("GET /nodes/{node}/subscription")
def subscription(_ctx: Ctx, _p: dict[str, Any]) -> dict[str, Any]:
    """No subscription."""
    return {
        "status": "notfound",
        "message": "There is no subscription key",
        "url": "https://www.proxmox.com/",
    }


@api("GET /nodes/{node}/capabilities/qemu/cpu")
def cpu_models(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The CPU models a machine can have."""
    return [
        {
            "name": name,
            "vendor": vendor,
            "custom": 0,
            **({"abstract": 1} if name in ABSTRACT else {}),
        }
        for name, vendor in CPU_MODELS.items()
    ]


@api("GET /nodes/{node}/capabilities/qemu/machines")
def machines(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The machine versions a machine can have."""
    versions = [
        "10.1",
        "10.0+pve1",
        "10.0",
        "9.2+pve1",
        "9.2",
        "9.1",
        "9.0",
        "8.2",
        "8.1",
        "8.0",
        "7.2",
        "7.1",
        "7.0",
    ]
    return [
        {"id": f"pc-{kind}-{number}", "type": kind, "version": number}
        for number in versions
        for kind in ("i440fx", "q35")
    ]


# -- tasks ---------------------------------------------------------------------------------------


def _may_see(ctx: Ctx, task: Task) -> bool:
    return is_own(ctx, task) or ctx.may(f"/nodes/{task.node}", "Sys.Audit")


def is_own(ctx: Ctx, task: Task) -> bool:
    """Whether the caller started it: a user also sees the tasks of their tokens, a token only its
    own.
    """
    return ctx.who in (task.owner, task.owner.partition("!")[0])


def _listed(task: Task) -> dict[str, Any]:
    entry = task.as_dict()
    if task.running:
        entry["status"] = "RUNNING"
        entry["saved"] = "0"
        entry["user"] = task.owner
        entry.pop("tokenid", None)
    else:
        entry["endtime"] = int(task.end or 0)
        entry["status"] = task.status
    return entry


def _kind_of(status: str | None) -> str:
    if status is None:
        return "unknown"
    if status == "OK":
        return "ok"
    return "warning" if status.startswith("WARNINGS:") else "error"


@api("GET /nodes/{node}/tasks")
def task_list(ctx: Ctx, p: dict[str, Any]) -> Result | list[Any]:
    """The tasks of a node, the newest first; an empty list has no total."""
    source = p.get("source", "archive")
    wanted = {word.lower() for word in split_list(p.get("statusfilter") or "")}
    found: list[Task] = []
    for task in ctx.cluster.tasks.newest(p["node"]):
        if task.running is (source == "archive") and source != "all":
            continue
        if not _may_see(ctx, task) or not _matches(task, p, wanted):
            continue
        found.append(task)
    if not found:
        return []
    start, limit = p.get("start", 0), p.get("limit", 50)
    return Result([_listed(task) for task in found[start : start + limit]], {"total": len(found)})


def _matches(task: Task, p: dict[str, Any], wanted: set[str]) -> bool:
    if p.get("userfilter") and p["userfilter"].lower() not in task.owner.partition("!")[0].lower():
        return False
    if p.get("typefilter") and p["typefilter"] != task.kind:
        return False
    if p.get("vmid") and str(p["vmid"]) != task.id:
        return False
    kind = _kind_of(task.status)
    if kind == "ok" if p.get("errors") else wanted and kind not in wanted:
        return False
    if p.get("since") and task.start < p["since"]:
        return False
    return not (p.get("until") and task.start > p["until"] + 1)


def find_task(ctx: Ctx, p: dict[str, Any], *, missing: bool = False) -> Task | None:
    """The task that the UPID names, looked for on the node that the request went to."""
    found = UPID.match(p["upid"])
    if not found:
        raise ParamError({"upid": "unable to parse worker upid"})
    task = ctx.cluster.tasks.by_upid.get(p["upid"])
    if task is None or task.node != p["node"]:
        if missing:
            return None
        raise ParamError({"upid": "no such task"})
    if not _may_see(ctx, task):
        ctx.need(f"/nodes/{p['node']}", "Sys.Audit")
    return task


@api("GET /nodes/{node}/tasks/{upid}")
def task_index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The subdirectories of a task."""
    return [{"name": "log"}, {"name": "status"}]


@api("GET /nodes/{node}/tasks/{upid}/status")
def task_status(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Whether the task runs, and how it ended."""
    task = find_task(ctx, p)
    if task is None:
        raise ParamError({"upid": "no such task"})
    result = task.as_dict()
    result["status"] = "running" if task.running else "stopped"
    if not task.running:
        result["exitstatus"] = task.status
    return result


@api("GET /nodes/{node}/tasks/{upid}/log")
def task_log(ctx: Ctx, p: dict[str, Any]) -> Result:
    """The lines of the log."""
    task = find_task(ctx, p, missing=True)
    if p.get("download") and ("start" in p or "limit" in p):
        raise PveError("'download' cannot be used together with 'start' or 'limit' parameters")
    if task is None:
        text = "unable to open file - No such file or directory"
        return Result([{"n": 1, "t": text}], {"total": 1})
    if p.get("download"):
        return Result(None, raw="".join(f"{line}\n" for line in task.log).encode(), text=True)
    start, limit = p.get("start", 0), p.get("limit", 50)
    lines = task.log or ["no content"]
    shown = lines[start:] if limit == 0 else lines[start : start + limit]
    return Result(
        [{"n": start + index, "t": line} for index, line in enumerate(shown, 1)],
        {"total": len(lines)},
    )


@api("DELETE /nodes/{node}/tasks/{upid}")
async def task_stop(ctx: Ctx, p: dict[str, Any]) -> None:
    """Interrupt a task; a task that has ended is not changed."""
    found = UPID.match(p["upid"])
    if not found:
        raise ParamError({"upid": "unable to parse worker upid"})
    task = ctx.cluster.tasks.by_upid.get(p["upid"])
    if task is None or task.node != p["node"]:
        raise ParamError({"upid": "no such task"})
    if not is_own(ctx, task):
        ctx.need(f"/nodes/{p['node']}", "Sys.Modify")
    ctx.cluster.tasks.stop(task)


@api("GET /nodes/{node}/report")
def report(ctx: Ctx, p: dict[str, Any]) -> str:
    """The text for the support of Proxmox, here with the version alone (Report.pm)."""
    own = ctx.cluster.nodes[p["node"]].version or ctx.cluster.version
    version = f"pve-manager/{own['version']}/{own['repoid']}"
    return f"==== general system info ====\n\n# pveversion\n{version}\n"
