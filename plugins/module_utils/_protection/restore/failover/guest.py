# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A guest of the lost site: the restore that brings it up here, and its problems (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...._foundation.cluster.tenant import tenant_of
from ...._foundation.core.arguments.options import did_you_mean
from ...._guests.guest.plan.archive import dropped_in
from ...._guests.guest.start_order import start_order
from ...._guests.kinds.marker import split_notes
from ..choose import ChosenArchive
from ..desired import DesiredRestore
from ..desired import read_desired as read_restore
from ..drill.isolate import find_obstacle, used_map
from ..guest import storages_by_disk
from .choose import label_of, tags_of
from .desired import ONBOOT, DesiredFailover
from .mapping import bridges_after, is_nic, mapped_nameservers, mapped_nics, nic_options


@dataclass(frozen=True)
class RecoveredGuest:
    """A guest that comes up. `starts` is true if the guest is started, and `wait` is the number of
    seconds to wait after its start.
    """

    chosen: ChosenArchive
    tenant: str | None
    order: int
    wait: int
    starts: bool

    @property
    def vmid(self) -> int:
        """The guest's VMID at the lost site."""
        return self.chosen.archive.vmid or 0

    @property
    def label(self) -> str:
        """The label of the guest in messages."""
        return label_of(self.chosen)


@dataclass(frozen=True)
class RestoredGuest(RecoveredGuest):
    """A guest that comes up from an archive."""

    restore: DesiredRestore


AnyIncoming = TypeVar("AnyIncoming", bound=RecoveredGuest)


@dataclass(frozen=True)
class SiteNames:
    """The names at this site that a guest can need: storages by content, and bridges."""

    storages: Mapping[str, frozenset[str]]
    bridges: frozenset[str]


def incoming_of(
    desired: DesiredFailover, chosen: ChosenArchive, pools: Mapping[str, str]
) -> tuple[RestoredGuest, list[str]]:
    """Return a guest with its restore, and the problems in its configuration.

    `pools` are the pools of tenants at this site.
    """
    prefix = desired.choice.owner.prefix
    tenant, several = tenant_of(tags_of(chosen), prefix)
    nics, problems = mapped_nics(chosen.kind, chosen.config, desired.nics)
    obstacle = find_obstacle(chosen.kind, chosen.config)
    if obstacle:
        problems.append(obstacle)
    if tenant is None and tags_of(chosen) and "several" in several:
        problems.append(f"it has {several}")
    pool = desired.pools.get(tenant or "") or pools.get(tenant or "")
    if tenant is not None and pool is None:
        problems.append(
            f"tenant {tenant} has no pool here: provision it with module tenant, or set pools"
        )
    order, wait, _down = start_order(chosen.config)
    own = {"nics": nics, "pool": pool, **nameserver_options(desired, chosen)}
    restore = _restore_of(desired, chosen, tenant, own)
    incoming = RestoredGuest(chosen, tenant, order, wait, starts(desired, chosen), restore)
    return incoming, [f"{incoming.label}: {problem}" for problem in problems]


def find_missing(desired: DesiredFailover, chosen: ChosenArchive, place: SiteNames) -> list[str]:
    """Return a sentence about each storage and bridge that a guest needs and this site lacks."""
    copies, kind, problems = desired.copies, chosen.kind, []
    dropped = dropped_in(kind, chosen.config)
    storages = storages_by_disk(kind, chosen.config)
    for storage in sorted({storages[slot] for slot in storages if slot not in dropped}):
        target = copies.storage_map.get(storage) or copies.storage or storage
        if kind.content not in place.storages.get(target, ()):
            hint = did_you_mean(target, place.storages)
            problems.append(
                f"storage {target} for its disks is not here (storage_map.{storage}){hint}"
            )
    for bridge in bridges_after(kind, chosen.config, desired.nics):
        if bridge not in place.bridges:
            hint = did_you_mean(bridge, place.bridges)
            problems.append(f"bridge or VNet {bridge} is not here (networks){hint}")
    return [f"{label_of(chosen)}: {problem}" for problem in problems]


