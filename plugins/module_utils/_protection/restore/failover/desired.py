# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the desired failover from the options of module failover (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ...._foundation.cluster.find.owner import owner_of
from ...._foundation.core import validate
from ...._foundation.core.arguments.options import parse_options
from ...._foundation.spec.vm import vm_spec
from ...snapshot.names import seconds
from ...snapshot.select import named
from ..drill.desired import CopyOptions, read_copy_options
from .choose import GuestSelection
from .mapping import NicMap, read_addresses
from .replicas.lines import LostNodes, read_replicas

ALL, ONBOOT = "all", "onboot"
_COPIES = [900000, 909999]
_RUN = re.compile("[0-9a-f]{4,40}")


@dataclass(frozen=True)
class DesiredFailover:
    """The desired failover.

    `replicas` are the replicas of lost nodes of this cluster, None if guests come up from archives.
    `copies` has the storages, node and VMID range of restored guests. The range is used only if
    `renumbers` is true; otherwise guests keep their VMIDs. `pools` are pools by tenant. `starts` is
    the choice of guests to start. `run` identifies a rehearsal. Times are in seconds.
    """

    from_site: str
    lost: bool
    rehearsal: bool
    run: str
    storages: tuple[str, ...]
    replicas: LostNodes | None
    choice: GuestSelection
    copies: CopyOptions
    renumbers: bool
    nics: NicMap
    pools: Mapping[str, str]
    quotas: Mapping[str, Any]
    placement: Mapping[str, Any]
    starts: str
    parallel: int
    wait: int
    settle: int


def read_desired(params: Mapping[str, Any], now: float, new_run: str) -> DesiredFailover:
    """Return the desired failover; `new_run` is the ID of a rehearsal. Raises ValidationFailed."""
    rehearsal, vmid_range = bool(params["rehearsal"]), params.get("vmid_range")
    copies = read_copy_options({**params, "vmid_range": vmid_range or _COPIES})
    return DesiredFailover(
        from_site=str(params.get("from_site") or ""),
        lost=bool(params["lost"]),
        rehearsal=rehearsal,
        run=_read_run(params.get("run") or new_run),
        storages=tuple(validate.storage(name, "storages") for name in params.get("storages") or ()),
        replicas=read_replicas(params),
        choice=_choice(params, now),
        copies=copies if rehearsal else replace(copies, network=None),
        renumbers=rehearsal or vmid_range is not None,
        nics=_nics(params),
        pools={str(key).lower(): validate.pool(pool) for key, pool in _table(params, "pools")},
        quotas=dict(params.get("quotas") or {}),
        placement=_placement(params.get("placement")),
        starts=str(params["start"]),
        parallel=validate.number(params["parallel"], 1, 100, "parallel"),
        wait=validate.count(params.get("wait_timeout"), 300, "wait_timeout"),
        settle=validate.number(params["settle"], 0, 3600, "settle"),
    )


def _read_run(text: str) -> str:
    if _RUN.fullmatch(text):
        return text
    step = "Use the run that a preview in check mode returns, or leave it out"
    raise validate.refused("run", text, "is not the ID of a rehearsal", step)


def _choice(params: Mapping[str, Any], now: float) -> GuestSelection:
    max_age = params.get("max_age")
    excluded = named({"vms": params.get("exclude")})
    return GuestSelection(
        owner=owner_of(params),
        named=frozenset(str(one) for one in named({"vms": params.get("vms")})),
        excluded=frozenset(str(one) for one in excluded),
        oldest=0.0 if max_age is None else now - seconds(str(max_age), "max_age"),
        source="replica" if params.get("lost_nodes") else "archive",
    )


def _nics(params: Mapping[str, Any]) -> NicMap:
    bridges: dict[str, str] = {}
    for source, target in _table(params, "networks"):
        bridges[validate.bridge(source, "networks")] = validate.bridge(target, "networks")
    addresses = read_addresses(params.get("addresses") or {}, "addresses")
    return NicMap(bridges, addresses, bool(params["keep_macs"]))


def _table(params: Mapping[str, Any], option: str) -> list[tuple[str, str]]:
    """Return the entries of a mapping option as pairs of texts."""
    given = params.get(option) or {}
    return [(str(key), str(value)) for key, value in given.items()]


def _placement(given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Return the placement rules; a restore writes the whole disk, even on a thin storage."""
    parse_options(vm_spec()["placement"]["options"], given or {}, "placement")
    return {"storage_overcommit": 1, **(given or {})}
