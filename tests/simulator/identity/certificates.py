"""Certificates of nodes: that of the cluster, and an own one.

Source: pve-manager, API2/Certificates.pm and CertHelpers.pm; pve-common, Certificate.pm.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from ..core.api import Ctx, api
from ..errors import ParamError, PveError

OWN = "pveproxy-ssl.pem"
_EXISTS = "Custom certificate {}file exists but force flag is not set.\n"
_FAILED = "Setting certificate files failed - unable to read certificate from '{}'\n"


def own_files(ctx: Ctx, node: str) -> dict[str, str]:
    """The own certificate of a node and its key, in PEM format."""
    files: dict[str, str] = ctx.cluster.sections.setdefault("certificates", {}).setdefault(node, {})
    return files


def _info(text: str, filename: str) -> dict[str, Any]:
    """What PVE says of the first certificate of a file."""
    certificate = x509.load_pem_x509_certificate(text.encode())
    digest = certificate.fingerprint(hashes.SHA256()).hex().upper()
    pem = certificate.public_bytes(serialization.Encoding.PEM).decode().rstrip("\n")
    return {
        "filename": filename,
        "fingerprint": ":".join(digest[index : index + 2] for index in range(0, 64, 2)),
        "subject": _name(certificate.subject),
        "issuer": _name(certificate.issuer),
        "notbefore": int(certificate.not_valid_before_utc.timestamp()),
        "notafter": int(certificate.not_valid_after_utc.timestamp()),
        "san": _names(certificate),
        "pem": pem,
        **_key_info(certificate.public_key()),
    }


def _name(name: x509.Name) -> str:
    return "".join(f"/{one.rfc4514_attribute_name}={one.value!s}" for one in name)


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return [str(name.value) for name in found.value]


def _key_info(key: Any) -> dict[str, Any]:
    if isinstance(key, rsa.RSAPublicKey):
        return {"public-key-type": "rsaEncryption", "public-key-bits": key.key_size}
    if isinstance(key, ec.EllipticCurvePublicKey):
        return {"public-key-type": "id-ecPublicKey", "public-key-bits": key.key_size}
    return {}


@api("GET /nodes/{node}/certificates")
def index(_ctx: Ctx, _p: dict[str, Any]) -> list[dict[str, str]]:
    """The parts."""
    return [{"name": "acme"}, {"name": "custom"}, {"name": "info"}]


@api("GET /nodes/{node}/certificates/info")
def info(ctx: Ctx, p: dict[str, Any]) -> list[dict[str, Any]]:
    """The certificates of the node. All nodes show the one of the server. Of the CA of the cluster, only
    the fingerprint is known (pve-manager: API2/Certificates.pm, info).
    """
    digest = hashlib.sha256(ctx.sim.server_pem.encode()).hexdigest().upper()
    fingerprint = ":".join(digest[index : index + 2] for index in range(0, 64, 2))
    found: list[dict[str, Any]] = [{"filename": "pve-root-ca.pem", "fingerprint": fingerprint}]
    found.append(_info(ctx.sim.server_pem, "pve-ssl.pem"))
    files = own_files(ctx, p["node"])
    if "pem" in files:
        found.append(_info(files["pem"], OWN))
    return found


@api("POST /nodes/{node}/certificates/custom")
def upload(ctx: Ctx, p: dict[str, Any]) -> dict[str, Any]:
    """Write an own certificate; without a key the existing one stays."""
    files, force = own_files(ctx, p["node"]), p.get("force")
    key = p.get("key")
    if not key and "key" not in files:
        raise ParamError({"key": "Attempted to upload custom certificate without (existing) key."})
    if not force and "pem" in files:
        raise PveError(_EXISTS.format(""))
    if not force and "key" in files:
        raise PveError(_EXISTS.format("key "))
    try:
        found = _info(p["certificates"], OWN)
    except ValueError as problem:
        path = f"/etc/pve/nodes/{p['node']}/{OWN}"
        raise PveError(_FAILED.format(path)) from problem
    files["pem"] = p["certificates"]
    if key:
        files["key"] = key
    return found


@api("DELETE /nodes/{node}/certificates/custom")
def remove(ctx: Ctx, p: dict[str, Any]) -> None:
    """Remove the own certificate and its key, if there are any."""
    own_files(ctx, p["node"]).clear()
