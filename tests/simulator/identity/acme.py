"""Plugins of ACME, and certificates that a node orders with them.

Source: pve-manager, API2/ACMEPlugin.pm, API2/ACME.pm and NodeConfig.pm. The CA of the simulation
issues what is ordered.
"""

from __future__ import annotations

import datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ..cluster.sections import SectionFile, SectionType
from ..core.api import Ctx, api
from ..core.tasks import Task
from ..errors import ApiError, ParamError, PveError
from ..schema.formats import split_list
from ..schema.named_hashes import HASHES
from ..schema.validate import split_property_string
from .acme_accounts import accounts_of
from .certificates import own_files

BASE = "/cluster/acme/plugins"
ORDER = "/nodes/{node}/certificates/acme/certificate"
_COMMON = frozenset({"nodes", "disable"})
_DNS = frozenset({"api", "data", "validation-delay"})
_TYPES = {
    "standalone": SectionType("standalone", frozenset(), _COMMON),
    "dns": SectionType("dns", frozenset({"api"}), _COMMON | _DNS),
}
_VALID = datetime.timedelta(days=90)
_DOMAINS = 6


def _file(ctx: Ctx) -> SectionFile:
    """The plugins; one for the web server of the node is always there."""
    file: SectionFile = ctx.cluster.sections.setdefault("acme", SectionFile())
    file.entries.setdefault("standalone", {"type": "standalone"})
    return file


@api(f"GET {BASE}")
def listing(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The plugins with their data."""
    file = _file(ctx)
    return [
        {**entry, "plugin": name, "digest": file.digest}
        for name, entry in file.entries.items()
        if p.get("type") in (None, entry["type"])
    ]


@api(f"GET {BASE}/{{id}}")
def read(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """One plugin."""
    file = _file(ctx)
    if p["id"] not in file.entries:
        raise PveError(f"ACME plugin '{p['id']}' not defined")
    return {**file.entries[p["id"]], "plugin": p["id"], "digest": file.digest}


@api(f"POST {BASE}")
def create(ctx: Ctx, p: dict[str, Any]) -> None:
    """Add a plugin."""
    name, kind, file = p.pop("id"), p.pop("type"), _file(ctx)
    if name in file.entries:
        raise PveError(f"ACME plugin ID '{name}' already exists")
    file.entries[name] = _TYPES[kind].check(p, create=True)


@api(f"PUT {BASE}/{{id}}")
def update(ctx: Ctx, p: dict[str, Any]) -> None:
    """Change a plugin."""
    name, digest, file = p.pop("id"), p.pop("digest", None), _file(ctx)
    delete = split_list(p.pop("delete", None) or "")
    file.check_digest(digest)
    if name not in file.entries:
        raise PveError(f"ACME plugin ID '{name}' does not exist")
    entry = dict(file.entries[name])
    kind = _TYPES[entry["type"]]
    kind.delete(entry, delete, {})
    file.entries[name] = {**entry, **kind.check(p, create=False)}


@api(f"DELETE {BASE}/{{id}}")
def remove(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove a plugin, if there is one."""
    _file(ctx).entries.pop(p["id"], None)


def _settings(ctx: Ctx, node: str) -> tuple[str, dict[str, str]]:
    """The account of a node, and the plugin of each of its domains."""
    config = ctx.cluster.nodes[node].config
    parts = dict(part.partition("=")[::2] for part in config.get("acme", "").split(","))
    domains = dict.fromkeys(filter(None, parts.get("domains", "").lower().split(";")), "standalone")
    for number in range(_DOMAINS):
        text = config.get(f"acmedomain{number}")
        if text:
            keys = split_property_string(HASHES["acmedomain"], text)
            domains[keys["domain"].lower()] = keys.get("plugin", "standalone")
    if not domains:
        raise ApiError(400, "ACME domain list in node configuration is missing!\n")
    return parts.get("account") or "default", domains


def _issued(names: list[str]) -> tuple[str, str]:
    """A certificate of the CA for these names, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Simulated CA")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM).decode(), private.decode()


def _start(ctx: Ctx, node: str, kind: str, wanted: tuple[str, dict[str, str]]) -> str:
    """Start the task that orders the certificate and replaces the one of the node."""
    account, domains = wanted

    async def work(_task: Task) -> None:
        if account not in accounts_of(ctx.cluster):
            raise PveError(f"ACME account config file '{account}' does not exist.")
        for domain, plugin in domains.items():
            if plugin not in _file(ctx).entries:
                raise PveError(f"plugin '{plugin}' for domain '{domain}' not found!")
        certificate, key = _issued(list(domains))
        own_files(ctx, node).update(pem=certificate, key=key)

    return ctx.task(node, kind, "", work)


@api(f"POST {ORDER}")
def order(ctx: Ctx, p: dict[str, Any]) -> str:
    """Order a certificate."""
    if not p.get("force") and "pem" in own_files(ctx, p["node"]):
        raise ParamError({"force": "Custom certificate exists but 'force' is not set."})
    return _start(ctx, p["node"], "acmenewcert", _settings(ctx, p["node"]))


@api(f"PUT {ORDER}")
def renew(ctx: Ctx, p: dict[str, Any]) -> str:
    """Order the certificate of the node again."""
    files = own_files(ctx, p["node"])
    if "pem" not in files:
        raise PveError("No current (custom) certificate found, please order a new certificate!")
    end = x509.load_pem_x509_certificate(files["pem"].encode()).not_valid_after_utc
    soon = end.timestamp() < ctx.cluster.now() + 30 * 86400
    if not soon and not p.get("force"):
        raise ParamError(
            {
                "force": "Certificate does not expire within the next 30 days, and 'force' is not"
                " set."
            }
        )
    return _start(ctx, p["node"], "acmerenew", _settings(ctx, p["node"]))


@api(f"DELETE {ORDER}")
def revoke(ctx: Ctx, p: dict[str, Any]) -> str:
    """Revoke the certificate of the node and remove it."""
    node = p["node"]
    _settings(ctx, node)

    async def work(_task: Task) -> None:
        own_files(ctx, node).clear()

    return ctx.task(node, "acmerevoke", "", work)
