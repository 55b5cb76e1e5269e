# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module failover."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...._foundation.core.result import Result
from ...._guests.guest.flow.apply import require_permitted
from ..choose import ChosenArchive
from .desired import read_desired
from .execute import FailoverContext, bring_up_guests, context_of
from .other_site import OtherSite, find_start_blockers, read_other
from .plan import plan_failover
from .read import read_site
from .replicas.run import run_replicas
from .report import preview, report

if TYPE_CHECKING:
    from ...._foundation.api.client import Client


def sites_of(params: Mapping[str, Any]) -> list[str]:
    """Return the sites of a task: its own, and the other site if the task names it."""
    return ["", *filter(None, [str(params.get("from_site") or "")])]


def run_at_sites(
    params: Mapping[str, Any],
    clients: Sequence[tuple[Collection[str], Client]],
    check_mode: bool = False,
) -> Result:
    """Bring up the guests of the other site at this site. Nothing is written at the other site."""
    (_own, client), *others = clients
    return _run(params, client, others[0][1] if others else None, check_mode)


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Bring up the guests of a lost site; check mode plans and writes nothing. Raises FleetError
    with every problem before the first write.
    """
    return _run(params, client, None, check_mode)


def _run(
    params: Mapping[str, Any], client: Client, other: Client | None, check_mode: bool
) -> Result:
    now = client.clock.time()
    desired = read_desired(params, now, os.urandom(6).hex())

    def read_other_site() -> OtherSite | None:
        return None if other is None else read_other(other, desired.from_site)

    if desired.replicas is not None:
        return run_replicas(client, desired, desired.replicas, now, check_mode)

    def find_running(guests: Sequence[ChosenArchive]) -> list[str]:
        prefix, lost = desired.choice.owner.prefix, desired.lost
        return find_start_blockers(read_other_site(), guests, prefix, lost=lost)

    site = read_site(client, desired)
    known = None if desired.rehearsal else read_other_site()
    plan = plan_failover(client, desired, site, known, check_mode=check_mode)
    context = context_of(client, desired, site.cluster, site.own_archives, now)
    if check_mode:
        require_permitted(client, [one.plan for one in plan.guests])
        return preview(desired, plan, context)
    result = bring_up_guests(FailoverContext(desired, site.orphans, context, find_running), plan)
    return report(desired, plan, context, result, client.clock.time() - now)
