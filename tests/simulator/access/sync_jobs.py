"""Jobs that synchronize realms (pve-access-control: API2/Jobs/RealmSync.pm). They do not run."""

from __future__ import annotations

from typing import Any

from ..cluster.sections import SectionFile
from ..core.api import Ctx, api
from ..errors import ParamError, PveError
from ..schema.formats import split_list

_NEEDED = ("realm", "schedule", "scope")
_OPTIONAL = ("comment", "enable-new", "enabled", "remove-vanished")


@api("GET /cluster/jobs")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The kinds of jobs."""
    return [{"subdir": "schedule-analyze"}, {"subdir": "realm-sync"}]


def _in_lock(errors: dict[str, str]) -> PveError:
    """An error about parameters in the form that it has while the file is locked."""
    return PveError(ParamError(errors).text)


def _missing(job: str) -> dict[str, str]:
    return {"id": f"No such job '{job}'"}


@api("GET /cluster/jobs/realm-sync")
def jobs(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The jobs; when each runs next is left out."""
    found = ctx.cluster.sync_jobs
    return [{**job, "id": name, "last-run": None} for name, job in found.items()]


@api("GET /cluster/jobs/realm-sync/{id}")
def read_job(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One job."""
    found = ctx.cluster.sync_jobs.get(p["id"])
    if found is None:
        raise ParamError(_missing(p["id"]))
    return found


@api("POST /cluster/jobs/realm-sync/{id}")
def create_job(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a job."""
    name = p.pop("id")
    ctx.cluster.check_cfs("jobs_cfg")
    backup_jobs = ctx.cluster.sections.get("jobs", SectionFile()).entries
    if name in ctx.cluster.sync_jobs or name in backup_jobs:  # of one file
        raise PveError(f"Job '{name}' already exists")
    for needed in ("scope", "realm"):
        if p.get(needed) is None:
            raise PveError(f"missing value for required option '{needed}'")
    realm = ctx.cluster.realms.get(p["realm"])
    if realm is None:
        raise _in_lock({"realm": f"No such realm '{p['realm']}'"})
    if realm["type"] not in ("ldap", "ad"):
        raise _in_lock({"realm": "Only LDAP/AD realms can be synced."})
    ctx.cluster.sync_jobs[name] = {"enabled": 1, **p, "type": "realm-sync"}


@api("PUT /cluster/jobs/realm-sync/{id}")
def update_job(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a job."""
    name, delete = p.pop("id"), split_list(p.pop("delete", None) or "")
    if not p:
        raise PveError("no job options specified")
    ctx.cluster.check_cfs("jobs_cfg")
    found = ctx.cluster.sync_jobs.get(name)
    if found is None:
        raise PveError("no such realm-sync job")
    for key in delete:
        _require_deletable(key, p)
        found.pop(key, None)
    found.update(p)


def _require_deletable(key: str, p: dict[str, Any]) -> None:
    """Source: pve-common, SectionConfig.pm, delete_from_config; Jobs/RealmSync.pm, options."""
    if key not in (*_NEEDED, *_OPTIONAL):
        raise PveError(f"no such option '{key}'")
    if key in _NEEDED:
        raise PveError(f"unable to delete required option '{key}'")
    if key in p:
        raise PveError(f"cannot set and delete property '{key}' at the same time!")


@api("DELETE /cluster/jobs/realm-sync/{id}")
def delete_job(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a job."""
    ctx.cluster.check_cfs("jobs_cfg")
    if ctx.cluster.sync_jobs.pop(p["id"], None) is None:
        raise _in_lock(_missing(p["id"]))
