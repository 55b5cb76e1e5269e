# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of modules sdn and sdn_info: read, check, plan, then the transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._foundation.api.access.listed import Way, require_listed
from ..._foundation.core import validate
from ..._foundation.core.clock import poll
from ..._foundation.core.errors import FleetError, Locked, Overtaken, PendingChanges
from ..._foundation.core.result import Result
from ..._foundation.resource.engine import apply_plan
from .fabric_rules import require_fabrics
from .forms import read_desired, view_of
from .model import DNS, FABRIC_NODES, IPAMS, NOUNS, SUBNETS, VNETS, ZONES, DesiredSdn, Sections
from .plan import ROOT, after_plan, plan_sdn
from .preconditions import require_no_pending, require_valid
from .read import (
    FIRST_WITH_FABRICS,
    online_nodes,
    read_outdated,
    read_sdn,
    read_status,
    read_surroundings,
    with_servers,
    with_subnets,
)
from .resource import HAS_PENDING, WRONG_TOKEN, SdnTransaction, locked
from .token_file import token_file

if TYPE_CHECKING:
    from ..._foundation.api.client import Client

_MAX_REPLANS = 5
DEFAULT_TIMEOUT = 300
"""Maximum seconds for the task of an apply, and again for the nodes after it."""
# PVE's answers if another run has taken a tag or an ID (pve-network: Zones/VlanPlugin.pm and
# VxlanPlugin.pm, vnet_update_hook; API2/Network/SDN/Vnets.pm).
_TAKEN = ("already exist", "already defined")
_LEASE = ("vnet", "subnet", "ip", "mac", "hostname", "vmid", "gateway")


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring SDN to the desired state; check mode writes nothing."""
    timeout = validate.count(params.get("task_timeout"), DEFAULT_TIMEOUT, "task_timeout")
    wait = client.connection.lock_timeout
    return apply_work(
        SdnWork(client, lambda _running: params, wait=wait, timeout=timeout), check_mode
    )


@dataclass(frozen=True)
class SdnWork:
    """A change of SDN: `params_of` computes its options from the running objects.

    `leaving` are guests that are removed before the change. `wait` is the maximum time to wait for
    changes of others, and `timeout` the maximum time for the apply, both in seconds.
    """

    client: Client
    params_of: Callable[[Sections], Mapping[str, Any]]
    leaving: frozenset[int] = frozenset()
    needs_all_subnets: bool = False
    wait: float = 0
    timeout: int = DEFAULT_TIMEOUT


def apply_work(work: SdnWork, check_mode: bool) -> Result:
    """Plan and carry out a change; read and plan again if another run changed SDN first."""
    for _loss in range(_MAX_REPLANS):
        try:
            return _when_free(work, check_mode)
        except FleetError as error:
            if not is_lost(error):
                raise
    return _when_free(work, check_mode)


def _when_free(work: SdnWork, check_mode: bool) -> Result:
    """Plan and carry out a change once no other run is changing SDN; check mode does not wait.

    Pending changes without a lock belong to no run, so they are reported at once. Proxmox VE before
    9 has no lock, so the run waits for them too.
    """
    for remaining in poll(work.client.clock, 0 if check_mode else work.wait):
        try:
            return apply(plan_transaction(work), check_mode)
        except PendingChanges as error:
            if check_mode:
                raise
            has_lock = work.client.version() >= FIRST_WITH_FABRICS
            busy = with_holder(work.client, error) if has_lock else error
            is_abandoned = has_lock and isinstance(busy, PendingChanges)
            if remaining <= 0 or is_abandoned:
                raise busy from error
        except Locked:
            if remaining <= 0:
                raise
    return apply(plan_transaction(work), check_mode)


def with_holder(client: Client, error: PendingChanges) -> FleetError:
    """Return Locked instead of the error if another run holds the lock of SDN.

    Proxmox VE compares the token of the lock before it looks for pending changes, so a request for
    the lock tells them apart (pve-network: API2/Network/SDN.pm, lock; SDN.pm, lock_sdn_config). It
    gets the lock if the changes are gone by then, or concern only fabrics, and releases it again.
    """
    attempted = "The SDN configuration was not changed"
    try:
        token = client.write("POST", *ROOT, "lock", attempted=attempted)
    except FleetError as failure:
        if WRONG_TOKEN in failure.answer:
            return locked(attempted)
        if HAS_PENDING in failure.answer:
            return error
        raise
    data = {"lock-token": token}
    client.write("DELETE", *ROOT, "lock", data=data, attempted="Could not release the SDN lock")
    return error if read_sdn(client).pending else locked(attempted)


def is_lost(error: FleetError) -> bool:
    """Return whether another run has changed SDN since it was read (pure)."""
    return isinstance(error, Overtaken) or any(text in error.answer for text in _TAKEN)


def plan_transaction(work: SdnWork) -> SdnTransaction:
    """Return the transaction with its plan. Raises FleetError for a refusal."""
    client = work.client
    token = token_file(client)
    is_interrupted = bool(token.read())
    reading = read_sdn(client)
    if work.needs_all_subnets:
        reading = with_subnets(client, reading)
    params = work.params_of(reading.running)
    if _needs_servers(params):
        reading = with_servers(client, reading)
    if needs_subnets(params, reading.running) and not work.needs_all_subnets:
        reading = with_subnets(client, reading)
    require_no_pending(reading.pending, is_interrupted)
    running = reading.running
    require_fabrics(params, running, ".".join(map(str, client.version())))
    desired = read_desired(params, running)
    require_listed_objects(client, desired, running)
    after = after_plan(running, desired)
    is_changed = any(running[kind] != after[kind] for kind in after)
    if is_changed:
        require_valid(running, after, read_surroundings(client, running, after, work.leaving))
    must_apply = False
    if running[ZONES] and not is_changed:
        must_apply = bool(read_outdated(client, running[ZONES], is_sure=not is_interrupted))
    plan = plan_sdn(
        running,
        after,
        has_lock=client.version() >= FIRST_WITH_FABRICS,
        must_apply=must_apply,
        is_interrupted=is_interrupted,
    )
    transaction = SdnTransaction(client, running, after, plan, token)
    transaction.timeout = work.timeout
    return transaction


def require_listed_objects(client: Client, desired: DesiredSdn, running: Sections) -> None:
    """Raise PermissionDenied if PVE hides an object that is to be removed; one request if one is not
    listed, or if a section is exact.
    """
    for kind, section in desired.sections.items():
        if kind in desired.exact:
            require_listed(client.privileges(), f"unlisted {kind} of SDN", *_ways(kind, ""))
        for name, entry in section.items():
            if entry is None and name not in running.get(kind, {}):
                require_listed(client.privileges(), f"{NOUNS[kind]} {name}", *_ways(kind, name))


def _ways(kind: str, name: str) -> tuple[Way, ...]:
    """Return the ways in which PVE lists an object, or with an empty name all of a section
    (pve-network: the index of API2/Network/SDN/*.pm; Fabrics.pm, list_all).
    """
    if kind == FABRIC_NODES:
        node = name.partition("_")[2]
        return ((f"/nodes/{node}", "Sys.Audit"),), ((f"/nodes/{node}", "Sys.Modify"),)
    path = f"/sdn/{kind}/{name}"
    if kind in (VNETS, SUBNETS):  # their zone is not known
        path = "/sdn/zones/"
    return ((path, "SDN.Audit"),), ((path, "SDN.Allocate"),)


def apply(transaction: SdnTransaction, check_mode: bool) -> Result:
    """Carry out a transaction, or roll it back and raise the error."""
    try:
        return apply_plan(transaction, check_mode)
    except FleetError as error:
        raise transaction.roll_back(error) from error


def needs_subnets(params: Mapping[str, Any], running: Sections) -> bool:
    """Return whether the subnets of VNets must be read (pure).

    They are needed if they are declared, or if a VNet is removed, moved or made VLAN-aware.
    """
    if params.get(SUBNETS) is not None or VNETS in (params.get("exact") or ()):
        return True
    for row in params.get(VNETS) or ():
        origin = running[VNETS].get(row["name"])
        if origin is None:
            continue
        is_moved = row.get("zone") not in (None, origin.get("zone"))
        if row.get("state") == "absent" or is_moved or row.get("vlanaware"):
            return True
    return False


def _needs_servers(params: Mapping[str, Any]) -> bool:
    """Return whether IPAMs and name servers are declared or used (pure)."""
    if params.get(IPAMS) is not None or params.get(DNS) is not None:
        return True
    zones = params.get("zones") or ()
    return any(row.get(option) for row in zones for option in ("ipam", "dns", "reversedns"))


def no_options() -> dict[str, Any]:
    """Return no options, because module sdn_info has only the options of the connection."""
    return {}


def run_info(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Return the running SDN. Nothing is written, with or without check mode."""
    reading = with_servers(client, read_sdn(client, subnets=True))
    leases = []
    for ipam in sorted(reading.running[IPAMS]):
        if reading.running[IPAMS][ipam].get("type") != "pve":
            continue
        for row in client.get(*ROOT, IPAMS, ipam, "status") or ():
            leases.append({"ipam": ipam, **{key: row.get(key) for key in _LEASE}})
    values = {
        "sdn": view_of(reading.running),
        "pending": list(reading.pending),
        "leases": leases,
        "nodes": {node: read_status(client, node) for node in online_nodes(client)},
    }
    return Result(False, values)
