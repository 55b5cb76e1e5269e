# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The token of a tenant: its plan, its creation, and the place of its secret."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...._foundation.core.errors import Conflict, FleetError
from ...._foundation.core.marks import without_mark
from ...._foundation.core.result import Result
from ...._foundation.resource.decide import read_desired
from ...access.login import credentials
from ...access.login.credentials import LoginKeeper, StoredLogin
from ...access.run_token import run_token
from ...access.token import TOKEN, precheck_token
from ..facts import LISTED_TOKEN, TenantFacts
from ..marks import existing_tokens, foreign_tokens, require_free_token
from ..model import Tenant
from ..tenant_resources import TenantResource
from ..work import PlannedResource, TenantProgress, plan_resources

if TYPE_CHECKING:
    from ...._foundation.api.client import Client

_ROTATION = re.compile(r"rotation ([0-9]{1,9})(?![0-9])")


def with_token_name(tenant: Tenant, facts: TenantFacts) -> Tenant:
    """Return the tenant with a name for its token if the task sets none.

    If several tenants share an owner, the token of the first tenant has the default name.
    """
    if tenant.names_token or existing_tokens(tenant, facts):
        return tenant
    other = replace(tenant, token=f"{tenant.token}.{tenant.name}")
    others = foreign_tokens(tenant, facts)
    tags = set(map(others.get, tenant.tokens))
    if tags != {None} or existing_tokens(other, facts):
        return other
    return tenant


def rotation_of(facts: TenantFacts, tenant: Tenant, name: str) -> int:
    """Return the number of rotations before this token was created."""
    token = facts.tokens_of(tenant.user)[name]
    found = _ROTATION.search(str(token.get("comment") or ""))
    return 0 if found is None else int(found[1])


def current_token(tenant: Tenant, facts: TenantFacts) -> str | None:
    """Return the name of its newest token, or None."""
    names = existing_tokens(tenant, facts)
    if not names:
        return None
    return max(names, key=lambda name: rotation_of(facts, tenant, name))


def new_token_resource(
    tenant: Tenant, name: str, client: Client, rotation: int = 0
) -> TenantResource:
    """Return a token to create. Its comment has its creation day: Proxmox VE does not store it."""
    now = client.plan_book.decided_at(client.clock.time())
    today = time.strftime("%Y-%m-%d", time.gmtime(now))
    comment = f"Tenant {tenant.name}, created {today}"
    if rotation:
        comment += f", rotation {rotation}"
    return token_resource(tenant, name, tenant.marked(comment), tenant.new_expiry(now))


def token_resource(
    tenant: Tenant, name: str, comment: str | None = None, expire: str | None = None
) -> TenantResource:
    """Return a token of the tenant, with all rights of its user, who has only the tenant's rights.

    The expiry of an existing token is not changed unless the task sets one.
    """
    options = {
        "owner": tenant.user,
        "name": name,
        "privilege_separation": False,
        "expire": expire or tenant.expire,
        "comment": comment,
    }
    reads = replace(LISTED_TOKEN, precheck=precheck_token)
    return TenantResource(reads, TOKEN, read_desired(TOKEN, options))


def adopted_token_resources(tenant: Tenant, facts: TenantFacts) -> list[TenantResource]:
    """Return the changes that put the tenant's mark on the tokens that it adopts."""
    resources: list[TenantResource] = []
    known = facts.tokens_of(tenant.user)
    for name in existing_tokens(tenant, facts):
        comment = tenant.marked(known[name].get("comment"))
        options = {"owner": tenant.user, "name": name, "comment": comment}
        resources.append(TenantResource(LISTED_TOKEN, TOKEN, read_desired(TOKEN, options)))
    return resources


def absent_token_resource(user: str, name: str) -> TenantResource:
    """Return the removal of a token."""
    options = {"owner": user, "name": name, "state": "absent"}
    return TenantResource(LISTED_TOKEN, TOKEN, read_desired(TOKEN, options))


def lost_token(tenant: Tenant, facts: TenantFacts, stored: StoredLogin) -> str | None:
    """Return the token for this file whose secret an interrupted run lost, or None."""
    if not stored.mark:
        return None
    for name in existing_tokens(tenant, facts):
        comment = without_mark(facts.tokens_of(tenant.user)[name].get("comment"))
        if comment.endswith(_run_mark(stored.mark)):
            return name
    return None


def _run_mark(mark: str) -> str:
    return f", run {mark}"


