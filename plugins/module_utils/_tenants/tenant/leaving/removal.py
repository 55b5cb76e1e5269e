# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes a tenant: its guests, rights, tokens, user, group, roles, pool and tag, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.api.access.listed import require_listed
from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.cluster.state import VmRow, with_names, with_other_names
from ...._foundation.cluster.tenant import tenants_of
from ...._foundation.core.arguments.options import did_you_mean
from ...._foundation.core.errors import ConfigurationError, StrayGuests
from ...._foundation.core.failures.several import FailedGuest, failure_of_several
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import UNCHANGED, PlanLine, lines_of_diff, plan_lines
from ...._foundation.resource.decide import read_desired
from ...._foundation.resource.table import Members
from ...._foundation.spec.fleet import fleet_spec, with_defaults
from ...._guests.fleet.items import read_estate
from ...._guests.fleet.report import row_of
from ...._guests.fleet.run import SiteWork, work_on
from ...._guests.guest.registry import LISTS, list_of, list_of_key
from ...access.group import GROUP
from ...access.login.credentials import LoginKeeper
from ...access.pool import POOL
from ...access.role import ROLE
from ...access.user import USER, precheck_user
from ..checks import require_plans_permitted
from ..facts import (
    LISTED_GROUP,
    LISTED_ROLE,
    LISTED_USER,
    Rights,
    TenantFacts,
    by_path,
    entries_of,
    other_rights,
    own_rights,
    read_facts,
    with_pool,
)
from ..login.token import absent_token_resource
from ..marks import TenantRemovals, is_established, leaving_of, require_established, stray_tokens
from ..model import Tenant
from ..network.work import plan_removal
from ..own_loss import own_warnings
from ..tenant_resources import TenantResource, rights_on, tag_resource
from ..work import (
    PlannedResource,
    TenantProgress,
    diff_of,
    execute_resources,
    keep_plans,
    plan_resources,
    summaries,
    with_precheck,
)
from .remaining_guests import (
    TenantGuests,
    names_of,
    pool_check,
    read_guests,
    require_no_remaining_guests,
    require_no_strays,
)

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

# The options of module vms for the removal of guests.
_OF_VMS = ("graceful", "force", "shutdown_timeout", "task_timeout", "protection", "parallel")


