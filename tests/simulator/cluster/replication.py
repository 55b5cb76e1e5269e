"""Jobs that copy the volumes of guests to other nodes; they run only by `run_job`.

Source: pve-manager, API2/ReplicationConfig.pm; pve-guest-common, ReplicationConfig.pm,
ReplicationState.pm.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster, Guest, Volume
from ..errors import ParamError, PveError
from ..schema.formats import split_list
from ..volumes.drives import drives_of, is_cdrom
from ..volumes.mounts import volumes_of
from .sections import SectionFile, SectionType

BASE = "/cluster/replication"
_LOCAL = SectionType(
    "local",
    frozenset({"target"}),
    frozenset({"disable", "comment", "rate", "schedule", "remove_job", "source"}),
    fixed=frozenset({"target"}),
)


def _file(ctx: Ctx) -> SectionFile:
    file: SectionFile = ctx.cluster.sections.setdefault("replication", SectionFile())
    for name, entry in file.entries.items():
        _turn_if_stolen(ctx.cluster, name, entry)
    return file


def _turn_if_stolen(cluster: Cluster, name: str, entry: dict[str, Any]) -> None:
    """A job whose guest was moved to its target copies the other way: the scheduler of that node
    exchanges source and target within a minute (ReplicationState.pm, job_status).
    """
    guest = cluster.guest(_guest_of(name))
    is_stolen = guest is not None and guest.node == entry["target"] and "source" in entry
    if is_stolen and not entry.get("remove_job"):
        entry["source"], entry["target"] = entry["target"], entry["source"]


def run_job(ctx: Ctx, name: str, when: int, slots: list[str] | None = None) -> None:
    """Copy the volumes of the guest to the target, as the node of the guest does: each gets a
    snapshot with the name of the job and the time (ReplicationState.pm,
    replication_snapshot_name). With `slots`, the run ends after these drives. The run of a job that
    is marked for removal removes it (Replication.pm, replicate).
    """
    cluster, entry = ctx.cluster, _file(ctx).entries[name]
    if entry.get("remove_job"):
        del _file(ctx).entries[name]
        return
    guest = cluster.guest(_guest_of(name))
    assert guest is not None
    for slot, volid in _volumes(ctx, guest):
        store, _colon, own = volid.partition(":")
        storage = cluster.storage(store)
        if storage.kind != "zfspool" or (slots is not None and slot not in slots):
            continue
        volume = storage.on(guest.node)[own]
        copy = Volume(own, volume.content, volume.fmt, volume.size, when, volume.vmid)
        storage.on(entry["target"])[own] = copy
        dataset = f"{storage.config['pool']}/{own.rpartition('/')[2]}"
        for node in (guest.node, entry["target"]):
            snapshots = cluster.sections.setdefault("replicas", {}).setdefault(node, [])
            snapshots.append(f"{dataset}@__replicate_{name}_{when}__")


def _volumes(ctx: Ctx, guest: Guest) -> list[tuple[str, str]]:
    """Drives and volumes that a job copies (QemuConfig.pm, get_replicatable_volumes)."""
    schema = ctx.sim.schema
    if guest.kind == "lxc":
        return [(volume, volume) for volume in volumes_of(schema, guest.conf)]
    found: list[tuple[str, str]] = []
    for slot, drive in drives_of(schema, guest.conf):
        if not is_cdrom(drive) and drive.get("replicate", "1") != "0":
            found.append((slot, drive["file"]))
    return found


def _guest_of(name: str) -> int:
    guest, _dash, _number = name.partition("-")
    return int(guest)


def _shown(name: str, entry: dict[str, Any]) -> dict[str, Any]:
    guest, _dash, number = name.partition("-")
    return {**entry, "id": name, "guest": int(guest), "jobnum": int(number)}


@api(f"GET {BASE}")
def listing(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, Any]]:
    """The jobs of guests that the caller may see."""
    return [
        _shown(name, entry)
        for name, entry in sorted(_file(ctx).entries.items())
        if ctx.may(f"/vms/{_guest_of(name)}", "VM.Audit")
    ]


@api(f"GET {BASE}/{{id}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One job."""
    file = _file(ctx)
    entry = file.entries.get(p["id"])
    if entry is None:
        raise PveError(f"no such replication job '{p['id']}'")
    ctx.need(f"/vms/{_guest_of(p['id'])}", "VM.Audit")
    return {**_shown(p["id"], entry), "digest": file.digest}


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a job for a guest of which a volume can be copied."""
    name = p.pop("id")
    p.pop("type", None)
    vmid, cluster = _guest_of(name), ctx.cluster
    ctx.need(f"/vms/{vmid}", "VM.Replicate")
    guest = cluster.guest(vmid)
    if guest is None:
        raise PveError(f"Guest '{vmid}' does not exist.")
    if p["target"] not in cluster.nodes:
        raise PveError(f"Target '{p['target']}' does not exist.")
    if p.get("source") not in (None, guest.node):
        raise PveError(
            f"Source '{p['source']}' does not match current node of guest '{vmid}' ({guest.node})"
        )
    p["source"] = guest.node
    if p["target"] == guest.node:
        raise PveError("Source and target must not be identical")
    _check_volumes(ctx, guest)
    file = _file(ctx)
    if name in file.entries:
        raise PveError(f"replication job '{name}' already exists")
    entry = _LOCAL.check(p, create=True)
    _check_target(file, name, entry)
    file.entries[name] = entry


def _check_volumes(ctx: Ctx, guest: Guest) -> None:
    """Refuse volumes that are not in a ZFS pool (QemuConfig.pm, get_replicatable_volumes)."""
    found = False
    for _slot, volid in _volumes(ctx, guest):
        storage = ctx.cluster.storage(volid.partition(":")[0])
        if storage.shared:
            continue
        if storage.kind != "zfspool":
            raise PveError(f"missing replicate feature on volume '{volid}'")
        found = True
    if not found:
        raise PveError("No replicatable volumes found")


def drop_jobs(cluster: Cluster, vmid: int) -> None:
    """Remove the jobs of a purged guest (ReplicationConfig.pm, remove_vmid_jobs)."""
    file = cluster.sections.get("replication")
    if file is not None:
        file.entries = {
            name: entry for name, entry in file.entries.items() if _guest_of(name) != vmid
        }


def may_join(ctx: Ctx, vmid: int, volid: str) -> bool:
    """Whether a guest may get the volume: a replicated one needs a volume that can be replicated
    (Storage.pm, storage_can_replicate).
    """
    is_replicated = any(_guest_of(name) == vmid for name in _file(ctx).entries)
    return not is_replicated or ctx.cluster.storage(volid.partition(":")[0]).kind == "zfspool"


def _check_target(file: SectionFile, name: str, entry: dict[str, Any]) -> None:
    vmid = _guest_of(name)
    for other, job in file.entries.items():
        same = other != name and _guest_of(other) == vmid and job["target"] == entry["target"]
        if same:
            raise PveError(
                f"replication job for guest '{vmid}' to target"
                f" 'local/{entry['target']}' already exists"
            )


@api(f"PUT {BASE}/{{id}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a job."""
    name, digest = p.pop("id"), p.pop("digest", None)
    delete = split_list(p.pop("delete", None) or "")
    ctx.need(f"/vms/{_guest_of(name)}", "VM.Replicate")
    file = _file(ctx)
    file.check_digest(digest)
    if name not in file.entries:
        raise PveError(f"no such job '{name}'")
    entry = {**file.entries[name], **_LOCAL.check(p, create=False)}
    _LOCAL.delete(entry, delete, {})
    file.entries[name] = entry


@api(f"DELETE {BASE}/{{id}}")
def delete(ctx: Ctx, p: dict[str, Any]) -> None:
    """Mark a job for removal, which the node does later; `force` removes it at once."""
    ctx.need(f"/vms/{_guest_of(p['id'])}", "VM.Replicate")
    file = _file(ctx)
    if p.get("force"):
        if p.get("keep"):
            raise ParamError({"keep": "conflicts with parameter 'force'"})
        file.entries.pop(p["id"], None)
        return
    if p["id"] not in file.entries:
        raise PveError(f"no such job '{p['id']}'")
    file.entries[p["id"]]["remove_job"] = "local" if p.get("keep") else "full"
