"""Jobs that back guests up at set times, and guests that no job has; upkeep/scheduler.py runs them.

Source: pve-manager, API2/Backup.pm, API2/Cluster/BackupInfo.pm and API2/VZDump.pm.
"""

from __future__ import annotations

from typing import Any

from ..cluster.sections import SectionFile
from ..core.api import Ctx, api
from ..core.state import Cluster, Guest
from ..errors import ApiError, ParamError, PermError, PveError
from ..schema.calendar_event import next_event, parse_event
from ..schema.formats import split_list
from ..schema.named_hashes import HASHES
from ..schema.validate import split_property_string
from ..volumes.drives import drives_of, is_cdrom
from ..volumes.mounts import mounts_of, source_of
from .vzdump import check_choice, check_rights

BASE = "/cluster/backup"
_PROPERTY_STRINGS = ("prune-backups", "performance", "fleecing")
_DELETABLE = ("comment", "repeat-missed")
_ALL_DAYS = "mon,tue,wed,thu,fri,sat,sun"


def _file(ctx: Ctx) -> SectionFile:
    return ctx.cluster.sections.setdefault("jobs", SectionFile())


def _job(ctx: Ctx, name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = _file(ctx).entries.get(name)
    if found is None:
        raise ParamError({"id": f"No such job '{name}'"})
    return found


def _schedule(p: dict[str, Any], *, required: bool) -> None:
    """Make a schedule from a start time and days."""
    start, days = p.pop("starttime", None), p.pop("dow", None)
    if p.get("schedule") is not None:
        if start is not None:
            raise ParamError({"starttime": "'starttime' and 'schedule' cannot both be set"})
    elif start is not None:
        listed = ",".join(split_list(days or ""))
        p["schedule"] = start if listed in ("", _ALL_DAYS) else f"{listed} {start}"
    elif required:
        raise ParamError({"schedule": "neither 'starttime' nor 'schedule' were set"})


def _check_rights(ctx: Ctx, p: dict[str, Any]) -> None:
    check_rights(ctx, p)
    pool = p.get("pool")
    if pool:
        if pool not in ctx.cluster.pools:
            raise PermError(f"pool '{pool}' does not exist")
        ctx.need(f"/pool/{pool}", "VM.Backup")


def _check_storage(ctx: Ctx, p: dict[str, Any], delete: list[str]) -> None:
    """Source: API2/Backup.pm, assert_param_permission_update."""
    if p.get("storage"):
        ctx.need(f"/storage/{p['storage']}", "Datastore.Allocate")
    elif "storage" in delete:
        ctx.need("/storage/local", "Datastore.Allocate")


def _written(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The options as the file has them: property strings taken apart, flags as numbers."""
    options: dict[str, Any] = {}
    for name, value in p.items():
        keys = ctx.method.props.get(name, {}).get("format")
        if name in _PROPERTY_STRINGS:
            named = HASHES.get(keys) if isinstance(keys, str) else keys
            options[name] = split_property_string(named or {}, str(value))
        else:
            options[name] = int(value) if isinstance(value, bool) else value
    return options


def _verify(job: dict[str, Any]) -> None:
    try:
        check_choice(job)
    except ParamError as error:
        raise PveError(error.text) from None


@api(f"GET {BASE}")
def listing(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The jobs in the order in which they were made, each with its next time from now on."""
    rows: list[dict[str, Any]] = []
    for name, job in _file(ctx).entries.items():
        following = next_event(parse_event(job["schedule"]), ctx.cluster.now())
        timing = {} if following is None else {"next-run": following}
        rows.append({**job, **timing, "id": name, "type": "vzdump"})
    return rows


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a job."""
    _check_rights(ctx, p)
    if not p.get("dumpdir"):
        ctx.need(f"/storage/{p.get('storage') or 'local'}", "Datastore.Allocate")
    _schedule(p, required=True)
    name = p.pop("id", None) or ctx.cluster.uuid()
    if name in _file(ctx).entries or name in ctx.cluster.sync_jobs:  # of one file
        raise PveError(f"Job '{name}' already exists")
    job = {"enabled": 1, **_written(ctx, p)}
    _verify(job)
    _file(ctx).entries[name] = job
    ctx.sim.scheduler.changed()


@api(f"GET {BASE}/{{id}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One job."""
    return {**_job(ctx, p["id"]), "id": p["id"], "type": "vzdump"}


@api(f"PUT {BASE}/{{id}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a job; a new choice of guests replaces the former one."""
    name = p.pop("id")
    delete = split_list(p.pop("delete", None) or "")
    _check_rights(ctx, p)
    _check_storage(ctx, p, delete)
    _schedule(p, required=False)
    if not p and not delete:
        raise PveError("no options specified")
    if name not in _file(ctx).entries:
        raise PveError("no such vzdump job")
    job = dict(_file(ctx).entries[name])
    if not job.get("dumpdir"):
        ctx.need(f"/storage/{job.get('storage') or 'local'}", "Datastore.Allocate")
    for option in delete:
        if option not in ctx.method.props and option not in _DELETABLE:
            text = ParamError({"delete": f"unknown option '{option}'"}).text
            raise PveError(text)
        job.pop(option, None)
    job.update(_written(ctx, p))
    _choose(job, p)
    _verify(job)
    _file(ctx).entries[name] = job
    ctx.sim.scheduler.changed()


def _choose(job: dict[str, Any], p: dict[str, Any]) -> None:
    if job.get("exclude") is not None and job.get("pool") is None:
        job["all"] = 1
    gone: tuple[str, ...] = ()
    if p.get("vmid") is not None:
        gone = ("all", "exclude", "pool")
    elif p.get("all"):
        gone = ("vmid", "pool")
    elif job.get("pool"):
        gone = ("vmid", "all", "exclude")
    for option in gone:
        job.pop(option, None)


@api(f"DELETE {BASE}/{{id}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a job."""
    try:
        _job(ctx, p["id"])
    except ApiError as error:
        raise PveError(error.text) from None
    del _file(ctx).entries[p["id"]]
    ctx.sim.scheduler.changed()


def drop_from_jobs(cluster: Cluster, vmid: int) -> None:
    """Take a purged guest out of all jobs; a job of no other guest goes with it.

    Source: pve-guest-common, PVE/VZDump/Plugin.pm, remove_vmid_from_backup_jobs.
    """
    jobs = cluster.sections.get("jobs", SectionFile()).entries
    for name, job in list(jobs.items()):
        option = "vmid" if job.get("vmid") is not None else "exclude"
        listed = split_list(str(job.get(option) or ""))
        if str(vmid) not in listed:
            continue
        left = [word for word in listed if word != str(vmid)]
        if left:
            job[option] = ",".join(left)
        elif option == "vmid":
            del jobs[name]
        else:
            del job[option]


# -- the guests of a job -------------------------------------------------------------------------


def guests_of(ctx: Ctx, job: dict[str, Any]) -> list[int]:
    """The VMIDs of a job (VZDump.pm, get_included_guests)."""
    cluster = ctx.cluster
    if job.get("vmid"):
        vmids = [int(word) for word in split_list(str(job["vmid"]))]
    elif job.get("pool"):
        vmids = sorted(cluster.pools.get(job["pool"], {"vms": {}})["vms"])
    elif job.get("all"):
        vmids = sorted(guest.vmid for guest in cluster.guests())
    else:
        vmids = []
    left_out = {int(word) for word in split_list(str(job.get("exclude") or ""))}
    node = job.get("node")
    found = []
    for vmid in vmids:
        guest = cluster.guest(vmid)
        elsewhere = node and guest is not None and guest.node != node
        if vmid not in left_out and not elsewhere:
            found.append(vmid)
    return found


@api(f"GET {BASE}/{{id}}/included_volumes")
def included(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The guests of a job with their volumes, and why each is in the backup or not."""
    children = []
    for vmid in guests_of(ctx, _job(ctx, p["id"])):
        if not ctx.may(f"/vms/{vmid}", "VM.Audit"):
            continue
        guest = ctx.cluster.guest(vmid)
        if guest is None:
            children.append({"id": vmid, "type": "unknown", "leaf": 1})
            continue
        volumes = _volumes(ctx, guest)
        children.append(
            {
                "id": vmid,
                "type": guest.kind,
                "name": guest.conf.get("name") or guest.conf.get("hostname"),
                "children": volumes,
                "leaf": int(not volumes),
            }
        )
    return {"children": children}


def _volumes(ctx: Ctx, guest: Guest) -> list[dict[str, Any]]:
    schema = ctx.sim.schema
    rows = []
    if guest.kind == "qemu":
        for key, drive in drives_of(schema, guest.conf):
            if is_cdrom(drive):
                continue
            reason = {"0": "backup=no", "1": "backup=yes"}.get(drive.get("backup", ""), "enabled")
            rows.append(_row(guest, key, drive["file"], drive.get("backup") != "0", reason))
        return rows
    for key, mount in mounts_of(schema, guest.conf):
        is_volume = source_of(mount["volume"]) == "volume"
        is_in = key == "rootfs" or (is_volume and mount.get("backup") == "1")
        reason = "enabled" if is_in else "disabled"
        if key == "rootfs":
            reason = "rootfs"
        elif not is_volume:
            reason = "not a volume"
        rows.append(_row(guest, key, mount["volume"], is_in, reason))
    return rows


def _row(guest: Guest, key: str, name: str, is_in: bool, reason: str) -> dict[str, Any]:
    ident = f"{guest.vmid}:{key}"
    return {"id": ident, "name": name, "included": int(is_in), "reason": reason, "leaf": 1}


@api("GET /cluster/backup-info")
def info(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts."""
    return [{"subdir": "not-backed-up"}]


@api("GET /cluster/backup-info/not-backed-up")
def uncovered(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The guests without a job that the caller may see."""
    covered = {vmid for job in _file(ctx).entries.values() for vmid in guests_of(ctx, job)}
    rows = []
    for guest in ctx.cluster.guests():
        if guest.vmid in covered or not ctx.may(f"/vms/{guest.vmid}", "VM.Audit"):
            continue
        row: dict[str, Any] = {"vmid": guest.vmid, "type": guest.kind}
        name = guest.conf.get("name") or guest.conf.get("hostname")
        if name:
            row["name"] = name
        rows.append(row)
    return rows


@api("GET /nodes/{node}/vzdump/defaults")
def defaults(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The defaults of a backup."""
    name = p.get("storage") or "local"
    storage = ctx.cluster.storage(name)
    return {
        "all": 0,
        "bwlimit": 0,
        "compress": "0",
        "dumpdir": f"{storage.config.get('path', '/mnt/pve/' + name)}/dump",
        "fleecing": {"enabled": 0},
        "ionice": 7,
        "lockwait": 180,
        "mailnotification": "always",
        "mode": "snapshot",
        "notification-mode": "auto",
        "performance": {"max-workers": 16, "pbs-entries-max": 1048576},
        "pigz": 0,
        "prune-backups": storage.config.get("prune-backups", "keep-all=1"),
        "quiet": 0,
        "remove": 1,
        "stdexcludes": 1,
        "stop": 0,
        "stopwait": 10,
        "storage": name,
        "zstd": 1,
    }
