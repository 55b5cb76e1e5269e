# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the desired moves from the options of module relocate, and chooses the guests (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._foundation.api.endpoint import Endpoint, parse_endpoint
from ..._foundation.cluster.find.owner import OwnerScope, owner_of
from ..._foundation.cluster.quota import Limits, read_quota
from ..._foundation.cluster.state import VmRow
from ..._foundation.core import validate
from ..._foundation.core.arguments.options import did_you_mean
from ..._foundation.core.parallel import ConcurrencyLimits
from ..._operation.maintenance.times.windows import read_windows
from ..snapshot.names import seconds
from ..snapshot.select import named


@dataclass(frozen=True)
class GuestFilter:
    """The guests of a task. `names` and `excluded` have names and VMIDs at the source; without
    names, all guests with the tags and the tenant are chosen. It is empty for a whole site.
    """

    names: frozenset[str]
    excluded: frozenset[str]
    tags: frozenset[str]
    owner: OwnerScope

    def fits(self, row: VmRow, vmid: int) -> bool:
        """Return whether a guest is chosen. `vmid` is its VMID at the source."""
        keys = {row.own_name, str(vmid)}
        if row.template or keys & self.excluded or not self.owner.owns(row):
            return False
        if self.names and not keys & self.names:
            return False
        return self.tags <= {tag.lower() for tag in row.tags}


@dataclass(frozen=True)
class DesiredMoves:
    """The desired moves. `endpoints` are the addresses of the target's nodes, as the nodes of the
    source reach them. `pools` and `quotas` are by tenant. `confirmed` are the names and VMIDs of
    guests whose data at the target may be lost. Times are in seconds, `bwlimit` is in KiB/s, `rate`
    in bytes per second, 0 if it is not known.
    """

    site: str
    filter: GuestFilter
    returns: bool
    confirmed: frozenset[str]
    archive_storage: str
    archive_without: frozenset[str]
    storage: str
    storage_map: Mapping[str, str]
    networks: Mapping[str, str]
    ha_rules: Mapping[str, str]
    replication_targets: Mapping[str, str]
    pools: Mapping[str, str]
    quotas: Mapping[str, Limits]
    node: str
    endpoints: Mapping[str, Endpoint]
    vmid_range: tuple[int, int] | None
    bwlimit: int | None
    rate: int
    windows: tuple[str, ...]
    hold: int
    limits: ConcurrencyLimits
    wait: int
    settle: int
    shutdown_timeout: int
    timeout: int


def read_desired(params: Mapping[str, Any]) -> DesiredMoves:
    """Return the desired moves. Raises ValidationFailed."""
    first_last = params.get("vmid_range")
    return DesiredMoves(
        site=str(params["to_site"]),
        filter=_filter(params),
        returns=params["state"] == "returned",
        confirmed=frozenset(map(str, params.get("confirm") or ())),
        archive_storage=str(params.get("archive_storage") or ""),
        archive_without=frozenset(params.get("archive_without") or ()),
        storage=str(params.get("storage") or ""),
        storage_map=_texts(params, "storage_map"),
        networks=_texts(params, "networks"),
        ha_rules=_texts(params, "ha_rules"),
        replication_targets=_texts(params, "replication_targets"),
        pools={key.lower(): pool for key, pool in _texts(params, "pools").items()},
        quotas=_quotas(params),
        node=str(params.get("node") or ""),
        endpoints={key: parse_endpoint(one) for key, one in _texts(params, "endpoints").items()},
        vmid_range=_vmid_range(first_last) if first_last else None,
        bwlimit=params.get("bwlimit"),
        rate=validate.number(params.get("transfer_rate") or 0, 0, 10**6, "transfer_rate") << 20,
        windows=read_windows(params.get("windows") or (), "windows"),
        hold=seconds(str(params["hold"]), "hold"),
        limits=ConcurrencyLimits(
            all=validate.number(params["parallel"], 1, 100, "parallel"),
            storage=validate.number(
                params["parallel_per_storage"], 0, 1000, "parallel_per_storage"
            ),
        ),
        wait=validate.count(params.get("wait_timeout"), 300, "wait_timeout"),
        settle=validate.number(params["settle"], 0, 3600, "settle"),
        shutdown_timeout=validate.count(params.get("shutdown_timeout"), 180, "shutdown_timeout"),
        timeout=validate.count(params.get("task_timeout"), 86400, "task_timeout"),
    )


def _filter(params: Mapping[str, Any]) -> GuestFilter:
    """Return the chosen guests. Raises ValidationFailed for a task that names none: an empty list
    must not mean all guests.
    """
    names = frozenset(map(str, named({"vms": params.get("vms")})))
    excluded = frozenset(map(str, named({"vms": params.get("exclude")})))
    tags = frozenset(validate.tag(tag) for tag in params.get("tags") or ())
    is_limited = bool(names or tags or params.get("tenant"))
    if is_limited == bool(params.get("all")):
        step = "Set either all: true, or guests by vms, tags or tenant"
        why = "is set besides a choice" if is_limited else "is not true, and no guest is chosen"
        raise validate.refused("all", params.get("all"), why, step)
    return GuestFilter(names, excluded, tags, owner_of(params))


def _texts(params: Mapping[str, Any], option: str) -> dict[str, str]:
    given = params.get(option) or {}
    return {str(key): str(value) for key, value in given.items()}


def _quotas(params: Mapping[str, Any]) -> dict[str, Limits]:
    given = params.get("quotas") or {}
    return {str(key).lower(): read_quota(one, f"quotas.{key}") for key, one in given.items()}


def _vmid_range(given: Any) -> tuple[int, int]:
    if len(given) != 2 or given[0] > given[1]:
        step = "Give the first and the last VMID"
        raise validate.refused("vmid_range", given, "is not a range", step)
    return validate.vmid(given[0], "vmid_range"), validate.vmid(given[1], "vmid_range")


def find_unknown(
    choice: GuestFilter, confirmed: frozenset[str], found: Collection[str], rows: Iterable[VmRow]
) -> list[str]:
    """Return a sentence about each name of the task that names no guest. `found` are the names and
    VMIDs of the chosen guests, `rows` the guests of the source.
    """
    all_rows = list(rows)
    known = {row.own_name for row in all_rows if choice.owner.owns(row)} - {""}
    there = {*found, *known, *(str(row.vmid) for row in all_rows)}
    unknown = [(name, "was not found") for name in choice.names - set(found) - choice.excluded]
    unknown += [(name, "is excluded, and was not found") for name in choice.excluded - there]
    unknown += [(name, "is confirmed, and was not found") for name in confirmed - there]
    return [f"guest {name} {why}{did_you_mean(name, known)}" for name, why in sorted(unknown)]
