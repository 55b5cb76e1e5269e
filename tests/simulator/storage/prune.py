"""Which backups a rule keeps, and their removal (pve-storage: Storage.pm, prune_mark_backup_group;
Storage/Plugin.pm, prune_backups).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..core.api import Ctx, api
from ..core.state import Storage, Volume
from ..core.tasks import Task
from ..errors import PveError
from ..schema.named_hashes import HASHES
from ..schema.validate import split_property_string
from .content import guest_kind

BASE = "/nodes/{node}/storage/{storage}/prunebackups"
# Formats of the time of a backup: backups with the same text are in one period.
_PERIODS: tuple[tuple[str, str], ...] = (
    ("keep-hourly", "%H/%d/%m/%Y"),
    ("keep-daily", "%d/%m/%Y"),
    ("keep-weekly", "%V/%G"),
    ("keep-monthly", "%m/%Y"),
    ("keep-yearly", "%Y"),
)


@dataclass
class Entry:
    """A backup with its mark: keep, remove, protected or renamed."""

    volume: Volume
    volid: str
    kind: str
    mark: str | None = None

    def shown(self) -> dict[str, Any]:
        """The row of the listing."""
        row: dict[str, Any] = {
            "volid": self.volid,
            "ctime": self.volume.ctime,
            "mark": self.mark,
            "type": self.kind,
        }
        if self.volume.vmid is not None:
            row["vmid"] = self.volume.vmid
        return row


def mark(group: list[Entry], keep: dict[str, int]) -> None:
    """Mark the backups of one guest."""
    if keep.get("keep-all") or not any(
        count > 0 for name, count in keep.items() if name != "keep-all"
    ):
        for entry in group:
            entry.mark = entry.mark or "keep"
        return
    newest_first = sorted(group, key=lambda entry: entry.volume.ctime, reverse=True)
    _keep(newest_first, keep.get("keep-last", 0), str)
    for name, form in _PERIODS:
        _keep(newest_first, keep.get(name, 0), _period(form))
    for entry in newest_first:
        entry.mark = entry.mark or "remove"


def _period(form: str) -> Callable[[int], str]:
    return lambda ctime: time.strftime(form, time.localtime(ctime))


def _keep(entries: list[Entry], count: int, period: Callable[[int], str]) -> None:
    """Keep the newest backup of each of the newest `count` periods that have none yet."""
    if not count:
        return
    before = {period(entry.volume.ctime) for entry in entries if entry.mark == "keep"}
    kept: set[str] = set()
    for entry in entries:
        name = period(entry.volume.ctime)
        if entry.mark is not None or name in before:
            continue
        if name in kept:
            entry.mark = "remove"
            continue
        if len(kept) >= count:
            return
        kept.add(name)
        entry.mark = "keep"


def _rule(storage: Storage, text: str | None) -> dict[str, int]:
    chosen = text or storage.config.get("prune-backups")
    if not chosen:
        raise PveError(f"no prune-backups options configured for storage '{storage.name}'")
    return {
        name: int(value)
        for name, value in split_property_string(HASHES["prune-backups"], chosen).items()
    }


def entries_of(ctx: Ctx, p: dict[str, Any]) -> list[Entry]:
    """The chosen backups, each with its mark."""
    storage = ctx.cluster.storage(p["storage"])
    if "backup" not in storage.content:
        raise PveError(f"storage '{storage.name}' does not support backups")
    keep = _rule(storage, p.get("prune-backups"))
    found: list[Entry] = []
    groups: dict[tuple[str, int | None], list[Entry]] = {}
    for volume in storage.on(p["node"]).values():
        kind = guest_kind(volume)
        is_meant = volume.content == "backup" and p.get("type") in (None, kind)
        if not is_meant or p.get("vmid") not in (None, volume.vmid):
            continue
        entry = Entry(volume, f"{storage.name}:{volume.name}", kind)
        if volume.protected:
            entry.mark = "protected"
        if volume.vmid is None:
            entry.mark = entry.mark or "renamed"
        else:
            groups.setdefault((kind, volume.vmid), []).append(entry)
        found.append(entry)
    for group in groups.values():
        mark(group, keep)
    return found


@api(f"GET {BASE}")
def preview(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The backups, and which of them would be removed."""
    return [entry.shown() for entry in entries_of(ctx, p)]


@api(f"DELETE {BASE}")
def prune(ctx: Ctx, p: dict[str, Any]) -> str:
    """Remove the backups that the rule does not keep."""
    store, vmid = p["storage"], p.get("vmid")
    if vmid is None:
        ctx.need(f"/storage/{store}", "Datastore.Allocate")
    else:
        ctx.need(f"/storage/{store}", "Datastore.AllocateSpace")
        ctx.need(f"/vms/{vmid}", "VM.Backup")

    async def work(task: Task) -> None:
        await task.work()
        volumes = ctx.cluster.storage(store).on(p["node"])
        for entry in entries_of(ctx, p):
            if entry.mark == "remove":
                task.say(f"removing backup '{entry.volid}'")
                volumes.pop(entry.volume.name, None)

    ident = store if vmid is None else f"{vmid}@{store}"
    return ctx.task(p["node"], "prunebackups", ident, work)
