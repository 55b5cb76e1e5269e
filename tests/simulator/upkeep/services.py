"""The services of nodes.

Source: pve-manager, PVE/API2/Services.pm (service_state, service_cmd, essential_services).
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import PveError

_ESSENTIAL = ("pveproxy", "pvedaemon", "pve-cluster")
_BASE = "/nodes/{node}/services"


def _shown(name: str, state: str) -> dict[str, str]:
    active = "inactive"
    if state in ("running", "exited"):
        active = "active"
    elif state == "failed":
        active = "failed"
    return {
        "service": name,
        "name": name,
        "desc": name,
        "state": state,
        "active-state": active,
        "unit-state": "not-found" if state == "not-found" else "enabled",
    }


@api(f"GET {_BASE}")
def services(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, str]]:
    """The services of the node; none, as on the recorded cluster, unless some were declared."""
    found = ctx.cluster.nodes[p["node"]].services
    return [_shown(name, state) for name, state in sorted(found.items())]


@api(f"GET {_BASE}/{{service}}/state")
def state_of(ctx: Ctx, p: dict[str, Any]) -> dict[str, str]:
    """One service; a service that was not declared is not installed."""
    found = ctx.cluster.nodes[p["node"]].services
    return _shown(p["service"], found.get(p["service"], "not-found"))


def _command(ctx: Ctx, p: dict[str, Any], word: str, after: str) -> str:
    """Start the task that gives systemd a command."""
    name, found = p["service"], ctx.cluster.nodes[p["node"]].services

    async def work(task: Task) -> None:
        await task.work()
        if word == "stop" and name in _ESSENTIAL:
            raise PveError(
                f"invalid service cmd '{name} stop': refusing to stop essential service!\n"
            )
        if name not in found:
            command = "try-reload-or-restart" if word == "reload" else word
            raise PveError(f"command 'systemctl {command} {name}' failed: exit code 5\n")
        if word != "reload" or found[name] == "running":
            found[name] = after

    return ctx.task(p["node"], f"srv{word}", name, work)


@api(f"POST {_BASE}/{{service}}/start")
def start(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start a service."""
    return _command(ctx, p, "start", "running")


@api(f"POST {_BASE}/{{service}}/stop")
def stop(ctx: Ctx, p: dict[str, Any]) -> str:
    """Stop a service, unless it is essential."""
    return _command(ctx, p, "stop", "dead")


@api(f"POST {_BASE}/{{service}}/restart")
def restart(ctx: Ctx, p: dict[str, Any]) -> str:
    """Restart a service."""
    return _command(ctx, p, "restart", "running")


@api(f"POST {_BASE}/{{service}}/reload")
def reload(ctx: Ctx, p: dict[str, Any]) -> str:
    """Reload a service that runs (systemctl: try-reload-or-restart)."""
    return _command(ctx, p, "reload", "running")
