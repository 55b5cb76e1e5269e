# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The work of module drill: restores a round of copies, or removes the copies of a drill."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...._foundation.cluster.state import ClusterState, fetch_cluster_state, with_names
from ...._foundation.core import validate
from ...._foundation.core.errors import FleetError
from ...._foundation.core.failures.several import FailedGuest, failure_of_several
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.resource.engine import after_writes
from ...._guests.guest.create.orphan import removal_summary
from ...._guests.kinds.words import VM
from ...backup.read import backup_storages, read_archives
from ..run import remove_orphans
from .create import CopyResult, DrillContext, create_copy
from .desired import ABSENT, CopyOrder, read_age, read_copies, read_copy_options, read_orders
from .find import (
    FoundCopy,
    await_copies,
    find_copies,
    find_empty_copies,
    is_to_remove,
    remove_copy,
    require_visible_copies,
)

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_RUN = re.compile("[0-9a-f]{4,40}")


def run(params: Mapping[str, Any], client: Client, check_mode: bool = False) -> Result:
    """Restore and start copies, or remove them; check mode plans and writes nothing.

    A failed guest does not stop the others: the result reports all guests, including the failure.
    """
    drill = _read_run(params)
    cluster = with_names(client, fetch_cluster_state(client), missing=True)
    if params["state"] == ABSENT:
        return _remove(params, client, cluster, drill, check_mode)
    return _start(params, client, cluster, drill, check_mode)


def _read_run(params: Mapping[str, Any]) -> str:
    text = str(params["run"])
    if _RUN.fullmatch(text):
        return text
    raise validate.refused(
        "run", text, "is not the ID of a drill", "Use the run that module drill_info returns"
    )


def _start(
    params: Mapping[str, Any], client: Client, cluster: ClusterState, drill: str, check_mode: bool
) -> Result:
    orders, copies = read_orders(params), read_copies(params)
    if len(orders) > copies:
        raise validate.refused(
            "guests",
            f"{len(orders)} guests",
            f"are more than {copies} copies at once",
            "Give one round of module drill_info, or raise copies",
        )
    context = _context_of(params, client, cluster, drill, orders)

    def create(order: CopyOrder) -> CopyResult:
        return create_copy(context, order, check_mode=check_mode)

    results = side_by_side(create, orders, copies)
    failures = [FailedGuest(one.label, one.error) for one in results if one.error is not None]
    plan = [step for one in results for step in one.plan]
    done = [step for one in results for step in one.done]
    values = {"guests": [one.as_row(context) for one in results], "plan": plan, "done": done}
    failure = failure_of_several(failures, [one.label for one in results]) if failures else None
    warnings = tuple(text for one in results for text in one.warnings)
    changed = bool(plan if check_mode else done)
    return Result(changed, values, _diff(plan), warnings, failure=failure)


def _context_of(
    params: Mapping[str, Any],
    client: Client,
    cluster: ClusterState,
    drill: str,
    orders: Sequence[CopyOrder],
) -> DrillContext:
    names = sorted({one.archive.partition(":")[0] for one in orders})
    reading = read_archives(client, cluster, backup_storages(cluster, names))
    reading.require_complete(
        "No copy was restored", "Repair the storage, or plan the drill without it"
    )
    return DrillContext(
        client=client,
        cluster=cluster,
        archives=reading.archives,
        options=read_copy_options(params),
        prefix=str(params["tenant_prefix"]),
        run=drill,
        now=client.clock.time(),
        wait=validate.count(params.get("wait_timeout"), 300, "wait_timeout"),
        settle=validate.number(params["settle"], 0, 3600, "settle"),
    )


def _remove(
    params: Mapping[str, Any], client: Client, cluster: ClusterState, drill: str, check_mode: bool
) -> Result:
    """Remove the copies of the drill, and the abandoned copies of interrupted drills."""
    now, abandoned = client.clock.time(), read_age(params, "abandoned_after") or 0
    options = read_copy_options(params)
    notes = await_copies(client, cluster, drill, options)
    cluster = fetch_cluster_state(client)
    empty = find_empty_copies(client, cluster, drill, options.vmid_range)
    found = find_copies(client, cluster)
    chosen = [one for one in found if is_to_remove(one, (drill,), now, abandoned)]
    if not chosen and not empty:
        require_visible_copies(client.privileges(), drill)

    def remove(one: FoundCopy) -> Result | FailedGuest:
        try:
            return remove_copy(client, one.actual, timeout=options.timeout, check_mode=check_mode)
        except FleetError as error:
            return FailedGuest(one.actual.label, error)

    results = side_by_side(remove, chosen, read_copies(params))
    removed = [one for one in results if isinstance(one, Result)]
    failures = [one for one in results if isinstance(one, FailedGuest)]
    plan = [removal_summary(VM, row.vmid, row.node) for row in empty]
    plan += [step for one in removed for step in one.values["plan"]]
    done = [step for one in removed for step in one.values["done"]]
    if not check_mode:
        with after_writes(done):
            done = [*remove_orphans(client, empty, options.timeout), *done]
    for failed in failures:
        done += failed.error.details.get("done", ())
    labels = [one.actual.label for one in chosen]
    failure = failure_of_several(failures, labels) if failures else None
    values = {"guests": [], "plan": plan, "done": done}
    return Result(bool(plan if check_mode else done), values, _diff(plan), notes, failure)


def _diff(plan: Sequence[str]) -> dict[str, list[str]]:
    """Return the steps as a diff (pure)."""
    return {"before": [], "after": list(plan)}
