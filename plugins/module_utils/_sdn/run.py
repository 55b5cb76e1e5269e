# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module sdn: read, check, plan, then the transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .._core.errors import FleetError
from .._core.result import Result
from .._resource.engine import apply_plan
from .forms import read_desired
from .model import DNS, IPAMS, SUBNETS, VNETS, ZONES, Sections
from .plan import after_plan, plan_sdn
from .preconditions import require_no_pending, require_valid
from .read import read_outdated, read_sdn, read_surroundings, with_subnets
from .resource import SdnTransaction
from .token_file import token_file

if TYPE_CHECKING:
    from .._api.client import Client

_SERVER_OPTIONS = ("ipam", "dns", "reversedns")
_FIRST_WITH_LOCK = (9, 0)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring SDN to the desired state; check mode writes nothing."""
    token = token_file(client)
    is_interrupted = bool(token.read())
    reading = read_sdn(client, servers=_needs_servers(params))
    if needs_subnets(params, reading.running):
        reading = with_subnets(client, reading)
    require_no_pending(reading.pending, is_interrupted)
    running = reading.running
    after = after_plan(running, read_desired(params, running))
    is_changed = any(running[kind] != after[kind] for kind in after)
    if is_changed:
        _require_valid(client, running, after)
    plan = plan_sdn(
        running,
        after,
        has_lock=client.version() >= _FIRST_WITH_LOCK,
        must_apply=not is_changed and bool(running[ZONES]) and bool(read_outdated(client)),
        is_interrupted=is_interrupted,
    )
    transaction = SdnTransaction(client, running, after, plan, token)
    try:
        return apply_plan(transaction, check_mode)
    except FleetError as error:
        raise transaction.roll_back(error) from error


def _require_valid(client: Client, running: Sections, after: Sections) -> None:
    """Raise FleetError for changes that are not valid."""
    around = read_surroundings(client, running, after)
    require_valid(running, after, around)


def needs_subnets(params: Mapping[str, Any], running: Sections) -> bool:
    """Return whether subnets matter: they are declared, or a VNet goes, moves or changes (pure)."""
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
    return any(row.get(option) for row in zones for option in _SERVER_OPTIONS)
