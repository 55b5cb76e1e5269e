# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives a tenant another token while the one in use stays valid.

Proxmox VE can give a token another secret since 9.2, but the one in use is void at that moment. So
the tenant gets a second token, its login is handed over, and the first one is removed last. Each
token says in its comment how many were before it: that shows after an interruption how far a run
came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .._api.caching import CachingReader
from .._api.client import Client
from .._core.errors import (
    AuthenticationError,
    ConfigurationError,
    Conflict,
    NotFound,
    ValidationFailed,
)
from .._core.result import Result
from . import credentials
from .checks import require_privileges
from .describe import describe
from .facts import Facts, read_facts
from .model import Tenant
from .parts import Part
from .token import (
    absent_token_part,
    create_token,
    existing_tokens,
    new_comment,
    rotation_of,
    token_part,
)
from .work import PlannedPart, Report, carry_out, diff_of, plan_parts, summaries


@dataclass(frozen=True)
class Turn:
    """Where a rotation is: the token in use, and what is to do.

    `leftover` was created by a run that ended before it handed it over. `successor` is still to be
    created, `old` to be removed.
    """

    in_use: str
    leftover: str | None = None
    successor: str | None = None
    old: str | None = None


def rotate(tenant: Tenant, params: Mapping[str, Any], client: Client, check_mode: bool) -> Result:
    """Give the tenant another token; with C(finish) only complete what a run began."""
    _require_place(params)
    path = params.get("credentials_file")
    kept = credentials.read_token(path, tenant.name) if path else None
    reader = CachingReader(client)
    facts = read_facts(reader)
    in_use, secret = _login_in_use(tenant, params, facts)
    tenant = _with_expiry(tenant, facts, in_use)
    turn = read_turn(tenant, facts, in_use, finish=bool(params.get("finish")))
    before = _plan_removal(tenant, turn.leftover, reader)
    made = _successor(tenant, facts, turn, client)
    planned = _plan_successor(made, turn, reader)
    keeps = params.get("old_token") == "keep" and not params.get("finish")
    old = None if keeps else turn.old
    after = _plan_removal(tenant, old, reader)
    whole = [*before, *planned, *after]
    require_privileges(reader, tenant, whole)
    report, login = Report(), None
    if whole and not check_mode:
        carry_out(before, client, report)
        if made is not None:
            login = create_token(tenant, made, client, report)
            in_use, secret = _only_login(login)
            report.run(partial(verify, tenant, client, in_use, secret))
            if path:
                report.run(partial(_hand_over, tenant, path, login, kept))
                in_use, secret = credentials.read_token(path, tenant.name) or (in_use, secret)
                login = None
        if after:
            report.run(partial(verify, tenant, client, in_use, secret))
        carry_out(after, client, report)
        facts = read_facts(client)
    values = {
        "tenant": describe(tenant, facts, {}),
        "credentials": login,
        "vms": [],
        "plan": summaries(whole),
        "done": report.done,
    }
    return Result(bool(whole), values, diff_of(whole), tuple(report.warnings))


def _with_expiry(tenant: Tenant, facts: Facts, in_use: str) -> Tenant:
    """Return the tenant; its new token expires as the one in use where the task says nothing."""
    name = in_use.rpartition("!")[2]
    expire = int(facts.tokens_of(tenant.user)[name].get("expire") or 0)
    if tenant.expire is not None or not expire:
        return tenant
    return replace(tenant, expire=str(expire))


def _hand_over(
    tenant: Tenant, path: str, login: Mapping[str, Any], kept: tuple[str, str] | None
) -> Result:
    """Write the new login to the file.

    Raises Conflict where the file is no longer as it was when the run began.
    """
    if credentials.read_token(path, tenant.name) == kept:
        return credentials.keep(path, tenant.name, login)
    raise Conflict(
        attempted=f"The new login of {tenant.label} was not written to {path}",
        answer="another run has written its own since this one began",
        next_step="Use that login, and run this again if the tenant needs another one",
        reason="changed since",
    )


def _plan_removal(tenant: Tenant, name: str | None, reader: Client) -> list[PlannedPart]:
    """Return the plan to remove a token, empty without one."""
    if name is None:
        return []
    return plan_parts([absent_token_part(tenant, name)], reader)