def plan_token(
    tenant: Tenant, facts: TenantFacts, reader: Client, stored: StoredLogin
) -> tuple[list[PlannedResource], list[PlannedResource]]:
    """Return the plan to remove a token whose secret is lost, and the plan of the tenant's token.

    A plan without changes is empty.
    """
    name = current_token(tenant, facts)
    lost = lost_token(tenant, facts, stored)
    if lost is not None:
        resource = new_token_resource(tenant, lost, reader)
        return plan_removal(tenant, lost, reader), plan_resources(
            [without_reading(resource)], reader
        )
    if name is None:
        require_free_token(tenant, facts, tenant.token, f"{tenant.label} was not created")
        resource = new_token_resource(tenant, tenant.token, reader)
    else:
        resource = token_resource(tenant, name)
    return [], plan_resources([resource], reader)


def plan_removal(tenant: Tenant, name: str | None, reader: Client) -> list[PlannedResource]:
    """Return the plan to remove a token, empty if `name` is None."""
    if name is None:
        return []
    return plan_resources([absent_token_resource(tenant.user, name)], reader)


def without_reading(resource: TenantResource) -> TenantResource:
    """Return a token that is planned as if it did not exist, because it is removed first."""
    return replace(resource, reads=replace(resource.reads, pick=lambda _answer, _keys: None))


def write_token(
    tenant: Tenant,
    resource: TenantResource,
    client: Client,
    report: TenantProgress,
    keeper: LoginKeeper,
) -> dict[str, Any] | None:
    """Create or change a token. Return the login if its secret is new and no file keeps it.

    Raises Conflict if another run created the token, unless that run wrote this file.
    """
    login = send_token(tenant, resource, client, report, keeper)
    if login is not None and keeper.place is not None:
        report.run(partial(keeper.keep, login))
        return None
    if login is None and creates(resource):
        report.run(partial(_require_written, tenant, resource, keeper))
    return login


def create_token(
    tenant: Tenant,
    resource: TenantResource,
    client: Client,
    report: TenantProgress,
    keeper: LoginKeeper,
) -> dict[str, Any]:
    """Create a token and return the login. Raises Conflict if another run created the token."""
    login = send_token(tenant, resource, client, report, keeper)
    if login is None:
        report.run(partial(_require_written, tenant, resource, None))
    return login or {}


def send_token(
    tenant: Tenant,
    resource: TenantResource,
    client: Client,
    report: TenantProgress,
    keeper: LoginKeeper,
) -> dict[str, Any] | None:
    """Create or change a token. Return the login if this run received the secret."""
    keys, values = resource.desired.keys, resource.desired.values
    comment = values.get("comment")
    if comment and keeper.stored.mark:
        comment = tenant.marked(without_mark(comment) + _run_mark(keeper.stored.mark))
    options = {
        **keys,
        "privilege_separation": False,
        "expire": str(values["expire"]) if "expire" in values else None,
        "comment": comment,
        "state": "present",
    }
    try:
        result = report.run(partial(run_token, options, client))
    except FleetError:
        report.run(keeper.require_unchanged)
        raise
    secret = result.values["secret"]
    if secret is None:
        return None
    return credentials.site_of(tenant.name, client.connection, _whole_name(resource), str(secret))


def _whole_name(resource: TenantResource) -> str:
    return f"{resource.desired.keys['owner']}!{resource.desired.keys['name']}"


def creates(resource: TenantResource) -> bool:
    """Return whether a token will be created: only a new token has a comment in its options."""
    return resource.desired.values.get("comment") is not None


def _require_written(
    tenant: Tenant, resource: TenantResource, keeper: LoginKeeper | None
) -> Result:
    """Raise Conflict unless the file contains the login of a token that another run created."""
    name = _whole_name(resource)
    if keeper is not None and keeper.place is not None:
        if credentials.read(keeper.place).token == name:
            return Result()
        keeper.release()
    raise Conflict(
        f"The token of {tenant.label} was not created: another run created '{name}' at the same "
        "time, and Proxmox VE returns a secret only once",
        "Use the login of the other run, or set state=rotated to give the tenant another"
        " token when that run has ended",
        "unknown secret",
    )


def require_known_secret(tenant: Tenant, facts: TenantFacts, keeper: LoginKeeper) -> None:
    """Raise Conflict if a token exists whose secret is not in the file.

    A token whose secret an interrupted run lost is replaced instead. Raises ConfigurationError if
    the file cannot be written: the new secret would be lost.
    """
    place, stored = keeper.place, keeper.stored
    if place is None:
        return
    credentials.require_writable(place)
    names = existing_tokens(tenant, facts)
    known = [f"{tenant.user}!{name}" for name in names]
    if not known or stored.token in known or names == [lost_token(tenant, facts, stored)]:
        return
    raise Conflict(
        f"The login of {tenant.label} was not written to {place.path}: token '{known[0]}' exists, "
        "and Proxmox VE returns a secret only once",
        "Set state=rotated (in the role: the playbook rotate) to give the tenant another"
        " token, or name the file that has the secret, or leave out credentials_file",
        "unknown secret",
    )
