# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Certificates ordered from an ACME CA: module acme_certificate (pve-manager: API2/ACME.pm)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError
from ...._foundation.core.result import Result
from ...._foundation.resource.run import run
from ...._foundation.resource.table import Call, Field, as_is
from ..settings.acme import acme_of
from .certificate import NODE_CERTIFICATE, pick_own

_ORDER = Call(
    ("nodes", "{node}", "certificates", "acme", "certificate"), method="POST", is_task=True
)
_DAY = 86400
_NOT_ORDERED = "The certificate of node {} was not ordered"


def pick_valid(latest: float, answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the certificate of the node, without domains if it expires before `latest`."""
    found = pick_own(answer, keys)
    if found is None:
        return None
    expires = int(found.get("notafter") or 0)
    return {**found, "force": found.get("san") if expires >= latest else ()}


ACME_CERTIFICATE = replace(
    NODE_CERTIFICATE,
    kind="acme_certificate",
    label_as="the certificate of node {node}",
    # PVE orders the domains of the node's configuration; the parameter force replaces the files.
    fields=(
        Field(
            "domains",
            "force",
            want=as_is,
            read=lambda value: frozenset(str(one).lower() for one in value or ()),
            send=lambda _domains: 1,
            show=sorted,
        ),
    ),
    read_only=tuple(one for one in NODE_CERTIFICATE.read_only if one.option != "names"),
    secrets=(),
    precheck=None,
    create_call=_ORDER,
    update_call=_ORDER,
    delete_call=replace(_ORDER, method="DELETE"),
)


def run_certificate(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Order the certificate of a node if its domains or its validity require a new one."""
    node = validate.node(params["node"])
    days = validate.number(params["renew_days"], 0, 365, "renew_days")
    table = replace(ACME_CERTIFICATE, pick=partial(pick_valid, client.clock.time() + days * _DAY))
    return run(table, _with_domains(params, node, client), client, check_mode)


def _with_domains(params: Mapping[str, Any], node: str, client: Api) -> dict[str, Any]:
    """Return the options with the domains of the node's configuration.

    Raises ConfigurationError if it has none.
    """
    if params.get("state") == "absent":
        return dict(params)
    attempted = f"Could not read the settings of node {node}"
    config = client.get("nodes", node, "config", attempted=attempted) or {}
    domains = frozenset(acme_of(config).domains)
    if not domains:
        raise ConfigurationError(
            attempted=_NOT_ORDERED.format(node),
            answer="the configuration of the node has no domain",
            next_step="Set acme with pve.fleet.node first",
            reason="no domains",
        )
    return {**params, "domains": domains}
