"""Accounts at a CA of ACME; the account `default` is given.

Source: pve-manager, API2/ACMEAccount.pm. The CA of the simulation has terms of service; a directory
whose URL has `eab` asks for an external account. The texts of its refusals are not recorded.
"""

from __future__ import annotations

from typing import Any

from ..core.api import Ctx, api
from ..core.state import Cluster
from ..core.tasks import Task
from ..errors import ParamError, PveError
from ..schema.formats import split_list

BASE = "/cluster/acme/account"
LETS_ENCRYPT = "https://acme-v02.api.letsencrypt.org/directory"
STAGING = "https://acme-staging-v02.api.letsencrypt.org/directory"
TERMS = "https://letsencrypt.org/documents/LE-SA-v1.5-February-24-2025.pdf"

Account = dict[str, Any]


def accounts_of(cluster: Cluster) -> dict[str, Account]:
    """The accounts by name."""
    given = {"default": _account("ops@example.com", LETS_ENCRYPT, TERMS, 1)}
    found: dict[str, Account] = cluster.sections.setdefault("acme_accounts", given)
    return found


def _account(contact: str, directory: str, terms: str | None, number: int) -> Account:
    location = f"{directory.removesuffix('/directory')}/acme/acct/{number}"
    account = {"status": "valid", "contact": _addresses(contact)}
    return {"account": account, "directory": directory, "location": location, "tos": terms}


def _addresses(text: str | None) -> list[str]:
    return [f"mailto:{one}" for one in split_list(text or "")]


@api(f"GET {BASE}")
def listing(ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The names of the accounts."""
    return [{"name": name} for name in accounts_of(ctx.cluster)]


def _known(ctx: Ctx, name: str) -> Account:
    accounts = accounts_of(ctx.cluster)
    if name not in accounts:
        raise ParamError({"name": f"ACME account config file '{name}' does not exist."})
    return accounts[name]


@api(f"GET {BASE}/{{name}}")
def read(ctx: Ctx, p: dict[str, Any]) -> Account:
    """One account."""
    return _known(ctx, p["name"])


@api("GET /cluster/acme/meta")
def meta(_ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """The terms of a CA."""
    needs_external = "eab" in p.get("directory", LETS_ENCRYPT)
    return {"termsOfService": TERMS, "externalAccountRequired": int(needs_external)}


@api("GET /cluster/acme/directories")
def directories(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The CAs that Proxmox VE knows."""
    return [
        {"name": "Let's Encrypt V2", "url": LETS_ENCRYPT},
        {"name": "Let's Encrypt V2 Staging", "url": STAGING},
    ]


@api(f"POST {BASE}")
def register(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that registers an account."""
    cluster, name = ctx.cluster, p.get("name") or "default"
    taken = f"ACME account config file '{name}' already exists."
    if name in accounts_of(cluster):
        raise ParamError({"name": taken})
    directory = p.get("directory") or LETS_ENCRYPT

    async def work(_task: Task) -> None:
        accounts = accounts_of(cluster)
        if name in accounts:
            raise PveError(taken)
        if not p.get("tos_url"):
            raise PveError("Registration failed: the terms of service were not agreed to")
        if "eab" in directory and not p.get("eab-kid"):
            raise PveError("Registration failed: an external account is required")
        number = len(accounts) + 1
        accounts[name] = _account(p["contact"], directory, p["tos_url"], number)

    return ctx.task(cluster.local, "acmeregister", "", work)


@api(f"PUT {BASE}/{{name}}")
def update(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that changes the contact of an account, or reads it again from its CA."""
    account, contact = _known(ctx, p["name"]), _addresses(p.get("contact"))

    async def work(_task: Task) -> None:
        if contact:
            account["account"]["contact"] = contact

    return ctx.task(ctx.cluster.local, "acmeupdate" if contact else "acmerefresh", "", work)


@api(f"DELETE {BASE}/{{name}}")
def deactivate(ctx: Ctx, p: dict[str, Any]) -> str:
    """Start the task that deactivates an account; its file gets a name that is not listed."""
    _known(ctx, p["name"])

    async def work(_task: Task) -> None:
        accounts_of(ctx.cluster).pop(p["name"], None)

    return ctx.task(ctx.cluster.local, "acmedeactivate", "", work)
