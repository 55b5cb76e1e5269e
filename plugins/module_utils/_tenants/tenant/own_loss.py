# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rights that the plan of a tenant takes away from the login of the task itself (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..._foundation.resource.own_loss import LOGIN, NOT_ACCEPTED, OwnLoss, require_allowed
from ..._foundation.resource.table import DesiredResource
from ..access.effective import AccessControl
from ..access.own_loss import TaskLogin, access_control, loss_between
from .facts import TenantFacts, entries_of
from .model import Tenant
from .work import PlannedResource


def own_warnings(
    tenant: Tenant, login: str, facts: TenantFacts, planned: Sequence[PlannedResource]
) -> list[str]:
    """Return a warning if the planned changes take rights away from the login.

    Raises Conflict unless the task allows it.
    """
    caller = TaskLogin(login)
    row = facts.users.get(caller.user, {})
    known = access_control(caller, row, facts.roles.values(), entries_of(facts.rights))
    after = known
    for one in planned:
        after = _changed(after, one.kind, one.resource.desired, caller)
    loss = loss_between(known, after, caller)
    if any(_is_login(one, caller) for one in planned):
        loss = OwnLoss(NOT_ACCEPTED, LOGIN)
    if loss is None:
        return []
    attempted = f"Refused to change {tenant.label}"
    return [require_allowed(loss, login, attempted, allow_self=tenant.allow_self)]


def _is_login(one: PlannedResource, caller: TaskLogin) -> bool:
    """Return whether a planned resource is the removal of the login's user or token."""
    keys = one.resource.desired.keys
    names = {
        "user": (keys.get("name"), caller.user),
        "token": (f"{keys.get('owner')}!{keys.get('name')}", caller.who),
    }
    removed, own = names.get(one.kind, ("", caller.who))
    return removed == own and not one.resource.desired.present


def _changed(
    known: AccessControl, kind: str, desired: DesiredResource, caller: TaskLogin
) -> AccessControl:
    """Return the access control after one resource was written."""
    name = desired.keys.get("name", "")
    if kind == "acl":
        path = desired.keys["path"]
        entries = [(path, grant) for grant in desired.members["grants"]]
        if desired.present:
            return known.with_entries(adds=entries)
        return known.with_entries(removes=entries)
    if kind == "role":
        return known.with_role(name, desired.members.get("privileges", ()))
    if kind == "user" and name == caller.user:
        return replace(known, groups=known.groups.union(desired.members.get("groups", ())))
    without = {"group": known.without_group, "pool": known.without_pool}
    if kind in without and not desired.present:
        return without[kind](name)
    return known
