# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Age and expiry of tokens: due rotations, warnings, and the findings of the audit (pure).

Times are in seconds since 1970.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..audit import AuditFinding
from ..facts import TenantFacts
from ..model import DAY, Tenant, creation_day

WARNING_DAYS = 14


def expiry_of(token: Mapping[str, Any]) -> int:
    """Return the expiry of a token, 0 for never."""
    return int(token.get("expire") or 0)


def days_left(token: Mapping[str, Any], now: float) -> int | None:
    """Return the whole days until a token expires, negative afterwards; None for never."""
    expire = expiry_of(token)
    if not expire:
        return None
    return int((expire - now) // DAY)


def is_due(tenant: Tenant, token: Mapping[str, Any], now: float, within: int) -> bool:
    """Return whether a token must be rotated: it expires within `within` days, or never although
    the tenant requires an expiry.
    """
    remaining = days_left(token, now)
    if remaining is None:
        return not tenant.never_expires
    return remaining < within


def warnings_of(tenant: Tenant, facts: TenantFacts, name: str | None, now: float) -> list[str]:
    """Return the warnings about a tenant's token in use."""
    token = facts.tokens_of(tenant.user).get(name or "")
    if token is None:
        return []
    remaining = days_left(token, now)
    whole, step = f"Token '{tenant.user}!{name}'", "set state=rotated to give the tenant another"
    if remaining is None and not tenant.never_expires:
        return [f"{whole} never expires: {step} that does, or set expire=never to keep it"]
    if remaining is not None and remaining < 0:
        return [f"{whole} has expired: {step}"]
    if remaining is not None and remaining < WARNING_DAYS:
        return [f"{whole} expires in {remaining} days: {step}"]
    return []


@dataclass(frozen=True)
class TokenRules:
    """The limits of the audit, in days; `lasting` tokens may have any age and no expiry."""

    now: float
    max_age: int
    warning: int
    lasting: frozenset[str]


def lasting_tokens(
    named: Collection[str], tenants: Collection[Tenant], facts: TenantFacts
) -> set[str]:
    """Return the tokens that may have no expiry: the named ones, and all tokens of tenants
    described without expiry.
    """
    found = set(named)
    for tenant in tenants:
        if tenant.never_expires:
            known = facts.tokens_of(tenant.user)
            found.update(f"{tenant.user}!{name}" for name in tenant.tokens if name in known)
    return found


def find_token_faults(
    facts: TenantFacts, realms: Collection[str], rules: TokenRules
) -> Iterator[AuditFinding]:
    """Yield tokens that have expired, expire soon or never, are too old, or have no valid realm."""
    for user in sorted(facts.users):
        realm = user.rpartition("@")[2]
        for name, token in sorted(facts.tokens_of(user).items()):
            whole = f"{user}!{name}"
            if realm not in realms:
                text = f"Token {whole} is of a user whose realm does not exist"
                yield AuditFinding("unknown_user", None, whole, text)
            yield from _find_expiry_faults(whole, token, rules)
            age = _age(token, rules.now)
            if age > rules.max_age and whole not in rules.lasting:
                text = f"Token {whole} was created {age} days ago, {rules.max_age} are allowed"
                yield AuditFinding("old_token", None, whole, text)


def find_unknown_tokens(facts: TenantFacts, named: Collection[str]) -> Iterator[AuditFinding]:
    """Yield names of tokens in the option lasting_tokens that do not exist."""
    for whole in sorted(named):
        user, _mark, name = whole.partition("!")
        if name not in facts.tokens_of(user):
            text = f"lasting_tokens names token {whole}, which does not exist"
            yield AuditFinding("unknown", None, whole, text)


def _find_expiry_faults(
    whole: str, token: Mapping[str, Any], rules: TokenRules
) -> Iterator[AuditFinding]:
    remaining = days_left(token, rules.now)
    if remaining is None:
        if whole not in rules.lasting:
            yield AuditFinding("no_expiry", None, whole, f"Token {whole} never expires")
    elif remaining < 0:
        text = f"Token {whole} has expired: rotate or delete it"
        yield AuditFinding("expired_token", None, whole, text)
    elif remaining < rules.warning:
        text = f"Token {whole} expires in {remaining} days, {rules.warning} are required: rotate it"
        yield AuditFinding("expires_soon", None, whole, text)


def _age(token: Mapping[str, Any], now: float) -> int:
    """Return the age of a token in days, 0 if its comment contains no date."""
    day = creation_day(token)
    if day is None:
        return 0
    try:
        created = datetime.datetime.fromisoformat(f"{day}T00:00:00+00:00")
    except ValueError:
        return 0
    seconds = now - created.timestamp()
    return int(seconds // DAY)
