# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Removes a tenant: its VMs, rights, tokens, user, group, roles, pool and tag, in this order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from .._pool.precheck import check_pool
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
    other_rights,
    own_rights,
    read_facts,
)
from .guests import Guests, guests_of, names_of, require_no_strays
from .model import Tenant
from .parts import Part, rights_on, tag_part
from .token import absent_token_part, existing_tokens
from .work import Report, carry_out, diff_of, plan_parts, summaries, with_precheck

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
    facts = replace(facts, cluster=with_names(reader, facts.cluster, missing=True))
    guests = guests_of(tenant, facts)
    if params.get("strays") == "stop":
        require_no_strays(tenant, guests)
    leaving = _leaving(guests, params)
    planned = plan_parts(_parts(tenant, facts, guests, leaving, reader), reader)
    foreseen = _work_on_vms(tenant, params, leaving, client, check_mode=True)
    rows = _rows(tenant, foreseen)
    if not check_mode and (rows or planned):
        _require_confirmed(tenant, params, leaving)
    if planned:
        require_privileges(reader, tenant, {one.kind for one in planned})
    report = Report()
    if not check_mode:
        done = _work_on_vms(tenant, params, leaving, client, check_mode=False)
        report.done += [line for row in map(row_of, done.outcomes) for line in row["done"]]
        report.run(lambda: _all_removed(tenant, done))
        carry_out(planned, client, report)
    diff = diff_of(planned)
    before = {**{_name_of(row): row["vm"] or {} for row in rows}, **diff["before"]}
    values = {
        "tenant": None,
        "credentials": None,
        "vms": [{key: row[key] for key in ("name", "vmid", "node")} for row in rows],
        "plan": [*(line for row in rows for line in row["plan"]), *summaries(planned)],
        "done": report.done,
    }
    warnings = [*report.warnings, *_kept(tenant, facts, guests, params)]
    changed = bool(rows or planned)
    return Result(changed, values, {"before": before, "after": diff["after"]}, tuple(warnings))


def _leaving(guests: Guests, params: Mapping[str, Any]) -> list[VmRow]:
    """Return the VMs that go with the tenant."""
    rows = list(guests.own)
    if params.get("strays") == "remove":
        rows += [*guests.outside, *guests.untagged]
    return sorted(rows, key=lambda row: row.vmid)


def _work_on_vms(
    tenant: Tenant,
    params: Mapping[str, Any],
    rows: Sequence[VmRow],
    client: Client,
    *,
    check_mode: bool,
) -> Work:
    """Remove the VMs as module vms does, each after a look at whose it is."""
    of_tenant = {"tenant": tenant.name, "tenant_prefix": tenant.prefix}
    listed = [{"vmid": row.vmid, **(of_tenant if tenant.tag in row.tags else {})} for row in rows]
    given = {name: params[name] for name in _OF_VMS if params.get(name) is not None}
    options = with_defaults(fleet_spec(), {**given, "vms": listed, "remove": True})
    return work_on(read_estate(options, client), client, check_mode)


def _rows(tenant: Tenant, work: Work) -> list[dict[str, Any]]:
    """Return the VMs that are removed. Raises the errors of those that cannot be."""
    _all_removed(tenant, work)
    return [row for row in map(row_of, work.outcomes) if row["changed"]]


def _all_removed(tenant: Tenant, work: Work) -> Result:
    """Raise one error for all VMs that were not removed, or cannot be."""
    errors = [outcome.error for outcome in work.outcomes if outcome.error is not None]
    if not errors:
        return Result()
    error: FleetError = errors[0]
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
    tenant: Tenant, facts: Facts, guests: Guests, leaving: Sequence[VmRow], reader: Client
) -> list[Part]:
    """Return the removals of all that is not a VM, in the order of the work."""
    parts = [
        rights_on(path, grants, present=False)
        for path, grants in sorted(_rights(tenant, facts).items())
    ]
    parts += [absent_token_part(tenant, name) for name in existing_tokens(tenant, facts)]
    if _is_own_user(tenant, facts):
        others = [name for name in facts.tokens_of(tenant.user) if name not in tenant.tokens]
        parts += [absent_token_part(tenant, name) for name in sorted(others)]
        user = Part(LISTED_USER, USER, read_desired(USER, _absent(tenant.user)))
        connection = reader.connection
        parts.append(with_precheck(user, lambda *about: check_user(connection, *about)))
    if _is_own_group(tenant, facts):
        group = _absent(str(tenant.group))
        parts.append(Part(LISTED_GROUP, GROUP, read_desired(GROUP, group)))
    for role in sorted(set(tenant.roles.values()) & facts.roles.keys()):
        parts.append(Part(LISTED_ROLE, ROLE, read_desired(ROLE, _absent(role))))
    return [*parts, _pool_part(tenant, leaving), tag_part(tenant, registered=False)]


def _absent(name: str) -> dict[str, Any]:
    return {"name": name, "state": "absent", "force": True}


def _pool_part(tenant: Tenant, leaving: Sequence[VmRow]) -> Part:
    """Return the removal of the pool, planned without the VMs that are gone by then."""
    gone = frozenset(row.vmid for row in leaving)

    def still_in(group: Members) -> Members:
        return replace(group, read=lambda answer: group.read(answer) - gone)

    members = tuple(still_in(group) for group in POOL.members)
    reads = replace(POOL, members=members, precheck=check_pool)
    return Part(reads, POOL, read_desired(POOL, _absent(tenant.pool)))


def _rights(tenant: Tenant, facts: Facts) -> dict[str, frozenset[Grant]]:
    """Return the rights that go, by path: those by its roles, on its pool, and of its user."""
    found = {path: set(grants) for path, grants in own_rights(tenant, facts).items()}
    pool = f"/pool/{tenant.pool}"
    found.setdefault(pool, set()).update(facts.rights.get(pool, ()))
    for path, grants in other_rights(tenant, facts).items():
        going = [grant for grant in grants if _goes(tenant, facts, grant)]
        found.setdefault(path, set()).update(going)
    return {path: frozenset(grants) for path, grants in found.items() if grants}


def _goes(tenant: Tenant, facts: Facts, grant: Grant) -> bool:
    """Return whether a right by another role is of a user or group that goes."""
    if grant.kind == "group":
        return _is_own_group(tenant, facts)
    return _is_own_user(tenant, facts)


def _is_own_user(tenant: Tenant, facts: Facts) -> bool:
    row = facts.users.get(tenant.user)
    return row is not None and tenant.is_marked(row.get("comment"))


def _is_own_group(tenant: Tenant, facts: Facts) -> bool:
    row = facts.groups.get(tenant.group or "")
    return row is not None and tenant.is_marked(row.get("comment"))


def _kept(tenant: Tenant, facts: Facts, guests: Guests, params: Mapping[str, Any]) -> list[str]:
    """Return warnings about what stays."""
    lines: list[str] = []
    if tenant.user in facts.users and not _is_own_user(tenant, facts):
        lines.append(f"User '{tenant.user}' was not created for {tenant.label} and is kept")
    if tenant.group in facts.groups and not _is_own_group(tenant, facts):
        lines.append(f"Group '{tenant.group}' was not created for {tenant.label} and is kept")
    kept = replace(guests, own=())
    if params.get("strays") == "remove":
        kept = replace(kept, outside=(), untagged=())
    return [*lines, *(f"Kept: {line}" for line in kept.strays)]