def find_unused(desired: DesiredFailover, found: Sequence[ChosenArchive]) -> list[str]:
    """Return a sentence about each former name in a table that no guest has (pure).

    `found` are all guests, chosen or not. After a failover, the newest archives can have the new
    names of storages and networks.
    """
    names: dict[str, set[str]] = {"storage_map": set(), "networks": set(), "pools": set()}
    for one in found:
        nics = filter(is_nic, one.config)
        names["storage_map"] |= set(storages_by_disk(one.kind, one.config).values())
        names["networks"] |= {nic_options(one.kind, one.config, key)["bridge"] for key in nics}
        names["pools"].add(tenant_of(tags_of(one), desired.choice.owner.prefix)[0] or "")
    problems: list[str] = []
    tables = (desired.copies.storage_map, desired.nics.bridges, desired.pools)
    for (option, known), table in zip(names.items(), tables, strict=True):
        for name in sorted(table.keys() - known):
            if option == "pools" or table[name] not in known:
                where = f"{desired.choice.source} of a guest"
                problems.append(f"{option}.{name}: no {where} has it{did_you_mean(name, known)}")
    return problems


def starts(desired: DesiredFailover, chosen: ChosenArchive) -> bool:
    """Return whether the task starts a guest."""
    if desired.starts == ONBOOT:
        return str(chosen.config.get("onboot") or "0") == "1"
    return desired.starts != "none"


def _restore_of(
    desired: DesiredFailover, chosen: ChosenArchive, tenant: str | None, own: Mapping[str, Any]
) -> DesiredRestore:
    copies = desired.copies
    notes, _marker = split_notes(chosen.config.get("description"))
    options: dict[str, Any] = {
        "state": "started" if starts(desired, chosen) else "present",
        "description": with_source(notes, chosen.archive.volume),
        "placement": dict(desired.placement),
    }
    options |= {key: value for key, value in own.items() if value}
    if desired.renumbers:
        options["vmid_range"] = list(copies.vmid_range)
    else:
        options["vmid"] = chosen.archive.vmid
    if copies.node:
        options["node"] = copies.node
    if desired.quotas:
        options["quotas"] = dict(desired.quotas)
    return read_restore(
        {
            "archive": chosen.archive.volume,
            "new_name": chosen.name,
            "tenant": tenant,
            "tenant_prefix": desired.choice.owner.prefix,
            "storage": copies.storage,
            "storage_map": used_map(copies, chosen),
            "options": options,
            "keep": "none",
            "task_timeout": copies.timeout,
        }
    )


def nameserver_options(desired: DesiredFailover, chosen: ChosenArchive) -> dict[str, Any]:
    """Return the option that changes the name servers of a container or of cloud-init."""
    found = mapped_nameservers(chosen.config, desired.nics.addresses)
    if not found:
        return {}
    if chosen.kind.has_rootfs:
        return {"nameservers": found}
    has_drive = any("cloudinit" in value.partition(",")[0] for value in chosen.config.values())
    return {"cloud_init": {"nameservers": found}} if has_drive else {}


def in_start_order(guests: Sequence[AnyIncoming]) -> list[AnyIncoming]:
    """Return the guests in the order in which they come up."""
    return sorted(guests, key=lambda one: (one.order, one.vmid))


_LINE = re.compile(r"\n*^Failover from (\S+)\.\Z", re.MULTILINE)


def with_source(notes: str, volume: str) -> str:
    """Return notes with the line about this archive, in place of any earlier one."""
    before = _LINE.sub("", notes).strip()
    line = f"Failover from {volume}."
    return f"{before}\n\n{line}" if before else line


def source_of(notes: str) -> str | None:
    """Return the archive in the notes of a guest, or None if no failover restored the guest."""
    found = _LINE.search(notes)
    return None if found is None else found[1]
