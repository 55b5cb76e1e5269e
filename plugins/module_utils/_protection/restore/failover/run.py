# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module failover."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...._foundation.api.interface import require_no_approval
from ...._foundation.cluster.site import require_new_guests
from ...._foundation.core.result import Result
from ...._foundation.resource.plan import Plan
from ...._guests.guest.create.orphan import removal_step
from ...._guests.guest.flow.apply import require_permitted
from ...._guests.kinds.words import VM
from ..choose import ChosenArchive
from .desired import read_desired
from .execute import FailoverContext, bring_up_guests, context_of
from .plan import FailoverPlan, plan_failover
from .read import OtherSite, RecoverySite, find_start_blockers, read_other, read_site
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
        reason = "their configurations are moved by SSH, not by requests"
        require_no_approval(client.plan_book, "a failover to replicas", reason)
        return run_replicas(client, desired, desired.replicas, now, check_mode)

    require_new_guests(client.connection)

    def find_running(guests: Sequence[ChosenArchive]) -> list[str]:
        prefix, lost = desired.choice.owner.prefix, desired.lost
        return find_start_blockers(read_other_site(), guests, prefix, lost=lost)

    if desired.rehearsal:
        reason = "each run has copies of its own, which it removes"
        require_no_approval(client.plan_book, "a rehearsal", reason)
    site = read_site(client, desired)
    known = None if desired.rehearsal else read_other_site()
    plan = plan_failover(client, desired, site, known, check_mode=check_mode)
    context = context_of(client, desired, site.cluster, site.own_archives, now)
    if check_mode:
        require_permitted(client, [one.plan for one in plan.guests])
        _keep(client, site, plan)
        return preview(desired, plan, context)
    result = bring_up_guests(FailoverContext(desired, site.orphans, context, find_running), plan)
    return report(desired, plan, context, result, client.clock.time() - now)


def _keep(client: Client, site: RecoverySite, plan: FailoverPlan) -> None:
    """Show the plan to the plan book: the removals of empty VMs, and each guest."""
    for row in site.orphans:
        client.plan_book.keep(Plan((removal_step(VM, row.vmid, row.node),)))
    for one in plan.guests:
        if one.plan is not None:
            client.plan_book.keep(one.plan.plan, one.plan.planned_guest)
