# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes a tenant: its VMs, rights, tokens, user, group, roles, pool and tag, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .._access.grants import Grant
from .._access.group import GROUP
from .._access.role import ROLE
from .._access.user import USER
from .._access.user_check import check_user
from .._api.caching import CachingReader
from .._cluster.state import VmRow, with_names
from .._core.errors import ConfigurationError, FleetError, failure_of_several
from .._core.result import Result
from .._fleet.items import read_estate
from .._fleet.report import row_of
from .._fleet.run import Work, work_on
from .._pool.table import POOL
from .._resource.decide import read_desired
from .._resource.table import Members
from .._spec.fleet import fleet_spec, with_defaults
from .checks import require_privileges
from .facts import (
    LISTED_GROUP,
    LISTED_ROLE,
    LISTED_USER,
    Facts,
    Rights,
    Row,
    by_path,
    entries_of,
    other_rights,
    own_rights,
    read_facts,
)
from .guests import Guests, names_of, require_no_strays
from .left import pool_check, read_guests, require_none_left
from .model import Tenant
from .parts import Part, rights_on, tag_part
from .token import absent_token_part, existing_tokens
from .work import PlannedPart, Report, carry_out, diff_of, plan_parts, summaries, with_precheck

if TYPE_CHECKING:
    from .._api.client import Client

# How VMs are stopped and waited for.
_OF_VMS = ("graceful", "force", "shutdown_timeout", "task_timeout", "protection", "parallel")


