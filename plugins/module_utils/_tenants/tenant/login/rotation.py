# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a tenant a new token while the token in use stays valid.

Proxmox VE 9.2 and later can replace the secret of a token, but that voids the old secret at once.
So the tenant gets a second token, its login is handed over, and the first token is removed last.
The comment of each token contains its rotation number, which shows the progress of an interrupted
run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...._foundation.api.client import Client
from ...._foundation.api.layers.caching import CachingReader
from ...._foundation.core.errors import (
    AuthenticationError,
    ConfigurationError,
    NotFound,
    ValidationFailed,
)
from ...._foundation.core.result import Result
from ...._foundation.core.texts.plan_lines import UNCHANGED, PlanLine, lines_of_diff, plan_lines
from ...access.login.credentials import LoginKeeper, StoredLogin, require_writable
from ..checks import require_plans_permitted
from ..describe import describe
from ..facts import TenantFacts, read_facts
from ..marks import existing_tokens, require_free_token
from ..model import Tenant
from ..own_loss import own_warnings
from ..tenant_resources import TenantResource
from ..work import (
    PlannedResource,
    TenantProgress,
    diff_of,
    execute_resources,
    plan_resources,
    read_result,
    summaries,
)
from .token import (
    adopted_token_resources,
    create_token,
    lost_token,
    new_token_resource,
    plan_removal,
    rotation_of,
    with_token_name,
    without_reading,
)
from .token_age import expiry_of, is_due


@dataclass(frozen=True)
class RotationState:
    """The state of a rotation: the token in use, and the remaining work.

    `orphan` was created by a run that ended before it handed the token over. `successor` is the
    token to create, `old` the token to remove.
    """

    in_use: str
    orphan: str | None = None
    successor: str | None = None
    old: str | None = None