def remove(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Remove a tenant; in check mode return the whole plan and write nothing.

    Nothing is removed if a part of the plan is refused.
    """
    keeper, about_file = LoginKeeper.open_for_removal(params, tenant.name)
    reader = CachingReader(client)
    facts = read_facts(reader)
    cluster = with_names(reader, facts.cluster)
    nodes = {row.node for row in cluster.others.values()}
    facts = replace(facts, cluster=with_other_names(reader, cluster, nodes))
    # Read after the guests, so a VM removed in between does not look like a member without a VM.
    facts = with_pool(facts, tenant, reader)
    require_established(tenant, facts, f"{tenant.label} was not removed")
    guests = read_guests(tenant, facts, client)
    if params["strays"] == "stop":
        require_no_strays(tenant, guests, stray_tokens(tenant, facts))
    leaving, staying = _divided(guests, removes_strays=params["strays"] == "remove")
    strays = {"remove": stray_tokens(tenant, facts)}.get(params["strays"], [])
    removed = leaving_of(tenant, facts, strays)
    planned = plan_resources(_resources(tenant, facts, removed, reader), reader)
    planned += plan_resources(_pool_resources(tenant, removed, staying, leaving), reader)
    networks = plan_removal(tenant, [row.vmid for row in leaving], reader)
    plans = [*(one.plan for one in planned), *networks.plans]
    keep_plans(reader, plans)
    foreseen = _work_on_vms(tenant, params, leaving, client, check_mode=True)
    _all_removed(tenant, foreseen)
    rows = [row for row in map(row_of, foreseen.outcomes) if row["changed"]]
    changed = bool(rows or planned or networks.parts or keeper.summary_of_removal)
    if changed and not check_mode:
        _require_confirmed(tenant, params, leaving)
    require_plans_permitted(reader, plans)
    own = own_warnings(tenant, client.login, facts, planned)
    report = TenantProgress(blinds=bool(own), warnings=own)
    if changed and not check_mode:
        removal = _work_on_vms(tenant, params, leaving, client, check_mode=False)
        report.done += _lines(removal, "done")
        try:
            report.run(lambda: _all_removed(tenant, removal))
            networks.written(client, report)
            execute_resources(planned, client, report)
            if not own:
                report.run(partial(require_no_remaining_guests, tenant, facts, leaving, client))
        except StrayGuests as error:
            if not error.came_after_changes:
                raise
            raise error.on(attempted=f"{tenant.label} was not removed completely") from error
        if keeper.summary_of_removal:
            report.run(keeper.remove)
    values = {
        "tenant": None,
        "credentials": None,
        "vms": [{key: row[key] for key in ("kind", "name", "vmid", "node")} for row in rows],
        "plan": [
            *_lines(foreseen, "plan"),
            *networks.summaries,
            *summaries(planned),
            *keeper.summary_of_removal,
        ],
        "done": report.done,
    }
    kept = [f"Kept: {line}" for line in staying.strays]
    warnings = (*report.warnings, *removed.kept, *kept, *networks.warnings, *about_file)
    if not changed:
        # pve-manager: API2/Pool.pm, index; pve-access-control: API2/User.pm, index
        pool = (f"/pool/{tenant.pool}", "Pool.Audit")
        ways = [(pool, ("/access/groups", name)) for name in ("Sys.Audit", "User.Modify")]
        require_listed(reader.privileges(), tenant.label, *ways)
        warnings += _similar_tenants(tenant, facts)
    diff = networks.with_diff(_diff(rows, planned, keeper))
    rows_of_plan = lines_of_diff(diff["before"], diff["after"])
    unchanged = [PlanLine(UNCHANGED, tenant.label)]
    values["report"] = plan_lines(rows_of_plan or unchanged, check_mode=check_mode)
    return Result(changed, values, diff, warnings)


def _similar_tenants(tenant: Tenant, facts: TenantFacts) -> tuple[str, ...]:
    """Return a warning if a tenant has a similar name: this one may be misspelt (pure)."""
    tags = [tag for row in facts.of_both_kinds.vms.values() for tag in row.tags]
    names = {tag.removeprefix(tenant.prefix) for tag in tenants_of(tags, tenant.prefix)}
    hint = did_you_mean(tenant.name, {*names, *facts.cluster.pools} - {tenant.name})
    return (f"Nothing of {tenant.label} exists{hint}",) if hint else ()


def _diff(
    rows: Sequence[Mapping[str, Any]], planned: Sequence[PlannedResource], keeper: LoginKeeper
) -> dict[str, Any]:
    """Return the diff of the removal: VMs, other resources, and the file."""
    before: dict[str, Any] = {}
    for row in rows:
        noun = list_of_key(row["kind"]).kind.noun
        label = (
            f"{noun} '{row['name']}' ({row['vmid']})" if row["name"] else f"{noun} {row['vmid']}"
        )
        before[label] = row[row["kind"]] or {}
    diff = diff_of(planned)
    before.update(diff["before"])
    if keeper.summary_of_removal:
        before[keeper.label] = {"state": "present"}
    return {"before": before, "after": diff["after"]}


def _divided(guests: TenantGuests, *, removes_strays: bool) -> tuple[list[VmRow], TenantGuests]:
    """Return the guests to remove by VMID, and the guests that stay."""
    rows, staying = list(guests.own), replace(guests, own=())
    if removes_strays:
        rows += [*guests.outside, *guests.untagged, *guests.in_creation]
        staying = replace(staying, outside=(), untagged=(), in_creation=())
    return sorted(rows, key=lambda row: row.vmid), staying


def _work_on_vms(
    tenant: Tenant,
    params: Mapping[str, Any],
    rows: Sequence[VmRow],
    client: Client,
    *,
    check_mode: bool,
) -> SiteWork:
    """Remove the guests as module vms does, after a check of each owner."""
    given: dict[str, Any] = {of.option: [] for of in LISTS}
    for row in rows:
        item: dict[str, Any] = {"vmid": row.vmid}
        if tenant.tag in row.tags:
            item.update(tenant=tenant.name, tenant_prefix=tenant.prefix)
        given[list_of(row.type).option].append(item)
    given["remove"] = True
    for name in _OF_VMS:
        if params.get(name) is not None:
            given[name] = params[name]
    options = with_defaults(fleet_spec(), given)
    return work_on(read_estate(options, client), client, check_mode)


def _lines(work: SiteWork, name: str) -> list[str]:
    """Return the lines C(plan) or C(done) of all VMs."""
    lines: list[str] = []
    for outcome in work.outcomes:
        lines += row_of(outcome)[name]
    return lines


def _all_removed(tenant: Tenant, work: SiteWork) -> Result:
    """Raise one error for all VMs that were not, or cannot be, removed."""
    failures: list[FailedGuest] = []
    labels = [one.planned.item.desired.guest.label for one in work.outcomes]
    for label, outcome in zip(labels, work.outcomes, strict=True):
        if outcome.error is not None:
            failures.append(FailedGuest(label, outcome.error))
    if not failures:
        return Result()
    error = failures[0].error
    if len(work.outcomes) > 1:
        error = failure_of_several(failures, labels)
    step = f"{error.next_step}; the other parts of {tenant.label} were kept"
    details = dict(error.details)
    details.pop("done", None)  # the report contains the steps of all VMs
    raise error.on(next_step=step, details=details)


def _require_confirmed(tenant: Tenant, params: Mapping[str, Any], rows: Sequence[VmRow]) -> None:
    """Raise ConfigurationError unless the task names the tenant once more."""
    if params.get("confirm") == tenant.name:
        return
    raise ConfigurationError(
        f"{tenant.label} was not removed: confirm does not name it; the guests that would go: "
        f"{names_of(rows) or 'none'}",
        f"Look at the plan in check mode, then set confirm={tenant.name}",
        "not confirmed",
    )


def _resources(
    tenant: Tenant, facts: TenantFacts, leaving: TenantRemovals, reader: Client
) -> list[TenantResource]:
    """Return the removals of all objects except VMs and the pool, in the order of execution.

    Objects without a mark are removed before objects with a mark, so another run can complete an
    interrupted removal.
    """
    resources: list[TenantResource] = []
    for path, grants in _rights(tenant, facts, leaving).items():
        resources.append(rights_on(path, grants, present=False))
    if is_established(tenant, facts):
        resources.append(tag_resource(tenant, registered=False))
        for role in sorted(facts.roles.keys() & tenant.roles.values()):
            resources.append(TenantResource(LISTED_ROLE, ROLE, read_desired(ROLE, _absent(role))))
    resources += [absent_token_resource(user, name) for user, name in sorted(leaving.tokens)]
    if leaving.user:
        user = TenantResource(LISTED_USER, USER, read_desired(USER, _absent(tenant.user)))
        resources += with_precheck([user], partial(precheck_user, reader.connection))
    if leaving.group:
        group = _absent(str(tenant.group))
        resources.append(TenantResource(LISTED_GROUP, GROUP, read_desired(GROUP, group)))
    return resources


def _absent(name: str) -> dict[str, Any]:
    return {"name": name, "state": "absent", "force": True}


def _pool_resources(
    tenant: Tenant, leaving: TenantRemovals, staying: TenantGuests, vms: Sequence[VmRow]
) -> list[TenantResource]:
    """Return the removal of the pool, or [] if the pool stays.

    It is planned without `vms`, which are removed first.
    """
    if not leaving.pool:
        return []
    gone = {row.vmid for row in vms}
    members = [_without(group, gone) for group in POOL.members]
    table = replace(POOL, precheck=pool_check(tenant, staying.vmids))
    reads = replace(table, members=tuple(members))
    return [TenantResource(reads, table, read_desired(POOL, _absent(tenant.pool)))]


def _without(group: Members, gone: AbstractSet[int]) -> Members:
    """Return a group of members that reads all members except `gone`."""
    return replace(group, read=lambda answer: group.read(answer) - gone)


def _rights(tenant: Tenant, facts: TenantFacts, leaving: TenantRemovals) -> Rights:
    """Return the rights to remove, by path: of the tenant's roles, and of a pool, user, group or
    token that is removed.
    """
    pool = f"/pool/{tenant.pool}"
    going = entries_of(own_rights(tenant, facts))
    if leaving.pool:
        going += [(pool, grant) for grant in facts.rights.get(pool, ())]
    for path, grant in entries_of(other_rights(tenant, facts)):
        user, _mark, name = grant.who.partition("!")
        removed = {
            "group": leaving.group,
            "user": leaving.user,
            "token": (user, name) in leaving.tokens,
        }
        if removed[grant.kind]:
            going.append((path, grant))
    return by_path(going)
