# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of ACME accounts, and of ACME plugins, which prove the control of a domain (pve-manager:
PVE/API2/ACMEAccount.pm, ACMEPlugin.pm; libproxmox-acme-perl: PVE/ACME/DNSChallenge.pm).

The calls for accounts have no permissions, so only root@pam itself may send them, not a token.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.api.root import require_root
from ...._foundation.core import validate
from ...._foundation.core.errors import Conflict, NotFound, NotSupported, ValidationFailed
from ...._foundation.core.parallel import side_by_side
from ...._foundation.core.result import Result
from ...._foundation.resource.run import run_info
from ...._foundation.resource.table import (
    Call,
    DesiredResource,
    Field,
    Key,
    ResourceChange,
    Secret,
    Table,
)
from ...._foundation.resource.values import (
    as_set,
    flag_field,
    number_field,
    secret,
    send_set,
    set_field,
    text_field,
)
from ..settings.acme import acme_of
from .certificate import refused

_ALL = ("cluster", "acme", "account")
_ONE = Call((*_ALL, "{name}"), is_task=True)
# The first directory in ACMEAccount.pm, which Proxmox VE uses by default.
DIRECTORY = "https://acme-v02.api.letsencrypt.org/directory"
_PLUGINS = ("cluster", "acme", "plugins")
_DNS = ("dns",)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def resolve(client: Api, desired: DesiredResource) -> DesiredResource:
    """Return `desired` unchanged. Raises PermissionDenied for a login other than root@pam."""
    require_root(client.login, f"{ACME_ACCOUNT.label(desired.keys)} was not changed")
    return desired


def run_accounts_info(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Return the ACME accounts, all or the named one. Nothing is written."""
    require_root(client.login, "The ACME accounts were not read")
    return run_info(ACME_ACCOUNT, params, client)


def pick(answer: Any, _keys: Mapping[str, str]) -> Mapping[str, Any]:
    """Return an account with its contact addresses."""
    account = answer.get("account") or {}
    contact = [str(one).removeprefix("mailto:") for one in account.get("contact") or ()]
    found = {"contact": ",".join(contact), "status": account.get("status")}
    return {**answer, **found, "tos_url": answer.get("tos")}


def _keep(value: Any, _option: str) -> str:
    return str(value)


def precheck(client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise any refusal before the first write.

    One request for the terms of the CA if the account is new. If the account is deactivated, one
    for the list of nodes, and one for the settings of each node that is online.
    """
    name = desired.keys["name"]
    if change.creates:
        directory = desired.values.get("directory") or DIRECTORY
        attempted = f"Could not read the terms of {directory}"
        terms: Mapping[str, Any] = {}
        with suppress(NotFound, NotSupported):  # PVE cannot read them
            meta = client.get("cluster", "acme", "meta", directory=directory, attempted=attempted)
            terms = meta or {}
        require_terms(desired, terms, f"{ACME_ACCOUNT.label(desired.keys)} was not created")
    if change.deletes:
        require_unused(name, _users(client, name))
    return ()


def require_terms(desired: DesiredResource, terms: Mapping[str, Any], attempted: str) -> None:
    """Raise ValidationFailed if the CA would refuse the account (pure)."""
    given = {name for name in ("eab_kid", "eab_hmac_key") if desired.secrets.get(name)}
    if len(given) == 1 or (terms.get("externalAccountRequired") and not given):
        raise ValidationFailed(
            f"{attempted}: an external account has a key identifier and an HMAC key",
            "Set eab_kid and eab_hmac_key, as the CA gives them",
            "external account",
        )
    url = terms.get("termsOfService")
    if url and not desired.values.get("tos_url"):
        raise ValidationFailed(
            f"{attempted}: the CA asks for the agreement to {url}",
            "Read these terms, and set tos_url to their address",
            "tos_url",
        )


def _users(client: Api, name: str) -> list[str]:
    """Return the nodes that order their certificates with an account."""
    rows = client.get("nodes", attempted="Could not list the nodes") or []
    nodes = sorted(str(row["node"]) for row in rows if row.get("status") == "online")

    def is_user(node: str) -> bool:
        attempted = f"Could not read the settings of node {node}"
        settings = acme_of(client.get("nodes", node, "config", attempted=attempted) or {})
        return bool(settings.domains) and settings.account == name

    found = side_by_side(is_user, nodes)
    return [node for node, uses in zip(nodes, found, strict=True) if uses]


def require_unused(name: str, nodes: list[str]) -> None:
    """Raise Conflict if nodes order certificates with an account (pure)."""
    if nodes:
        raise Conflict(
            f"ACME account '{name}' was not deactivated: nodes order their certificates with it: "
            f"{', '.join(nodes)}",
            "Set another account of them first: acme of pve.fleet.node",
            "in use",
            details={"nodes": nodes},
        )


ACME_ACCOUNT = Table(
    kind="acme_account",
    title="ACME account",
    keys=(Key("name", "name", validate.config_id),),
    fields=(
        Field(
            "contact",
            "contact",
            want=as_set(),
            read=as_set(),
            send=send_set(),
            show=sorted,
            required=True,
        ),
        text_field("directory", default=DIRECTORY, fixed=True),
        Field("tos_url", "tos_url", fixed=True),
    ),
    read_only=(Field("status", "status"), Field("location", "location")),
    secrets=tuple(
        Secret(option, option.replace("_", "-"), call=None, requested_by=None, check=_keep)
        for option in ("eab_kid", "eab_hmac_key")
    ),
    list_call=Call(_ALL),
    read_call=Call(_ONE.path),
    create_call=Call(_ALL, {"name": "{name}"}, is_task=True),
    update_call=_ONE,
    delete_call=_ONE,
    list_is_whole=False,
    pick=pick,
    resolve=resolve,
    precheck=precheck,
)


def as_plugin_data(given: Any, option: str) -> str:
    """Return the variables of a DNS plugin as PVE stores them: lines in Base64.

    Raises ValidationFailed, which does not contain the values.
    """
    lines: list[str] = []
    for name, value in sorted(given.items()):
        text = str(value)
        if not _NAME.fullmatch(str(name)) or "\n" in text:
            answer = f"{name} is not a variable with a text of one line"
            step = "Write variables as the plugin has them, such as CF_Token"
            raise refused(answer, step, option)
        lines.append(f"{name}={text}\n")
    return base64.b64encode("".join(lines).encode()).decode()


ACME_PLUGIN = Table(
    kind="acme_plugin",
    title="ACME plugin",
    keys=(Key("name", "plugin", validate.config_id),),
    fields=(
        text_field("type", fixed=True, required=True),
        text_field("api", required=_DNS, variants=_DNS),
        number_field("validation_delay", 30, name="validation-delay", variants=_DNS),
        set_field("nodes"),
        flag_field("disable"),
    ),
    secrets=(secret("data", "data", _DNS, as_plugin_data),),
    variant="type",
    digest=("PUT",),
    list_call=Call(_PLUGINS),
    read_call=Call((*_PLUGINS, "{name}")),
    create_call=Call(_PLUGINS, {"id": "{name}"}),
)
