# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The token of a tenant: its plan, its creation, and where its secret goes."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._access.run_token import run_token
from .._access.token import TOKEN, check_token
from .._core.errors import Conflict
from .._resource.decide import read_desired
from . import credentials
from .facts import LISTED_TOKEN, Facts
from .model import Tenant
from .parts import Part
from .work import PlannedPart, Report, plan_parts

if TYPE_CHECKING:
    from .._api.client import Client

_ROTATION = re.compile(r"rotation (\d+)")


def existing_tokens(tenant: Tenant, facts: Facts) -> list[str]:
    """Return the names of its tokens that exist: one, or two while it is rotated."""
    known = facts.tokens_of(tenant.user)
    return [name for name in tenant.tokens if name in known]


def rotation_of(facts: Facts, tenant: Tenant, name: str) -> int:
    """Return how often the tenant had been given another token when this one was created."""
    found = _ROTATION.search(str(facts.tokens_of(tenant.user)[name].get("comment") or ""))
    return int(found[1]) if found else 0


def current_token(tenant: Tenant, facts: Facts) -> str | None:
    """Return the name of its newest token, or None."""
    names = existing_tokens(tenant, facts)
    if not names:
        return None
    return max(names, key=lambda name: rotation_of(facts, tenant, name))


def new_comment(tenant: Tenant, client: Client, rotation: int = 0) -> str:
    """Return the comment of a new token: Proxmox VE does not keep when a token was created."""
    today = time.strftime("%Y-%m-%d", time.gmtime(client.clock.time()))
    number = f", rotation {rotation}" if rotation else ""
    return f"{tenant.mark}, created {today}{number}"


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
    comment = None if name else new_comment(tenant, reader)
    return plan_parts([token_part(tenant, name or tenant.token, comment)], reader)


def write_token(
    tenant: Tenant, part: Part, client: Client, report: Report, path: str | None
) -> dict[str, Any] | None:
    """Create or change a token. Return the login with a new secret, unless a file keeps it."""
    keys, values = part.desired.keys, part.desired.values
    options = {
        **keys,
        "privilege_separation": False,
        "expire": tenant.expire,
        "comment": values.get("comment"),
        "state": "present",
    }
    result = report.run(lambda: run_token(options, client))
    if result.values["secret"] is None:
        return None
    token_id = f"{keys['owner']}!{keys['name']}"
    secret = str(result.values["secret"])
    login = credentials.site_of(tenant.name, client.connection, token_id, secret)
    if not path:
        return login
    report.run(lambda: credentials.keep(path, tenant.name, login))
    return None


def require_known_secret(tenant: Tenant, facts: Facts, path: str | None) -> None:
    """Raise Conflict where a token exists and the file, which would have its secret, does not.

    Raises ConfigurationError where the file cannot be written: a secret would be lost.
    """
    if not path:
        return
    kept = credentials.read_token(path, tenant.name)
    credentials.require_writable(path)
    known = [f"{tenant.user}!{name}" for name in existing_tokens(tenant, facts)]
    if not known or (kept is not None and kept[0] in known):
        return
    raise Conflict(
        attempted=f"The login of {tenant.label} was not written to {path}",
        answer=f"token '{known[0]}' exists, and Proxmox VE tells a secret only once",
        next_step="Set state=rotated to give the tenant another token, or name the file that has"
        " the secret, or leave out credentials_file",
        reason="unknown secret",
    )
