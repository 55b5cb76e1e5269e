# Copyright (c) 2026, the pve.fleet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of own certificates of nodes and of certificates from an ACME CA, and the work of modules
node_certificate and acme_certificate (pve-manager: PVE/API2/Certificates.pm, ACME.pm,
PVE/CertHelpers.pm).
"""

from __future__ import annotations

import hashlib
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...._foundation.api.interface import Api
from ...._foundation.core import validate
from ...._foundation.core.errors import ConfigurationError, ValidationFailed
from ...._foundation.core.result import Result
from ...._foundation.core.times import iso
from ...._foundation.resource.run import read_values, run
from ...._foundation.resource.table import (
    Call,
    DesiredResource,
    Field,
    Key,
    ResourceChange,
    Table,
    as_is,
)
from ...._foundation.resource.values import secret
from ..settings.acme import acme_of

# The file of an own or an ACME certificate; PVE creates the other certificates of a node itself.
FILE = "pveproxy-ssl.pem"
_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)
_CUSTOM = ("nodes", "{node}", "certificates", "custom")
_ORDER = Call(
    ("nodes", "{node}", "certificates", "acme", "certificate"), method="POST", is_task=True
)
_DAY = 86400


@dataclass(frozen=True)
class CertificateChain:
    """A certificate and its chain. Chains are equal if their first certificates are equal, because
    Proxmox VE returns only the first one.
    """

    fingerprint: str = ""
    text: str = field(default="", compare=False)


def read_chain(value: Any) -> CertificateChain:
    """Return the chain in a PEM text. Raises ValidationFailed."""
    text = str(value).strip()
    blocks = list(_BLOCK.finditer(text))
    if any("PRIVATE KEY" in block[1] for block in blocks):
        raise refused("it has a private key", "Put it into the option private_key")
    if not blocks or any(block[1] != "CERTIFICATE" for block in blocks):
        raise refused("it is not a certificate in PEM format", "Give it the content of the file")
    try:
        binary = ssl.PEM_cert_to_DER_cert(blocks[0][0])
    except ValueError as error:
        raise refused("its certificate cannot be read", "Check the file") from error
    digest = hashlib.sha256(binary).hexdigest().upper()
    pairs = [digest[index : index + 2] for index in range(0, len(digest), 2)]
    return CertificateChain(":".join(pairs), "\n".join(block[0] for block in blocks) + "\n")


def refused(answer: str, next_step: str, option: str = "certificates") -> ValidationFailed:
    """Return a refusal that never shows the text."""
    return ValidationFailed(f"The option {option} was refused: {answer}", next_step, option)


def read_key(value: str, option: str) -> str:
    """Return a private key in PEM format. Raises ValidationFailed, which never shows the text."""
    blocks = [block for block in _BLOCK.finditer(str(value)) if "PRIVATE KEY" in block[1]]
    if len(blocks) != 1:
        raise refused("it is not one private key in PEM format", "Check the file", option)
    if "ENCRYPTED" in blocks[0][0].upper():
        raise refused("it is encrypted, and the node could not use it", "Decrypt it", option)
    return blocks[0][0] + "\n"


def pick_own(answer: Any, keys: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the own or ordered certificate of a node, with the keys, or None."""
    for row in answer or []:
        if row.get("filename") == FILE:
            return {**row, **keys, "certificates": row}
    return None


def _read(row: Any) -> CertificateChain:
    if not row:
        return CertificateChain()
    text = str(row.get("pem") or "").strip()
    return CertificateChain(str(row.get("fingerprint") or "").upper(), f"{text}\n" if text else "")


def precheck(_client: Api, desired: DesiredResource, change: ResourceChange) -> tuple[str, ...]:
    """Raise ValidationFailed for a new certificate without a key, which PVE refuses."""
    if change.creates and not desired.secrets.get("private_key"):
        raise ValidationFailed(
            f"{NODE_CERTIFICATE.label(desired.keys)} was not created: the node has no key for it",
            "Set private_key",
            "private_key",
        )
    return ()


def _time(option: str, name: str) -> Field:
    return Field(option, name, read=lambda value: iso(int(value)) if value else None)


NODE_CERTIFICATE = Table(
    kind="node_certificate",
    kinds="certificates",
    label_as="the certificate of node {node}",
    keys=(Key("node", "node", validate.node),),
    fields=(
        Field(
            "certificates",
            "certificates",
            want=read_chain,
            read=_read,
            send=lambda chain: chain.text,
            show=lambda chain: chain.text,
            always=True,
            required=True,
        ),
    ),
    read_only=(
        Field("fingerprint", "fingerprint"),
        Field("subject", "subject"),
        Field("issuer", "issuer"),
        Field("names", "san", read=lambda value: sorted(map(str, value or ()))),
        _time("not_before", "notbefore"),
        _time("not_after", "notafter"),
    ),
    secrets=(secret("private_key", "key", check=read_key),),
    pick=pick_own,
    precheck=precheck,
    read_call=Call(("nodes", "{node}", "certificates", "info")),
    create_call=Call(_CUSTOM, {"force": "0"}, "POST"),
    update_call=Call(_CUSTOM, {"force": "1"}, "POST"),
    delete_call=Call(_CUSTOM, {}, "DELETE"),
)


def run_certificate(params: Mapping[str, Any], client: Api, check_mode: bool = False) -> Result:
    """Bring the own certificate of a node to the desired state and return the outcome."""
    table = NODE_CERTIFICATE
    if params.get("restart"):  # its calls also restart the web server of the node
        table = replace(
            table,
            create_call=_with_restart(table.create_call),
            update_call=_with_restart(table.update_call),
            delete_call=_with_restart(table.delete_call),
        )
    return run(table, _with_key(params, client), client, check_mode)


def _with_restart(call: Call) -> Call:
    return replace(call, data={**call.data, "restart": "1"})


def _with_key(params: Mapping[str, Any], client: Api) -> Mapping[str, Any]:
    """Return the options, which also write the key if the certificate changes."""
    if params.get("private_key") is None or params.get("certificates") is None:
        return params
    wanted = read_chain(params["certificates"])
    known = read_values(NODE_CERTIFICATE, client, {"node": validate.node(params["node"])})
    if known is None or known["certificates"] == wanted:
        return params
    return {**params, "update_secrets": "always"}


def secrets_in(arguments: Mapping[str, Any]) -> set[str]:
    """Return a private key that was given as a certificate (pure)."""
    text = str(arguments.get("certificates") or "")
    return {text} if "PRIVATE KEY" in text else set()


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


def run_acme_certificate(
    params: Mapping[str, Any], client: Api, check_mode: bool = False
) -> Result:
    """Order the certificate of a node if its domains or its validity require a new one.

    Raises ConfigurationError if the configuration of the node has no domains.
    """
    node = validate.node(params["node"])
    days = validate.number(params["renew_days"], 0, 365, "renew_days")
    table = replace(ACME_CERTIFICATE, pick=partial(pick_valid, client.clock.time() + days * _DAY))
    if params.get("state") == "absent":
        return run(table, params, client, check_mode)
    attempted = f"Could not read the settings of node {node}"
    config = client.get("nodes", node, "config", attempted=attempted) or {}
    domains = frozenset(acme_of(config).domains)
    if not domains:
        raise ConfigurationError(
            f"The certificate of node {node} was not ordered: the configuration of the node has "
            "no domain",
            "Set acme with pve.fleet.node first",
            "no domains",
        )
    return run(table, {**params, "domains": domains}, client, check_mode)
