# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The token of a tenant: its plan, its creation, and where its secret goes."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from .._access.run_token import run_token
from .._access.token import TOKEN, check_token
from .._core.errors import Conflict
from .._core.result import Result
from .._resource.decide import read_desired
from . import credentials
from .facts import LISTED_TOKEN, Facts
from .model import Tenant
from .parts import Part
from .work import PlannedPart, Report, plan_parts

if TYPE_CHECKING:
    from .._api.client import Client

_ROTATION = re.compile(r"rotation ([0-9]{1,9})(?![0-9])")


def existing_tokens(tenant: Tenant, facts: Facts) -> list[str]:
    """Return the names of its tokens that exist: one, or two while it is rotated."""
    known = facts.tokens_of(tenant.user)
    return [name for name in tenant.tokens if name in known]


def rotation_of(facts: Facts, tenant: Tenant, name: str) -> int:
    """Return how often the tenant had been given another token when this one was created."""
    token = facts.tokens_of(tenant.user)[name]
    found = _ROTATION.search(str(token.get("comment") or ""))
    if found is None:
        return 0
    return int(found[1])


def current_token(tenant: Tenant, facts: Facts) -> str | None:
    """Return the name of its newest token, or None."""
    names = existing_tokens(tenant, facts)
    if not names:
        return None
    return max(names, key=lambda name: rotation_of(facts, tenant, name))


def new_comment(tenant: Tenant, client: Client, rotation: int = 0) -> str:
    """Return the comment of a new token: Proxmox VE does not keep when a token was created."""
    today = time.strftime("%Y-%m-%d", time.gmtime(client.clock.time()))
    comment = f"{tenant.mark}, created {today}"
    if rotation:
        comment += f", rotation {rotation}"
    return comment


def token_part(tenant: Tenant, name: str, comment: str | None = None) -> Part:
    """Return one of its tokens. It has all rights of its user, which are those of the tenant."""
    options = {
        "owner": tenant.user,
        "name": name,
        "privilege_separation": False,
        "expire": tenant.expire,
        "comment": comment,
    }
    reads = replace(LISTED_TOKEN, precheck=check_token)
    return Part(reads, TOKEN, read_desired(TOKEN, options))


def absent_token_part(tenant: Tenant, name: str) -> Part:
    """Return the removal of one of its tokens."""
    options = {"owner": tenant.user, "name": name, "state": "absent"}
    return Part(LISTED_TOKEN, TOKEN, read_desired(TOKEN, options))


def plan_token(tenant: Tenant, facts: Facts, reader: Client) -> list[PlannedPart]:
    """Return the plan of the token, empty where nothing differs."""
    name = current_token(tenant, facts)
    if name is None:
        part = token_part(tenant, tenant.token, new_comment(tenant, reader))
    else:
        part = token_part(tenant, name)
    return plan_parts([part], reader)


def write_token(
    tenant: Tenant, part: Part, client: Client, report: Report, path: str | None
) -> dict[str, Any] | None:
    """Create or change a token. Return the login with a new secret, unless a file keeps it.

    Raises Conflict where another run created it, unless that run wrote this file.
    """
    login = send_token(tenant, part, client, report)
    if login is not None and path:
        report.run(partial(credentials.keep, path, tenant.name, login))
        return None
    if login is None and _creates(part):
        report.run(partial(_require_written, tenant, part, path))
    return login


def create_token(tenant: Tenant, part: Part, client: Client, report: Report) -> dict[str, Any]:
    """Create a token and return the login. Raises Conflict where another run created it."""
    login = send_token(tenant, part, client, report)
    if login is None:
        report.run(partial(_require_written, tenant, part, None))
    return login or {}


def send_token(tenant: Tenant, part: Part, client: Client, report: Report) -> dict[str, Any] | None:
    """Create or change a token. Return the login where this run got the secret."""
    keys, values = part.desired.keys, part.desired.values
    options = {
        **keys,
        "privilege_separation": False,
        "expire": tenant.expire,
        "comment": values.get("comment"),
        "state": "present",
    }
    result = report.run(partial(run_token, options, client))
    secret = result.values["secret"]
    if secret is None:
        return None
    return credentials.site_of(tenant.name, client.connection, _whole_name(part), str(secret))


def _whole_name(part: Part) -> str:
    return f"{part.desired.keys['owner']}!{part.desired.keys['name']}"


def _creates(part: Part) -> bool:
    """Return whether a token is to be created: only then the task sets its comment."""
    return part.desired.values.get("comment") is not None


def _require_written(tenant: Tenant, part: Part, path: str | None) -> Result:
    """Raise Conflict unless the file has the login of a token that another run created."""
    name = _whole_name(part)
    kept = credentials.read_token(path, tenant.name) if path else None
    if kept is not None and kept[0] == name:
        return Result()
    raise Conflict(
        attempted=f"The token of {tenant.label} was not created",
        answer=f"another run created '{name}' at the same time, and Proxmox VE returns a secret"
        " only once",
        next_step="Use the login of the other run, or set state=rotated to give the tenant another"
        " token when that run has ended",
        reason="unknown secret",
    )


def require_known_secret(tenant: Tenant, facts: Facts, path: str | None) -> None:
    """Raise Conflict where a token exists and the file, which would have its secret, does not.

    Raises ConfigurationError where the file cannot be written: a secret would be lost.
    """
    if not path:
        return
    kept = credentials.read_token(path, tenant.name)
    credentials.require_writable(path)
    known = [f"{tenant.user}!{name}" for name in existing_tokens(tenant, facts)]
    if not known:
        return
    if kept is not None and kept[0] in known:
        return
    raise Conflict(
        attempted=f"The login of {tenant.label} was not written to {path}",
        answer=f"token '{known[0]}' exists, and Proxmox VE returns a secret only once",
        next_step="Set state=rotated to give the tenant another token, or name the file that has"
        " the secret, or leave out credentials_file",
        reason="unknown secret",
    )
