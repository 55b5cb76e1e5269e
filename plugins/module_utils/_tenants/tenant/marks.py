# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ownership of a tenant's objects: they have its mark, or a task adopts them (pure).

Roles and registered tags have no comment. They belong to the tenant if any other object does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..._foundation.core.errors import Conflict, FleetError
from ..._foundation.core.marks import marked_tag
from .facts import Row, TenantFacts, entries_of
from .model import Tenant

TokenName = tuple[str, str]
"""User and name of a token."""


@dataclass(frozen=True)
class MarkedObject:
    """A pool, user or group with the name that a tenant uses for it.

    `is_own`: it exists and was created for the tenant, or the task adopts it. `comment` is its
    desired comment, None if it does not belong to the tenant.
    """

    label: str
    exists: bool
    is_own: bool
    comment: str | None


def pool_of(tenant: Tenant, facts: TenantFacts) -> MarkedObject:
    """Return the pool of a tenant."""
    is_usual = tenant.pool == tenant.name
    return _holding(tenant, f"Pool '{tenant.pool}'", facts.pools.get(tenant.pool), is_usual)


def user_of(tenant: Tenant, facts: TenantFacts) -> MarkedObject:
    """Return the user of a tenant."""
    row = facts.users.get(tenant.user)
    return _holding(tenant, f"User '{tenant.user}'", row, tenant.has_usual_user)


def group_of(tenant: Tenant, facts: TenantFacts) -> MarkedObject:
    """Return the group of a tenant; without a group, a holding that does not exist."""
    row = facts.groups.get(tenant.group or "")
    return _holding(tenant, f"Group '{tenant.group}'", row, False)


def _holding(tenant: Tenant, label: str, row: Row | None, is_usual: bool) -> MarkedObject:
    if row is None:
        return MarkedObject(label, exists=False, is_own=False, comment=tenant.mark)
    if not _is_own(tenant, row, is_usual):
        return MarkedObject(label, exists=True, is_own=False, comment=None)
    comment = tenant.marked(row.get("comment"))
    return MarkedObject(label, exists=True, is_own=True, comment=comment)


def _is_own(tenant: Tenant, row: Row, is_usual: bool) -> bool:
    """Return whether an object was created for the tenant, or the task adopts it.

    A task adopts an object without a mark only if its default name (`is_usual`) or a comment from
    an earlier version identifies the tenant.
    """
    comment = row.get("comment")
    tag = marked_tag(comment)
    if tag is not None:
        return tag == tenant.tag
    is_evident = is_usual or tenant.is_noted(comment)
    return tenant.adopt and is_evident


def existing_tokens(tenant: Tenant, facts: TenantFacts) -> list[str]:
    """Return the names of the tenant's existing tokens: two only during a rotation."""
    known = facts.tokens_of(tenant.user)
    names = [name for name in tenant.tokens if name in known]
    return [name for name in names if _is_own(tenant, known[name], tenant.has_usual_user)]


def all_tokens(tenant: Tenant, facts: TenantFacts) -> set[TokenName]:
    """Return all tokens that were created for the tenant, whichever user owns them."""
    found = {(tenant.user, name) for name in existing_tokens(tenant, facts)}
    for user in facts.users:
        for name, token in facts.tokens_of(user).items():
            if marked_tag(token.get("comment")) == tenant.tag:
                found.add((user, name))
    return found


def foreign_tokens(tenant: Tenant, facts: TenantFacts) -> dict[str, str | None]:
    """Return the tokens of its user that were not created for the tenant.

    They are by name, each with the tag of the tenant that it was created for, or None.
    """
    own = existing_tokens(tenant, facts)
    found: dict[str, str | None] = {}
    for name, token in sorted(facts.tokens_of(tenant.user).items()):
        tag = marked_tag(token.get("comment"))
        if name not in own and tag != tenant.tag:
            found[name] = tag
    return found


def unmarked_tokens(tenant: Tenant, facts: TenantFacts) -> list[str]:
    """Return the names of the tokens of its user that were created for no tenant."""
    return [name for name, tag in foreign_tokens(tenant, facts).items() if tag is None]


def _roles_of_others(tenant: Tenant, facts: TenantFacts, place: tuple[str, str]) -> list[str]:
    """Return the roles of other tenants on a path or of a subject; `place` is its kind and name."""
    prefix = tenant.prefix.lower()
    found: set[str] = set()
    for path, grant in entries_of(facts.rights):
        applies = place in (("path", path), (grant.kind, grant.who))
        if applies and grant.role.startswith(prefix):
            found.add(grant.role)
    return sorted(found.difference(tenant.roles.values()))


def _uses_of_user(tenant: Tenant, facts: TenantFacts) -> list[str]:
    others = foreign_tokens(tenant, facts)
    tokens = others.keys() - set(unmarked_tokens(tenant, facts))
    roles = _roles_of_others(tenant, facts, ("user", tenant.user))
    return [*roles, *(f"{tenant.user}!{name}" for name in sorted(tokens))]