def remove(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Remove a tenant; in check mode return the whole plan and write nothing.

    Nothing is removed where a part of the plan is refused.
    """
    reader = CachingReader(client)
    facts = read_facts(reader)
    facts = replace(facts, cluster=with_names(reader, facts.cluster))
    guests = read_guests(tenant, facts, client)
    if params["strays"] == "stop":
        require_no_strays(tenant, guests)
    leaving = _leaving(guests, params)
    staying = _staying(guests, params)
    planned = plan_parts(_parts(tenant, facts, staying, leaving, reader), reader)
    foreseen = _work_on_vms(tenant, params, leaving, client, check_mode=True)
    _all_removed(tenant, foreseen)
    rows = _removed_rows(foreseen)
    changed = bool(rows or planned)
    if changed and not check_mode:
        _require_confirmed(tenant, params, leaving)
    require_privileges(reader, tenant, planned)
    report = Report()
    if changed and not check_mode:
        work = _work_on_vms(tenant, params, leaving, client, check_mode=False)
        report.done += _lines(work, "done")
        report.run(lambda: _all_removed(tenant, work))
        carry_out(planned, client, report)
        report.run(partial(require_none_left, tenant, facts, leaving, client))
    values = {
        "tenant": None,
        "credentials": None,
        "vms": [_which(row) for row in rows],
        "plan": [*_lines(foreseen, "plan"), *summaries(planned)],
        "done": report.done,
    }
    warnings = (*report.warnings, *_kept(tenant, facts, staying))
    return Result(changed, values, _diff(rows, planned), warnings)


def _which(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return which VM a report is about."""
    return {"name": row["name"], "vmid": row["vmid"], "node": row["node"]}


def _diff(rows: Sequence[Mapping[str, Any]], planned: Sequence[PlannedPart]) -> dict[str, Any]:
    """Return what the removal changes: the VMs, and then the other parts."""
    before: dict[str, Any] = {}
    for row in rows:
        before[_name_of(row)] = row["vm"] or {}
    diff = diff_of(planned)
    return {"before": {**before, **diff["before"]}, "after": diff["after"]}


def _leaving(guests: Guests, params: Mapping[str, Any]) -> list[VmRow]:
    """Return the VMs that go with the tenant."""
    rows = list(guests.own)
    if params["strays"] == "remove":
        rows += [*guests.outside, *guests.untagged, *guests.unfinished]
    return sorted(rows, key=lambda row: row.vmid)


def _staying(guests: Guests, params: Mapping[str, Any]) -> Guests:
    """Return the guests that stay when the tenant goes."""
    staying = replace(guests, own=())
    if params["strays"] == "remove":
        return replace(staying, outside=(), untagged=(), unfinished=())
    return staying


def _work_on_vms(
    tenant: Tenant,
    params: Mapping[str, Any],
    rows: Sequence[VmRow],
    client: Client,
    *,
    check_mode: bool,
) -> Work:
    """Remove the VMs as module vms does, each after its owner was checked."""
    listed: list[dict[str, Any]] = []
    for row in rows:
        item: dict[str, Any] = {"vmid": row.vmid}
        if tenant.tag in row.tags:
            item.update(tenant=tenant.name, tenant_prefix=tenant.prefix)
        listed.append(item)
    given: dict[str, Any] = {"vms": listed, "remove": True}
    for name in _OF_VMS:
        if params.get(name) is not None:
            given[name] = params[name]
    options = with_defaults(fleet_spec(), given)
    return work_on(read_estate(options, client), client, check_mode)


def _removed_rows(work: Work) -> list[dict[str, Any]]:
    """Return the reports on the VMs that are removed."""
    rows = map(row_of, work.outcomes)
    return [row for row in rows if row["changed"]]


def _lines(work: Work, name: str) -> list[str]:
    """Return the lines of all VMs: their C(plan), or what was C(done)."""
    lines: list[str] = []
    for outcome in work.outcomes:
        lines += row_of(outcome)[name]
    return lines


def _all_removed(tenant: Tenant, work: Work) -> Result:
    """Raise one error for all VMs that were not removed, or cannot be."""
    errors: list[FleetError] = []
    for outcome in work.outcomes:
        if outcome.error is not None:
            errors.append(outcome.error)
    if not errors:
        return Result()
    error = errors[0]
    if len(work.outcomes) > 1:
        answer = " ".join(one.message for one in errors)
        error = failure_of_several(errors, answer, len(work.outcomes))
    step = f"{error.next_step}; the other parts of {tenant.label} were kept"
    raise error.on(next_step=step)


def _name_of(row: Mapping[str, Any]) -> str:
    return f"VM '{row['name']}' ({row['vmid']})" if row["name"] else f"VM {row['vmid']}"


def _require_confirmed(tenant: Tenant, params: Mapping[str, Any], rows: Sequence[VmRow]) -> None:
    """Raise ConfigurationError unless the task names the tenant once more."""
    if params.get("confirm") == tenant.name:
        return
    raise ConfigurationError(
        attempted=f"{tenant.label} was not removed",
        answer=f"confirm does not name it; the VMs that would go: {names_of(rows) or 'none'}",
        next_step=f"Look at the plan in check mode, then set confirm={tenant.name}",
        reason="not confirmed",
    )


def _parts(
    tenant: Tenant, facts: Facts, staying: Guests, leaving: Sequence[VmRow], reader: Client
) -> list[Part]:
    """Return the removals of all that is not a VM, in the order of the work."""
    parts: list[Part] = []
    for path, grants in _rights(tenant, facts).items():
        parts.append(rights_on(path, grants, present=False))
    for name in existing_tokens(tenant, facts):
        parts.append(absent_token_part(tenant, name))
    if _is_own(tenant, facts.users, tenant.user):
        others = facts.tokens_of(tenant.user).keys() - set(tenant.tokens)
        parts += [absent_token_part(tenant, name) for name in sorted(others)]
        user = Part(LISTED_USER, USER, read_desired(USER, _absent(tenant.user)))
        parts += with_precheck([user], partial(check_user, reader.connection))
    if _is_own(tenant, facts.groups, tenant.group):
        group = _absent(str(tenant.group))
        parts.append(Part(LISTED_GROUP, GROUP, read_desired(GROUP, group)))
    for role in sorted(facts.roles.keys() & tenant.roles.values()):
        parts.append(Part(LISTED_ROLE, ROLE, read_desired(ROLE, _absent(role))))
    if not other_tenants(tenant, facts):
        parts.append(_pool_part(tenant, staying, leaving))
    return [*parts, tag_part(tenant, registered=False)]


def _absent(name: str) -> dict[str, Any]:
    return {"name": name, "state": "absent", "force": True}


def _pool_part(tenant: Tenant, staying: Guests, leaving: Sequence[VmRow]) -> Part:
    """Return the removal of the pool, planned without the VMs that are gone by then."""
    gone = {row.vmid for row in leaving}
    members = [_without(group, gone) for group in POOL.members]
    table = replace(POOL, precheck=pool_check(tenant, staying.vmids))
    reads = replace(table, members=tuple(members))
    return Part(reads, table, read_desired(POOL, _absent(tenant.pool)))


def _without(group: Members, gone: AbstractSet[int]) -> Members:
    """Return a group of members that reads all but some of them."""
    return replace(group, read=lambda answer: group.read(answer) - gone)


def _rights(tenant: Tenant, facts: Facts) -> Rights:
    """Return the rights that go, by path: those by its roles, on its pool, and of its user."""
    pool = f"/pool/{tenant.pool}"
    going = entries_of(own_rights(tenant, facts))
    if not other_tenants(tenant, facts):
        going += [(pool, grant) for grant in facts.rights.get(pool, ())]
    for path, grant in entries_of(other_rights(tenant, facts)):
        if _goes(tenant, facts, grant):
            going.append((path, grant))
    return by_path(going)


def other_tenants(tenant: Tenant, facts: Facts) -> list[str]:
    """Return the roles of other tenants that give rights on its pool: it is theirs, too (pure)."""
    own = set(tenant.roles.values())
    granted = {grant.role for grant in facts.rights.get(f"/pool/{tenant.pool}", ())}
    return sorted(role for role in granted - own if role.startswith(tenant.prefix.lower()))


def _goes(tenant: Tenant, facts: Facts, grant: Grant) -> bool:
    """Return whether a right by another role is of a user or group that goes."""
    if grant.kind == "group":
        return _is_own(tenant, facts.groups, tenant.group)
    return _is_own(tenant, facts.users, tenant.user)


def _is_own(tenant: Tenant, rows: Mapping[str, Row], name: str | None) -> bool:
    """Return whether a user or group exists and was created for the tenant."""
    if name is None or name not in rows:
        return False
    return tenant.is_marked(rows[name].get("comment"))


def _kept(tenant: Tenant, facts: Facts, staying: Guests) -> list[str]:
    """Return warnings about what stays."""
    lines: list[str] = []
    users = ("User", facts.users, tenant.user)
    groups = ("Group", facts.groups, tenant.group)
    for noun, rows, name in (users, groups):
        if name in rows and not _is_own(tenant, rows, name):
            lines.append(f"{noun} '{name}' was not created for {tenant.label} and is kept")
    others = other_tenants(tenant, facts)
    if others:
        lines.append(f"Pool '{tenant.pool}' is kept: {', '.join(others)} gives rights on it")
    lines += [f"Kept: {line}" for line in staying.strays]
    return lines