def rotate(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Give the tenant a new token; with C(finish) only complete an interrupted rotation."""
    _require_place(params)
    keeper = LoginKeeper.open(params, tenant.name)
    if keeper.place is not None:
        require_writable(keeper.place)
    reader = CachingReader(client)
    facts = read_facts(reader)
    tenant = with_token_name(tenant, facts)
    in_use, secret = _login_in_use(tenant, params, facts, keeper.stored)
    now = client.clock.time()
    state = _find_state(tenant, params, facts, (in_use, secret), now)
    tenant = _with_expiry(tenant, facts, in_use, now)
    before = plan_resources(adopted_token_resources(tenant, facts), reader)
    before += plan_removal(tenant, state.orphan, reader)
    successor, planned = _plan_successor(tenant, facts, state, client, reader)
    keeps = params.get("old_token") == "keep" and not params.get("finish")
    old = None if keeps else state.old
    after = plan_removal(tenant, old, reader)
    whole = [*before, *planned, *after]
    require_plans_permitted(reader, [one.plan for one in whole])
    own = own_warnings(tenant, client.login, facts, whole)
    report, login = TenantProgress(blinds=bool(own), warnings=own), None
    final: TenantFacts | None = facts
    if whole and not check_mode:
        if successor is not None:
            report.run(partial(_reserve_place, keeper, client, is_lost=bool(before)))
        execute_resources(before, client, report)
        if successor is not None:
            login = create_token(tenant, successor, client, report, keeper)
            (site,) = login["sites"]
            in_use, secret = str(site["token_id"]), str(site["token_secret"])
            report.run(partial(verify, tenant, client, in_use, secret))
            if keeper.place is not None:
                report.run(partial(keeper.keep, login))
                in_use, secret = keeper.login or (in_use, secret)
                login = None
        if after:
            report.run(partial(verify, tenant, client, in_use, secret))
        execute_resources(after, client, report)
        final = read_result(client, report, login)
    values = {
        "tenant": describe(tenant, final, {}) if final is not None else None,
        "credentials": login,
        "vms": [],
        "plan": summaries(whole),
        "done": report.done,
    }
    diff = diff_of(whole)
    rows = lines_of_diff(diff["before"], diff["after"]) or [PlanLine(UNCHANGED, tenant.label)]
    values["report"] = plan_lines(rows, check_mode=check_mode)
    return Result(bool(whole), values, diff, tuple(report.warnings))


def _with_expiry(tenant: Tenant, facts: TenantFacts, in_use: str, now: float) -> Tenant:
    """Return the tenant with the expiry of its new token.

    Without O(expire), that is the end of O(token_life), or the expiry of the token in use if that
    is a later date.
    """
    if tenant.expire is not None:
        return tenant
    usual = int(tenant.new_expiry(now))
    return replace(tenant, expire=str(max(expiry_of(_token(tenant, facts, in_use)), usual)))


def _token(tenant: Tenant, facts: TenantFacts, whole: str) -> Mapping[str, Any]:
    return facts.tokens_of(tenant.user)[whole.rpartition("!")[2]]


def _find_state(
    tenant: Tenant,
    params: Mapping[str, Any],
    facts: TenantFacts,
    login: tuple[str, str | None],
    now: float,
) -> RotationState:
    """Return the state of the rotation, without remaining work if no rotation is due."""
    in_use, secret = login
    finish = bool(params.get("finish"))
    state = read_state(tenant, facts, in_use, finish=finish)
    starts = state.successor is not None and state.orphan is None
    within = params.get("expires_within")
    if starts and within is not None:
        token = _token(tenant, facts, in_use)
        return state if is_due(tenant, token, now, int(within)) else RotationState(state.in_use)
    if state.old and not state.successor and not secret and not finish:
        # The token in use cannot be verified, so the other token cannot just be removed: it is
        # replaced by a new token with a known secret.
        return RotationState(state.in_use, orphan=state.old, successor=state.old, old=state.in_use)
    return state


def _reserve_place(keeper: LoginKeeper, client: Client, *, is_lost: bool) -> Result:
    """Check that there is room for the login, and reserve a file that contains no login.

    A file with a login is not changed until the new login is verified.
    """
    if keeper.stored.token is not None:
        return keeper.require_room(client.connection)
    return keeper.reserve(client.connection, again=is_lost)


def _require_place(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed if the old token would be removed before anyone has the new one."""
    if params.get("credentials_file") or params.get("finish") or params.get("old_token") == "keep":
        return
    raise ValidationFailed(
        "state=rotated was refused: without credentials_file the new login is returned at the "
        "end, when the old token would be gone",
        "Set credentials_file; or set old_token=keep, hand the new login over, and run"
        " again with finish=true",
        "credentials_file",
    )


def _login_in_use(
    tenant: Tenant, params: Mapping[str, Any], facts: TenantFacts, stored: StoredLogin
) -> tuple[str, str | None]:
    """Return the token ID in use and, if known, its secret."""
    names = existing_tokens(tenant, facts)
    attempted = f"The token of {tenant.label} was not rotated"
    if not names:
        for name in tenant.tokens:
            require_free_token(tenant, facts, name, attempted)
        raise NotFound(
            f"{attempted}: user '{tenant.user}' has no token {' or '.join(tenant.tokens)}",
            "Create it with state=present",
            "unknown token",
        )
    named = params.get("current_token")
    if stored.token in [f"{tenant.user}!{name}" for name in names]:
        return str(stored.token), stored.secret
    if named in names:
        return f"{tenant.user}!{named}", params.get("current_secret")
    lost = lost_token(tenant, facts, stored)
    others = [name for name in names if name != lost] or names
    if len(others) == 1 and not named:
        return f"{tenant.user}!{others[0]}", params.get("current_secret")
    raise ConfigurationError(
        f"{attempted}: it is not known which of its tokens is in use: {', '.join(names)}",
        "Name the one in use in current_token (in the role: tenant_current_token), or the"
        " file with its login in credentials_file",
        "token in use",
        details={"tokens": names},
    )


def read_state(tenant: Tenant, facts: TenantFacts, in_use: str, *, finish: bool) -> RotationState:
    """Return the remaining work of a rotation (pure)."""
    name = in_use.rpartition("!")[2]
    first, second = tenant.tokens
    other = second if name == first else first
    if other not in existing_tokens(tenant, facts):
        if finish:
            return RotationState(name)
        return RotationState(name, successor=other, old=name)
    if rotation_of(facts, tenant, other) < rotation_of(facts, tenant, name):
        return RotationState(name, old=other)  # already handed over, but not completed
    if finish:
        return RotationState(name, orphan=other)
    return RotationState(name, orphan=other, successor=other, old=name)


def _plan_successor(
    tenant: Tenant, facts: TenantFacts, state: RotationState, client: Client, reader: Client
) -> tuple[TenantResource | None, list[PlannedResource]]:
    """Return the new token, or None if the rotation creates no token; and its plan, as if an orphan
    with its name were already removed.
    """
    if state.successor is None:
        return None, []
    attempted = f"The token of {tenant.label} was not rotated"
    require_free_token(tenant, facts, state.successor, attempted)
    number = rotation_of(facts, tenant, state.in_use) + 1
    successor = new_token_resource(tenant, state.successor, client, number)
    planned = without_reading(successor) if state.orphan else successor
    return successor, plan_resources([planned], reader)


def verify(tenant: Tenant, client: Client, token_id: str, secret: str | None) -> Result:
    """Raise if the login does not work, or has no right on the tenant's pool; one request."""
    attempted = f"The new login of {tenant.label} was not verified, so the old token stays"
    known = _require_secret(secret, token_id, attempted)
    connection = replace(client.connection, token_id=token_id, token_secret=known, password="")
    with Client(connection, clock=client.clock) as other:
        path = f"/pool/{tenant.pool}"
        answer: Mapping[str, Any] = other.get(
            "access", "permissions", params={"path": path}, attempted=attempted
        )
    _require_rights((answer or {}).get(path), path, token_id, attempted)
    return Result()


def _require_secret(secret: str | None, token_id: str, attempted: str) -> str:
    """Return the secret. Raises ConfigurationError if it is not known (pure)."""
    if secret:
        return secret
    raise ConfigurationError(
        f"{attempted}: the secret of '{token_id}' is not known",
        "Set credentials_file, or current_token and current_secret",
        "unknown secret",
    )


def _require_rights(held: object, path: str, token_id: str, attempted: str) -> None:
    """Raise AuthenticationError for a login without a privilege on the path (pure)."""
    if not held:
        raise AuthenticationError(
            f"{attempted}: '{token_id}' has no right on {path}",
            "Run with state=present to give the tenant its rights, then again",
            "no rights",
        )