def _uses_of_pool(tenant: Tenant, facts: TenantFacts) -> list[str]:
    """Return the roles of other tenants that give rights on its pool, which they share."""
    return _roles_of_others(tenant, facts, ("path", f"/pool/{tenant.pool}"))


def has_pool_alone(tenant: Tenant, facts: TenantFacts) -> bool:
    """Return whether the pool was created for the tenant and no other tenant has rights on it."""
    return pool_of(tenant, facts).is_own and not _uses_of_pool(tenant, facts)


@dataclass(frozen=True)
class TenantRemovals:
    """The objects that are removed with a tenant, besides its guests, roles and rights.

    `kept` are warnings about objects that stay.
    """

    pool: bool
    user: bool
    group: bool
    tokens: frozenset[TokenName]
    kept: tuple[str, ...]


def leaving_of(tenant: Tenant, facts: TenantFacts, strays: Iterable[str]) -> TenantRemovals:
    """Return the objects to remove; `strays` are unmarked tokens of its user to remove as well."""
    tokens = all_tokens(tenant, facts)
    tokens.update((tenant.user, name) for name in strays)
    kept: list[str] = []
    users_tokens = {(tenant.user, name) for name in facts.tokens_of(tenant.user)}
    staying = [f"token '{user}!{name}'" for user, name in sorted(users_tokens - tokens)]
    roles = _roles_of_others(tenant, facts, ("group", str(tenant.group)))
    user_uses = _uses_of_user(tenant, facts) or staying
    return TenantRemovals(
        user=_is_removable(tenant, user_of(tenant, facts), user_uses, kept),
        group=_is_removable(tenant, group_of(tenant, facts), roles, kept),
        pool=_is_removable(tenant, pool_of(tenant, facts), _uses_of_pool(tenant, facts), kept),
        tokens=frozenset(tokens),
        kept=tuple(kept),
    )


def _is_removable(tenant: Tenant, holding: MarkedObject, uses: list[str], kept: list[str]) -> bool:
    """Return whether an object is removed with the tenant; if not, add the reason to `kept`."""
    if not holding.exists:
        return False
    if not holding.is_own:
        kept.append(f"{holding.label} was not created for {tenant.label} and is kept")
        return False
    if uses:
        kept.append(f"{holding.label} is kept: it is used by {', '.join(uses)}")
        return False
    return True


def stray_tokens(tenant: Tenant, facts: TenantFacts) -> list[str]:
    """Return the names of unmarked tokens whose user would be removed with the tenant."""
    if user_of(tenant, facts).is_own and not _uses_of_user(tenant, facts):
        return unmarked_tokens(tenant, facts)
    return []


def is_established(tenant: Tenant, facts: TenantFacts) -> bool:
    """Return whether anything was created for the tenant: then its names belong to it."""
    if tenant.adopt or all_tokens(tenant, facts):
        return True
    holdings = (pool_of(tenant, facts), user_of(tenant, facts), group_of(tenant, facts))
    return any(one.is_own for one in holdings)


def require_established(tenant: Tenant, facts: TenantFacts, attempted: str) -> None:
    """Raise Conflict if objects with the tenant's names exist, but none has its mark."""
    found = [f"role '{name}'" for name in sorted(facts.roles.keys() & tenant.roles.values())]
    if not tenant.names_owner and tenant.user in facts.users:
        found.append(f"user '{tenant.user}'")
    if found and not is_established(tenant, facts):
        raise not_marked(tenant, found, attempted)


def require_own_user(tenant: Tenant, facts: TenantFacts) -> None:
    """Raise Conflict for a user that was not created for the tenant, unless the task names it."""
    user = user_of(tenant, facts)
    if tenant.names_owner or user.is_own or not user.exists:
        return
    raise not_marked(
        tenant,
        [f"user '{tenant.user}'"],
        f"{tenant.label} was not created",
        other=", or name a user in owner",
    )


def require_free_token(tenant: Tenant, facts: TenantFacts, name: str, attempted: str) -> None:
    """Raise Conflict if a token with this name exists that was not created for the tenant."""
    others = foreign_tokens(tenant, facts)
    if name not in others:
        return
    whole = f"token '{tenant.user}!{name}'"
    if others[name] is None:
        raise not_marked(tenant, [whole], attempted, other=", or set token to another name")
    raise Conflict(
        f"{attempted}: {whole} exists, and is of the tenant with the tag {others[name]}",
        "Set token to another name",
        "another token",
    )


def not_marked(tenant: Tenant, found: list[str], attempted: str, *, other: str = "") -> FleetError:
    """Return the error about objects without the mark; `other` is an alternative to adoption."""
    return Conflict(
        f"{attempted[:1].upper()}{attempted[1:]}: there is {', '.join(found)} without the mark "
        f"{tenant.marked('')} of the tenant",
        f"Set adopt=true if that was created for {tenant.label}{other}",
        "not marked",
        details={"unmarked": found},
    )