def _require_place(params: Mapping[str, Any]) -> None:
    """Raise ValidationFailed where the old token would be removed before anyone has the new one."""
    if params.get("credentials_file") or params.get("finish") or params.get("old_token") == "keep":
        return
    raise ValidationFailed(
        attempted="state=rotated was refused",
        answer="without credentials_file the new login is returned at the end, when the old token"
        " would be gone",
        next_step="Set credentials_file; or set old_token=keep, hand the new login over, and run"
        " again with finish=true",
        reason="credentials_file",
    )


def _login_in_use(
    tenant: Tenant, params: Mapping[str, Any], facts: Facts
) -> tuple[str, str | None]:
    """Return the whole name of the token in use and, where it is known, its secret."""
    names = existing_tokens(tenant, facts)
    attempted = f"The token of {tenant.label} was not rotated"
    if not names:
        raise NotFound(
            attempted=attempted,
            answer=f"user '{tenant.user}' has no token {' or '.join(tenant.tokens)}",
            next_step="Create it with state=present",
            reason="unknown token",
        )
    path, named = params.get("credentials_file"), params.get("current_token")
    kept = credentials.read_token(path, tenant.name) if path else None
    if kept is not None and kept[0] in [f"{tenant.user}!{name}" for name in names]:
        return kept
    if named in names:
        return f"{tenant.user}!{named}", params.get("current_secret")
    if len(names) == 1 and not named:
        return f"{tenant.user}!{names[0]}", params.get("current_secret")
    raise ConfigurationError(
        attempted=attempted,
        answer=f"it is not known which of its tokens is in use: {', '.join(names)}",
        next_step="Name the one in use in current_token, or the file with its login in"
        " credentials_file",
        reason="token in use",
        details={"tokens": names},
    )


def read_turn(tenant: Tenant, facts: Facts, in_use: str, *, finish: bool) -> Turn:
    """Return what is left to do (pure)."""
    name = in_use.rpartition("!")[2]
    first, second = tenant.tokens
    other = second if name == first else first
    if other not in existing_tokens(tenant, facts):
        if finish:
            return Turn(name)
        return Turn(name, successor=other, old=name)
    if rotation_of(facts, tenant, other) < rotation_of(facts, tenant, name):
        return Turn(name, old=other)  # handed over before, not yet completed
    if finish:
        return Turn(name, leftover=other)
    return Turn(name, leftover=other, successor=other, old=name)


def _successor(tenant: Tenant, facts: Facts, turn: Turn, client: Client) -> Part | None:
    """Return the new token, None where none is to be created."""
    if turn.successor is None:
        return None
    number = rotation_of(facts, tenant, turn.in_use) + 1
    return token_part(tenant, turn.successor, new_comment(tenant, client, number))


def _plan_successor(made: Part | None, turn: Turn, reader: Client) -> list[PlannedPart]:
    """Return the plan of the new token, which does not exist once a leftover is gone."""
    if made is None:
        return []
    if turn.leftover:
        made = replace(made, reads=replace(made.reads, pick=lambda _answer, _keys: None))
    return plan_parts([made], reader)


def _only_login(login: Mapping[str, Any]) -> tuple[str, str]:
    (site,) = login["sites"]
    return str(site["token_id"]), str(site["token_secret"])


def verify(tenant: Tenant, client: Client, token_id: str, secret: str | None) -> Result:
    """Raise where the login does not work, or has no right on the tenant's pool; one request."""
    attempted = f"The new login of {tenant.label} was not verified, so the old token stays"
    if not secret:
        raise ConfigurationError(
            attempted=attempted,
            answer=f"the secret of '{token_id}' is not known",
            next_step="Set credentials_file, or current_token and current_secret",
            reason="unknown secret",
        )
    connection = replace(client.connection, token_id=token_id, token_secret=secret, password="")
    with Client(connection, clock=client.clock) as other:
        path = f"/pool/{tenant.pool}"
        answer: Mapping[str, Any] = other.get(
            "access", "permissions", params={"path": path}, attempted=attempted
        )
    if not (answer or {}).get(path):
        raise AuthenticationError(
            attempted=attempted,
            answer=f"'{token_id}' has no right on {path}",
            next_step="Run with state=present to give the tenant its rights, then again",
            reason="no rights",
        )
    return Result()
